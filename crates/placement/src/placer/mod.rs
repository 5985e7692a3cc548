//! A policy at work on a volume: what happens goes in, and its wishes become relocations within a budget.
//!
//! 1. Whoever runs queries tells of them, of their I/Os, and of passing time ([`Event::Tick`], about once a second).
//! 2. The policy's wishes wait here, by their order and then by age. [`Placer::begin`] hands out the next one,
//!    [`Wish::run`] does it, and [`Placer::finish`] tells the policy what came of it; how many run at once, and from
//!    where, is up to the caller, so it works on any runtime. [`Placer::relocate`] does all three for one wish at a
//!    time.
//! 3. Every relocation carries the policy's name, its reason and its expected gain to the volume, which keeps them
//!    (`tanada_volume::Object::explain`).
//! 4. What has been learned is handed out ([`Placer::memory`]) and taken over again ([`Placer::remember`]), by the
//!    objects' names.
//!
//! Invariants: a wish is done or refused once, and the policy is told so. What lies in the fast class when an object is
//! added is known to the policy, and its room is the policy's to use; so is, from one session and policy to the next,
//! whether a policy brought it there. What is pinned there is not, and its room is nobody else's: the policy is told of
//! neither, as long as the pin holds.

mod forecast;
mod lasting;
mod wish;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::sync::{Arc, Mutex};

use tanada_volume::{Budget, ClassInfo, Object, Volume};

use crate::action::{Action, Decision, Source};
use crate::costs::Costs;
use crate::event::{Context, Event, Io, IoKind};
use crate::footprint::{Cause, QueryId};
use crate::layout::{ChunkNo, Layout, ObjectNo, Rule, Tier};
use crate::memory::Memory;
use crate::policy::{POLICIES, Policy, policy};
use crate::{Error, Result};

pub use forecast::{Forecast, PlannedMove};
pub use lasting::ChunkCount;
pub use wish::{Placed, Wish, WishOutcome};

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

/// An object that is placed.
#[derive(Debug)]
struct Member {
    object: Object,
    /// What the caller ruled, besides what the object's attributes say.
    rule: Rule,
    /// Its chunks in the fast class or on their way there.
    fast_chunks: u32,
    /// Those that lie there, if it is pinned there.
    pinned_chunks: u32,
}

/// Steers a volume by a policy.
#[derive(Debug)]
pub struct Placer {
    options: PlacerOptions,
    volume: Volume,
    policy: Box<dyn Policy>,
    layout: Layout,
    /// By number; `None` for one that is remembered and has not come yet.
    members: Vec<Option<Member>>,
    /// Those that have not come, by name.
    absent: HashMap<String, ObjectNo>,
    /// What was learned before.
    remembered: Memory,
    /// The same as it was before it faded, as long as no query has begun since.
    unfaded: Option<Memory>,
    /// Chunks that this policy or one before has brought to the fast class, by number. Some may have gone since.
    brought: BTreeSet<u32>,
    /// Chunks of the fast class that were free, and those that lay there already.
    free: u32,
    found: u32,
    /// Chunks of the fast class that objects have which are pinned there, the sum of theirs.
    pinned: u32,
    /// Numbers of the two classes.
    fast: u8,
    slow: u8,
    /// Whether it takes chunks: it is not drained, and none of its devices is missing. Looked at when a query begins.
    is_open: bool,
    now_ns: u64,
    waiting: BinaryHeap<Reverse<(u32, u64)>>,
    wishes: BTreeMap<u64, Decision>,
    count: u64,
    /// Handed out and neither finished nor abandoned.
    running: BTreeMap<u64, Decision>,
    /// Chunks that are on their way to the fast class for the placers before, by number.
    former: BTreeSet<u32>,
    /// Wishes that were dropped.
    dropped: Arc<Mutex<Vec<u64>>>,
}

/// Whether the class takes chunks.
fn is_open(class: &ClassInfo) -> bool {
    !class.is_draining && !class.is_failed && class.devices.iter().all(Option::is_some)
}

