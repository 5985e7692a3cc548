//! Looking for damage where no cursor comes by: in the index, and in the filter.
//!
//! All of it is read from the device, whether it is held or not.

use futures::stream::{self, StreamExt};

use super::KeyFile;
use super::page::PageAddress;
use crate::Error;

/// Pages that are read concurrently.
const CONCURRENT_READS: usize = 32;

impl KeyFile {
    /// Returns the damage of index pages and filter parts: `Corrupted`, with object and offset, or the error of the
    /// read. Pages below a damaged index page are not checked.
    pub(crate) async fn damage(&self) -> Vec<Error> {
        let mut damage = self.damage_of_index().await;
        damage.extend(self.damage_of_filter().await);
        damage
    }

    /// Level by level from the root.
    async fn damage_of_index(&self) -> Vec<Error> {
        let Some((levels, root)) = self.root() else { return Vec::new() };
        let (mut damage, mut pages) = (Vec::new(), vec![root]);
        for level in (1..=levels).rev() {
            let mut below = Vec::new();
            let reads: Vec<_> = pages.iter().map(|address| self.read_children(*address, level)).collect();
            let mut reads = stream::iter(reads).buffered(CONCURRENT_READS);
            while let Some(read) = reads.next().await {
                match read {
                    Ok(children) => below.extend(children),
                    Err(error) => damage.push(error),
                }
            }
            pages = without_repeated(below);
        }
        damage
    }
}

/// However pages refer to each other, none is read more than once a level.
fn without_repeated(mut pages: Vec<PageAddress>) -> Vec<PageAddress> {
    pages.sort_unstable_by_key(|page| (page.no, page.units));
    pages.dedup();
    pages
}
