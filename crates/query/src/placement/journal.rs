//! What placement tells of itself, kept in the volume for later sessions: what queries were expected to read and did
//! read, what was relocated, and the [history](super::history) of statements.
//!
//! 1. A session has a number: one more than the last that kept a journal.
//! 2. With the first query that it is told of the history fades.
//! 3. At its end its footprints and relocations join those of the sessions before; the oldest go.
//! 4. As bytes it is JSON, [`MOST_BYTES`] at most: as long as it is more, half of the rows and of the history's chunks
//!    go, the oldest first.

use serde::{Deserialize, Serialize};
use tanada_placement::live::Kept;

use super::history::History;
use crate::{Error, ErrorKind, Result};

/// The object that keeps it.
pub(super) const JOURNAL: Kept =
    Kept::new("tanada.placement.journal", "tanada.placement.journal.new", |bytes| bytes.starts_with(MAGIC));

/// How its bytes begin.
const MAGIC: &[u8] = b"{\"tanada.placement.journal\":";

/// Of the format.
const VERSION: u32 = 1;

/// Bytes, at most.
const MOST_BYTES: usize = 1 << 20;

/// Rows of each kind that are kept.
const MOST_ROWS: usize = 1_024;

/// An index that an announced query reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FootprintRow {
    pub(crate) session: u64,
    pub(crate) query: u32,
    pub(crate) statement: String,
    pub(crate) fingerprint: u64,
    pub(crate) depth: u32,
    pub(crate) is_over: bool,
    pub(crate) object: String,
    pub(crate) index: String,
    /// Names of the columns that are read; none in what older programs have kept.
    #[serde(default)]
    pub(crate) columns: String,
    pub(crate) pattern: String,
    pub(crate) stage: u32,
    pub(crate) extents: u64,
    pub(crate) bytes: u64,
    pub(crate) expected_pages: u64,
    /// Runs of the statement before, those of earlier sessions counting less,
    pub(crate) earlier_runs: f64,
    /// and what is to be expected by them; none without any.
    pub(crate) earlier_pages: Option<u64>,
    /// I/Os and bytes; none where another row of the query and index tells them.
    pub(crate) observed: Option<(u64, u64)>,
}

/// A relocation that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlacementRow {
    pub(crate) session: u64,
    pub(crate) at_s: f64,
    pub(crate) policy: String,
    pub(crate) object: String,
    pub(crate) chunk: u64,
    pub(crate) action: String,
    pub(crate) bytes: u64,
    pub(crate) gain_s: f64,
    pub(crate) why: String,
    pub(crate) refusal: Option<String>,
}

/// What is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// First of all, so that it is the beginning of the bytes.
    #[serde(rename = "tanada.placement.journal")]
    version: u32,
    /// The session that goes on, or the last.
    pub(crate) session: u64,
    /// Of sessions that are over, the oldest first.
    pub(crate) footprints: Vec<FootprintRow>,
    pub(crate) placements: Vec<PlacementRow>,
    pub(crate) history: History,
}

impl Default for Journal {
    fn default() -> Journal {
        let (footprints, placements) = (Vec::new(), Vec::new());
        Journal { version: VERSION, session: 1, footprints, placements, history: History::default() }
    }
}

impl Journal {
    /// For a new session, from what the last one has kept; from nothing, if nothing was kept.
    ///
    /// # Errors
    /// If the bytes are not such, or of another version.
    pub(crate) fn for_next_session(bytes: &[u8]) -> Result<Journal> {
        if bytes.is_empty() {
            return Ok(Journal::default());
        }
        let damaged = |what: String| Error::new(ErrorKind::Data, format!("the journal of placement {what}"));
        let mut journal: Journal =
            serde_json::from_slice(bytes).map_err(|error| damaged(format!("is damaged: {error}")))?;
        if journal.version != VERSION {
            return Err(damaged(format!("has version {}; this program knows {VERSION}", journal.version)));
        }
        journal.session = journal.session.saturating_add(1);
        journal.history.order();
        keep_newest(&mut journal.footprints, MOST_ROWS);
        keep_newest(&mut journal.placements, MOST_ROWS);
        Ok(journal)
    }

