//! Where files lie on an array's addresses.
//!
//! 1. The first file opened begins at 0, each further one behind the last, rounded up to a whole stripe row, so that
//!    all files begin on the same member, as on a file system made for the array.
//! 2. A file that grows beyond its range gets another one at the end of all.
//!
//! Invariant: ranges never overlap and never move; `end` is behind all of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Least addresses that a growing file gets at once.
const LEAST_GROWTH: u64 = 64 << 20;

/// A run of a file's addresses on the array.
#[derive(Debug, Clone, Copy)]
struct Range {
    file_start: u64,
    array_start: u64,
    len: u64,
}

#[derive(Debug)]
pub(super) struct Placement {
    files: Vec<Vec<Range>>,
    by_path: HashMap<PathBuf, usize>,
    end: u64,
    /// Ranges begin at multiples of this.
    alignment: u64,
}

impl Placement {
    pub(super) fn new(alignment: u64) -> Placement {
        Placement { files: Vec::new(), by_path: HashMap::new(), end: 0, alignment: alignment.max(1) }
    }

    /// Addresses given out.
    pub(super) fn extent(&self) -> u64 {
        self.end
    }

    /// The number of the file at `path`; the same file always lies in the same place. `at` overrides where a new one
    /// begins.
    pub(super) fn place(&mut self, path: &Path, len: u64, at: Option<u64>) -> usize {
        if let Some(file) = self.by_path.get(path) {
            return *file;
        }
        let file = self.files.len();
        self.files.push(Vec::new());
        self.by_path.insert(path.to_owned(), file);
        match at {
            Some(array_start) => {
                self.files[file].push(Range { file_start: 0, array_start, len });
                self.end = self.end.max(self.aligned(array_start.saturating_add(len)));
            }
            None => self.append(file, 0, len),
        }
        file
    }

    fn aligned(&self, address: u64) -> u64 {
        address.checked_next_multiple_of(self.alignment).unwrap_or(address)
    }

    fn append(&mut self, file: usize, file_start: u64, len: u64) {
        let len = self.aligned(len);
        if len > 0 {
            self.files[file].push(Range { file_start, array_start: self.end, len });
            self.end = self.end.saturating_add(len);
        }
    }

    /// The array's addresses of a piece of a file, run by run; makes room for what lies beyond its ranges.
    pub(super) fn map(
        &mut self,
        file: usize,
        offset: u64,
        len: u64,
    ) -> impl Iterator<Item = (u64, u64)> + '_ {
        let end = offset.saturating_add(len.max(1));
        let placed = self.files[file].last().map_or(0, |last| last.file_start.saturating_add(last.len));
        if end > placed {
            self.append(file, placed, (end - placed).max(LEAST_GROWTH));
        }
        self.files[file].iter().filter_map(move |range| {
            let from = offset.max(range.file_start);
            let to = end.min(range.file_start.saturating_add(range.len));
            (from < to).then(|| (range.array_start + (from - range.file_start), (to - from).min(len)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(placement: &mut Placement, file: usize, offset: u64, len: u64) -> Vec<(u64, u64)> {
        placement.map(file, offset, len).collect()
    }

    #[test]
    fn files_lie_one_behind_the_other_and_stay() {
        let mut placement = Placement::new(1000);
        let first = placement.place(Path::new("a"), 2500, None);
        let second = placement.place(Path::new("b"), 10, None);
        assert_eq!(map(&mut placement, first, 100, 200), [(100, 200)]);
        assert_eq!(map(&mut placement, second, 0, 10), [(3000, 10)]);
        assert_eq!(placement.place(Path::new("a"), 9999, None), first);
        assert_eq!(placement.extent(), 4000);
        let third = placement.place(Path::new("c"), 500, Some(10_000));
        assert_eq!((map(&mut placement, third, 1, 1), placement.extent()), (vec![(10_001, 1)], 11_000));
    }

    #[test]
    fn a_file_that_grows_continues_at_the_end_of_all() {
        let mut placement = Placement::new(1000);
        let first = placement.place(Path::new("a"), 1000, None);
        placement.place(Path::new("b"), 1000, None);
        assert_eq!(map(&mut placement, first, 900, 300), [(900, 100), (2000, 200)]);
        assert_eq!(placement.extent(), 2000 + LEAST_GROWTH.next_multiple_of(1000));
        assert_eq!(map(&mut placement, first, 1200, 10), [(2200, 10)]);
        let empty = placement.place(Path::new("empty"), 0, None);
        assert_eq!(map(&mut placement, empty, 0, 5).len(), 1);
        assert_eq!(map(&mut placement, empty, 0, 0).iter().map(|(_, len)| len).sum::<u64>(), 0);
    }
}
