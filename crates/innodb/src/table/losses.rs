//! What a scan that steps over damage could not read, and about how many rows that is.
//!
//! Invariants:
//! - a damaged page is listed once for each index that lost it, however many scans of a query meet it;
//! - rows that are not shown although their page is sound (an off-page value of theirs is damaged) are counted exactly;
//! - a lost leaf is taken for as many rows as the leaves of the same index that were read have in the mean.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::{Error, ErrorKind, PageNo};

/// How many rows a loss is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostRows {
    /// None: the page leads to others, which were found without it.
    Zero,
    /// Counted.
    Exactly(u64),
    /// By the mean of the leaves that were read.
    About(u64),
    /// No leaf was read that would tell.
    Unknown,
}

/// A page that could not be read, or whose rows could not all be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The file.
    pub path: PathBuf,
    /// The page.
    pub page: PageNo,
    /// The index whose page it is.
    pub index: String,
    /// Rows that are missing.
    pub rows: LostRows,
    /// Why.
    pub reason: String,
}

impl fmt::Display for LostRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LostRows::Zero => f.write_str("no row is missing"),
            LostRows::Exactly(1) => f.write_str("1 row is missing"),
            LostRows::Exactly(rows) => write!(f, "{rows} rows are missing"),
            LostRows::About(rows) => write!(f, "about {rows} rows are missing"),
            LostRows::Unknown => f.write_str("it is not known how many rows are missing"),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { path, page, index, rows, reason } = self;
        write!(f, "{}: page {page} of index {index}: {rows}: {reason}", path.display())
    }
}

/// What the scans of one query lost. Shared by them.
#[derive(Debug, Default)]
pub struct Losses(Mutex<Inner>);

/// A page of an index of a file.
type Place = (PathBuf, PageNo, String);

#[derive(Debug, Default)]
struct Inner {
    pages: BTreeMap<Place, Lost>,
    /// Rows and leaves that were read, by file and index.
    read: BTreeMap<(PathBuf, String), (u64, u64)>,
}

#[derive(Debug)]
struct Lost {
    what: What,
    reason: String,
}

#[derive(Debug)]
enum What {
    Leaf,
    /// Of unknown purpose, so that nothing can be said of rows.
    Unknown,
    Branch,
    /// The origins of the rows that were left out.
    Rows(HashSet<usize>),
}

/// Whether `error` tells of a page that cannot be read or used, rather than of what was asked.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io)
}

impl Losses {
    /// What was lost so far, by file and page.
    pub fn list(&self) -> Vec<Loss> {
        let inner = self.0.lock();
        let loss = |((path, page, index), lost): (&Place, &Lost)| {
            let read = inner.read.get(&(path.clone(), index.clone())).copied().unwrap_or_default();
            let rows = match (&lost.what, read) {
                (What::Branch, _) => LostRows::Zero,
                (What::Rows(rows), _) => LostRows::Exactly(rows.len() as u64),
                (What::Unknown, _) | (What::Leaf, (_, 0)) => LostRows::Unknown,
                (What::Leaf, (rows, leaves)) => LostRows::About((rows + leaves / 2) / leaves),
            };
            let (path, index) = (path.clone(), index.clone());
            Loss { path, page: *page, index, rows, reason: lost.reason.clone() }
        };
        inner.pages.iter().map(loss).collect()
    }

    /// Whether rows are missing, known or not how many.
    pub fn has_rows(&self) -> bool {
        self.list().iter().any(|loss| loss.rows != LostRows::Zero)
    }

    fn add(&self, path: &Path, page: PageNo, index: &str, what: What, reason: String) {
        let mut inner = self.0.lock();
        let place = (path.to_owned(), page, index.to_owned());
        match (inner.pages.get_mut(&place), what) {
            (Some(Lost { what: What::Rows(rows), .. }), What::Rows(more)) => rows.extend(more),
            (Some(Lost { what: known @ (What::Branch | What::Unknown), .. }), what @ What::Leaf) => {
                *known = what
            }
            (Some(_), _) => {}
            (None, what) => {
                inner.pages.insert(place, Lost { what, reason });
            }
        }
    }

    /// A leaf was lost with all its rows.
    pub(super) fn leaf(&self, path: &Path, page: PageNo, index: &str, reason: &str) {
        self.add(path, page, index, What::Leaf, reason.to_owned());
    }

    /// A node above the leaves was lost, and its leaves found without it.
    pub(super) fn branch(&self, path: &Path, page: PageNo, index: &str, reason: &str) {
        self.add(path, page, index, What::Branch, reason.to_owned());
    }

    /// A page was lost that may have held rows.
    pub(super) fn unknown(&self, path: &Path, page: PageNo, index: &str, reason: &str) {
        self.add(path, page, index, What::Unknown, reason.to_owned());
    }

    /// The row at `origin` of a page was left out.
    pub(super) fn row(&self, path: &Path, page: PageNo, index: &str, origin: usize, reason: &str) {
        self.add(path, page, index, What::Rows(HashSet::from([origin])), reason.to_owned());
    }

    /// A leaf with `rows` rows was read.
    pub(super) fn leaf_read(&self, path: &Path, index: &str, rows: usize) {
        let mut inner = self.0.lock();
        let read = inner.read.entry((path.to_owned(), index.to_owned())).or_default();
        *read = (read.0 + rows as u64, read.1 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_leaves_are_estimated_by_those_that_were_read_and_rows_are_counted() {
        let (losses, path) = (Losses::default(), Path::new("t.ibd"));
        losses.leaf(path, PageNo(7), "PRIMARY", "damaged");
        assert_eq!(losses.list()[0].rows, LostRows::Unknown);
        for rows in [10, 13] {
            losses.leaf_read(path, "PRIMARY", rows);
        }
        losses.leaf(path, PageNo(7), "PRIMARY", "damaged");
        losses.branch(path, PageNo(5), "PRIMARY", "damaged");
        for origin in [99, 130, 99] {
            losses.row(path, PageNo(9), "PRIMARY", origin, "off-page");
        }
        let rows: Vec<(u32, LostRows)> = losses.list().iter().map(|loss| (loss.page.0, loss.rows)).collect();
        assert_eq!(rows, [(5, LostRows::Zero), (7, LostRows::About(12)), (9, LostRows::Exactly(2))]);
        assert!(losses.has_rows());
        assert_eq!(
            losses.list()[1].to_string(),
            "t.ibd: page 7 of index PRIMARY: about 12 rows are missing: damaged"
        );
    }

    #[test]
    fn a_branch_alone_is_no_lost_row() {
        let losses = Losses::default();
        losses.branch(Path::new("t.ibd"), PageNo(5), "PRIMARY", "damaged");
        assert!(!losses.has_rows() && losses.list().len() == 1);
    }
}
