//! `tanada volume create`.

use clap::Args;
use tanada_base::ByteSize;
use tanada_volume::directory::Directory;
use tanada_volume::{ErrorKind, VolumeSettings};

use super::spec::{ClassSpec, FORM};
use super::{Machine, VolumeFolder};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say, size};

/// Arguments of `tanada volume create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume create vol --class staging=/mnt/nvme,size=100GiB --class capacity=/mnt/hdd,size=4TiB
  tanada volume create vol --class staging=/dev/nvme1n1 --class capacity=/dev/sda:/dev/sdb:/dev/sdc
  tanada volume create vol --class fast=vol/fast,size=1GiB --class slow=vol/slow,size=8GiB,model=8xhdd-7200

Classes are given fastest first. A PATH is a folder (a file is made in it), a file, or a block device, which is
overwritten; several, separated by colons, are striped (128 KiB in turn, or stripe=SIZE). size= is the class's size over all of them;
block devices and files that are there have one. A file takes as much of its disk as was ever used of it. model= emulates a slower
device: hdd-7200, sata-qlc, sata-ssd, nvme, scm, 8xhdd-7200.")]
pub struct CreateArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    #[arg(long = "class", value_name = FORM, required = true, help = "A class; fastest first")]
    classes: Vec<ClassSpec>,
    /// The unit of placement: a power of two from 4 KiB to 64 MiB
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    chunk_size: ByteSize,
    /// The time in which a chunk's heat halves
    #[arg(long, value_name = "SECONDS", default_value = "3600")]
    heat_half_life: f32,
}

pub(super) async fn run(machine: &Machine, arguments: CreateArguments) -> Outcome {
    let CreateArguments { folder, classes, chunk_size, heat_half_life } = arguments;
    let settings = VolumeSettings {
        chunk_bytes: chunk_size.bytes(),
        heat_half_life_s: heat_half_life,
        ..VolumeSettings::default()
    };
    let configs: Vec<_> = classes.iter().map(|class| class.config(&folder.volume)).collect::<Outcome<_>>()?;
    let made = Directory::create(&folder.volume, &settings, &configs, machine.settings()).await;
    let directory = made.map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => Failure::usage(error),
        _ => Failure::failed(error),
    })?;
    let sizes = directory.volume().classes().into_iter();
    let sizes: Vec<String> =
        sizes.map(|class| format!("{} {}", class.name, size(class.chunks * settings.chunk_bytes))).collect();
    directory.close().await?;
    let classes = count(sizes.len() as u64, "class");
    say(&format!("volume {}: {classes} ({})\n", folder.volume.display(), sizes.join(", ")))
}
