//! The nine queries as nested loops over indexes.

use std::collections::HashMap;

use tanada_base::SplitMix64;

use tanada_placement::{
    Access, Cause, Eviction, Fingerprint, Footprint, IoKind, Layout, ObjectNo, Pattern, QueryId, Record,
    Trace, TraceIo, TraceQuery,
};

use super::Synthetic;
use super::cache::{Asked, PageCache};
use super::database::{Database, Index, PAGE};

/// The queries of the pre-query storage tiering paper.
pub const QUERIES: [&str; 9] = ["Q3", "Q4", "Q5", "Q7", "Q8", "Q9", "Q10", "Q20", "Q21"];

/// What a row costs the CPU.
const THINK_NS: u32 = 3000;

/// Pages that a scan reads at once.
const SCAN_PAGES: u64 = 4;

/// An access as the plan names it: index, rows looked up there (or, for scans and ranges, the share of the index),
/// stage.
enum Planned {
    Scan(Index, u32),
    Range(Index, f64, u32),
    LookUps(Index, f64, u32),
}

pub(super) struct Generator {
    trace: Trace,
    database: Database,
    layout: Layout,
    cache: PageCache,
    cache_pages: f64,
    random: SplitMix64,
    query: QueryId,
    think_ns: u32,
    /// Of each index, the page that was read last.
    last_page: HashMap<Cause, u64>,
    scale: f64,
}

impl Generator {
    pub(super) fn new(what: &Synthetic) -> Generator {
        let mut trace = Trace::default();
        let database = Database::new(what.scale, &mut trace);
        let cache_pages = database.pages as f64 * what.cache_share;
        Generator {
            layout: trace.layout(PAGE),
            trace,
            cache: PageCache::new(cache_pages as u32),
            cache_pages,
            database,
            random: SplitMix64::new(what.seed),
            query: QueryId(0),
            think_ns: 0,
            last_page: HashMap::new(),
            scale: what.scale,
        }
    }

    pub(super) fn into_trace(self) -> Trace {
        self.trace
    }

    fn record(&mut self, record: Record) {
        // Everything that is named was added before: nothing can be refused.
        let _ = self.trace.push(record);
    }

    /// Asks the cache for a page, and the volume for what it has not; whether it had not.
    fn page(&mut self, object: ObjectNo, page: u64) -> bool {
        self.think_ns = self.think_ns.saturating_add(THINK_NS);
        let Some(no) = self.layout.chunk(object, page * PAGE) else { return false };
        let Asked::Miss(given_up) = self.cache.ask(no.0) else { return false };
        if let Some((object, page)) =
            given_up.and_then(|page| self.layout.owner(tanada_placement::ChunkNo(page)))
        {
            let (offset, bytes) = (page * PAGE, PAGE as u32);
            self.record(Record::Evicted(Eviction { offset, bytes, object, is_dirty: false }));
        }
        true
    }

    /// Descends to the entry at `at`, 0 to 1, of the index.
    fn look_up(&mut self, index: Index, at: f64) {
        let placed = self.database.index(index);
        let page = placed.first_page + ((at * placed.pages as f64) as u64).min(placed.pages - 1);
        if self.page(placed.object, page) {
            let (think_ns, query) = (std::mem::take(&mut self.think_ns), self.query);
            let before = self.last_page.insert(placed.cause, page);
            self.record(Record::Io(TraceIo {
                offset: page * PAGE,
                bytes: PAGE as u32,
                think_ns,
                query,
                object: placed.object,
                cause: placed.cause,
                kind: IoKind::Read,
                is_sequential: before.is_some_and(|before| before + 1 == page),
                after: 0,
            }));
        }
    }

