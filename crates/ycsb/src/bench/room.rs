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
    /// Unknown where the system does not tell. On a tmpfs, where files take what is written of them, disks are looked at as they are made.
    free_bytes: Option<u64>,
}

impl Room {
    /// Looks.
    ///
    /// # Errors
    /// `Missing` if there is less than one engine takes.
    pub fn of(options: &YcsbOptions) -> Result<Room> {
        let free = media::free_room(&options.directory).filter(|room| !room.is_memory);
        let room = Room {
            directory: options.directory.clone(),
            engines: options.engines().len(),
            wanted_bytes: wanted_bytes(options),
            free_bytes: free.map(|room| room.free_bytes),
        };
        if room.data_sets(1) == 1 {
            return Ok(room);
        }
        let message = format!("{room}: choose a folder with more room, or fewer records");
        Err(Error::new(ErrorKind::Missing, message))
    }

    /// How many of so many data sets may be there at once.
    pub fn data_sets(&self, most: usize) -> usize {
        let Some(free_bytes) = self.free_bytes else { return most };
        usize::try_from(free_bytes / self.wanted_bytes.max(1)).map_or(most, |fit| fit.min(most))
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = |engines: usize| ByteSize::new(self.wanted_bytes.saturating_mul(engines as u64));
        let together = self.data_sets(self.engines).max(1);
        write!(f, "up to {} in {}", wanted(together), self.directory.display())?;
        if let Some(free_bytes) = self.free_bytes {
            write!(f, ", {} are free", ByteSize::new(free_bytes))?;
        }
        if together < self.engines {
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
    fn a_benchmark_without_room_is_refused_and_says_how_much_it_wants() {
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
    fn engines_take_turns_where_there_is_room_for_all_their_data() {
        let room =
            |free_bytes| Room { directory: "/data".into(), engines: 2, wanted_bytes: 10 << 30, free_bytes };
        for (free_gib, together, said) in [
            (25, 2, "up to 20 GiB in /data, 25 GiB are free"),
            (19, 1, "up to 10 GiB in /data, 19 GiB are free (engines could take turns with 20 GiB)"),
        ] {
            let room = room(Some(free_gib << 30));
            assert_eq!((room.data_sets(2), room.to_string().as_str()), (together, said));
        }
        assert_eq!((room(None).data_sets(2), room(None).to_string().as_str()), (2, "up to 20 GiB in /data"));
    }

    #[test]
    fn staging_takes_no_multiple_of_what_engines_may_use() {
        let options = YcsbOptions { media: MediaKind::Limited, ..YcsbOptions::new("/") };
        let data = options.sizes().data_bytes;
        assert!(wanted_bytes(&options) < 7 * data, "{}", wanted_bytes(&options));
    }
}
