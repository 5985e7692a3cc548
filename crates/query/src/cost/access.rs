//! Accesses turned into work, and work into time.

use std::fmt;

use super::Calibration;

/// Most bytes that a scan reads with one I/O.
const RUN_BYTES: f64 = (1 << 20) as f64;
/// Entries of an inner page, about: decides how many pages lie above the leaves.
const FANOUT: f64 = 400.0;

/// How large a relation is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelationShape {
    /// Rows.
    pub rows: f64,
    /// Bytes of a page.
    pub page_bytes: f64,
    /// Pages that the page cache holds at most.
    pub cached_pages: f64,
    /// The clustered index.
    pub clustered: IndexShape,
}

/// How large an index is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndexShape {
    /// Levels; 1 is a root that is a leaf.
    pub height: f64,
    /// Leaf pages.
    pub leaf_pages: f64,
    /// Share of leaf pages whose successor is their neighbour in the file, 0 to 1.
    pub contiguity: f64,
}

impl IndexShape {
    /// Pages that `lookups` random descents read: leaves and the level above them (what lies higher is a handful).
    fn pages_read(&self, lookups: f64, cached_pages: f64) -> f64 {
        let above = if self.height > 1.0 { (self.leaf_pages / FANOUT).ceil() } else { 0.0 };
        page_reads(self.leaf_pages, lookups, cached_pages) + page_reads(above, lookups, cached_pages)
    }
}

/// A set of look-ups by key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lookups {
    /// Keys looked up.
    pub keys: f64,
    /// Rows found for a key, before any residual predicate.
    pub matches_per_key: f64,
    /// The index.
    pub index: IndexShape,
    /// Whether the index lacks columns, so that each match costs a read of the clustered index.
    pub bookmarks: bool,
    /// Columns decoded per match.
    pub columns: f64,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Random I/Os of a page each.
    pub random_ios: f64,
    /// Large I/Os.
    pub sequential_ios: f64,
    /// Bytes read by the large ones.
    pub sequential_bytes: f64,
    /// CPU time in microseconds, all cores together.
    pub cpu_us: f64,
    /// I/Os of the longest chain in which each needs the one before.
    pub chain: f64,
    /// Chains that do not depend on each other.
    pub chains: f64,
}

impl Work {
    /// Both, one overlapping the other.
    pub fn with(self, other: Work) -> Work {
        Work {
            random_ios: self.random_ios + other.random_ios,
            sequential_ios: self.sequential_ios + other.sequential_ios,
            sequential_bytes: self.sequential_bytes + other.sequential_bytes,
            cpu_us: self.cpu_us + other.cpu_us,
            chain: self.chain.max(other.chain),
            chains: self.chains.max(other.chains),
        }
    }
}

/// Estimated time of an access and what it consists of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Time in microseconds.
    pub time_us: f64,
    /// The work.
    pub work: Work,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ios = self.work.random_ios + self.work.sequential_ios;
        write!(f, "{:.1} ms ({ios:.0} I/Os, {:.1} ms CPU)", self.time_us / 1e3, self.work.cpu_us / 1e3)
    }
}

/// Time of I/Os, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IoTime {
    /// That the medium is busy, at the depth that they reach.
    pub io_us: f64,
    /// Of the longest chain in which each needs the one before.
    pub chain_us: f64,
}

/// Applies a calibration.
#[derive(Debug, Clone, PartialEq)]
pub struct CostModel {
    calibration: Calibration,
    cores: f64,
    depth: f64,
    in_order: bool,
}

impl CostModel {
    /// A model for `cores` executor threads; `depth` is the most I/Os in flight, 0 adapts.
    pub fn new(calibration: Calibration, cores: usize, depth: usize) -> CostModel {
        let depth = if depth == 0 { calibration.medium.adaptive_depth } else { depth as f64 };
        CostModel { calibration, cores: cores.max(1) as f64, depth, in_order: false }
    }

    /// The same with one I/O at a time, each awaited by the CPU.
    pub fn in_order(mut self) -> CostModel {
        self.depth = 1.0;
        self.cores = 1.0;
        self.in_order = true;
        self
    }

    /// Its constants.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Time of `work`.
    pub fn time(&self, work: Work) -> Cost {
        let IoTime { io_us, chain_us } = self.io_time(&work);
        let cpu_us = work.cpu_us / self.cores;
        let time_us = if self.in_order { io_us + cpu_us } else { io_us.max(cpu_us) };
        Cost { time_us: time_us.max(chain_us), work }
    }

    /// How long the medium takes for the I/Os of `work`.
    pub fn io_time(&self, work: &Work) -> IoTime {
        let medium = &self.calibration.medium;
        let depth = self.depth.min(work.chains.max(1.0));
        let iops = medium.iops(depth);
        let random_us = work.random_ios / iops * 1e6;
        let mb_per_s =
            if self.in_order { medium.sequential_mb_per_s_in_order } else { medium.sequential_mb_per_s };
        let sequential_us = (work.sequential_bytes / mb_per_s).max(work.sequential_ios / iops * 1e6);
        IoTime { io_us: random_us + sequential_us, chain_us: work.chain * medium.latency_us() }
    }

