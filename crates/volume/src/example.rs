//! A volume for the examples of this documentation.

use std::error::Error;
use std::path::Path;

use crate::directory::{ClassConfig, Directory, Settings};
use crate::{Volume, VolumeSettings};

/// Bytes of each class of an example's volume.
const CLASS_BYTES: u64 = 16 << 20;

/// Runs an example with a new volume of the classes `fast` and `slow` in the empty folder `folder`.
///
/// # Errors
/// Those of the example, and of what is made for it.
pub fn run(
    folder: &Path,
    example: impl AsyncFnOnce(Volume) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    tanada_io::wait(async {
        let class = |name: &str| ClassConfig::new(name, vec![name.into()], Some(CLASS_BYTES));
        let settings = VolumeSettings::default();
        let classes = [class("fast"), class("slow")];
        let directory =
            Directory::create(&folder.join("volume"), &settings, &classes, Settings::default()).await?;
        example(directory.volume().clone()).await?;
        directory.close().await?;
        Ok(())
    })
}
