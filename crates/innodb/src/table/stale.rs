//! Putting aside the indexes whose leaves are not up to date, so that nothing is read through them.
//!
//! An index that was not found in a partition because its entries contradict the rows there (roots are found by
//! comparing them, see [`super::verify`]) is named too if the partition has leaves that are not up to date.

use std::collections::BTreeSet;
use std::sync::Arc;

use tanada_io::IoContext;

use super::sampling::is_skipped;
use crate::schema::IndexKind;
use crate::space::Stale;
use crate::tree::Tree;
use crate::{Result, TableDefinition, Tablespace};

/// Takes the trees that the change buffer has changes to out of `trees` (by index, then by partition). Gives the
/// indexes concerned.
pub(super) async fn put_aside(
    definition: &TableDefinition,
    spaces: &[Arc<Tablespace>],
    trees: &mut [Vec<Option<Arc<Tree>>>],
    context: &IoContext,
) -> Result<BTreeSet<usize>> {
    let has_secondary = definition.indexes.iter().skip(1).any(|index| index.kind == IndexKind::BTree);
    if !has_secondary {
        return Ok(BTreeSet::new());
    }
    let by_partition =
        futures::future::join_all(spaces.iter().map(|space| space.stale_indexes(context))).await;
    let mut put_aside = BTreeSet::new();
    for (partition, stale) in by_partition.iter().enumerate().filter(|(_, stale)| !stale.is_none()) {
        for (no, of_index) in trees.iter_mut().enumerate().skip(1) {
            let is_tree = definition.indexes[no].kind == IndexKind::BTree;
            if is_tree && put_aside_one(stale, of_index, partition, context).await? {
                put_aside.insert(no);
            }
        }
    }
    Ok(put_aside)
}

/// What to say about the indexes that were put aside.
pub(super) fn warning(definition: &TableDefinition, put_aside: &BTreeSet<usize>) -> Option<String> {
    let names: Vec<&str> = put_aside.iter().map(|no| definition.indexes[*no].name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let (indexes, are, them) =
        if names.len() == 1 { ("index", "is", "it") } else { ("indexes", "are", "them") };
    Some(format!(
        "table {}.{}: {indexes} {} {are} not used: the server left changes to {them} in its change buffer, or what would tell so is damaged; a server \
         that starts on a copy of the files and stops with innodb_fast_shutdown = 0 makes them",
        definition.database,
        definition.name,
        names.join(", "),
    ))
}

/// Whether the index is not up to date in `partition`, whose tree is taken out then.
async fn put_aside_one(
    stale: &Stale,
    of_index: &mut [Option<Arc<Tree>>],
    partition: usize,
    context: &IoContext,
) -> Result<bool> {
    let Some(place) = of_index.get_mut(partition) else { return Ok(false) };
    if let Some(tree) = place {
        match tree.id(context).await {
            Ok(id) if !stale.holds(id) => return Ok(false),
            // An index whose root cannot be read is put aside for that.
            Err(error) if is_skipped(&error) => return Ok(false),
            id => drop(id?),
        }
    }
    *place = None;
    Ok(true)
}
