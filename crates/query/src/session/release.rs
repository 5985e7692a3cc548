//! Which release of MariaDB wrote files.

use std::path::Path;
use std::sync::Arc;

use tanada_innodb::Files;

/// The first release whose default collations are those of UCA 14.
const NEWER: (u32, u32) = (11, 5);

/// Where the redo log says who made it, and how long that text may be.
const CREATOR_OFFSET: u64 = 16;
const CREATOR_BYTES: usize = 32;

/// Where an `.frm` says the release, as 10.11.19 is 101119.
const FRM_VERSION_OFFSET: u64 = 51;

/// Most `.frm` files that are asked.
const MAX_FRM_FILES: usize = 100;

/// Whether MariaDB 11.5 or later wrote what lies at `path`: by the redo log of the data directory; without one by the
/// newest `.frm` of the folder.
pub(super) async fn is_newer_mariadb(files: &Arc<dyn Files>, path: &Path) -> bool {
    let folder = if files.is_folder(path) { Some(path) } else { path.parent() };
    let Some(folder) = folder else { return false };
    for folder in [Some(folder), folder.parent()].into_iter().flatten() {
        let log = folder.join("ib_logfile0");
        if let Ok(creator) = files.read(&log, CREATOR_OFFSET, CREATOR_BYTES).await
            && let Some(release) = release_of_creator(&creator)
        {
            return release >= NEWER;
        }
    }
    let Ok(entries) = files.entries(folder) else { return false };
    let frm_files =
        entries.iter().filter(|entry| entry.extension().is_some_and(|extension| extension == "frm"));
    for entry in frm_files.take(MAX_FRM_FILES) {
        let Ok(bytes) = files.read(entry, FRM_VERSION_OFFSET, 4).await else { continue };
        let Ok(bytes) = <[u8; 4]>::try_from(bytes) else { continue };
        let version = u32::from_le_bytes(bytes);
        if (version / 10_000, version / 100 % 100) >= NEWER {
            return true;
        }
    }
    false
}

/// `MariaDB 11.8.9` -> (11, 8)
fn release_of_creator(creator: &[u8]) -> Option<(u32, u32)> {
    let text = String::from_utf8_lossy(creator);
    let mut numbers = text.strip_prefix("MariaDB ")?.split(['.', '\0']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_redo_log_names_the_release() {
        assert_eq!(release_of_creator(b"MariaDB 11.8.9\0\0\0"), Some((11, 8)));
        assert_eq!(release_of_creator(b"MariaDB 10.11.19\0"), Some((10, 11)));
        assert_eq!(release_of_creator(b"Backup ib_logfile"), None);
        assert_eq!(release_of_creator(b"MariaDB "), None);
    }
}
