//! `tanada volume alter` and `optimize`: how objects are compressed and encrypted.

use clap::Args;
use tanada_base::ByteSize;
use tanada_volume::{Attributes, Compression, Object};

use super::{Machine, VolumeFolder, selection};
use crate::failure::{Failure, Outcome};
use crate::output::{count, say, size};
use crate::progress::Progress;

/// How new objects are compressed and encrypted.
#[derive(Debug, Args)]
pub(super) struct TransformArguments {
    /// Compress pages: none, lz4, zstd[:1 to 22], zlib[:1 to 9]
    #[arg(long, value_name = "ALGORITHM", value_parser = str::parse::<Compression>)]
    compression: Option<Compression>,
    /// Bytes of a page that is compressed or encrypted: 4KiB to 64KiB; without it 16KiB
    #[arg(long, value_name = "SIZE")]
    page_size: Option<ByteSize>,
    /// Encrypt pages (aes-256-xts) with the key of this identifier
    #[arg(long, value_name = "KEY")]
    encryption_key: Option<u16>,
}

fn page_bytes(page_size: Option<ByteSize>) -> Outcome<Option<u32>> {
    let too_large =
        |bytes: u64| Failure::failed(format!("pages of {bytes} bytes: at most 64 KiB are possible"));
    page_size.map(|size| u32::try_from(size.bytes()).map_err(|_| too_large(size.bytes()))).transpose()
}

impl TransformArguments {
    /// Attributes that say this, and nothing else.
    pub(super) fn attributes(&self) -> Outcome<Attributes> {
        Ok(Attributes {
            compression: self.compression.unwrap_or_default(),
            page_bytes: page_bytes(self.page_size)?,
            encryption: self.encryption_key,
            ..Attributes::default()
        })
    }
}

/// Arguments of `tanada volume alter`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume alter vol shop compression=lz4
  tanada volume alter vol shop/orders.ibd compression=zstd:9 page_size=32KiB
  TANADA_KEY_FILE=keys tanada volume alter vol shop encryption=2      # the next key; then optimize
  tanada volume alter vol shop compression=none encryption=none

Only metadata change. Pages that are there stay as they are, and readable with the keys that they had, until they are
written again or `optimize` rewrites them. The size of pages is fixed with the first setting.")]
pub struct AlterArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// An object, or a folder of objects
    #[arg(value_name = "OBJECT")]
    name: String,
    /// compression=ALGORITHM, page_size=SIZE, encryption=KEY or encryption=none
    #[arg(value_name = "SETTING", required = true, value_parser = str::parse::<Setting>)]
    settings: Vec<Setting>,
}

/// One thing that changes.
#[derive(Debug, Clone, PartialEq)]
enum Setting {
    Compression(Compression),
    PageSize(ByteSize),
    Encryption(Option<u16>),
}

impl std::str::FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        let (name, value) = text.split_once('=').ok_or("NAME=VALUE is needed")?;
        match name {
            "compression" => value
                .parse()
                .map(Setting::Compression)
                .map_err(|error: tanada_volume::Error| error.to_string()),
            "page_size" => value.parse().map(Setting::PageSize).map_err(|error| format!("{error}")),
            "encryption" if value == "none" => Ok(Setting::Encryption(None)),
            "encryption" => {
                let key = value.parse().map(|key| Setting::Encryption(Some(key)));
                key.map_err(|_| "the identifier of a key (1 to 65535) or none is needed".to_owned())
            }
            _ => Err("compression, page_size and encryption can be set".to_owned()),
        }
    }
}

fn with(settings: &[Setting], mut attributes: Attributes) -> Outcome<Attributes> {
    for setting in settings {
        match setting {
            Setting::Compression(compression) => attributes.compression = *compression,
            Setting::PageSize(size) => attributes.page_bytes = page_bytes(Some(*size))?,
            Setting::Encryption(key) => attributes.encryption = *key,
        }
    }
    Ok(attributes)
}

pub(super) async fn alter(machine: &Machine, arguments: AlterArguments) -> Outcome {
    let AlterArguments { folder, name, settings } = arguments;
    let objects = machine
        .write(&folder.volume, async |directory| {
            let objects = selection::objects(directory.volume(), &name)?;
            for object in &objects {
                object.alter(&with(&settings, object.attributes())?).await?;
            }
            Ok(objects.len() as u64)
        })
        .await?;
    say(&format!("{} altered\n", count(objects, "object")))
}

/// Arguments of `tanada volume optimize`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tanada volume optimize vol shop

Space for the data of some chunks is needed in between. If it is cut short, or there is no space, each page is as it was
or as it will be, and the command can be given again.")]
pub struct OptimizeArguments {
    #[command(flatten)]
    folder: VolumeFolder,
    /// An object, or a folder of objects; those without compression and encryption are passed over
    #[arg(value_name = "OBJECT")]
    name: String,
}

pub(super) async fn optimize(machine: &Machine, arguments: OptimizeArguments) -> Outcome {
    let OptimizeArguments { folder, name } = arguments;
    let (objects, before, after) = machine
        .write(&folder.volume, async |directory| {
            let all = selection::objects(directory.volume(), &name)?;
            let objects: Vec<Object> =
                all.into_iter().filter(|object| object.page_statistics().is_some()).collect();
            if objects.is_empty() {
                let message = format!("{name} has neither compression nor encryption: alter it first");
                return Err(Failure::failed(message));
            }
            let progress = Progress::new("optimize", objects.iter().map(Object::size_bytes).sum());
            let (mut before, mut after) = (0, 0);
            for object in &objects {
                let page_bytes = object.page_statistics().map_or(0, |pages| pages.page_bytes);
                let done = std::sync::atomic::AtomicU64::new(0);
                let told = |now: tanada_volume::OptimizeProgress| {
                    let last = done.swap(now.done, std::sync::atomic::Ordering::Relaxed);
                    progress.add(now.done.saturating_sub(last) * page_bytes);
                };
                let optimized = object.optimize(&told).await?;
                before += optimized.allocated_before;
                after += optimized.allocated_after;
            }
            Ok((objects.len() as u64, before, after))
        })
        .await?;
    say(&format!("{} optimized, {} before, {} now\n", count(objects, "object"), size(before), size(after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_and_unknown_ones_refused() {
        assert_eq!("compression=zstd:4".parse(), Ok(Setting::Compression(Compression::Zstd(4))));
        assert_eq!("encryption=none".parse(), Ok(Setting::Encryption(None)));
        assert_eq!("encryption=7".parse(), Ok(Setting::Encryption(Some(7))));
        for (text, why) in [
            ("compression=gzip", "are known"),
            ("compression", "NAME=VALUE"),
            ("encryption=x", "identifier"),
            ("cipher=1", "can be set"),
        ] {
            let error = text.parse::<Setting>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