    /// With what this session has seen, as bytes.
    ///
    /// # Errors
    /// None that are known of.
    pub(crate) fn to_bytes(
        &self,
        footprints: Vec<FootprintRow>,
        placements: Vec<PlacementRow>,
    ) -> Result<Vec<u8>> {
        let mut whole = self.clone();
        whole.footprints.extend(footprints);
        whole.placements.extend(placements);
        let (mut rows, mut chunks) = (MOST_ROWS, usize::MAX);
        loop {
            keep_newest(&mut whole.footprints, rows);
            keep_newest(&mut whole.placements, rows);
            whole.history.keep_chunks(chunks);
            let bytes = serde_json::to_vec(&whole).map_err(|error| {
                Error::new(ErrorKind::Internal, format!("the journal of placement: {error}"))
            })?;
            if bytes.len() <= MOST_BYTES {
                return Ok(bytes);
            }
            if rows == 0 {
                // Statements alone are too many.
                let half = whole.history.statements.len().div_ceil(2);
                whole.history.statements.drain(..half);
            }
            chunks = whole.history.chunks() / 2;
            rows /= 2;
        }
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.footprints.is_empty() && self.placements.is_empty() && self.history.statements.is_empty()
    }
}

fn keep_newest<T>(rows: &mut Vec<T>, most: usize) {
    let excess = rows.len().saturating_sub(most);
    rows.drain(..excess);
}

#[cfg(test)]
mod tests {
    use super::super::history::{IndexRun, Observed};
    use super::*;

    fn placement(chunk: u64) -> PlacementRow {
        PlacementRow {
            session: 1,
            at_s: 0.5,
            policy: "benefit".to_owned(),
            object: "shop/t.ibd".to_owned(),
            chunk,
            action: "mirrored".to_owned(),
            bytes: 1 << 20,
            gain_s: 0.25,
            why: "w".repeat(200),
            refusal: None,
        }
    }

    #[test]
    fn sessions_are_counted_and_their_rows_stay_as_far_as_there_is_room() {
        let first = Journal::for_next_session(b"").unwrap();
        assert!(first.is_empty());
        let bytes = first.to_bytes(Vec::new(), vec![placement(1)]).unwrap();
        assert!(bytes.starts_with(MAGIC));
        let mut second = Journal::for_next_session(&bytes).unwrap();
        assert_eq!((second.session, second.placements.as_slice()), (2, &[placement(1)][..]));
        let chunks = (0..30_000).map(|chunk| (chunk << 20, 1)).collect();
        let run = |index| IndexRun {
            object: "shop/t.ibd",
            index,
            expected_pages: 1,
            observed: Observed { ios: 1, bytes: 1, chunks: std::collections::BTreeMap::clone(&chunks) },
        };
        let few = Observed { ios: 1, bytes: 1, chunks: (0..100).map(|chunk| (chunk, 1)).collect() };
        second.history.ended(2, "select 2", vec![IndexRun { observed: few, ..run("t.a") }]);
        second.history.ended(1, "select", vec![run("t.a")]);
        let many = (0..4 * MOST_ROWS as u64).map(placement).collect();
        let bytes = second.to_bytes(Vec::new(), many).unwrap();
        assert!(bytes.len() <= MOST_BYTES, "{}", bytes.len());
        let third = Journal::for_next_session(&bytes).unwrap();
        assert_eq!(third.placements.last(), Some(&placement(4 * MOST_ROWS as u64 - 1)));
        assert!(third.placements.len() <= MOST_ROWS && third.session == 3);
        let chunks =
            |no| third.history.of(no, "shop/t.ibd", "t.a").map_or(0, |(_, index)| index.chunks.len());
        assert!(chunks(1) > 1_000 && chunks(2) == 100, "{} and {}", chunks(1), chunks(2));
    }

    /// Rows without the names of columns.
    #[test]
    fn journals_of_older_programs_are_read() {
        let row = r#"{"session":1,"query":2,"statement":"s","fingerprint":3,"depth":1,"is_over":true,"object":"o","index":"i",
            "pattern":"scan","stage":0,"extents":1,"bytes":9,"expected_pages":1,"earlier_runs":0.0,"earlier_pages":null,"observed":null}"#;
        let old = format!(
            r#"{{"tanada.placement.journal":1,"session":1,"footprints":[{row}],"placements":[],"history":{{"statements":[]}}}}"#
        );
        let journal = Journal::for_next_session(old.as_bytes()).unwrap();
        assert_eq!((journal.footprints.len(), journal.footprints[0].columns.as_str()), (1, ""));
    }

    #[test]
    fn damage_and_other_versions_are_told() {
        let bytes = Journal::default().to_bytes(Vec::new(), vec![placement(1)]).unwrap();
        let told = |bytes: &[u8]| Journal::for_next_session(bytes).unwrap_err().to_string();
        assert!(told(&bytes[..bytes.len() - 1]).contains("damaged"));
        let newer = String::from_utf8(bytes).unwrap().replacen(":1,", ":9,", 1);
        assert!(told(newer.as_bytes()).contains("version 9"), "{}", told(newer.as_bytes()));
    }
}