impl Placer {
    /// A policy for `volume`.
    ///
    /// # Errors
    /// If there is no such policy or class.
    pub fn new(volume: &Volume, options: PlacerOptions) -> Result<Placer> {
        let name = options.policy.split(':').next().unwrap_or_default().trim();
        let is_known = POLICIES.iter().any(|registered| registered.name == name);
        if !is_known {
            let known = POLICIES.iter().map(|registered| registered.name).collect::<Vec<_>>().join(", ");
            return Err(Error::invalid(format!(
                "there is no placement policy {name:?} for volumes; there are {known}"
            )));
        }
        let policy = policy(&options.policy, options.seed)?;
        let classes = volume.classes();
        let class = |name: &str| {
            let names = || classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>().join(", ");
            let missing = || Error::invalid(format!("the volume has no class {name:?}; it has {}", names()));
            classes.iter().find(|class| class.name == name).ok_or_else(missing)
        };
        let slow = class(&options.slow)?.number;
        let fast = class(&options.fast)?;
        Ok(Placer {
            policy,
            layout: Layout::new(volume.chunk_bytes()),
            members: Vec::new(),
            absent: HashMap::new(),
            remembered: Memory::default(),
            unfaded: None,
            brought: BTreeSet::new(),
            free: u32::try_from(fast.chunks.saturating_sub(fast.taken)).unwrap_or(u32::MAX),
            found: 0,
            pinned: 0,
            fast: fast.number,
            slow,
            is_open: is_open(fast),
            volume: volume.clone(),
            options,
            now_ns: 0,
            waiting: BinaryHeap::new(),
            wishes: BTreeMap::new(),
            count: 0,
            running: BTreeMap::new(),
            former: BTreeSet::new(),
            dropped: Arc::default(),
        })
    }

    /// A further object to be placed. Its pin and quota are obeyed, and the policy learns what of it lies in the fast
    /// class.
    pub fn add(&mut self, object: Object) -> ObjectNo {
        let (name, bytes) = (object.name(), object.size_bytes());
        let no = match self.absent.remove(&name) {
            Some(no) => {
                self.layout.grow(no, bytes);
                no
            }
            None => self.layout.add(&name, bytes),
        };
        self.members.resize_with(self.layout.objects() as usize, || None);
        let found = self.found_in(&object);
        self.found += found.len() as u32;
        let fast_chunks = found.len() as u32;
        self.members[no.0 as usize] =
            Some(Member { object, rule: Rule::default(), fast_chunks, pinned_chunks: 0 });
        if !self.refresh_rule(no) {
            self.tell_all_found(no, found);
        }
        no
    }

    /// The policy learns of chunks that have come to the fast class without it.
    fn tell_all_found(&mut self, no: ObjectNo, found: Vec<(u64, Action)>) {
        for (place, action) in found {
            if let Some(chunk) = self.layout.chunk(no, place.saturating_mul(self.layout.chunk_bytes())) {
                self.tell_found(chunk, action);
            }
        }
    }

    /// The policy learns of a chunk that has come to the fast class without it.
    fn tell_found(&mut self, chunk: ChunkNo, action: Action) {
        self.handle(&Event::Done { chunk, action, is_done: true });
        if self.brought.contains(&chunk.0) {
            self.policy.was_brought(chunk);
        }
    }

    /// Chunks of the object that are in the fast class, and what would have brought them there.
    fn found_in(&self, object: &Object) -> Vec<(u64, Action)> {
        let last = object.size_bytes().div_ceil(self.layout.chunk_bytes());
        let found = object.chunks(0..last).into_iter().filter_map(|chunk| {
            let is_fast = |place: Option<tanada_volume::Place>| place.is_some_and(|it| it.class == self.fast);
            match (is_fast(chunk.home), is_fast(chunk.mirror)) {
                (true, _) => Some((chunk.no, Action::Promote(Source::Copy))),
                (false, true) => Some((chunk.no, Action::Mirror(Source::Copy))),
                (false, false) => None,
            }
        });
        found.collect()
    }

