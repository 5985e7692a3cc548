//! Why chunks are where they are, beyond the life of a process: `decisions.jsonl` in the volume's folder, a line for each decision.
//!
//! An open volume remembers its last decisions in memory; commands come and go, so they note theirs here. It is no part of the volume:
//! lost or cut short, nothing is lost but the explanation. Only the newest are kept.

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tanada_query::session::PlacedChunk;
use tanada_volume::{Object, Relocation};

use crate::failure::{Failure, Outcome};

const FILE: &str = "decisions.jsonl";
/// Lines that are kept when the file has become too long.
const KEPT: usize = 4096;
const LONGEST_FILE: u64 = 2 << 20;

/// A decision on a range of chunks.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    };
    append(folder, &[decision])
}

/// Notes what placement did in a session.
pub fn note_placed(placed: &[PlacedChunk]) -> Outcome {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for of_volume in placed.chunk_by(|a, b| a.volume == b.volume) {
        let decision = |chunk: &PlacedChunk| Decision {
            at,
            object: chunk.object,
            first: chunk.chunk,
            end: chunk.chunk + 1,
            action: chunk.action.to_owned(),
            class: chunk.class.clone(),
            who: chunk.who.clone(),
            why: chunk.why.clone(),
        };
        let decisions: Vec<Decision> = of_volume.iter().map(decision).collect();
        append(&of_volume[0].volume, &decisions)?;
    }
    Ok(())
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
            let lines: Vec<&str> = text.lines().collect();
            let newest = &lines[lines.len().saturating_sub(KEPT)..];
            std::fs::write(&path, newest.join("\n") + "\n")?;
        }
        std::fs::OpenOptions::new().create(true).append(true).open(&path)?.write_all(lines.as_bytes())
    })();
    noted.map_err(|error| Failure::failed(format!("cannot note the decision in {}: {error}", path.display())))
}

/// The last decision on a chunk, if it is remembered.
pub fn last(folder: &Path, object: &Object, chunk: u64) -> Option<Decision> {
    let text = String::from_utf8_lossy(&std::fs::read(folder.join(FILE)).ok()?).into_owned();
    let mut decisions = text.lines().rev().filter_map(|line| serde_json::from_str::<Decision>(line).ok());
    decisions
        .find(|decision| decision.object == object.id() && (decision.first..decision.end).contains(&chunk))
}
