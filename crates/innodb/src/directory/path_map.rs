//! Where files lie that a server's dictionary has elsewhere: a copy was moved, or a device is mounted at another place.

use std::path::{Path, PathBuf};

/// Pairs of a folder or a file as the server knows it, and where it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PathMap(Vec<(PathBuf, PathBuf)>);

impl PathMap {
    pub(super) fn new(pairs: &[(PathBuf, PathBuf)]) -> PathMap {
        PathMap(pairs.to_vec())
    }

    /// The place of what the server has at `path`. Of several pairs that apply, the longest counts.
    pub(super) fn place(&self, path: &Path) -> PathBuf {
        let applying = self.0.iter().filter_map(|(old, new)| Some((old, new, path.strip_prefix(old).ok()?)));
        match applying.max_by_key(|(old, ..)| old.components().count()) {
            Some((_, new, rest)) if rest.as_os_str().is_empty() => new.clone(),
            Some((_, new, rest)) => new.join(rest),
            None => path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pair_that_applies_gives_the_place() {
        let pairs =
            [("/a", "/x"), ("/a/b", "/y"), ("/f/t.ibd", "t.ibd")].map(|(old, new)| (old.into(), new.into()));
        let map = PathMap::new(&pairs);
        for (path, place) in [
            ("/a/t.ibd", "/x/t.ibd"),
            ("/a/b/c/t.ibd", "/y/c/t.ibd"),
            ("/ab/t.ibd", "/ab/t.ibd"),
            ("/f/t.ibd", "t.ibd"),
            ("/a/b", "/y"),
        ] {
            assert_eq!(map.place(Path::new(path)), Path::new(place), "{path}");
        }
        assert_eq!(PathMap::default().place(Path::new("/a/t")), Path::new("/a/t"));
    }
}