    /// Reads some pages of a scan, in one I/O if any is missing.
    fn scan_step(&mut self, index: Index, page: u64, pages: u64, is_first: bool) {
        let placed = self.database.index(index);
        let page = placed.first_page + page;
        let missing = (page..page + pages).filter(|page| self.page(placed.object, *page)).count();
        if missing > 0 {
            let (think_ns, query) = (std::mem::take(&mut self.think_ns), self.query);
            self.record(Record::Io(TraceIo {
                offset: page * PAGE,
                bytes: (pages * PAGE) as u32,
                think_ns,
                query,
                object: placed.object,
                cause: placed.cause,
                kind: IoKind::Read,
                is_sequential: !is_first,
                after: 0,
            }));
        }
    }

    /// Walks the share `range` of an index in order; `rows` times in all, evenly, `each` is called with where in the
    /// range it is.
    fn walk(
        &mut self,
        index: Index,
        range: (f64, f64),
        rows: u64,
        mut each: impl FnMut(&mut Generator, f64),
    ) {
        let pages = self.database.index(index).pages;
        let (from, to) =
            ((range.0 * pages as f64) as u64, ((range.1 * pages as f64).ceil() as u64).min(pages));
        let steps = (to - from).div_ceil(SCAN_PAGES).max(1);
        let mut done = 0;
        for step in 0..steps {
            let page = from + step * SCAN_PAGES;
            self.scan_step(
                index,
                page,
                SCAN_PAGES.min(to.saturating_sub(page)).max(1).min(pages - page.min(pages - 1)),
                step == 0,
            );
            while done < rows * (step + 1) / steps {
                done += 1;
                each(self, range.0 + (range.1 - range.0) * done as f64 / rows as f64);
            }
        }
    }

