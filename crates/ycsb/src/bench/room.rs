//! Whether there is room for a benchmark, before it begins.

use std::fmt;
use std::path::PathBuf;

use tanada_base::ByteSize;

use super::{WITH_STAGING, YcsbOptions};
use crate::media::{self, MediaKind};
use crate::{Error, ErrorKind, Result};

/// What the largest of all engines takes of folders, over the data, with what it merges.
const FOLDER_SHARE: u64 = 3;

/// Bytes that files of one engine take at most.
fn wanted_bytes(options: &YcsbOptions) -> u64 {
    let sizes = options.sizes();
    if options.media == MediaKind::Folder {
        return FOLDER_SHARE * sizes.data_bytes + (256 << 20);
    }
    let has_staging = options.tiers.iter().any(|tiers| tiers == WITH_STAGING);
    let staging = if has_staging { sizes.disk_bytes("staging") } else { 0 };
    sizes.disk_bytes("capacity") + staging
}

/// What data sets want and what there is.
#[derive(Debug)]
pub(super) struct Room {
    directory: PathBuf,
    engines: usize,
    /// Of one engine, at most.
    wanted_bytes: u64,
    /// Unknown where the system does not tell.
    free_bytes: Option<u64>,
    /// Data sets that may be there at once, at least one.
    together: usize,
}

impl Room {
    /// Looks.
    ///
    /// # Errors
    /// `Missing` if there is less than one engine takes. Disks on a tmpfs, which take what was ever written of them,
    /// are looked at as they are made.
    pub fn of(options: &YcsbOptions) -> Result<Room> {
        let free = media::free_room(&options.directory);
        let wanted_bytes = wanted_bytes(options);
        let engines = options.engines().len();
        let are_sparse = free.is_some_and(|free| free.is_memory) && options.media != MediaKind::Folder;
        let fit = free.map_or(engines as u64, |free| free.free_bytes / wanted_bytes.max(1));
        let room = Room {
            directory: options.directory.clone(),
            engines,
            wanted_bytes,
            free_bytes: free.map(|free| free.free_bytes),
            together: usize::try_from(fit).unwrap_or(usize::MAX).min(engines).max(1),
        };
        if fit > 0 || are_sparse {
            return Ok(room);
        }
        let message = format!("{room}: choose a folder with more room, or fewer records");
        Err(Error::new(ErrorKind::Missing, message))
    }

    /// How many data sets may be there at once.
    pub fn together(&self) -> usize {
        self.together
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = |engines: usize| ByteSize::new(self.wanted_bytes.saturating_mul(engines as u64));
        write!(f, "up to {} in {}", wanted(self.together), self.directory.display())?;
        if let Some(free_bytes) = self.free_bytes {
            write!(f, ", {} are free", ByteSize::new(free_bytes))?;
        }
        if self.together < self.engines {
            write!(f, " (engines could take turns with {})", wanted(self.engines))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Records;

    #[test]
    fn benchmarks_without_space_are_refused_with_their_need() {
        let folder = tempfile::tempdir_in(".").unwrap();
        for media in [MediaKind::Folder, MediaKind::Limited] {
            let records = Records { count: 1 << 37, ..Records::default() };
            let options = YcsbOptions { media, records, ..YcsbOptions::new(folder.path()) };
            let error = Room::of(&options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Missing);
            assert!(error.to_string().contains("fewer records"), "{error}");
            let options = YcsbOptions { records: Records { count: 1, ..records }, ..options };
            assert!(Room::of(&options).unwrap().to_string().contains("are free"));
        }
    }

    #[test]
    fn engines_alternate_where_space_allows() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let peer = |engine: &str| crate::bench::Peer { program: "peer".into(), engine: engine.to_owned() };
        let options = |count| YcsbOptions {
            media: MediaKind::Folder,
            records: Records { count, ..Records::default() },
            against: vec![peer("rocksdb"), peer("fjall")],
            ..YcsbOptions::new(folder.path())
        };
        assert_eq!(Room::of(&options(1)).unwrap().together(), 3);
        let Some(free) = media::free_room(folder.path()).filter(|free| !free.is_memory) else { return };
        // Twice as much as there is room for, of all three together.
        let of_a_record = Records::default().logical_bytes(1);
        let room = Room::of(&options(free.free_bytes / of_a_record / FOLDER_SHARE / 2)).unwrap();
        let said = room.to_string();
        assert!(room.together() == 1 && said.contains("(engines could take turns with "), "{said}");
    }

    #[test]
    fn staging_is_not_sized_by_the_number_of_engines() {
        let options = YcsbOptions { media: MediaKind::Limited, ..YcsbOptions::new("/") };
        let data = options.sizes().data_bytes;
        assert!(wanted_bytes(&options) < 7 * data, "{}", wanted_bytes(&options));
    }
}
