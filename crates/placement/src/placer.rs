//! A policy at work on a volume: what happens goes in, and its wishes become relocations within a budget.
//!
//! 1. Whoever runs queries tells of them, of their I/Os, and of passing time.
//! 2. The policy's wishes wait here, by their order and then by age. [`Placer::relocate`] does the next one and tells the policy what came of it; who
//!    calls it, how often and from where, is up to the caller, so it runs on any runtime.
//! 3. Every relocation carries the policy's name, its reason and its expected gain to the volume, which keeps them
//!    (`tanada_volume::Object::explain`).
//!
//! Invariant: a wish is done or refused once, and the policy is told so.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use tanada_volume::{Budget, Object, Relocation, Volume};

use crate::action::{Action, Decision};
use crate::costs::Costs;
use crate::event::{Context, Event, Io, IoKind};
use crate::footprint::{Cause, QueryId};
use crate::layout::{Layout, ObjectNo, Rule, Tier};
use crate::policy::{POLICIES, Policy, policy};
use crate::{Error, Result};

/// Between which classes, and how.
#[derive(Debug, Clone)]
pub struct PlacerOptions {
    /// The policy, with its options. One that places chunks.
    pub policy: String,
    /// The class that it fills.
    pub fast: String,
    /// The class that chunks are moved down to.
    pub slow: String,
    /// What the classes' devices are good at.
    pub costs: Costs,
    /// Limits of each relocation.
    pub budget: Budget,
    /// Chunks of the fast class that the policy may fill; all that are free when it begins, if there is no limit.
    pub most_chunks: Option<u32>,
    /// For what the policy draws.
    pub seed: u64,
}

/// An I/O on an object, as the layer above saw it.
#[derive(Debug, Clone, Copy)]
pub struct ObjectIo {
    /// Which object.
    pub object: ObjectNo,
    /// Where.
    pub offset: u64,
    /// Bytes.
    pub bytes: u32,
    /// Read or write.
    pub kind: IoKind,
    /// Whether it began where an earlier one of its stream ended.
    pub is_sequential: bool,
    /// Who wanted it.
    pub query: QueryId,
    /// For which index.
    pub cause: Cause,
}

/// What became of a wish.
#[derive(Debug)]
pub struct Placed {
    /// The wish.
    pub decision: Decision,
    /// Bytes that were copied for it.
    pub bytes: u64,
    /// Why it was not done.
    pub refusal: Option<tanada_volume::Error>,
}

/// Steers a volume by a policy.
#[derive(Debug)]
pub struct Placer {
    options: PlacerOptions,
    policy: Box<dyn Policy>,
    layout: Layout,
    objects: Vec<Object>,
    capacity: u32,
    now_ns: u64,
    waiting: BinaryHeap<Reverse<(u32, u64)>>,
    wishes: BTreeMap<u64, Decision>,
    count: u64,
}

impl Placer {
    /// A policy for `volume`. What lies in the fast class already is left alone.
    ///
    /// # Errors
    /// If there is no such policy or class, or the policy is one that places blocks.
    pub fn new(volume: &Volume, options: PlacerOptions) -> Result<Placer> {
        let policy = policy(&options.policy, options.seed)?;
        let is_live =
            POLICIES.iter().any(|registered| registered.name == policy.name() && registered.is_live);
        if !is_live {
            let live =
                POLICIES.iter().filter(|registered| registered.is_live).map(|registered| registered.name);
            return Err(Error::invalid(format!(
                "the policy {} places blocks and is for simulation; on a volume there are {}",
                policy.name(),
                live.collect::<Vec<_>>().join(", ")
            )));
        }
        let classes = volume.classes();
        let class = |name: &str| {
            let names = || classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>().join(", ");
            let missing = || Error::invalid(format!("the volume has no class {name:?}; it has {}", names()));
            classes.iter().find(|class| class.name == name).ok_or_else(missing)
        };
        class(&options.slow)?;
        let fast = class(&options.fast)?;
        let free = u32::try_from(fast.chunks.saturating_sub(fast.taken)).unwrap_or(u32::MAX);
        Ok(Placer {
            capacity: options.most_chunks.map_or(free, |most| most.min(free)),
            policy,
            layout: Layout::new(volume.chunk_bytes()),
            objects: Vec::new(),
            options,
            now_ns: 0,
            waiting: BinaryHeap::new(),
            wishes: BTreeMap::new(),
            count: 0,
        })
    }

