//! `tanada volume class`: changing the classes of a volume.

use std::sync::Arc;

use clap::{Args, Subcommand};
use tanada_base::ByteSize;
use tanada_volume::{ClassInfo, ErrorKind, Relocated, Relocation, Volume};

use super::relocate::BudgetArguments;
use super::spec::{ClassSpec, FORM};
use super::{Machine, VolumeFolder};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say, size};
use crate::progress::Progress;

/// Arguments of `tanada volume class`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume class add vol nvme=/dev/nvme2n1 --before capacity
  tanada volume class drain vol old && tanada volume class remove vol old
  tanada volume class resize vol staging 200GiB")]
pub struct ClassArguments {
    #[command(subcommand)]
    command: ClassCommand,
}

#[derive(Debug, Subcommand)]
enum ClassCommand {
    /// Add a class
    Add(AddArguments),
    /// Empty a class: what lies there moves to other classes, and nothing new comes
    Drain(DrainArguments),
    /// Let a drained class take chunks again
    Fill(NameArguments),
    /// Remove a drained class, and the files that were made for it
    Remove(NameArguments),
    /// Make a class larger or smaller
    Resize(ResizeArguments),
}

/// Arguments of `tanada volume class add`.
#[derive(Debug, Args)]
pub struct AddArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    #[arg(value_name = FORM, help = "The class, as for tanada volume create")]
    class: ClassSpec,
    /// The class that is next slower; without it the new one is the slowest
    #[arg(long, value_name = "CLASS")]
    before: Option<String>,
}

/// Arguments that name a class.
#[derive(Debug, Args)]
pub struct NameArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// The class
    #[arg(value_name = "CLASS")]
    class: String,
}

/// Arguments of `tanada volume class drain`.
#[derive(Debug, Args)]
pub struct DrainArguments {
    #[command(flatten)]
    name: NameArguments,
    #[command(flatten)]
    budget: BudgetArguments,
}

/// Arguments of `tanada volume class resize`.
#[derive(Debug, Args)]
pub struct ResizeArguments {
    #[command(flatten)]
    name: NameArguments,
    /// Its new size, over all its devices
    #[arg(value_name = "SIZE")]
    size: ByteSize,
    #[command(flatten)]
    budget: BudgetArguments,
}

pub(super) async fn run(machine: &Machine, arguments: ClassArguments) -> Outcome {
    match arguments.command {
        ClassCommand::Add(arguments) => add(machine, arguments).await,
        ClassCommand::Drain(arguments) => drain(machine, arguments).await,
        ClassCommand::Fill(arguments) => fill(machine, arguments).await,
        ClassCommand::Remove(arguments) => remove(machine, arguments).await,
        ClassCommand::Resize(arguments) => resize(machine, arguments).await,
    }
}

async fn add(machine: &Machine, arguments: AddArguments) -> Outcome {
    let AddArguments { folder, class, before } = arguments;
    let config = class.config(&folder.volume)?;
    machine
        .write(&folder.volume, async |directory| {
            let classes = directory.volume().classes();
            let rank = match &before {
                None => classes.len(),
                Some(name) => rank(directory.volume(), name)?,
            };
            directory.add_class(&config, rank).await.map_err(|error| match error.kind() {
                ErrorKind::InvalidInput => Failure::usage(error),
                _ => Failure::failed(error),
            })
        })
        .await?;
    say(&format!("class {} added\n", class.name))
}

async fn drain(machine: &Machine, arguments: DrainArguments) -> Outcome {
    let DrainArguments { name: NameArguments { folder, class }, budget } = arguments;
    let moved = machine
        .write(&folder.volume, async |directory| {
            let volume = directory.volume();
            let takes = |info: &ClassInfo| info.name != class && !info.is_draining && !info.is_failed;
            if volume.classes().iter().any(|info| info.name == class) && !volume.classes().iter().any(takes) {
                return Err(Failure::failed(format!(
                    "class {class} is the only one that takes chunks: add another class before it is drained"
                )));
            }
            let relocation = watched(budget.relocation("class drain"), volume, &class)?;
            volume.drain_class(&class, &relocation).await.map_err(|error| {
                let is_draining = volume.classes().iter().any(|info| info.name == class && info.is_draining);
                let stays = format!("{class} takes no more chunks until `tanada volume class fill` lets it");
                Failure::failed(if is_draining { format!("{error}; {stays}") } else { error.to_string() })
            })
        })
        .await?;
    say(&format!("class {class} drained: {}\n", told(&moved)))
}

async fn fill(machine: &Machine, arguments: NameArguments) -> Outcome {
    let NameArguments { folder, class } = arguments;
    machine.write(&folder.volume, async |directory| Ok(directory.volume().fill_class(&class).await?)).await?;
    say(&format!("class {class} takes chunks again\n"))
}

async fn remove(machine: &Machine, arguments: NameArguments) -> Outcome {
    let NameArguments { folder, class } = arguments;
    machine.write(&folder.volume, async |directory| Ok(directory.remove_class(&class).await?)).await?;
    say(&format!("class {class} removed\n"))
}

async fn resize(machine: &Machine, arguments: ResizeArguments) -> Outcome {
    let ResizeArguments { name: NameArguments { folder, class }, size: wanted, budget } = arguments;
    let moved = machine
        .write(&folder.volume, async |directory| {
            let relocation = watched(budget.relocation("class resize"), directory.volume(), &class)?;
            Ok(directory.resize_class(&class, wanted.bytes(), &relocation).await?)
        })
        .await?;
    say(&format!("class {class} has {wanted} now: {}\n", told(&moved)))
}

/// With a progress bar over what lies in the class.
fn watched(relocation: Relocation, volume: &Volume, class: &str) -> Outcome<Relocation> {
    let classes = volume.classes();
    let taken = classes[rank(volume, class)?].taken;
    let progress = Progress::new(class, taken * volume.chunk_bytes());
    let told = move |report: &Relocated| progress.set(report.bytes);
    Ok(Relocation { progress: Some(Arc::new(told)), ..relocation })
}

fn told(moved: &Relocated) -> String {
    format!("{} moved, {}", count(moved.done, "chunk"), size(moved.bytes))
}

fn rank(volume: &Volume, name: &str) -> Outcome<usize> {
    let classes = volume.classes();
    classes.iter().position(|class| class.name == name).ok_or_else(|| {
        let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        Failure::failed(format!("there is no class {name}; there are {}", names.join(", ")))
    })
}
