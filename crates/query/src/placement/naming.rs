//! Files as objects and indexes as causes, by number, and whose bytes a read of a file is.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use tanada_placement::{Cause, ObjectNo};

use super::places::FilePlaces;

/// Reads of so many bytes are those of scans, wherever the one before ended.
const SCAN_BYTES: u64 = 64 << 10;

/// What is known of the files that are watched.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    files: HashMap<PathBuf, File>,
    causes: HashMap<String, Cause>,
}

#[derive(Debug)]
struct File {
    object: ObjectNo,
    /// The indexes whose pieces are known, with where they begin: several tables may lie in one file, even of the same
    /// name.
    indexes: HashSet<(String, u64)>,
    pieces: Vec<Piece>,
    /// Where the last read of it ended.
    end: u64,
}

/// A run of bytes that is one index's.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from: u64,
    to: u64,
    cause: Cause,
}

/// A read of a file, by numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    pub(crate) object: ObjectNo,
    pub(crate) cause: Cause,
    pub(crate) is_sequential: bool,
}

impl Naming {
    /// The object of a file.
    pub(crate) fn object(&self, path: &Path) -> Option<ObjectNo> {
        self.files.get(path).map(|file| file.object)
    }

    /// A further file.
    pub(crate) fn add(&mut self, path: &Path, object: ObjectNo) {
        self.files.insert(
            path.to_owned(),
            File { object, indexes: HashSet::new(), pieces: Vec::new(), end: u64::MAX },
        );
    }

    /// The number of an index.
    pub(crate) fn cause(&self, index: &str) -> Option<Cause> {
        self.causes.get(index).copied()
    }

    /// Learns whose bytes are whose in a file that was added. `name` numbers indexes that are new.
    pub(crate) fn learn(&mut self, places: &FilePlaces, mut name: impl FnMut(&str) -> Cause) {
        let Some(file) = self.files.get_mut(&places.path) else { return };
        let known = file.indexes.len();
        for index in &places.indexes {
            let begins = index.extents.first().map_or(0, |extent| extent.offset);
            if !file.indexes.insert((index.name.clone(), begins)) {
                continue;
            }
            let cause = *self.causes.entry(index.name.clone()).or_insert_with(|| name(&index.name));
            let pieces = index.extents.iter();
            file.pieces.extend(pieces.map(|extent| Piece {
                from: extent.offset,
                to: extent.offset + extent.len,
                cause,
            }));
        }
        if file.indexes.len() > known {
            file.pieces.sort_unstable_by_key(|piece| piece.from);
        }
    }

    /// A read of `bytes` at `offset`; `None` if the file is none that is watched.
    pub(crate) fn read(&mut self, path: &Path, offset: u64, bytes: u64) -> Option<Named> {
        let file = self.files.get_mut(path)?;
        let is_sequential = file.end == offset || bytes >= SCAN_BYTES;
        file.end = offset + bytes;
        let before = file.pieces.partition_point(|piece| piece.from <= offset);
        let piece =
            before.checked_sub(1).and_then(|no| file.pieces.get(no)).filter(|piece| offset < piece.to);
        Some(Named { object: file.object, cause: piece.map_or(Cause(0), |piece| piece.cause), is_sequential })
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::IndexPlaces;
    use super::*;
    use tanada_placement::Extent;

    fn places(index: &str, offset: u64) -> FilePlaces {
        let extents = vec![Extent { offset, len: 100 }];
        let indexes =
            vec![IndexPlaces { index: None, name: index.to_owned(), extents, pages: 1, upper_pages: 0 }];
        FilePlaces { path: "ibdata1".into(), bytes: 1000, page_bytes: 100, indexes }
    }

    #[test]
    fn every_table_of_a_shared_file_is_known() {
        let mut naming = Naming::default();
        naming.add(Path::new("ibdata1"), ObjectNo(0));
        let mut causes = 0;
        for (index, offset) in [("u.PRIMARY", 500), ("t.PRIMARY", 100), ("u.PRIMARY", 500)] {
            naming.learn(&places(index, offset), |_| {
                causes += 1;
                Cause(causes)
            });
        }
        let mut cause = |offset| naming.read(Path::new("ibdata1"), offset, 10).map(|read| read.cause);
        assert_eq!([cause(510), cause(150), cause(300)], [Some(Cause(1)), Some(Cause(2)), Some(Cause(0))]);
        assert_eq!((naming.cause("t.PRIMARY"), naming.cause("u.PRIMARY")), (Some(Cause(2)), Some(Cause(1))));
    }
}
