//! Sizes of RocksDB's levels on two paths, such that the first path is used.
//!
//! RocksDB gives a path whole levels (`LevelCompactionBuilder::GetPathId`): L0, counted like L1, L1 of
//! `max_bytes_for_level_base`, and each further one ten times as large as the one before it. What does not fit in what
//! is left of the first path goes to the next, with all levels below. Sizes of levels that follow the data
//! (`level_compaction_dynamic_level_bytes`) are for one path alone. So with the default base of 256 MiB, L2 takes 2.5
//! GiB, and on a first path of less than 3 GiB there is L1 and nothing else.

/// What a level holds more than the one above it.
const MULTIPLIER: u64 = 10;
/// A base below this makes more levels than it is worth.
const LEAST_BASE_BYTES: u64 = 16 << 20;
/// RocksDB's default base. From there on one more level is better than a larger base.
const USUAL_BASE_BYTES: u64 = 256 << 20;
/// Files of L0 that are merged into L1, by RocksDB's default.
const FILES_OF_L0: u64 = 4;

/// Options of RocksDB that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// `max_bytes_for_level_base`.
    pub base_bytes: u64,
    /// `target_file_size_base`.
    pub file_bytes: u64,
    /// `write_buffer_size`.
    pub write_buffer_bytes: u64,
    /// `max_write_buffer_number`.
    pub write_buffers: u64,
}

impl Levels {
    /// RocksDB's default sizes of levels and files; four write buffers.
    pub fn usual(buffer_bytes: u64) -> Levels {
        Levels {
            base_bytes: USUAL_BASE_BYTES,
            file_bytes: 64 << 20,
            write_buffer_bytes: (buffer_bytes / 4).max(1 << 20),
            write_buffers: 4,
        }
    }

    /// For a first path of `path_bytes`, `data_bytes` of keys and values, and `buffer_bytes` of memory for write
    /// buffers: the largest level that can be on the first path is there, and fills it, unless that is more than the
    /// data take.
    pub fn on_two_paths(path_bytes: u64, data_bytes: u64, buffer_bytes: u64) -> Levels {
        // Keys and values, what was overwritten and is not merged yet, indexes and filters.
        let tables_bytes = data_bytes + data_bytes / 8;
        // L0, as large as L1, then as many levels as are to fit.
        let base_for = |levels: u32| {
            let all = (0..levels).map(|level| MULTIPLIER.pow(level)).sum::<u64>();
            let enough = (tables_bytes / all).max(LEAST_BASE_BYTES);
            (path_bytes / (1 + all)).min(enough)
        };
        let base_bytes = match (base_for(3), base_for(2), base_for(1)) {
            (three, ..) if three >= USUAL_BASE_BYTES => three,
            (_, two, _) if two >= LEAST_BASE_BYTES => two,
            (_, _, one) => one.max(LEAST_BASE_BYTES),
        };
        // L0 is merged when it is about as large as L1; small buffers would make many small files.
        let largest = (buffer_bytes / FILES_OF_L0).max(1 << 20);
        let write_buffer_bytes = (base_bytes / FILES_OF_L0).max(8 << 20).min(largest);
        Levels {
            base_bytes,
            file_bytes: (base_bytes / 4).clamp(4 << 20, 64 << 20),
            write_buffer_bytes,
            write_buffers: (buffer_bytes / write_buffer_bytes).clamp(FILES_OF_L0, 16),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    /// The last level on the first path, as `GetPathId` has it, and the bytes of all that are there.
    fn on_first(path_bytes: u64, base_bytes: u64) -> Option<(u32, u64)> {
        let (mut left, mut size, mut found) = (path_bytes, base_bytes, None);
        for level in 0.. {
            if size > left {
                break;
            }
            left -= size;
            found = Some((level, path_bytes - left));
            size *= if level > 0 { MULTIPLIER } else { 1 };
        }
        found
    }

    #[test]
    fn all_data_are_on_a_first_path_that_has_room_for_them() {
        for data in [GB / 2, 2 * GB, 10 * GB, 100 * GB, 1000 * GB] {
            for share in [14, 15, 20, 100] {
                let path = data * share / 10;
                let levels = Levels::on_two_paths(path, data, 256 << 20);
                let (last, bytes) = on_first(path, levels.base_bytes).unwrap();
                assert!(last >= 2 && bytes - levels.base_bytes >= data, "{data} on {path}: {levels:?}");
            }
        }
    }

    #[test]
    fn a_smaller_first_path_is_filled() {
        for data in [2 * GB, 10 * GB, 100 * GB, 1000 * GB] {
            for share in [12, 15, 20, 30, 50, 80, 100] {
                let path = data * share / 100;
                let levels = Levels::on_two_paths(path, data, 256 << 20);
                let (last, bytes) = on_first(path, levels.base_bytes).unwrap();
                assert!(last >= 2 && bytes > path / 100 * 99, "{data} on {path}: {levels:?}");
            }
        }
        // The default leaves L1 alone on a path of 3 GB, and no room for L2.
        assert_eq!(on_first(3 * GB, USUAL_BASE_BYTES), Some((1, 2 * USUAL_BASE_BYTES)));
    }

    #[test]
    fn the_smallest_paths_have_l1_and_a_base_is_never_tiny() {
        let levels = Levels::on_two_paths(96 << 20, GB, 32 << 20);
        assert_eq!(on_first(96 << 20, levels.base_bytes), Some((1, 96 << 20)));
        for path in [0, 1 << 20, 32 << 20, 192 << 20, 1 << 30, 1 << 40] {
            for data in [0, 1 << 20, 1 << 30, 1 << 40] {
                let levels = Levels::on_two_paths(path, data, 32 << 20);
                assert!(levels.base_bytes >= LEAST_BASE_BYTES, "{data} on {path}: {levels:?}");
            }
        }
    }

    #[test]
    fn buffers_and_files_are_in_keeping() {
        let large = Levels::on_two_paths(3 * GB, 2 * GB, 128 << 20);
        assert_eq!((large.write_buffer_bytes, large.write_buffers), (32 << 20, 4));
        assert!((32 << 20..=64 << 20).contains(&large.file_bytes), "{large:?}");
        let small = Levels::on_two_paths(200 << 20, 2 * GB, 128 << 20);
        assert_eq!((small.write_buffer_bytes, small.write_buffers), (8 << 20, 16));
        assert_eq!(small.file_bytes, small.base_bytes / 4);
        let little_memory = Levels::on_two_paths(3 * GB, 2 * GB, 2 << 20);
        assert_eq!((little_memory.write_buffer_bytes, little_memory.write_buffers), (1 << 20, 4));
    }
}
