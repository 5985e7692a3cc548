//! Why chunks are where they are, beyond the life of a process: `decisions.jsonl` in the volume's folder, a line for each decision.
//!
//! An open volume remembers its last decisions in memory; commands come and go, so they note theirs here, each at once. It is no part of the volume:
//! lost or cut short, nothing is lost but the explanation. When it is long, only the newest of each range of chunks are kept.

use std::collections::HashSet;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tanada_query::placement::PlacedChunk;
use tanada_volume::{Object, Relocation};

use crate::failure::{Failure, Outcome};

const FILE: &str = "decisions.jsonl";
/// Lines that are kept when the file has become too long.
const KEPT: usize = 4096;
const LONGEST_FILE: u64 = 2 << 20;

/// A decision on a range of chunks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Seconds since 1970.
    pub at: u64,
    /// Number of the object, which it keeps when it is renamed.
    pub object: u64,
    /// First chunk.
    pub first: u64,
    /// The chunk behind the last.
    pub end: u64,
    /// `move`, `mirror`, `drop` or `pin`; a policy's verb.
    pub action: String,
    /// Where to.
    pub class: Option<String>,
    /// Who decided.
    pub who: String,
    /// Why.
    pub why: String,
    /// Seconds that it is expected to save, its own cost subtracted. Nobody reckons what users decide, and some policies do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_s: Option<f64>,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// Notes a decision on `chunks`.
pub fn note(
    folder: &Path,
    object: &Object,
    chunks: &Range<u64>,
    action: &str,
    class: Option<&str>,
    relocation: &Relocation,
) -> Outcome {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let decision = Decision {
        at,
        object: object.id(),
        first: chunks.start,
        end: chunks.end,
        action: action.to_owned(),
        class: class.map(str::to_owned),
        who: relocation.who.clone(),
        why: relocation.why.clone(),
        gain_s: None,
        refusal: None,
    };
    append(folder, &decision)
}

/// Notes what placement has done in a session just now, or was refused.
pub fn note_placed(placed: &PlacedChunk) -> Outcome {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let decision = Decision {
        at,
        object: placed.object,
        first: placed.chunk,
        end: placed.chunk + 1,
        action: placed.action.to_owned(),
        class: placed.class.clone(),
        who: placed.who.clone(),
        why: placed.why.clone(),
        gain_s: Some(placed.gain_s).filter(|gain_s| *gain_s != 0.0),
        refusal: placed.refusal.clone(),
    };
    append(&placed.volume, &decision)
}

fn append(folder: &Path, decision: &Decision) -> Outcome {
    let path = folder.join(FILE);
    let line = serde_json::to_string(decision).map_err(Failure::failed)? + "\n";
    let noted = (|| {
        if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > LONGEST_FILE) {
            let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
            std::fs::write(&path, newest(&text))?;
        }
        std::fs::OpenOptions::new().create(true).append(true).open(&path)?.write_all(line.as_bytes())
    })();
    noted.map_err(|error| Failure::failed(format!("cannot note the decision in {}: {error}", path.display())))
}

/// The lines that may still be asked for: of each range of chunks the newest that was done and the newest that was refused, and of these the newest.
fn newest(text: &str) -> String {
    let mut seen = HashSet::new();
    let is_newest = |line: &&str| {
        let decision = serde_json::from_str::<Decision>(line).ok();
        decision.is_some_and(|it| seen.insert((it.object, it.first, it.end, it.refusal.is_some())))
    };
    let mut lines: Vec<&str> = text.lines().rev().filter(is_newest).take(KEPT).collect();
    lines.reverse();
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// What is remembered of a chunk.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Last {
    /// The last decision that was carried out.
    pub decision: Option<Decision>,
    /// The last that was refused since.
    pub refused: Option<Decision>,
}

/// What is remembered of a chunk, as far as it is.
pub fn last(folder: &Path, object: &Object, chunk: u64) -> Last {
    let text = std::fs::read(folder.join(FILE)).unwrap_or_default();
    last_in(&String::from_utf8_lossy(&text), object.id(), chunk)
}