    /// What the caller rules about an object, besides what its attributes say: the object's pin goes before this one,
    /// and the lower quota counts.
    pub fn set_rule(&mut self, object: ObjectNo, rule: Rule) {
        if let Some(Some(member)) = self.members.get_mut(object.0 as usize) {
            member.rule = rule;
            self.obey(object);
        }
    }

    /// Reads the object's attributes again; the policy learns what of the object is none of its business any more, or
    /// is from now on.
    fn obey(&mut self, no: ObjectNo) {
        let was_pinned = self.layout.rule(no).pin == Some(Tier::Fast);
        let is_pinned = self.refresh_rule(no);
        if was_pinned == is_pinned {
            return;
        }
        let Some(found) = self.object(no).map(|object| self.found_in(object)) else { return };
        if is_pinned {
            for (place, _) in found {
                let offset = place.saturating_mul(self.layout.chunk_bytes());
                if let Some(chunk) = self.layout.chunk(no, offset) {
                    self.handle(&Event::Done { chunk, action: Action::Demote, is_done: true });
                }
            }
        } else {
            self.tell_all_found(no, found);
        }
    }

    /// Counts the chunks of the fast class that the object has, if it is pinned there.
    fn recount_pinned(&mut self, no: ObjectNo) {
        let Some(Some(member)) = self.members.get(no.0 as usize) else { return };
        let now = match self.layout.rule(no).pin {
            Some(Tier::Fast) => self.found_in(&member.object).len() as u32,
            _ => 0,
        };
        if let Some(Some(member)) = self.members.get_mut(no.0 as usize) {
            let before = std::mem::replace(&mut member.pinned_chunks, now);
            self.pinned = (self.pinned + now).saturating_sub(before);
        }
    }

    /// Reads the object's attributes again; whether it is pinned to the fast class.
    fn refresh_rule(&mut self, no: ObjectNo) -> bool {
        let Some(Some(Member { object, rule, .. })) = self.members.get(no.0 as usize) else { return false };
        let attributes = object.attributes();
        let tier = |class: String| if class == self.options.fast { Tier::Fast } else { Tier::Slow };
        let quota = attributes.quota_bytes.map(|bytes| bytes / self.layout.chunk_bytes());
        let quota = quota.map(|chunks| u32::try_from(chunks).unwrap_or(u32::MAX));
        let effective = Rule {
            pin: attributes.pin.map(tier).or(rule.pin),
            quota_chunks: quota.into_iter().chain(rule.quota_chunks).min(),
        };
        self.layout.set_rule(no, effective);
        self.recount_pinned(no);
        effective.pin == Some(Tier::Fast)
    }