    fn chance(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn rows(&self, at_scale_one: f64) -> u64 {
        (at_scale_one * self.scale).max(1.0) as u64
    }

    fn begin(&mut self, name: &str, plan: &[Planned]) {
        let accesses = plan.iter().map(|planned| self.access(planned)).collect();
        let fingerprint = Fingerprint(crc32c::crc32c(name.as_bytes()).into());
        self.query = QueryId(self.trace.queries().len() as u32);
        let footprint = Footprint { accesses };
        self.record(Record::Begins(TraceQuery { name: name.to_owned(), fingerprint, footprint }));
    }

    /// What a planner makes of it: right about the rows give or take a third, and about the cache on average.
    fn access(&mut self, planned: &Planned) -> Access {
        let error = 0.7 + 0.6 * self.chance();
        let (index, stage, pattern, pages) = match planned {
            Planned::Scan(index, stage) => {
                (*index, *stage, Pattern::SequentialScan, self.database.index(*index).pages as f64)
            }
            Planned::Range(index, share, stage) => {
                let pages = self.database.index(*index).pages as f64 * share;
                (*index, *stage, Pattern::IndexRange, pages * error)
            }
            Planned::LookUps(index, rows, stage) => {
                let rows = rows * self.scale;
                let all = self.database.index(*index).pages as f64;
                let distinct = all * (1.0 - (-rows / all).exp());
                let misses = (1.0 - self.cache_pages / self.database.pages as f64 * 1.5).max(0.1);
                let pages = distinct + (rows - distinct).max(0.0) * misses * distinct / self.cache_pages;
                (*index, *stage, Pattern::RandomLookUps { expected: (rows * error) as u64 }, pages * error)
            }
        };
        let placed = self.database.index(index);
        Access {
            object: placed.object,
            cause: placed.cause,
            extents: vec![placed.extent()],
            pattern,
            expected_pages: (pages as u64).max(1),
            earlier_pages: None,
            page_bytes: PAGE as u32,
            stage,
        }
    }

    fn end(&mut self) {
        self.record(Record::Ends(self.query));
    }

    /// One of [`QUERIES`].
    pub(super) fn query(&mut self, name: &str) {
        match name {
            "Q3" => self.q3(),
            "Q4" => self.q4(),
            "Q5" => self.q5(),
            "Q7" => self.q7(),
            "Q8" => self.q8(),
            "Q9" => self.q9(),
            "Q10" => self.q10(),
            "Q20" => self.q20(),
            "Q21" => self.q21(),
            _ => return,
        }
        self.end();
    }

    /// The ten orders of a customer, anywhere in the table; `pass` of them go on.
    fn orders_of(&mut self, customer: f64, pass: f64, mut each: impl FnMut(&mut Generator, f64)) {
        self.look_up(Index::OrdersCustkey, customer);
        for _ in 0..10 {
            let order = self.chance();
            self.look_up(Index::Orders, order);
            if self.chance() < pass {
                each(self, order);
            }
        }
    }

    /// `count` lineitems that an index leads to, anywhere in the table.
    fn items_of(&mut self, index: Index, at: f64, count: u64, mut each: impl FnMut(&mut Generator, f64)) {
        self.look_up(index, at);
        for _ in 0..count {
            let order = self.chance();
            self.look_up(Index::Lineitem, order);
            each(self, order);
        }
    }

    fn q3(&mut self) {
        use Planned::{LookUps, Scan};
        let plan = [
            Scan(Index::Customer, 0),
            LookUps(Index::OrdersCustkey, 30e3, 0),
            LookUps(Index::Orders, 300e3, 0),
            LookUps(Index::Lineitem, 146e3, 0),
        ];
        self.begin("Q3", &plan);
        let rows = self.rows(30e3);
        self.walk(Index::Customer, (0.0, 1.0), rows, |this, customer| {
            this.orders_of(customer, 0.486, |this, order| this.look_up(Index::Lineitem, order));
        });
    }

    fn q4(&mut self) {
        use Planned::{LookUps, Range};
        let plan = [
            Range(Index::OrdersOrderdate, 0.038, 0),
            LookUps(Index::Orders, 57e3, 0),
            LookUps(Index::Lineitem, 57e3, 0),
        ];
        self.begin("Q4", &plan);
        let rows = self.rows(57e3);
        self.walk(Index::OrdersOrderdate, (0.2, 0.238), rows, |this, _| {
            let order = this.chance();
            this.look_up(Index::Orders, order);
            this.look_up(Index::Lineitem, order);
        });
    }

    fn q5(&mut self) {
        use Planned::{LookUps, Range};
        let plan = [
            Range(Index::CustomerNationkey, 0.2, 0),
            LookUps(Index::Customer, 30e3, 0),
            LookUps(Index::OrdersCustkey, 30e3, 0),
            LookUps(Index::Orders, 300e3, 0),
            LookUps(Index::LineitemOrderkey, 45e3, 0),
            LookUps(Index::Lineitem, 45e3, 0),
            LookUps(Index::Supplier, 180e3, 0),
        ];
        self.begin("Q5", &plan);
        let rows = self.rows(30e3);
        self.walk(Index::CustomerNationkey, (0.4, 0.6), rows, |this, _| {
            let customer = this.chance();
            this.look_up(Index::Customer, customer);
            this.orders_of(customer, 0.15, |this, order| {
                this.look_up(Index::LineitemOrderkey, order);
                this.look_up(Index::Lineitem, order);
                let supplier = this.chance();
                this.look_up(Index::Supplier, supplier);
            });
        });
    }

    fn q7(&mut self) {
        use Planned::{LookUps, Range};
        let plan = [
            Range(Index::SupplierNationkey, 0.08, 0),
            LookUps(Index::LineitemSuppkey, 800.0, 0),
            LookUps(Index::Lineitem, 480e3, 0),
            LookUps(Index::Orders, 146e3, 0),
            LookUps(Index::Customer, 146e3, 0),
        ];
        self.begin("Q7", &plan);
        let rows = self.rows(800.0);
        self.walk(Index::SupplierNationkey, (0.3, 0.38), rows, |this, _| {
            let supplier = this.chance();
            this.items_of(Index::LineitemSuppkey, supplier, 600, |this, order| {
                if this.chance() < 0.3 {
                    this.look_up(Index::Orders, order);
                    let customer = this.chance();
                    this.look_up(Index::Customer, customer);
                }
            });
        });
    }

    fn q8(&mut self) {
        use Planned::{LookUps, Scan};
        let plan = [
            Scan(Index::Part, 0),
            LookUps(Index::LineitemPartkey, 1333.0, 0),
            LookUps(Index::Lineitem, 40e3, 0),
            LookUps(Index::Orders, 40e3, 0),
            LookUps(Index::Customer, 12e3, 0),
        ];
        self.begin("Q8", &plan);
        let rows = self.rows(1333.0);
        self.walk(Index::Part, (0.0, 1.0), rows, |this, part| {
            this.items_of(Index::LineitemPartkey, part, 30, |this, order| {
                this.look_up(Index::Orders, order);
                if this.chance() < 0.3 {
                    let customer = this.chance();
                    this.look_up(Index::Customer, customer);
                }
            });
        });
    }

    fn q9(&mut self) {
        use Planned::{LookUps, Scan};
        let plan = [
            Scan(Index::Part, 0),
            LookUps(Index::LineitemPartkey, 10.7e3, 0),
            LookUps(Index::Lineitem, 320e3, 0),
            LookUps(Index::Partsupp, 320e3, 0),
            LookUps(Index::Orders, 320e3, 0),
        ];
        self.begin("Q9", &plan);
        let rows = self.rows(10.7e3);
        self.walk(Index::Part, (0.0, 1.0), rows, |this, part| {
            this.items_of(Index::LineitemPartkey, part, 30, |this, order| {
                this.look_up(Index::Partsupp, part);
                this.look_up(Index::Orders, order);
            });
        });
    }

    fn q10(&mut self) {
        use Planned::{LookUps, Range};
        let plan = [
            Range(Index::OrdersOrderdate, 0.038, 0),
            LookUps(Index::Orders, 57e3, 0),
            LookUps(Index::Lineitem, 57e3, 0),
            LookUps(Index::Customer, 57e3, 0),
        ];
        self.begin("Q10", &plan);
        let rows = self.rows(57e3);
        self.walk(Index::OrdersOrderdate, (0.26, 0.298), rows, |this, _| {
            let order = this.chance();
            this.look_up(Index::Orders, order);
            this.look_up(Index::Lineitem, order);
            let customer = this.chance();
            this.look_up(Index::Customer, customer);
        });
    }

    fn q20(&mut self) {
        use Planned::{LookUps, Scan};
        let plan = [
            Scan(Index::Part, 0),
            LookUps(Index::Partsupp, 2e3, 0),
            LookUps(Index::LineitemSuppkeyPartkey, 8e3, 0),
            LookUps(Index::Lineitem, 60e3, 0),
        ];
        self.begin("Q20", &plan);
        let rows = self.rows(2e3);
        self.walk(Index::Part, (0.0, 1.0), rows, |this, part| {
            this.look_up(Index::Partsupp, part);
            for _ in 0..4 {
                let supplier = this.chance();
                this.items_of(Index::LineitemSuppkeyPartkey, supplier, 7, |_, _| ());
            }
        });
    }

    fn q21(&mut self) {
        use Planned::{LookUps, Range};
        let plan = [
            Range(Index::SupplierNationkey, 0.04, 0),
            LookUps(Index::LineitemSuppkey, 400.0, 0),
            LookUps(Index::Lineitem, 240e3, 0),
            LookUps(Index::Orders, 150e3, 0),
        ];
        self.begin("Q21", &plan);
        let rows = self.rows(400.0);
        self.walk(Index::SupplierNationkey, (0.6, 0.64), rows, |this, _| {
            let supplier = this.chance();
            this.items_of(Index::LineitemSuppkey, supplier, 600, |this, order| {
                if this.chance() < 0.63 {
                    this.look_up(Index::Orders, order);
                    this.look_up(Index::Lineitem, order);
                }
            });
        });
    }
}