    /// A further object to be placed. Its pin is obeyed.
    pub fn add(&mut self, object: Object) -> ObjectNo {
        let no = self.layout.add(&object.name(), object.size_bytes());
        let tier = |class: String| if class == self.options.fast { Tier::Fast } else { Tier::Slow };
        let pin = object.attributes().pin.map(tier);
        self.layout.set_rule(no, Rule { pin, quota_chunks: None });
        self.objects.push(object);
        no
    }

    /// The objects' chunks, as the policy numbers them.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Wishes that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Tells the policy of a query's beginning or end, or of passing time. `now_ns` never goes backwards.
    pub fn tell(&mut self, now_ns: u64, event: &Event<'_>) {
        self.now_ns = self.now_ns.max(now_ns);
        let mut decisions = Vec::new();
        let (now_ns, capacity) = (self.now_ns, self.capacity);
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.options.costs };
        self.policy.handle(&context, event, &mut decisions);
        self.wish(decisions);
    }

    /// Tells a policy that learns of a run before those that it is to act on.
    pub fn train(&mut self, event: &Event<'_>) {
        let (now_ns, capacity) = (self.now_ns, self.capacity);
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.options.costs };
        self.policy.train(&context, event);
    }

    /// The training is over: the policy says what it wants in the fast class beforehand.
    pub fn prepare(&mut self) {
        let mut decisions = Vec::new();
        let (now_ns, capacity) = (self.now_ns, self.capacity);
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.options.costs };
        self.policy.prepare(&context, &mut decisions);
        self.wish(decisions);
    }

    fn wish(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            self.waiting.push(Reverse((decision.order, self.count)));
            self.wishes.insert(self.count, decision);
            self.count += 1;
        }
    }

    /// Tells the policy of an I/O. An object that has grown gets further chunks.
    pub fn io(&mut self, now_ns: u64, io: &ObjectIo) {
        let end = io.offset.saturating_add(u64::from(io.bytes));
        if let Some(object) = self.objects.get(io.object.0 as usize) {
            self.layout.grow(io.object, object.size_bytes().min(end));
        }
        let mut offset = io.offset;
        while offset < end {
            let next =
                (offset / self.layout.chunk_bytes() + 1).saturating_mul(self.layout.chunk_bytes()).min(end);
            if let Some(chunk) = self.layout.chunk(io.object, offset) {
                let ObjectIo { kind, is_sequential, query, cause, .. } = *io;
                let bytes = (next - offset) as u32;
                self.tell(now_ns, &Event::Io(Io { chunk, kind, is_sequential, bytes, query, cause }));
            }
            offset = next;
        }
    }

    /// Does what waits first. `None` if nothing waits.
    ///
    /// A wish that the volume refuses is no error: the policy learns of it. Dropping the future leaves the chunk where it is and the wish undone.
    pub async fn relocate(&mut self) -> Option<Placed> {
        let Reverse((_, no)) = self.waiting.pop()?;
        let decision = self.wishes.remove(&no)?;
        let outcome = self.act(&decision).await;
        let Decision { chunk, action, .. } = decision;
        let is_done = matches!(outcome, Ok(Some(_)));
        // Dropping a mirror is told to the policy only if it could not be done.
        if action != Action::DropMirror || !is_done {
            self.tell(self.now_ns, &Event::Done { chunk, action, is_done });
        }
        let (bytes, refusal) = match outcome {
            Ok(bytes) => (bytes.unwrap_or(0), None),
            Err(error) => (0, Some(error)),
        };
        Some(Placed { decision, bytes, refusal })
    }

    /// The bytes copied; `None` if there was nothing to do.
    async fn act(&self, decision: &Decision) -> tanada_volume::Result<Option<u64>> {
        let Some((no, chunk)) = self.layout.owner(decision.chunk) else { return Ok(None) };
        let Some(object) = self.objects.get(no.0 as usize) else { return Ok(None) };
        let relocation = Relocation {
            budget: self.options.budget,
            who: format!("policy {}", self.policy.name()),
            why: decision.reason.to_string(),
            gain_s: f64::from(decision.gain_s),
            progress: None,
        };
        let chunks = chunk..chunk + 1;
        let relocated = match decision.action {
            Action::Promote(_) => object.move_to(chunks, &self.options.fast, &relocation).await?,
            Action::Mirror(_) => object.mirror_to(chunks, &self.options.fast, &relocation).await?,
            Action::Demote => object.move_to(chunks, &self.options.slow, &relocation).await?,
            Action::DropMirror => {
                return object.drop_mirrors(chunks, &relocation).map(|dropped| (dropped > 0).then_some(0));
            }
            // Caches of blocks want these, and they are for simulation.
            Action::Clean | Action::Merge => return Ok(None),
        };
        Ok((relocated.done > 0).then_some(relocated.bytes))
    }
}