    /// Reads `pages` leaf pages of an index with large I/Os and hands out `rows` of them with `columns` each.
    pub fn leaf_scan(
        &self,
        index: &IndexShape,
        page_bytes: f64,
        pages: f64,
        rows: f64,
        columns: f64,
    ) -> Work {
        let calibration = &self.calibration;
        let pages = pages.min(index.leaf_pages).max(0.0);
        let most = (RUN_BYTES / page_bytes).max(1.0);
        let run = (1.0 / (1.0 - index.contiguity).max(1e-6)).clamp(1.0, most);
        let sequential_ios = (pages / run).ceil();
        Work {
            random_ios: index.height - 1.0,
            sequential_ios,
            sequential_bytes: pages * page_bytes,
            cpu_us: sequential_ios * calibration.cpu.io_us
                + pages * calibration.cpu.page_us * page_bytes / 16_384.0
                + rows * (calibration.cpu.row_us + columns * calibration.cpu.column_us),
            chain: index.height,
            chains: sequential_ios,
        }
    }

    /// Reads the whole clustered index.
    pub fn full_scan(&self, relation: &RelationShape, columns: f64) -> Work {
        let clustered = &relation.clustered;
        self.leaf_scan(clustered, relation.page_bytes, clustered.leaf_pages, relation.rows, columns)
    }

    /// Reads the share `selectivity` of an index's leaves; enough if the index holds all columns, or is the clustered
    /// one.
    pub fn range_scan(
        &self,
        relation: &RelationShape,
        index: &IndexShape,
        selectivity: f64,
        columns: f64,
    ) -> Work {
        let selectivity = selectivity.clamp(0.0, 1.0);
        let pages = (index.leaf_pages * selectivity).ceil().max(1.0);
        self.leaf_scan(index, relation.page_bytes, pages, relation.rows * selectivity, columns)
    }

    /// Reads the share `selectivity` of a secondary index's leaves, then each row through its bookmark.
    pub fn bookmark_scan(
        &self,
        relation: &RelationShape,
        index: &IndexShape,
        selectivity: f64,
        columns: f64,
    ) -> Work {
        let rows = relation.rows * selectivity.clamp(0.0, 1.0);
        let range = self.range_scan(relation, index, selectivity, 0.0);
        let mut work = range.with(self.fetch(relation, rows, columns));
        work.chain = range.chain + relation.clustered.height;
        work
    }

    /// Looks keys up.
    pub fn lookup(&self, relation: &RelationShape, lookups: &Lookups) -> Work {
        let calibration = &self.calibration;
        let matches = lookups.keys * lookups.matches_per_key;
        let pages = lookups.index.pages_read(lookups.keys, relation.cached_pages);
        let mut work = Work {
            random_ios: pages,
            cpu_us: lookups.keys * calibration.cpu.lookup_us
                + pages * (calibration.cpu.io_us + calibration.cpu.page_us)
                + matches * calibration.cpu.row_us,
            chain: lookups.index.height,
            chains: lookups.keys,
            ..Work::default()
        };
        if lookups.bookmarks {
            let fetched = self.fetch(relation, matches, lookups.columns);
            let chain = work.chain + fetched.chain;
            work = work.with(fetched);
            work.chain = chain;
        } else {
            work.cpu_us += matches * lookups.columns * calibration.cpu.column_us;
        }
        work
    }

    /// Reads `bytes` of mirrors of `columns` columns, which have `groups` groups of rows and `rows` rows each.
    pub fn mirrors(&self, rows: f64, columns: f64, groups: f64, bytes: f64) -> Work {
        let calibration = &self.calibration;
        let sequential_ios = groups * columns;
        Work {
            sequential_ios,
            sequential_bytes: bytes,
            cpu_us: sequential_ios * calibration.cpu.io_us
                + rows * columns * calibration.cpu.mirrored_value_us,
            chain: 1.0,
            chains: sequential_ios,
            ..Work::default()
        }
    }

    /// What a hash join adds to the scans of its two sides.
    pub fn hash(&self, build_rows: f64, probe_rows: f64) -> Work {
        let calibration = &self.calibration;
        let cpu_us = build_rows * calibration.cpu.hash_build_us + probe_rows * calibration.cpu.hash_probe_us;
        Work { cpu_us, ..Work::default() }
    }

    /// Fetches `rows` single rows of the clustered index.
    fn fetch(&self, relation: &RelationShape, rows: f64, columns: f64) -> Work {
        let calibration = &self.calibration;
        let pages = relation.clustered.pages_read(rows, relation.cached_pages);
        Work {
            random_ios: pages,
            cpu_us: rows
                * (calibration.cpu.bookmark_us
                    + calibration.cpu.row_us
                    + columns * calibration.cpu.column_us)
                + pages * (calibration.cpu.io_us + calibration.cpu.page_us),
            chain: relation.clustered.height,
            chains: rows,
            ..Work::default()
        }
    }
}

/// Reads of pages that `requests` uniformly random requests for one of `pages` cause with a cache of `cached` of them
/// (Mackert and Lohman 1989): each page once as long as all that were touched fit; from then on a request misses with
/// the share of pages that are not held.
pub fn page_reads(pages: f64, requests: f64, cached: f64) -> f64 {
    let distinct = distinct_pages(pages, requests);
    if distinct <= cached || pages <= 1.0 {
        return distinct;
    }
    let until_full = (1.0 - cached / pages).ln() / (-1.0 / pages).ln_1p();
    cached + (requests - until_full) * (1.0 - cached / pages)
}

/// Pages that `reads` uniformly random reads over `pages` touch at least once (Cardenas 1975): `P (1 - (1 - 1/P)^n)`.
pub fn distinct_pages(pages: f64, reads: f64) -> f64 {
    if pages <= 1.0 || reads <= 0.0 {
        return pages.max(0.0).min(reads.max(0.0));
    }
    // (1 - 1/P)^n by logarithms: exact enough for P up to 2^32, where 1 - 1/P itself would lose digits.
    let missed = (reads * (-1.0 / pages).ln_1p()).exp();
    (pages * (1.0 - missed)).min(reads)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
