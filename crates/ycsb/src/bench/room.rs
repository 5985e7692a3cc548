//! Whether there is room for a benchmark, before it begins.

use tanada_base::ByteSize;

use super::{WITH_STAGING, YcsbOptions};
use crate::media::{MediaKind, free_room};
use crate::{Error, ErrorKind, Result};

/// What the largest of all engines takes of folders, over the data, with what it merges.
const FOLDER_SHARE: u64 = 3;

/// Bytes that files of one engine take at most: data sets follow each other.
fn wanted_bytes(options: &YcsbOptions) -> u64 {
    let sizes = options.sizes();
    if options.media == MediaKind::Folder {
        return FOLDER_SHARE * sizes.data_bytes + (256 << 20);
    }
    let has_staging = options.tiers.iter().any(|tiers| tiers == WITH_STAGING);
    let staging = if has_staging { sizes.disk_bytes("staging") } else { 0 };
    sizes.disk_bytes("capacity") + staging
}

/// What is wanted and what there is, in a sentence.
///
/// # Errors
/// `Missing` if there is less. On a tmpfs, where files take what is written of them, disks are looked at as they are made.
pub(super) fn check(options: &YcsbOptions) -> Result<String> {
    let wanted = wanted_bytes(options);
    let Some(room) = free_room(&options.directory) else {
        return Ok(format!("up to {} in {}", ByteSize::new(wanted), options.directory.display()));
    };
    let free = ByteSize::new(room.free_bytes);
    let said = format!("up to {} in {}, {free} are free", ByteSize::new(wanted), options.directory.display());
    if room.free_bytes >= wanted || room.is_memory {
        return Ok(said);
    }
    let message = format!("{said}: choose a folder with more room, or fewer records");
    Err(Error::new(ErrorKind::Missing, message))
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
            let error = check(&options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Missing);
            assert!(error.to_string().contains("fewer records"), "{error}");
            let options = YcsbOptions { records: Records { count: 1, ..records }, ..options };
            assert!(check(&options).unwrap().contains("are free"));
        }
    }

    #[test]
    fn staging_takes_no_multiple_of_what_engines_may_use() {
        let options = YcsbOptions { media: MediaKind::Limited, ..YcsbOptions::new("/") };
        let data = options.sizes().data_bytes;
        assert!(wanted_bytes(&options) < 7 * data, "{}", wanted_bytes(&options));
    }
}
