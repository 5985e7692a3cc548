//! `tanada volume pin`, `move`, `mirror` and `drop`.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use tanada_base::ByteSize;
use tanada_volume::{Attributes, Budget, ClassInfo, Object, Relocated, Relocation, Volume};

use super::decisions::Noting;
use super::{Machine, VolumeFolder, selection};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say, size};
use crate::progress::Progress;

/// How fast data may be moved.
#[derive(Debug, Clone, Copy, Args)]
pub struct BudgetArguments {
    /// Copy at most this much a second
    #[arg(long, value_name = "SIZE")]
    budget: Option<ByteSize>,
    /// Chunks that are copied at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    concurrency: Option<u32>,
}

impl BudgetArguments {
    /// A relocation that a user asked for with these limits.
    pub fn relocation(self, command: &str) -> Relocation {
        let standard = Budget::default();
        Relocation {
            budget: Budget {
                concurrency: self.concurrency.map_or(standard.concurrency, |number| number as usize),
                bytes_per_second: self.budget.map(ByteSize::bytes),
                ..standard
            },
            who: "the user".to_owned(),
            why: format!("tanada volume {command}"),
            ..Relocation::default()
        }
    }
}

/// Arguments of `tanada volume move` and `mirror`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume move vol shop/orders.ibd --to staging
  tanada volume move vol shop --to capacity --budget 100MiB
  tanada volume mirror vol backup/shop/orders.ibd --to staging --chunks 0..64

An adopted file can be mirrored, not moved. Pins and quotas are obeyed: nothing goes away from where it is pinned to, and the first class gets no more of an
object than its quota. Reading and writing go on meanwhile; Ctrl-C leaves what was moved so far.")]
pub struct MoveArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// Objects, or folders of objects
    #[arg(value_name = "OBJECT", required = true)]
    names: Vec<String>,
    /// The class
    #[arg(long, value_name = "CLASS")]
    to: String,
    /// Only these chunks of each object
    #[arg(long, value_name = "FIRST..END", value_parser = chunk_range)]
    chunks: Option<Range<u64>>,
    #[command(flatten)]
    budget: BudgetArguments,
}

/// Arguments of `tanada volume drop`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume drop vol backup
  tanada volume drop vol backup/shop/orders.ibd --chunks 0..64")]
pub struct DropArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// Objects, or folders of objects
    #[arg(value_name = "OBJECT", required = true)]
    names: Vec<String>,
    /// Only these chunks of each object
    #[arg(long, value_name = "FIRST..END", value_parser = chunk_range)]
    chunks: Option<Range<u64>>,
}

/// Arguments of `tanada volume pin`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume pin vol shop/orders.ibd --to staging
  tanada volume pin vol shop --off

An object that is pinned to a class is moved there (an adopted file is mirrored there), and nothing moves it away.")]
pub struct PinArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// Objects, or folders of objects
    #[arg(value_name = "OBJECT", required = true)]
    names: Vec<String>,
    /// The class
    #[arg(long, value_name = "CLASS", required_unless_present = "off", conflicts_with = "off")]
    to: Option<String>,
    /// Pin them no more; they stay where they are until something moves them
    #[arg(long)]
    off: bool,
    #[command(flatten)]
    budget: BudgetArguments,
}

/// What is done to chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Move,
    Mirror,
}

pub(super) async fn move_chunks(machine: &Machine, arguments: MoveArguments) -> Outcome {
    relocate(machine, arguments, Way::Move).await
}

pub(super) async fn mirror(machine: &Machine, arguments: MoveArguments) -> Outcome {
    relocate(machine, arguments, Way::Mirror).await
}

async fn relocate(machine: &Machine, arguments: MoveArguments, way: Way) -> Outcome {
    let MoveArguments { folder, names, to, chunks, budget } = arguments;
    let action = if way == Way::Move { "move" } else { "mirror" };
    let relocation = budget.relocation(action);
    let done = machine
        .write(&folder.volume, async |directory| {
            let volume = directory.volume();
            let objects = selection::all_or(volume, &names)?;
            let is_broken = |class: &ClassInfo| class.is_failed || class.devices.iter().any(Option::is_none);
            if volume.classes().iter().any(|class| class.name == to && is_broken(class)) {
                return Err(Failure::failed(format!(
                    "a device of class {to} is missing or failed: nothing can be brought there"
                )));
            }
            for object in &objects {
                check_quota(volume, object, chunks.clone().unwrap_or(0..u64::MAX), &to)?;
            }
            let mut work = Work::new(action, volume, &objects, directory.path());
            for object in &objects {
                work.relocate(object, chunks.clone().unwrap_or(0..u64::MAX), &to, way, &relocation).await?;
            }
            Ok(work.done)
        })
        .await?;
    let did = if way == Way::Move { "moved" } else { "mirrored" };
    say(&format!("{} {did} to {to}, {}\n", count(done.done, "chunk"), size(done.bytes)))
}

pub(super) async fn pin(machine: &Machine, arguments: PinArguments) -> Outcome {
    let PinArguments { folder, names, to, off: _, budget } = arguments;
    let relocation = budget.relocation("pin");
    let (pinned, done) = machine
        .write(&folder.volume, async |directory| {
            let volume = directory.volume();
            let objects = selection::all_or(volume, &names)?;
            let mut work = Work::new("pin", volume, &objects, directory.path());
            for object in &objects {
                object.set_attributes(&Attributes { pin: to.clone(), ..object.attributes() })?;
                if let Some(class) = &to {
                    let way = if object.is_adopted() { Way::Mirror } else { Way::Move };
                    let copied = work.relocate(object, 0..u64::MAX, class, way, &relocation).await;
                    copied.map_err(|failure| {
                        let name = object.name();
                        Failure::failed(format!(
                            "{name} is pinned to {class}, but not all of it is there: {failure}"
                        ))
                    })?;
                }
            }
            Ok((objects.len() as u64, work.done))
        })
        .await?;
    let pinned = count(pinned, "object");
    match to {
        Some(class) => {
            say(&format!("{pinned} pinned to {class}, {} copied there\n", count(done.done, "chunk")))
        }
        None => say(&format!("{pinned} pinned no more\n")),
    }
}