    /// The objects that are placed, in the order of their numbers.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectNo, &Object)> {
        let all = (0..).map(ObjectNo).zip(&self.members);
        all.filter_map(|(no, member)| member.as_ref().map(|member| (no, &member.object)))
    }

    /// The object of a chunk, and which of its chunks it is, as far as the object has come and is that long.
    fn member_of(&self, chunk: ChunkNo) -> Option<(ObjectNo, &Member, u64)> {
        let (no, place) = self.layout.owner(chunk)?;
        let member = self.members.get(no.0 as usize)?.as_ref()?;
        let begins = place.checked_mul(self.layout.chunk_bytes())?;
        (begins < member.object.size_bytes()).then_some((no, member, place))
    }

    /// Its number and that of a chunk of it, if it is placed here.
    fn chunk_in(&self, object: &Object, place: u64) -> Option<(ObjectNo, ChunkNo)> {
        let (no, _) = self.objects().find(|(_, member)| member.id() == object.id())?;
        let chunk = self.layout.chunk(no, place.checked_mul(self.layout.chunk_bytes())?)?;
        Some((no, chunk))
    }

    /// Whether the chunk lies in the fast class, in whatever form.
    fn is_fast(&self, chunk: ChunkNo) -> bool {
        self.member_of(chunk).is_some_and(|(_, member, place)| {
            let infos = member.object.chunks(place..place + 1);
            infos.iter().flat_map(|info| [info.home, info.mirror]).flatten().any(|it| it.class == self.fast)
        })
    }

    fn object(&self, no: ObjectNo) -> Option<&Object> {
        self.members.get(no.0 as usize)?.as_ref().map(|member| &member.object)
    }

    /// Chunks of the fast class that the policy may fill: those that were free, and those of its objects that lie there
    /// already, without what is pinned there.
    pub fn capacity(&self) -> u32 {
        if !self.is_open {
            return 0;
        }
        let all = self.free.saturating_add(self.found).saturating_sub(self.pinned);
        self.options.most_chunks.map_or(all, |most| most.min(all))
    }

    /// The policy's name, without its options.
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// The objects' chunks, as the policy numbers them.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Wishes that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Tells the policy of a query's beginning or end, or of passing time. `now_ns` never goes backwards. When a query
    /// begins, the objects' attributes are read again.
    pub fn tell(&mut self, now_ns: u64, event: &Event<'_>) {
        self.now_ns = self.now_ns.max(now_ns);
        if matches!(event, Event::QueryBegins { .. }) {
            self.unfaded = None;
            let classes = self.volume.classes();
            self.is_open = classes.iter().find(|class| class.number == self.fast).is_some_and(is_open);
            (0..self.layout.objects()).for_each(|no| self.obey(ObjectNo(no)));
        }
        self.give_up_dropped();
        self.handle(event);
    }

    fn handle(&mut self, event: &Event<'_>) {
        let mut decisions = Vec::new();
        let (now_ns, capacity) = (self.now_ns, self.capacity());
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.options.costs };
        self.policy.handle(&context, event, &mut decisions);
        self.wish(decisions);
    }

    /// From now on what takes the policy longer than a moment waits for [`Placer::think`].
    pub fn defer(&mut self) {
        self.policy.defer();
    }

    /// Whether [`Placer::think`] has something to do.
    pub fn wants_to_think(&self) -> bool {
        self.policy.wants_to_think()
    }

    /// When [`Placer::think`] will have something to do, though nothing happens until then.
    pub fn thinks_at_ns(&self) -> Option<u64> {
        self.policy.thinks_at_ns()
    }

    /// Lets the policy do what it has put off. `now_ns` never goes backwards.
    pub fn think(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let mut decisions = Vec::new();
        let capacity = self.capacity();
        let context =
            Context { now_ns: self.now_ns, layout: &self.layout, capacity, costs: &self.options.costs };
        self.policy.think(&context, &mut decisions);
        self.wish(decisions);
    }

    /// Tells a policy that learns of a run before those that it is to act on.
    pub fn train(&mut self, event: &Event<'_>) {
        self.unfaded = None;
        let (now_ns, capacity) = (self.now_ns, self.capacity());
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.options.costs };
        self.policy.train(&context, event);
    }

    /// The training is over: the policy begins, and says what it wants in the fast class beforehand. `now_ns` never
    /// goes backwards.
    pub fn prepare(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let mut decisions = Vec::new();
        let (now_ns, capacity) = (self.now_ns, self.capacity());
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.options.costs };
        self.policy.begin_session(&context, &mut decisions);
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
        if let Some(object) = self.object(io.object) {
            let bytes = object.size_bytes().min(end);
            self.layout.grow(io.object, bytes);
        }
        let mut offset = io.offset;
        while offset < end {
            let next =
                (offset / self.layout.chunk_bytes() + 1).saturating_mul(self.layout.chunk_bytes()).min(end);
            if let Some(chunk) = self.layout.chunk(io.object, offset) {
                let ObjectIo { kind, is_sequential, query, cause, .. } = *io;
                let bytes = (next - offset) as u32;
                let inside = (offset % self.layout.chunk_bytes()) as u32;
                let io = Io { chunk, offset: inside, kind, is_sequential, bytes, query, cause };
                self.tell(now_ns, &Event::Io(io));
            }
            offset = next;
        }
    }
}
