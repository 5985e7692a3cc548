//! `in-page-logging`: updates go to log sectors that belong to an erase unit, not to the page itself. About traces with
//! updates.
//!
//! 1. A page's write becomes one sector in the log of its erase unit, in the fast class. (The paper's flash holds data
//!    and log in one unit; here, as in the pre-query storage tiering paper's survey, the log is the write cache of
//!    slower data.)
//! 2. A read of a page in a unit with a log reads the log besides, and merges in memory.
//! 3. A full log is merged: the unit is read, its pages brought up to date and written, and the log is empty. So is the
//!    fullest when the fast class has no room for another log.

use tanada_placement::{
    Action, ChunkNo, Context, Decision, Io, IoKind, Options, Policy, Reason, Result, Route,
};

use super::blocks::{BlockCache, Copied, cached};
use crate::lists::Lists;

const SECTOR_BYTES: u32 = 512;
const DEFAULT_SECTORS: u32 = 16;

#[derive(Debug, Clone)]
struct InPageLogging {
    unit_bytes: u64,
    sectors: u32,
    used: Vec<u32>,
    merging: Vec<bool>,
    /// Units with a log, the most recently written first.
    logs: Lists,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    let unit_bytes = options.size("unit", 128 << 10)?;
    // A log longer than its unit would be no gain. Units are 1 GiB at most, so this fits.
    let most = (unit_bytes / u64::from(SECTOR_BYTES)) as u32;
    Ok(cached(InPageLogging {
        unit_bytes,
        sectors: options.count("sectors", DEFAULT_SECTORS.min(most), 1..=most)?,
        used: Vec::new(),
        merging: Vec::new(),
        logs: Lists::new(1),
    }))
}

impl InPageLogging {
    fn grow(&mut self, unit: ChunkNo) {
        if self.used.len() <= unit.index() {
            self.used.resize(unit.index() + 1, 0);
            self.merging.resize(unit.index() + 1, false);
        }
    }

    fn used(&self, unit: ChunkNo) -> u32 {
        self.used.get(unit.index()).copied().unwrap_or(0)
    }

    fn merge(&mut self, unit: ChunkNo, reason: Reason, decisions: &mut Vec<Decision>) {
        if !std::mem::replace(&mut self.merging[unit.index()], true) {
            decisions.push(Decision::new(unit, Action::Merge, reason));
        }
    }

    fn write(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        self.grow(io.chunk);
        let log_bytes = u64::from(self.sectors * SECTOR_BYTES);
        let most = u64::from(context.capacity) * self.unit_bytes / log_bytes;
        if self.used(io.chunk) == 0 && u64::from(self.logs.len()) >= most {
            // No room for another log: this write goes to the page, and the oldest log is brought home.
            if let Some(oldest) = self.logs.back(0) {
                self.merge(oldest, Reason::MakesRoom { other: io.chunk }, decisions);
            }
            return;
        }
        self.used[io.chunk.index()] += 1;
        self.logs.push_front(0, io.chunk);
        if self.used(io.chunk) >= self.sectors {
            self.merge(io.chunk, Reason::LogFull { sectors: self.sectors }, decisions);
        }
    }
}

impl BlockCache for InPageLogging {
    const NAME: &'static str = "in-page-logging";

    fn block_bytes(&self) -> u64 {
        self.unit_bytes
    }

    fn io(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        if io.kind == IoKind::Write {
            self.write(context, io, decisions);
        }
    }

    fn done(&mut self, _: &Context<'_>, done: Copied, _: &mut Vec<Decision>) {
        if done.action == Action::Merge {
            self.grow(done.chunk);
            self.merging[done.chunk.index()] = false;
            if done.is_done {
                self.used[done.chunk.index()] = 0;
                self.logs.remove(done.chunk);
            }
        }
    }

    fn route(&mut self, io: &Io) -> Route {
        match (io.kind, self.used(io.chunk)) {
            (_, 0) => Route::Mapped,
            (IoKind::Write, _) => Route::Logged { bytes: SECTOR_BYTES },
            (IoKind::Read, used) => Route::WithLog { bytes: used.min(self.sectors) * SECTOR_BYTES },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::bench;
    use tanada_placement::{Action, ChunkNo, Event, IoKind, Route};

    #[test]
    fn updates_are_logged_and_merged_when_the_log_is_full() {
        let mut bench = bench("in-page-logging:sectors=3", 10, 1);
        assert_eq!(bench.route(4, IoKind::Read), Route::Mapped);
        assert!(bench.write(4).is_empty());
        assert_eq!(bench.route(4, IoKind::Write), Route::Logged { bytes: 512 });
        bench.write(4);
        assert_eq!(bench.route(4, IoKind::Read), Route::WithLog { bytes: 1024 });
        assert_eq!(bench.write(4), ["merge 4"]);
        assert!(bench.write(4).is_empty(), "one merge at a time");
        bench.handle(&Event::Done { chunk: ChunkNo(4), action: Action::Merge, is_done: true });
        assert_eq!(bench.route(4, IoKind::Read), Route::Mapped);
    }

    #[test]
    fn the_oldest_log_is_merged_when_space_is_short() {
        let mut bench = bench("in-page-logging:unit=4KiB,sectors=8", 10, 1);
        bench.write(1);
        assert_eq!(bench.write(2), ["merge 1"]);
        assert_eq!(bench.route(2, IoKind::Write), Route::Mapped);
    }
}
