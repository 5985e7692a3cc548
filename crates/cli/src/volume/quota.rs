//! `tanada volume quota`.

use clap::Args;
use tanada_base::ByteSize;
use tanada_volume::Attributes;

use super::{Machine, VolumeFolder, selection};
use crate::failure::Outcome;
use crate::output::{count, say, size};

/// Arguments of `tanada volume quota`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume quota vol backup/shop/orders.ibd --size 1GiB
  tanada volume quota vol shop --off

An object takes up no more chunks of the volume than its quota, or than it has already, and neither placement nor
`move` and `mirror` bring more of it to the first class. What lies there beyond it goes when its room is wanted.")]
pub struct QuotaArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// Objects, or folders of objects: each of them has the quota
    #[arg(value_name = "OBJECT", required = true)]
    names: Vec<String>,
    /// Most that each object may take up
    #[arg(long, value_name = "SIZE", required_unless_present = "off", conflicts_with = "off")]
    size: Option<ByteSize>,
    /// They have a quota no more
    #[arg(long)]
    off: bool,
}

pub(super) async fn run(machine: &Machine, arguments: QuotaArguments) -> Outcome {
    let QuotaArguments { folder, names, size: quota, off: _ } = arguments;
    let quota_bytes = quota.map(ByteSize::bytes);
    let objects = machine
        .write(&folder.volume, async |directory| {
            let objects = selection::all_or(directory.volume(), &names)?;
            for object in &objects {
                object.set_attributes(&Attributes { quota_bytes, ..object.attributes() })?;
            }
            Ok(objects.len() as u64)
        })
        .await?;
    let objects = count(objects, "object");
    match quota_bytes {
        Some(bytes) => say(&format!("{objects}, {} each at most\n", size(bytes))),
        None => say(&format!("{objects} without a quota\n")),
    }
}
