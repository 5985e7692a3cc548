//! Why a chunk lies where it lies: the last decision on it, and what keeps it from the first class, or may.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tanada_volume::directory::Directory;
use tanada_volume::{Object, Volume};

use super::decisions::{self, Decision, Last};
use super::heat::Heat;
use crate::output::count;

/// What is known of a chunk's place.
#[derive(Debug, Serialize)]
pub(super) struct Explanation {
    chunk: Heat,
    is_adopted: bool,
    decision: Option<Decision>,
    /// Whether the chunk no longer lies where that decision has put it.
    is_outdated: bool,
    /// A decision since that was not carried out.
    refused: Option<Decision>,
    /// The class where the whole object has to lie.
    pin: Option<String>,
    /// What placement fills; `null` in a volume of one class.
    first_class: Option<FirstClass>,
}

/// The class that placement fills.
#[derive(Debug, Serialize)]
struct FirstClass {
    name: String,
    chunks: u64,
    taken_chunks: u64,
    /// It takes nothing: it is drained, or lacks a device.
    is_closed: bool,
    /// The object's chunks that lie there, homes and mirrors,
    object_chunks: u64,
    /// of so many that placement may keep there.
    quota_chunks: Option<u64>,
}

impl Explanation {
    pub(super) fn new(directory: &Directory, object: &Object, chunk: Heat) -> Explanation {
        let is_so = |decision: &Decision| is_still_so(decision, &chunk);
        let Last { decision, refused } = decisions::last(directory.path(), object, chunk.chunk, is_so);
        let is_outdated = decision.as_ref().is_some_and(|decision| !is_still_so(decision, &chunk));
        Explanation {
            chunk,
            is_adopted: object.is_adopted(),
            decision,
            is_outdated,
            refused,
            pin: object.attributes().pin,
            first_class: FirstClass::of(directory.volume(), object),
        }
    }
}

/// Whether the chunk lies where the decision has put it.
fn is_still_so(decision: &Decision, chunk: &Heat) -> bool {
    match &decision.class {
        Some(class) => [&chunk.class, &chunk.mirror].into_iter().flatten().any(|it| it == class),
        None => chunk.mirror.is_none(),
    }
}

impl FirstClass {
    fn of(volume: &Volume, object: &Object) -> Option<FirstClass> {
        let classes = volume.classes();
        let first = classes.first().filter(|_| classes.len() > 1)?;
        let there = object.chunks(0..u64::MAX).iter().filter(|chunk| chunk.lies_in(first.number)).count();
        Some(FirstClass {
            name: first.name.clone(),
            chunks: first.chunks,
            taken_chunks: first.taken,
            is_closed: first.is_draining || first.devices.iter().any(Option::is_none),
            object_chunks: there as u64,
            quota_chunks: object.attributes().quota_bytes.map(|bytes| bytes / volume.chunk_bytes()),
        })
    }

    fn text(&self) -> String {
        let FirstClass { name, chunks, taken_chunks, is_closed, object_chunks, quota_chunks } = self;
        let room = match chunks.saturating_sub(*taken_chunks) {
            _ if *is_closed => format!("Class {name} takes nothing: it is drained, or lacks a device."),
            0 => format!("Class {name} is full: all of its {} are taken.", count(*chunks, "chunk")),
            free => format!("Class {name} has room: {free} of {} are free.", count(*chunks, "chunk")),
        };
        match quota_chunks {
            Some(quota) => format!(
                "Of its object's quota of {}, {object_chunks} are used in class {name}.\n{room}",
                count(*quota, "chunk")
            ),
            None => room,
        }
    }
}

/// In words. Where no decision tells why the chunk lies there, or one was refused, what is known that may be the
/// reason.
pub(super) fn explained(explanation: &Explanation) -> String {
    let chunk = &explanation.chunk;
    let home = match (&chunk.class, &chunk.mirror) {
        (Some(class), None) => format!("lies in class {class}"),
        (Some(class), Some(mirror)) => format!("lies in class {class}, with a mirror in class {mirror}"),
        (None, Some(mirror)) => format!("lies in its file, with a mirror in class {mirror}"),
        (None, None) if explanation.is_adopted => "lies in its file, which was adopted".to_owned(),
        (None, None) => "lies in no class: it was never written".to_owned(),
    };
    let mut lines = vec![
        format!("Chunk {} of {} {home}.", chunk.chunk, chunk.object),
        format!(
            "Heat {:.1}: {}, {}, {:.0} % sequential.",
            chunk.heat,
            count(chunk.reads.into(), "read"),
            count(chunk.writes.into(), "write"),
            chunk.sequential_share * 100.0
        ),
    ];
    match &explanation.decision {
        Some(decision) => {
            lines.push(format!("Last decision, {}.", told(decision)));
            if explanation.is_outdated {
                lines.push(
                    "It is not so any more: its file has changed, its class was drained or has lost a device, it was written to or found damaged, or what \
                     was decided since is not remembered."
                        .to_owned(),
                );
            }
        }
        None => {
            let why = match &chunk.mirror {
                None => "it lies where it was first written or adopted",
                Some(_) => "who made its mirror is not known",
            };
            lines.push(format!("No decision on it is remembered: {why}."));
        }
    }
    lines.extend(explanation.pin.iter().map(|class| format!("Its object is pinned to class {class}.")));
    if explanation.decision.is_none() || explanation.is_outdated || explanation.refused.is_some() {
        lines.extend(explanation.first_class.as_ref().map(FirstClass::text));
    }
    if let Some(refused) = &explanation.refused {
        let refusal = refused.refusal.as_deref().unwrap_or_default();
        lines.push(format!("Not done, {}. Refused: {refusal}.", told(refused)));
    }
    lines.join("\n") + "\n"
}

/// When, by whom, what and why, and what it gains.
fn told(decision: &Decision) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let to = decision.class.as_ref().map(|class| format!(" to {class}")).unwrap_or_default();
    let gain = decision.gain_s.map(|gain_s| format!("; gain {:.1} ms", gain_s * 1e3)).unwrap_or_default();
    format!(
        "{} ago by {}: {}{to}, chunks {} to {}: {}{gain}",
        ago(now.saturating_sub(decision.at)),
        decision.who,
        decision.action,
        decision.first,
        decision.end.saturating_sub(1),
        decision.why
    )
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => count(seconds, "second"),
        120..7200 => count(seconds / 60, "minute"),
        7200..172_800 => count(seconds / 3600, "hour"),
        _ => count(seconds / 86_400, "day"),
    }
}
