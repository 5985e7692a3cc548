//! A database for the examples of this documentation.

use std::error::Error;
use std::path::Path;

use tanada_volume::VolumeSettings;
use tanada_volume::directory::{ClassConfig, Directory, Settings};

use crate::database::{Database, Store};
use crate::environment::{ThreadEnvironment, wait_for};
use crate::settings::{DatabaseSettings, StoreSettings};

/// Bytes of the class of an example's volume.
const CLASS_BYTES: u64 = 64 << 20;
/// Memory of an example's database.
const MEMORY_BYTES: u64 = 8 << 20;
/// Bytes of a segment of its log.
const LOG_SEGMENT_BYTES: u64 = 1 << 20;

/// Runs an example with the database `shop` and its store `lines`, in a new volume in the empty folder `folder`.
///
/// # Errors
/// Those of the example, and of what is made for it.
pub fn run(
    folder: &Path,
    example: impl AsyncFnOnce(Database, Store) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    wait_for(async {
        let class = ClassConfig::new("flash", vec!["flash".into()], Some(CLASS_BYTES));
        let (path, volume) = (folder.join("volume"), VolumeSettings::default());
        let directory = Directory::create(&path, &volume, &[class], Settings::default()).await?;
        let settings = DatabaseSettings {
            memory_bytes: MEMORY_BYTES,
            log_segment_bytes: LOG_SEGMENT_BYTES,
            ..DatabaseSettings::default()
        };
        let environment = ThreadEnvironment::new();
        let database = Database::create(directory.volume(), "shop", &settings, environment).await?;
        let store = database.create_store("lines", &StoreSettings::default()).await?;
        example(database.clone(), store).await?;
        database.close().await?;
        directory.close().await?;
        Ok(())
    })
}