pub(super) async fn drop_mirrors(machine: &Machine, arguments: DropArguments) -> Outcome {
    let DropArguments { folder, names, chunks } = arguments;
    let budget = BudgetArguments { budget: None, concurrency: None };
    let relocation = budget.relocation("drop");
    let chunks = chunks.unwrap_or(0..u64::MAX);
    let dropped = machine
        .write(&folder.volume, async |directory| {
            let mut dropped = 0;
            let volume = directory.volume();
            for object in selection::all_or(volume, &names)? {
                let chunks = within(&object, chunks.clone(), volume.chunk_bytes());
                let noting = Noting::begin(directory.path(), &object, &chunks, "drop", None, &relocation)?;
                let done = object.drop_mirrors(chunks, &relocation);
                noting.end(&done)?;
                dropped += done?;
            }
            Ok(dropped)
        })
        .await?;
    say(&format!("{} dropped\n", count(dropped, "mirror")))
}

/// A relocation of several objects, with one progress bar.
struct Work<'a> {
    action: &'static str,
    folder: &'a Path,
    /// Names and numbers.
    classes: Vec<(String, u8)>,
    chunk_bytes: u64,
    progress: Arc<Progress>,
    done: Relocated,
}

impl<'a> Work<'a> {
    fn new(action: &'static str, volume: &Volume, objects: &[Object], folder: &'a Path) -> Work<'a> {
        let chunk_bytes = volume.chunk_bytes();
        let total =
            objects.iter().map(|object| object.stored_space_bytes().next_multiple_of(chunk_bytes)).sum();
        let progress = Arc::new(Progress::new(action, total));
        let classes = volume.classes().into_iter().map(|class| (class.name, class.number)).collect();
        Work { action, folder, classes, chunk_bytes, progress, done: Relocated::default() }
    }

    async fn relocate(
        &mut self,
        object: &Object,
        chunks: Range<u64>,
        class: &str,
        way: Way,
        relocation: &Relocation,
    ) -> Outcome {
        let chunks = within(object, chunks, self.chunk_bytes);
        // What is no class is refused below.
        let number = self.classes.iter().find(|(name, _)| name == class).map(|(_, number)| *number);
        let begin = |number: u8| {
            Noting::begin(self.folder, object, &chunks, self.action, Some((class, number)), relocation)
        };
        let noting = number.map(begin).transpose()?;
        let (progress, before) = (self.progress.clone(), self.done.bytes);
        let relocation = Relocation {
            progress: Some(Arc::new(move |report: &Relocated| progress.set(before + report.bytes))),
            ..relocation.clone()
        };
        let done = match way {
            Way::Move => object.move_to(chunks.clone(), class, &relocation).await,
            Way::Mirror => object.mirror_to(chunks.clone(), class, &relocation).await,
        };
        let noted = noting.map(|noting| noting.end(&done)).transpose();
        // Why it was not done is told first.
        let done = done?;
        noted?;
        self.done.chunks += done.chunks;
        self.done.done += done.done;
        self.done.skipped += done.skipped;
        self.done.bytes += done.bytes;
        Ok(())
    }
}

/// Whether `chunks` of the object may come to `class`: in the first one it has no more than its quota, as placement
/// keeps it.
fn check_quota(volume: &Volume, object: &Object, chunks: Range<u64>, class: &str) -> Outcome {
    let first = volume.classes().into_iter().next().filter(|first| first.name == class);
    let (Some(first), Some(quota_bytes)) = (first, object.attributes().quota_bytes) else { return Ok(()) };
    let chunks = within(object, chunks, volume.chunk_bytes());
    let known = object.chunks(0..u64::MAX);
    let there = known.iter().filter(|chunk| chunk.lies_in(first.number)).count() as u64;
    let meant = known.iter().filter(|chunk| chunks.contains(&chunk.no));
    let coming = if object.is_adopted() {
        // Those that nothing was done with are not known.
        chunks.end - chunks.start - meant.filter(|chunk| chunk.lies_in(first.number)).count() as u64
    } else {
        meant.filter(|chunk| chunk.home.is_some() && !chunk.lies_in(first.number)).count() as u64
    };
    let quota = quota_bytes / volume.chunk_bytes();
    if coming == 0 || there + coming <= quota {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{} has a quota of {}, {}: {there} of them are used in class {class}, and {coming} more would go beyond it; \
         name fewer with --chunks, or change it with tanada volume quota",
        object.name(),
        size(quota_bytes),
        count(quota, "chunk"),
    )))
}

/// Those of `chunks` that the object has.
fn within(object: &Object, chunks: Range<u64>, chunk_bytes: u64) -> Range<u64> {
    let end = object.stored_space_bytes().div_ceil(chunk_bytes).min(chunks.end);
    chunks.start.min(end)..end
}

/// `FIRST..END`, without the end.
fn chunk_range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || "write chunks as FIRST..END, counted from 0, the end not included".to_owned();
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let (first, end) = (first.parse().map_err(|_| wrong())?, end.parse().map_err(|_| wrong())?);
    if first < end { Ok(first..end) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_a_range() {
        assert_eq!(chunk_range("3..64"), Ok(3..64));
        for text in ["3", "3..", "..4", "4..4", "5..4", "a..b", "-1..2"] {
            assert!(chunk_range(text).is_err(), "{text}");
        }
    }
}
