//! `tanada volume info`.

use clap::Args;
use serde::Serialize;
use tanada_report::Table;
use tanada_volume::ClassInfo;
use tanada_volume::directory::Directory;

use super::{Machine, VolumeFolder};
use crate::failure::Outcome;
use crate::output::{OutputArguments, count, size};

/// Arguments of `tanada volume info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume info vol
  tanada volume info vol --json")]
pub struct InfoArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Debug, Serialize)]
struct Information {
    volume: String,
    id: String,
    chunk_bytes: u64,
    was_clean: bool,
    objects: u64,
    adopted: u64,
    /// Why it takes no writes, if so.
    degraded: Option<String>,
    /// Fastest first.
    classes: Vec<ClassInformation>,
}

#[derive(Debug, Serialize)]
struct ClassInformation {
    name: String,
    size_bytes: u64,
    used_bytes: u64,
    stripe_bytes: u64,
    model: Option<String>,
    state: &'static str,
    /// `null` for one that is missing.
    devices: Vec<Option<String>>,
}

pub(super) async fn run(machine: &Machine, arguments: InfoArguments) -> Outcome {
    let directory = machine.read(&arguments.folder.volume).await?;
    let volume = directory.volume();
    let objects = volume.objects();
    let classes: Vec<ClassInformation> =
        volume.classes().into_iter().map(|class| class_information(&directory, class)).collect();
    let missing = classes.iter().any(|class| class.devices.iter().any(Option::is_none));
    let information = Information {
        volume: directory.path().display().to_string(),
        id: volume.id().iter().map(|byte| format!("{byte:02x}")).collect(),
        chunk_bytes: volume.chunk_bytes(),
        was_clean: volume.was_clean(),
        objects: objects.len() as u64,
        adopted: objects.iter().filter(|object| object.is_adopted()).count() as u64,
        degraded: volume.read_only_reason().filter(|_| missing).map(|why| why.to_string()),
        classes,
    };
    arguments.output.print(&information, text)
}

fn class_information(directory: &Directory, class: ClassInfo) -> ClassInformation {
    let chunk_bytes = directory.volume().chunk_bytes();
    let config = directory.config();
    let state = match (class.devices.iter().any(Option::is_none), class.is_failed, class.is_draining) {
        (true, _, _) => "missing",
        (_, true, _) => "failed",
        (_, _, true) => "draining",
        _ => "ok",
    };
    ClassInformation {
        size_bytes: class.chunks * chunk_bytes,
        used_bytes: class.taken * chunk_bytes,
        stripe_bytes: class.segment_bytes,
        model: config
            .classes
            .into_iter()
            .find(|other| other.name == class.name)
            .and_then(|other| other.model),
        state,
        devices: class.devices,
        name: class.name,
    }
}

fn text(information: &Information) -> String {
    let mut table = Table::new(&["class", "size", "used", "free", "devices", "emulated", "state"]);
    for class in &information.classes {
        table.add(vec![
            class.name.clone(),
            size(class.size_bytes),
            size(class.used_bytes),
            size(class.size_bytes.saturating_sub(class.used_bytes)),
            class.devices.len().to_string(),
            class.model.clone().unwrap_or_else(|| "no".to_owned()),
            class.state.to_owned(),
        ]);
    }
    let mut text = format!(
        "volume {} ({}), chunks of {}, {}, {} of them adopted{}\n\n{table}",
        information.volume,
        information.id,
        size(information.chunk_bytes),
        count(information.objects, "object"),
        information.adopted,
        if information.was_clean { "" } else { "; it was not stopped cleanly" }
    );
    if let Some(why) = &information.degraded {
        text += &format!("\n{why}\n");
    }
    text
}
