//! How far a scan is: its pieces of work, and the rows that it made and that were taken from it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one scan, written by its readers and its streams.
#[derive(Debug, Default)]
pub(crate) struct Advance {
    pieces: AtomicU64,
    pieces_done: AtomicU64,
    rows_made: AtomicU64,
    rows_taken: AtomicU64,
}

impl Advance {
    /// The scan consists of `pieces` pieces of work.
    pub(crate) fn begin(&self, pieces: usize) {
        self.pieces.store(pieces as u64, Ordering::Relaxed);
    }

    /// A piece of work is done.
    pub(crate) fn piece_done(&self) {
        self.pieces_done.fetch_add(1, Ordering::Relaxed);
    }

    /// Rows were put into the channel.
    pub(crate) fn made(&self, rows: usize) {
        self.rows_made.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Rows were taken by the operator above.
    pub(crate) fn taken(&self, rows: usize) {
        self.rows_taken.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Rows that the operator above has taken.
    pub(crate) fn rows(&self) -> u64 {
        self.rows_taken.load(Ordering::Relaxed)
    }

    /// The share of the scan that is done, 0 to 1: of its work, and of the rows that this made. 0 before it has begun.
    pub(crate) fn share(&self) -> f64 {
        let pieces = self.pieces.load(Ordering::Relaxed);
        if pieces == 0 {
            return 0.0;
        }
        let work = self.pieces_done.load(Ordering::Relaxed) as f64 / pieces as f64;
        let made = self.rows_made.load(Ordering::Relaxed);
        let taken = if made == 0 { 1.0 } else { self.rows() as f64 / made as f64 };
        (work * taken).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_is_as_far_as_its_work_and_the_taken_rows() {
        let advance = Advance::default();
        assert_eq!(advance.share(), 0.0);
        advance.begin(4);
        advance.piece_done();
        assert_eq!(advance.share(), 0.25);
        advance.made(100);
        advance.piece_done();
        advance.taken(50);
        assert_eq!((advance.share(), advance.rows()), (0.25, 50));
        advance.piece_done();
        advance.piece_done();
        advance.taken(50);
        assert_eq!(advance.share(), 1.0);
    }
}
