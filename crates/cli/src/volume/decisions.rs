//! Why chunks are where they are, beyond the life of a process: `decisions.jsonl` in the volume's folder, a line for
//! each decision.
//!
//! An open volume remembers its last decisions in memory; commands come and go, so they note theirs here, each at once.
//! It is no part of the volume: lost or cut short, nothing is lost but the explanation. When it is long, only the
//! newest of each range of chunks are kept.
//!
//! What a user asks for may be refused, or come to nothing halfway. So it is noted three times: that it begins; then,
//! for each range of chunks, that it was done or why not; and that it has ended. What begins counts only where it has
//! not ended, for a process that was killed, and then for chunks that lie as it wanted.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tanada_query::placement::PlacedChunk;
use tanada_volume::{ChunkInfo, Object, Relocation};

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
    /// Seconds that it is expected to save, its own cost subtracted. Nobody reckons what users decide, and some
    /// policies do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain_s: Option<f64>,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Whether what was decided is done or refused.
    #[serde(default, skip_serializing_if = "Stage::is_over")]
    pub stage: Stage,
}

/// How far a decision has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// It was done, or refused.
    #[default]
    Over,
    /// It is being carried out.
    Begun,
    /// What has begun with the same words is over; what came of it is told apart.
    Ended,
}

impl Stage {
    fn is_over(&self) -> bool {
        *self == Stage::Over
    }
}

/// What a user asked for, while it is carried out.
pub struct Noting<'a> {
    folder: &'a Path,
    object: &'a Object,
    /// That it begins.
    begun: Decision,
    /// The number of the class; none where mirrors are given up.
    class: Option<u8>,
    /// Chunks that lay there before.
    there: BTreeSet<u64>,
}

impl<'a> Noting<'a> {
    /// Notes that something begins with `chunks`: to bring them to a class, by name and number, or to drop their
    /// mirrors.
    pub fn begin(
        folder: &'a Path,
        object: &'a Object,
        chunks: &Range<u64>,
        action: &str,
        class: Option<(&str, u8)>,
        relocation: &Relocation,
    ) -> Outcome<Noting<'a>> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let begun = Decision {
            at,
            object: object.id(),
            first: chunks.start,
            end: chunks.end,
            action: action.to_owned(),
            class: class.map(|(name, _)| name.to_owned()),
            who: relocation.who.clone(),
            why: relocation.why.clone(),
            gain_s: None,
            refusal: None,
            stage: Stage::Begun,
        };
        append(folder, std::slice::from_ref(&begun))?;
        let mut noting =
            Noting { folder, object, begun, class: class.map(|(_, number)| number), there: BTreeSet::new() };
        noting.there = noting.lying();
        Ok(noting)
    }

    /// Chunks that lie as it wants.
    fn lying(&self) -> BTreeSet<u64> {
        let chunks = self.object.chunks(self.begun.first..self.begun.end);
        let lies = |chunk: &ChunkInfo| match self.class {
            Some(class) => chunk.lies_in(class),
            None => chunk.mirror.is_none(),
        };
        chunks.iter().filter(|chunk| lies(chunk)).map(|chunk| chunk.no).collect()
    }

    /// Notes what came of it.
    pub fn end<T, E: fmt::Display>(self, outcome: &Result<T, E>) -> Outcome {
        let Decision { first, end, .. } = self.begun;
        let over = Decision { stage: Stage::Over, ..self.begun.clone() };
        let mut notes = Vec::new();
        match outcome {
            Ok(_) => notes.push(over),
            Err(error) => {
                let lying = self.lying();
                // None: it lay there before, and has nothing to do with this.
                let came_of = |chunk: u64| (!self.there.contains(&chunk)).then(|| lying.contains(&chunk));
                for (chunks, is_done) in runs(first..end, came_of) {
                    let refusal = (!is_done).then(|| error.to_string());
                    notes.push(Decision { first: chunks.start, end: chunks.end, refusal, ..over.clone() });
                }
            }
        }
        notes.push(Decision { stage: Stage::Ended, ..self.begun });
        append(self.folder, &notes)
    }
}

/// Neighbours that have the same answer; those without one are left out.
fn runs(chunks: Range<u64>, answer: impl Fn(u64) -> Option<bool>) -> Vec<(Range<u64>, bool)> {
    let mut runs: Vec<(Range<u64>, bool)> = Vec::new();
    for chunk in chunks {
        let Some(answered) = answer(chunk) else { continue };
        match runs.last_mut() {
            Some((run, before)) if run.end == chunk && *before == answered => run.end = chunk + 1,
            _ => runs.push((chunk..chunk + 1, answered)),
        }
    }
    runs
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
        stage: Stage::Over,
    };
    append(&placed.volume, std::slice::from_ref(&decision))
}

