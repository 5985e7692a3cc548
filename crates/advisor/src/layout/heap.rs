//! PostgreSQL: a relation's file and its segments.
//!
//! A relation is a file, `pg_relation_filepath` says which, and behind 1 GiB another one, `.1`, and so on. Its whole
//! length is the relation's.

use std::path::{Path, PathBuf};

use tanada_placement::Extent;

use crate::{Error, IndexPlaces, Result};

/// Segments of one relation: 32 TiB, the largest that there is.
const MAX_SEGMENTS: u32 = 32 << 10;

/// The places of a relation whose first file is `path`, with blocks of `block_bytes`.
///
/// # Errors
/// If the file is not there.
pub fn places(path: &Path, name: &str, has_rows: bool, block_bytes: u32) -> Result<Vec<IndexPlaces>> {
    let mut places = Vec::new();
    for no in 0..MAX_SEGMENTS {
        let file = match no {
            0 => path.to_owned(),
            no => PathBuf::from(format!("{}.{no}", path.display())),
        };
        let bytes = match std::fs::metadata(&file) {
            Ok(metadata) => metadata.len(),
            Err(error) if no == 0 => return Err(Error::io(file.display(), error)),
            Err(_) => break,
        };
        places.push(IndexPlaces {
            file,
            name: name.to_owned(),
            has_rows,
            partition: None,
            extents: if bytes == 0 { Vec::new() } else { vec![Extent { offset: 0, len: bytes }] },
            leaf_pages: bytes / u64::from(block_bytes.max(1)),
            page_bytes: block_bytes,
        });
    }
    Ok(places)
}