fn last_in(text: &str, object: u64, chunk: u64) -> Last {
    let decisions = text.lines().rev().filter_map(|line| serde_json::from_str::<Decision>(line).ok());
    let of_chunk = decisions
        .filter(|decision| decision.object == object && (decision.first..decision.end).contains(&chunk));
    let mut last = Last::default();
    for decision in of_chunk {
        if decision.refusal.is_none() {
            last.decision = Some(decision);
            break;
        }
        last.refused.get_or_insert(decision);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(at: u64, refusal: Option<&str>) -> Decision {
        Decision {
            at,
            object: 7,
            first: 2,
            end: 3,
            action: "mirrored".to_owned(),
            class: Some("staging".to_owned()),
            who: "policy benefit".to_owned(),
            why: "w".to_owned(),
            gain_s: Some(0.25),
            refusal: refusal.map(str::to_owned),
        }
    }

    fn lines(decisions: &[Decision]) -> String {
        decisions.iter().map(|decision| serde_json::to_string(decision).unwrap() + "\n").collect()
    }

    /// The last thousands were, so that what was decided once and never again was forgotten.
    #[test]
    fn what_was_decided_again_gives_way_first() {
        let (once, refused) = (decision(1, None), decision(2, Some("full")));
        let other = |at| Decision { first: 5 + at % 9, end: 6 + at % 9, ..decision(at, None) };
        let others: Vec<Decision> = (3..2 * KEPT as u64).map(other).collect();
        let kept = newest(&(lines(&[once.clone(), refused.clone()]) + "{torn\n" + &lines(&others)));
        assert_eq!(kept.lines().count(), 2 + 9);
        assert_eq!(last_in(&kept, 7, 2), Last { decision: Some(once), refused: Some(refused) });
        assert_eq!(
            last_in(&kept, 7, 5).decision.map(|it| it.at),
            Some(2 * KEPT as u64 - 2 - (2 * KEPT as u64 - 2) % 9)
        );
        let many: Vec<Decision> =
            (0..KEPT as u64 + 5).map(|no| Decision { object: no, ..decision(no, None) }).collect();
        let kept = newest(&lines(&many));
        assert_eq!((kept.lines().count(), last_in(&kept, 5, 2).decision.is_some()), (KEPT, true));
        assert_eq!(last_in(&kept, 4, 2).decision, None);
    }

    #[test]
    fn lines_of_older_programs_are_read() {
        let old = r#"{"at":5,"object":7,"first":0,"end":9,"action":"pin","class":"staging","who":"the user","why":"pin to staging"}"#;
        let last = last_in(&format!("{old}\n{{\"at\":"), 7, 2);
        let decision = last.decision.unwrap();
        assert_eq!((decision.at, decision.gain_s, decision.refusal), (5, None, None));
        assert_eq!(last.refused, None);
    }

    #[test]
    fn what_placement_was_refused_is_noted_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let placed = |refusal: Option<&str>, gain_s: f64| PlacedChunk {
            volume: folder.path().to_owned(),
            object: 7,
            chunk: 2,
            action: "mirrored",
            class: Some("staging".to_owned()),
            who: "policy benefit".to_owned(),
            why: "w".to_owned(),
            gain_s,
            refusal: refusal.map(str::to_owned),
        };
        note_placed(&placed(None, 0.0)).unwrap();
        note_placed(&placed(Some("no free chunk"), 0.5)).unwrap();
        let noted = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let Last { decision, refused } = last_in(&noted, 7, 2);
        let (decision, refused) = (decision.unwrap(), refused.unwrap());
        assert_eq!((decision.gain_s, decision.refusal), (None, None));
        assert_eq!((refused.gain_s, refused.refusal.as_deref()), (Some(0.5), Some("no free chunk")));
    }

    #[test]
    fn the_last_refusal_is_told_unless_something_was_done_since() {
        let (done, first, second) = (decision(1, None), decision(2, Some("full")), decision(3, Some("pin")));
        let last = last_in(&lines(&[done.clone(), first.clone(), second.clone()]), 7, 2);
        assert_eq!((last.decision.as_ref(), last.refused.as_ref()), (Some(&done), Some(&second)));
        assert_eq!(last_in(&lines(&[first.clone(), done.clone()]), 7, 2).refused, None);
        assert_eq!(
            last_in(&lines(std::slice::from_ref(&first)), 7, 2),
            Last { decision: None, refused: Some(first) }
        );
        assert_eq!(last_in(&lines(&[done]), 7, 3), Last::default());
    }
}
