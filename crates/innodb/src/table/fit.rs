//! Whether a definition that comes from beside a file (`.frm`, `CREATE TABLE` text) is that of the file.
//!
//! Read by the definition of another table, most rows would be noise, but some would look sound. Two things tell:
//!
//! 1. the number of trees in the file, which is that of the indexes (a FULLTEXT one has no tree, but a hidden one over
//!    document ids comes with the first of them and stays when they go);
//! 2. on every page the bytes of all records and of the room that removed ones left make what the header says is used.
//!    The first leaf of the clustered index is measured with the definition. REDUNDANT records say themselves how long
//!    they are; their number of fields and the widths of fixed ones have to agree instead.
//!
//! A definition of the same shape passes. Pages that cannot be read are found out by who needs them.

use tanada_io::IoContext;

use crate::page::header::u16_at;
use crate::record;
use crate::schema::IndexKind;
use crate::space::Roots;
use crate::tree::{Node, Tree};
use crate::{Error, ErrorKind, Result, SpaceId, TableDefinition, Tablespace};

/// Page header: end of the heap, bytes of removed records.
const HEAP_TOP: usize = 40;
const GARBAGE: usize = 46;
/// Where the records that every page has end.
const FIRST_RECORD: usize = 120;

/// Where tables share one space.
const SYSTEM_SPACE: SpaceId = SpaceId(0);

const MISFIT: &str = "its rows are not as its definition says";

fn misfit(space: &Tablespace, what: &str) -> Error {
    let message = format!(
        "{}: {what}; the definition (.frm or CREATE TABLE) is of another table or of another time, or the .ibd file is",
        space.path().display()
    );
    Error::new(ErrorKind::InvalidInput, message)
}

/// Compares the number of trees found in `space` with that of the indexes.
pub(super) fn check_trees(definition: &TableDefinition, space: &Tablespace, found: &Roots) -> Result<()> {
    let least = definition.indexes.iter().filter(|index| index.kind == IndexKind::BTree).count();
    let most = definition.indexes.len() + usize::from(!definition.has_document_id());
    // A damaged page may be a root.
    let fits =
        found.sound.len() <= most && (found.incomplete || found.sound.len() + found.damaged.len() >= least);
    if space.id() == SYSTEM_SPACE || fits {
        return Ok(());
    }
    let trees = if found.sound.len() == 1 { "index" } else { "indexes" };
    let what = format!("the file has {} {trees}, the definition {least}", found.sound.len());
    Err(misfit(space, &what))
}

/// Measures the first leaf of the clustered index.
pub(super) async fn check_rows(clustered: &Tree, context: &IoContext) -> Result<()> {
    match first_leaf(clustered, context).await {
        Ok(None) => Ok(()),
        Ok(Some(leaf)) => check_leaf(clustered, &leaf),
        // Node pointers that lead elsewhere are as telling as rows of other widths.
        Err(_) => Err(misfit(&clustered.space, MISFIT)),
    }
}

/// Measures a leaf of the clustered index.
pub(super) fn check_leaf(clustered: &Tree, leaf: &Node) -> Result<()> {
    match fits(clustered, leaf) {
        Ok(true) => Ok(()),
        _ => Err(misfit(&clustered.space, MISFIT)),
    }
}

/// The first leaf; `None` if a page on the way cannot be read, or the table was changed instantly: what that left
/// behind was compared with the definition already.
async fn first_leaf(tree: &Tree, context: &IoContext) -> Result<Option<Node>> {
    let Ok(mut node) = tree.root(context).await else { return Ok(None) };
    if node.core_fields().is_some() {
        return Ok(None);
    }
    let mut spans = record::Spans::new();
    while node.level() > 0 {
        let child = tree.child(&node, node.infimum(), &mut spans)?;
        // A page that the file lacks because it was cut, or a damaged one.
        let is_lost = match tree.space.page(child, context).await {
            Ok(page) => tree.space.is_lost(&page),
            Err(_) => true,
        };
        if child.0 < tree.space.declared_pages() && is_lost {
            return Ok(None);
        }
        node = tree.node(child, node.level() - 1, node.index_id(), context).await?;
    }
    Ok(Some(node))
}

fn fits(tree: &Tree, leaf: &Node) -> Result<bool> {
    let bytes = leaf.bytes();
    let shape = &tree.layout.shape;
    let mut records = leaf.records();
    let mut sum = 0;
    while let Some(origin) = records.next()? {
        if !leaf.is_compact() {
            if !record::redundant_fits(bytes, origin, shape)? {
                return Ok(false);
            }
        } else {
            sum += record::compact_bytes(bytes, origin, shape)?;
        }
    }
    let used = usize::from(u16_at(bytes, HEAP_TOP)).saturating_sub(FIRST_RECORD);
    Ok(!leaf.is_compact() || sum + usize::from(u16_at(bytes, GARBAGE)) == used)
}