fn append(folder: &Path, decisions: &[Decision]) -> Outcome {
    let path = folder.join(FILE);
    let mut lines = String::new();
    for decision in decisions {
        lines += &serde_json::to_string(decision).map_err(Failure::failed)?;
        lines.push('\n');
    }
    let noted = (|| {
        if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > LONGEST_FILE) {
            let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
            std::fs::write(&path, newest(&text))?;
        }
        let mut file = File::options().create(true).append(true).read(true).open(&path)?;
        if is_torn(&mut file)? {
            lines.insert(0, '\n');
        }
        file.write_all(lines.as_bytes())
    })();
    noted.map_err(|error| Failure::failed(format!("cannot note the decision in {}: {error}", path.display())))
}

/// Whether its last line was cut off: what comes next would be lost with it.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The lines that may still be asked for: of each range of chunks the newest that was done and the newest that was
/// refused, and of these the newest.
fn newest(text: &str) -> String {
    let mut seen = HashSet::new();
    let mut ended = Ended::default();
    let is_newest = |line: &&str| {
        let decision = serde_json::from_str::<Decision>(line).ok().filter(|it| ended.counts(it));
        decision.is_some_and(|it| seen.insert((it.object, it.first, it.end, it.refusal.is_some(), it.stage)))
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

/// What has ended, of decisions that are read from the newest on.
#[derive(Debug, Default)]
struct Ended {
    seen: HashSet<(u64, u64, u64, u64, String)>,
}

impl Ended {
    /// Whether the decision tells what came of something, or that something began whose end was not noted.
    fn counts(&mut self, decision: &Decision) -> bool {
        let Decision { at, object, first, end, ref action, .. } = *decision;
        let which = (at, object, first, end, action.clone());
        match decision.stage {
            Stage::Over => true,
            Stage::Begun => !self.seen.contains(&which),
            Stage::Ended => {
                self.seen.insert(which);
                false
            }
        }
    }
}

/// What is remembered of a chunk, as far as it is. `is_so` says whether the chunk lies as a decision wants it.
pub fn last(folder: &Path, object: &Object, chunk: u64, is_so: impl Fn(&Decision) -> bool) -> Last {
    let text = std::fs::read(folder.join(FILE)).unwrap_or_default();
    last_in(&String::from_utf8_lossy(&text), object.id(), chunk, is_so)
}

fn last_in(text: &str, object: u64, chunk: u64, is_so: impl Fn(&Decision) -> bool) -> Last {
    let mut ended = Ended::default();
    let decisions = text.lines().rev().filter_map(|line| serde_json::from_str::<Decision>(line).ok());
    let decisions = decisions.filter(|decision| ended.counts(decision));
    let of_chunk = decisions
        .filter(|decision| decision.object == object && (decision.first..decision.end).contains(&chunk))
        .filter(|decision| decision.stage == Stage::Over || is_so(decision));
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
            stage: Stage::Over,
        }
    }

    /// Of a chunk that lies as everybody wants it.
    fn last_in(text: &str, object: u64, chunk: u64) -> Last {
        super::last_in(text, object, chunk, |_| true)
    }

    fn lines(decisions: &[Decision]) -> String {
        decisions.iter().map(|decision| serde_json::to_string(decision).unwrap() + "\n").collect()
    }

    /// The last thousands were, so that what was decided once and never again was forgotten.
    #[test]
    fn repeated_decisions_are_evicted_first() {
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
    fn a_begun_decision_counts_until_its_end_is_noted() {
        let begun = Decision { end: 9, stage: Stage::Begun, ..decision(1, None) };
        let ended = Decision { stage: Stage::Ended, ..begun.clone() };
        let refused = Decision { end: 9, ..decision(1, Some("pinned")) };
        let killed = lines(&[decision(0, None), begun.clone()]);
        assert_eq!(last_in(&killed, 7, 2).decision, Some(begun.clone()));
        assert_eq!(super::last_in(&killed, 7, 2, |_| false).decision, Some(decision(0, None)));
        let over = lines(&[decision(0, None), begun.clone(), refused.clone(), ended]);
        let last = Last { decision: Some(decision(0, None)), refused: Some(refused.clone()) };
        assert_eq!(last_in(&over, 7, 2), last);
        assert_eq!(newest(&over), lines(&[decision(0, None), refused]));
        // Another one's end.
        let other = Decision { at: 2, stage: Stage::Ended, ..begun.clone() };
        assert_eq!(last_in(&lines(&[begun.clone(), other]), 7, 2).decision, Some(begun));
    }

    #[test]
    fn neighbours_with_one_answer_are_one_run() {
        let answer = |chunk| [None, Some(true), Some(true), None, Some(false), Some(true)][chunk as usize];
        assert_eq!(runs(0..6, answer), [(1..3, true), (4..5, false), (5..6, true)]);
        assert_eq!(runs(0..1, answer), []);
    }

    /// It was lost with the line that was cut off before it.
    #[test]
    fn a_line_after_a_torn_line_is_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "{\"at\":").unwrap();
        append(folder.path(), &[decision(1, None)]).unwrap();
        append(folder.path(), &[decision(2, None)]).unwrap();
        let noted = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(noted, "{\"at\":\n".to_owned() + &lines(&[decision(1, None), decision(2, None)]));
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
    fn refused_placements_are_noted_as_refusals() {
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
    fn the_last_refusal_is_shown_until_a_later_success() {
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
