//! What holds for every policy, whatever the trace.

use std::collections::HashMap;

use proptest::prelude::*;
use tanada_placement::{
    Access, Action, Cause, ChunkNo, Context, Costs, Decision, Event, Extent, Fingerprint, Footprint,
    Granularity, Io, IoKind, Layout, ObjectNo, Pattern, Policy, QueryId, Source,
};
use tanada_replay::{POLICIES, policy};

const CHUNKS: u32 = 40;

/// Something that happens, as proptest draws it.
#[derive(Debug, Clone)]
enum Step {
    Io {
        chunk: u32,
        is_write: bool,
        is_sequential: bool,
        cause: u16,
    },
    Evict {
        chunk: u32,
    },
    Query {
        statement: u64,
        first: u32,
        chunks: u32,
        pages: u64,
    },
    Tick,
    /// The oldest copy under way comes to its end.
    Done {
        fails: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let io = (0..CHUNKS, any::<bool>(), any::<bool>(), 1u16..4).prop_map(
        |(chunk, write, is_sequential, cause)| {
            // A write now and then.
            Step::Io { chunk, is_write: write && chunk % 5 == 0, is_sequential, cause }
        },
    );
    let query = (0u64..3, 0..CHUNKS, 1u32..20, 1u64..5000)
        .prop_map(|(statement, first, chunks, pages)| Step::Query { statement, first, chunks, pages });
    let step = prop_oneof![
        20 => io,
        2 => (0..CHUNKS).prop_map(|chunk| Step::Evict { chunk }),
        1 => query,
        1 => Just(Step::Tick),
        8 => any::<bool>().prop_map(|fails| Step::Done { fails }),
    ];
    proptest::collection::vec(step, 1..400)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Held {
    Arriving,
    Mirror,
    Home,
}

/// The fast class as the policy should see it, strictly: nothing is refused here but by choice, so a wish that makes no
/// sense is a failure.
struct World {
    policy: Box<dyn Policy>,
    layout: Layout,
    capacity: u32,
    held: HashMap<u32, Held>,
    pending: Vec<Decision>,
    now_ns: u64,
    query: u32,
    all: Vec<Decision>,
    written_back: u64,
}

impl World {
    fn new(name: &str, capacity: u32) -> World {
        let policy = policy(name, 3).unwrap();
        let bytes = if let Granularity::Block(bytes) = policy.granularity() { bytes } else { 1 << 20 };
        let mut layout = Layout::new(bytes);
        layout.add("a", bytes * u64::from(CHUNKS));
        let (held, pending, all) = (HashMap::new(), Vec::new(), Vec::new());
        World { policy, layout, capacity, held, pending, now_ns: 0, query: 0, all, written_back: 0 }
    }

    fn tell(&mut self, event: &Event<'_>) {
        let costs = Costs::default();
        let mut decisions = Vec::new();
        let context =
            Context { now_ns: self.now_ns, layout: &self.layout, capacity: self.capacity, costs: &costs };
        self.policy.handle(&context, event, &mut decisions);
        for decision in decisions {
            self.wish(decision);
        }
    }

    fn wish(&mut self, decision: Decision) {
        let Decision { chunk, action, .. } = decision;
        assert!(chunk.0 < CHUNKS, "{decision:?} names a chunk that is not there");
        assert!(decision.explain().len() > 10);
        self.all.push(decision);
        assert!(self.all.len() < 100_000, "{} does not come to rest", self.policy.name());
        match action {
            Action::DropMirror => {
                assert_eq!(self.held.remove(&chunk.0), Some(Held::Mirror), "{decision:?}: it has no mirror");
            }
            Action::Mirror(Source::Copy) | Action::Promote(Source::Copy) => {
                assert_eq!(self.held.insert(chunk.0, Held::Arriving), None, "{decision:?}: it is there");
                self.pending.push(decision);
            }
            Action::Mirror(_) => {
                assert_eq!(self.held.insert(chunk.0, Held::Mirror), None, "{decision:?}: it is there");
            }
            Action::Promote(_) => {
                self.held.insert(chunk.0, Held::Home);
            }
            Action::Demote | Action::Clean => {
                assert_eq!(self.held.get(&chunk.0), Some(&Held::Home), "{decision:?}: it is not there");
                self.pending.push(decision);
            }
            Action::Merge => self.pending.push(decision),
        }
        // A demotion frees its room before the copy that waits for it begins.
        let leaving = self.pending.iter().filter(|pending| pending.action == Action::Demote).count();
        assert!(
            self.held.len() - leaving.min(self.held.len()) <= self.capacity as usize,
            "{decision:?}: {} chunks in room for {}",
            self.held.len(),
            self.capacity
        );
    }

    fn done(&mut self, fails: bool) {
        if self.pending.is_empty() {
            return;
        }
        let Decision { chunk, action, .. } = self.pending.remove(0);
        let is_done = !fails;
        match (action, is_done) {
            (Action::Mirror(_), true) => self.held.insert(chunk.0, Held::Mirror),
            (Action::Promote(_), true) => self.held.insert(chunk.0, Held::Home),
            (Action::Mirror(_) | Action::Promote(_), false) | (Action::Demote, true) => {
                self.held.remove(&chunk.0)
            }
            (Action::Clean, true) => self.held.insert(chunk.0, Held::Mirror),
            _ => None,
        };
        self.written_back += u64::from(matches!(action, Action::Demote | Action::Clean));
        self.tell(&Event::Done { chunk, action, is_done });
    }

    fn step(&mut self, step: &Step) {
        self.now_ns += 50_000_000;
        match *step {
            Step::Io { chunk, is_write, is_sequential, cause } => {
                let kind = if is_write { IoKind::Write } else { IoKind::Read };
                if is_write {
                    // Copies of it that are under way are spoiled; a mirror is gone, as the volume has it.
                    while self.pending.iter().any(|pending| pending.chunk.0 == chunk) {
                        self.done(false);
                    }
                }
                // Wishes begin after the write; a policy that keeps the block says so by promoting it.
                if is_write && self.held.get(&chunk) == Some(&Held::Mirror) {
                    self.held.remove(&chunk);
                }
                let bytes = self.layout.chunk_bytes().min(16384) as u32;
                let (query, cause) = (QueryId(self.query), Cause(cause));
                self.tell(&Event::Io(Io {
                    chunk: ChunkNo(chunk),
                    offset: 0,
                    kind,
                    is_sequential,
                    bytes,
                    query,
                    cause,
                }));
            }
            Step::Evict { chunk } => self.tell(&Event::Evicted { chunk: ChunkNo(chunk), is_dirty: false }),
            Step::Query { statement, first, chunks, pages } => {
                self.tell(&Event::QueryEnds { query: QueryId(self.query) });
                self.query += 1;
                let footprint = Footprint { accesses: vec![self.access(first, chunks, pages)] };
                let (query, fingerprint) = (QueryId(self.query), Fingerprint(statement));
                self.tell(&Event::QueryBegins { query, fingerprint, depth: 1, footprint: &footprint });
            }
            Step::Tick => self.tell(&Event::Tick),
            Step::Done { fails } => self.done(fails),
        }
    }

    fn access(&self, first: u32, chunks: u32, pages: u64) -> Access {
        let bytes = self.layout.chunk_bytes();
        Access {
            object: ObjectNo(0),
            cause: Cause(1),
            extents: vec![Extent { offset: u64::from(first) * bytes, len: u64::from(chunks) * bytes }],
            pattern: Pattern::RandomLookUps { expected: pages },
            expected_pages: pages,
            earlier_pages: None,
            page_bytes: 16384,
            stage: 0,
        }
    }
}

/// Options as small and as large as they may be.
const EXTREMES: [&str; 6] = [
    "history:window=1,ahead=1024",
    "in-page-logging:unit=512B,sectors=1",
    "lru:ways=134217728,skip-sequential=1GiB",
    "write-back:dirty=100,bucket=512B,cutoff=512B",
    "learned:window=134217728,top=1",
    "benefit:write-budget=18446744073709551615",
];

/// Names with options that make caches small enough for these traces.
fn names() -> Vec<String> {
    let options = |name: &str| match name {
        "lru" => ":ways=4",
        "write-back" => ":bucket=32KiB",
        "history" => ":window=10",
        "learned" => ":window=20",
        "in-page-logging" => ":sectors=3",
        _ => "",
    };
    let usual = POLICIES.iter().map(|policy| format!("{}{}", policy.name, options(policy.name)));
    usual.chain(EXTREMES.map(str::to_owned)).collect()
}

fn run(name: &str, capacity: u32, steps: &[Step]) -> World {
    let mut world = World::new(name, capacity);
    steps.iter().for_each(|step| world.step(step));
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn wishes_make_sense_and_fit_and_are_the_same_for_the_same_events(
        steps in steps(),
        capacity in 0u32..30,
    ) {
        for name in names() {
            let first = run(&name, capacity, &steps);
            let second = run(&name, capacity, &steps);
            prop_assert_eq!(&first.all, &second.all, "{} is not repeatable", name);
            let writes_down = first.all.iter().any(|decision| matches!(decision.action, Action::Demote | Action::Clean));
            if ["benefit", "lru", "smq", "learned", "history", "bufferpool-extension"].contains(&first.policy.name()) {
                prop_assert!(!writes_down, "{}: clean mirrors are given up without I/O", name);
            }
        }
    }
}
