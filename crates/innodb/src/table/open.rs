//! Opening: spaces, index roots, and what instant ALTER of MariaDB left behind.
//!
//! 1. The space of each partition is opened.
//! 2. Where the definition does not know the roots (MariaDB), they are taken from the space: the trees in the order of
//!    their ids are the indexes in the order of their creation. A secondary index that was added later may stand
//!    elsewhere in the definition, so each assignment is verified with rows ([`super::verify`]).
//! 3. Secondary indexes that the server left changes to in its change buffer are put aside, with a warning
//!    ([`super::stale`]).
//! 4. On MariaDB, a clustered root of type 18 leads to the metadata record, which changes the layout of this partition.
//! 5. A definition that does not lie in the file itself has to fit it ([`super::fit`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tanada_io::{Gate, GateLimits, IoContext};

use super::losses::is_damage;
use super::sampling::is_skipped;
use super::{Table, fit, rescue, stale, verify};
use crate::record::{self, Layout, Spans};
use crate::schema::instant_mariadb::{self, OffPageDefaults};
use crate::schema::{IndexKind, StoredField};
use crate::space::Roots;
use crate::tree::{KeyPart, KeyShape, Node, Order, Tree};
use crate::value::Encoder;
use crate::{
    ColumnNo, Environment, Error, ErrorKind, Index, IndexNo, PageNo, Result, Server, TableDefinition,
    Tablespace, lob,
};

/// What opening may have in flight.
const GATE: GateLimits = GateLimits { ios: Some(64), bytes: 16 << 20 };
/// MariaDB's first root in a file: behind the header, the change buffer's bitmap and the inodes.
const FIRST_ROOT: PageNo = PageNo(3);
/// Most bytes of the NULL bitmap that are tried to find the leftmost leaf: of 1,017 columns.
const MAX_NULL_BYTES: usize = 128;

impl Table {
    /// Opens the spaces of a definition (finding index roots where the definition has none).
    ///
    /// # Errors
    /// If a space cannot be opened, the definition contradicts itself or the files.
    pub async fn open(definition: TableDefinition, environment: &Arc<Environment>) -> Result<Arc<Table>> {
        Table::open_with(definition, environment, Vec::new()).await
    }

    /// The same, with what is known to be odd about its files.
    pub(crate) async fn open_with(
        definition: TableDefinition,
        environment: &Arc<Environment>,
        warnings: Vec<String>,
    ) -> Result<Arc<Table>> {
        let label = format!("{}.{}", definition.database, definition.name);
        open(definition, environment, warnings).await.map_err(|error| error.within(label))
    }
}

async fn open(
    definition: TableDefinition,
    environment: &Arc<Environment>,
    mut warnings: Vec<String>,
) -> Result<Arc<Table>> {
    let context = IoContext::new(Gate::new(GATE));
    let opening =
        definition.partitions.iter().map(|partition| Tablespace::open(&partition.path, environment));
    let spaces = futures::future::try_join_all(opening).await?;
    let keys = (0..definition.indexes.len())
        .map(|no| key_shape(&definition, IndexNo(no)).map(Arc::new))
        .collect::<Result<Vec<_>>>()?;
    let mut trees = vec![Vec::with_capacity(spaces.len()); definition.indexes.len()];
    for (partition, space) in spaces.iter().enumerate() {
        for (of_index, tree) in
            trees.iter_mut().zip(open_trees(&definition, &keys, partition, space, &context).await?)
        {
            of_index.push(tree);
        }
    }
    let put_aside = stale::put_aside(&definition, &spaces, &mut trees, &context).await?;
    warnings.extend(stale::warning(&definition, &put_aside));
    let damaged = take_damaged(&definition, &mut trees, &context).await?;
    let put_aside: BTreeSet<usize> = put_aside.into_iter().chain(damaged.keys().copied()).collect();
    warnings.extend(damaged.into_values());
    // An index is read if it is found in every partition.
    let trees: Vec<Option<Vec<_>>> =
        trees.into_iter().map(|of_index| of_index.into_iter().collect()).collect();
    let is_lost = |(no, index): &(usize, &Index)| {
        index.kind == IndexKind::BTree && trees[*no].is_none() && !put_aside.contains(no)
    };
    let lost = definition.indexes.iter().enumerate().filter(is_lost).map(|(_, index)| {
        let (database, table) = (&definition.database, &definition.name);
        format!(
            "table {database}.{table}: index {} is not used: no tree in the file has the rows' values for it",
            index.name
        )
    });
    warnings.extend(lost);
    let unsealed = spaces.iter().filter(|space| environment.verify_checksums && space.lacks_checksums());
    warnings.extend(unsealed.map(|space| {
        let what = "pages were written without checksums (innodb_checksum_algorithm = none): damage to them is not noticed";
        format!("{}: {what}", space.path().display())
    }));
    warnings.extend(spaces.iter().filter_map(|space| space.note()));
    warnings.iter().for_each(|warning| tanada_io::warn(warning));
    Ok(Arc::new(Table::new(definition, environment.clone(), spaces, keys, trees, warnings)))
}

/// Takes the secondary indexes whose root cannot be read out of `trees`. Gives a warning for each.
async fn take_damaged(
    definition: &TableDefinition,
    trees: &mut [Vec<Option<Arc<Tree>>>],
    context: &IoContext,
) -> Result<BTreeMap<usize, String>> {
    let mut damaged = BTreeMap::new();
    for (no, of_index) in trees.iter_mut().enumerate().skip(1) {
        for place in of_index {
            let Some(tree) = place else { continue };
            match tree.root(context).await {
                Err(error) if is_skipped(&error) => {
                    let (database, table, index) =
                        (&definition.database, &definition.name, &definition.indexes[no].name);
                    let what = format!("table {database}.{table}: index {index} is not used: {error}");
                    damaged.entry(no).or_insert(what);
                    *place = None;
                }
                root => drop(root?),
            }
        }
    }
    Ok(damaged)
}

fn key_shape(definition: &TableDefinition, index: IndexNo) -> Result<KeyShape> {
    let parts = &definition.indexes[index.0].parts;
    if index.0 == 0 && parts.is_empty() {
        return Ok(KeyShape {
            parts: vec![KeyPart { order: Order::Bytes, descending: false, encoder: None, one_form: true }],
        });
    }
    let part = |part: &crate::IndexPart| {
        let missing = || Error::new(ErrorKind::InvalidInput, "an index has a part without column");
        let column = definition.columns.get(part.column.0).ok_or_else(missing)?;
        let encoder = Encoder::new(&column.column_type, part.prefix_bytes);
        Ok(KeyPart {
            order: Order::new(definition.server, &column.column_type),
            descending: part.descending,
            one_form: encoder.has_one_form(),
            encoder: Some(encoder),
        })
    };
    Ok(KeyShape { parts: parts.iter().map(part).collect::<Result<_>>()? })
}

/// The trees of one partition, in the order of the indexes; `None` for an index that is not read.
async fn open_trees(
    definition: &TableDefinition,
    keys: &[Arc<KeyShape>],
    partition: usize,
    space: &Arc<Tablespace>,
    context: &IoContext,
) -> Result<Vec<Option<Arc<Tree>>>> {
    let root_of = |no: usize| definition.indexes[no].roots.get(partition).copied().flatten();
    let complete = (0..definition.indexes.len())
        .all(|no| definition.indexes[no].kind == IndexKind::Other || root_of(no).is_some());
    let Roots { sound: found, damaged, incomplete } = match complete {
        true => Roots::default(),
        false => {
            let roots = space.roots(context).await?;
            fit::check_trees(definition, space, &roots)?;
            roots
        }
    };
    // The clustered index is made first, so its root has the first page of a file of its own, or the one behind that
    // of the dictionary information.
    let first_root = if space.sdi_root() == Some(FIRST_ROOT) { PageNo(FIRST_ROOT.0 + 1) } else { FIRST_ROOT };
    let clustered_root = match (root_of(0), found.first()) {
        (Some(root), _) => root,
        (None, _) if (incomplete || damaged.contains(&first_root)) && space.id().0 != 0 => first_root,
        (None, Some((root, _))) => *root,
        (None, None) => return Err(space.corrupt(PageNo(0), "the space holds no B+tree")),
    };
    // Partitions have indexes of their own; the definition names those of one.
    let defined_id = |no: usize| if definition.partitions.len() == 1 { definition.indexes[no].id } else { 0 };
    let clustered =
        clustered_tree(definition, &keys[0], space, clustered_root, (partition, defined_id(0)), context)
            .await?;
    let mut free: Vec<PageNo> =
        found.iter().map(|(root, _)| *root).filter(|root| *root != clustered_root).collect();
    let mut trees = vec![None; definition.indexes.len()];
    trees[0] = Some(clustered.clone());
    for no in verify_order(definition) {
        let layout = Arc::new(Layout::new(definition, IndexNo(no), None)?);
        let tree = |root| {
            let key = keys[no].clone();
            Arc::new(Tree::new(space.clone(), root, layout.clone(), key, defined_id(no)))
        };
        trees[no] = match root_of(no) {
            Some(root) => Some(tree(root)),
            None => verify::choose(&definition.indexes[no].parts, &clustered, &free, &tree, context).await?,
        };
        free.retain(|root| trees[no].as_ref().is_none_or(|tree| tree.root != *root));
    }
    Ok(trees)
}

/// The secondary indexes that are read, those over virtual columns only last.
fn verify_order(definition: &TableDefinition) -> Vec<usize> {
    let stored = |column: ColumnNo| {
        definition.columns.get(column.0).is_some_and(|column| column.virtual_expression.is_none())
    };
    let readable = |index: &&(usize, &Index)| index.1.kind == IndexKind::BTree && !index.1.parts.is_empty();
    let indexes: Vec<_> = definition.indexes.iter().enumerate().skip(1).collect();
    let mut order: Vec<usize> = indexes.iter().filter(readable).map(|(no, _)| *no).collect();
    order.sort_by_key(|no| !definition.indexes[*no].parts.iter().any(|part| stored(part.column)));
    order
}

/// The clustered index `id` of one partition, which has to fit its definition.
async fn clustered_tree(
    definition: &TableDefinition,
    key: &Arc<KeyShape>,
    space: &Arc<Tablespace>,
    root: PageNo,
    (partition, id): (usize, u64),
    context: &IoContext,
) -> Result<Arc<Tree>> {
    let tree = |layout| Arc::new(Tree::new(space.clone(), root, Arc::new(layout), key.clone(), id));
    let plain = tree(clustered_layout(definition, key, (space, partition), root, context).await?);
    // MySQL's definition lies in the file itself, with the roots, unless a statement takes its place.
    let is_of_file = definition.indexes[0].roots.get(partition).is_some_and(Option::is_some);
    if definition.server == Server::MySql && is_of_file {
        return Ok(plain);
    }
    let Err(misfit) = fit::check_rows(&plain, context).await else { return Ok(plain) };
    let Some(wider) = with_document_id(definition) else { return Err(misfit) };
    let wider = tree(clustered_layout(&wider, key, (space, partition), root, context).await?);
    fit::check_rows(&wider, context).await.map(|()| wider).map_err(|_| misfit)
}

/// The definition of a table that had FULLTEXT indexes once: the hidden column that InnoDB added for them stays.
fn with_document_id(definition: &TableDefinition) -> Option<TableDefinition> {
    if definition.has_document_id() {
        return None;
    }
    let mut wider = definition.clone();
    wider.stored_fields.push(StoredField::document_id());
    Some(wider)
}

/// The layout of the clustered index of one partition.
async fn clustered_layout(
    definition: &TableDefinition,
    key: &Arc<KeyShape>,
    (space, partition): (&Arc<Tablespace>, usize),
    root: PageNo,
    context: &IoContext,
) -> Result<Layout> {
    if definition.server == Server::MySql {
        return Layout::of_mysql_partition(definition, partition);
    }
    let plain =
        Tree::new(space.clone(), root, Arc::new(Layout::new(definition, IndexNo(0), None)?), key.clone(), 0);
    let node = match plain.root(context).await {
        Ok(node) => node,
        Err(error) if is_damage(&error) => {
            let known_id = if definition.partitions.len() == 1 { definition.indexes[0].id } else { 0 };
            if !fits_without_root(&plain, known_id, context).await? {
                return Err(error);
            }
            return Layout::new(definition, IndexNo(0), None);
        }
        Err(error) => return Err(error),
    };
    let Some(core) = node.core_fields() else { return Layout::new(definition, IndexNo(0), None) };
    let leaf = leftmost_leaf(&plain, core, node, context).await?;
    let no = leaf.page().number();
    let misplaced = || space.corrupt(no, "the metadata record of instant ALTER is not where it should be");
    let first = leaf.records().next().map_err(|error| plain.at(no, &error))?.ok_or_else(misplaced)?;
    if !leaf.header(first).map_err(|error| plain.at(no, &error))?.min_rec {
        return Err(misplaced());
    }
    let mut changed = definition.clone();
    let off_page = if leaf.is_compact() {
        let bytes = leaf.bytes();
        let blob = match instant_mariadb::metadata_blob(definition, bytes, first)
            .map_err(|error| plain.at(no, &error))?
        {
            Some((blob, _)) => Some(lob::first_part(space, blob, context).await?),
            None => None,
        };
        let off_page = instant_mariadb::apply(&mut changed, bytes, first, core, blob.as_deref());
        off_page.map_err(|error| plain.at(no, &error))?
    } else {
        redundant_layout(&mut changed, &plain, &leaf, first, core, context).await?
    };
    fetch_defaults(&mut changed, off_page, space, context).await?;
    Layout::new(&changed, IndexNo(0), Some(core))
}

/// Fetches the defaults that lie off-page.
async fn fetch_defaults(
    definition: &mut TableDefinition,
    off_page: OffPageDefaults,
    space: &Tablespace,
    context: &IoContext,
) -> Result<()> {
    for no in off_page {
        let Some(field) = definition.stored_fields.get_mut(no) else { continue };
        if let Some(Some(local)) = &field.instant_default {
            let longest = record::longest_bytes(&field.column_type);
            field.instant_default = Some(Some(lob::fetch(space, local, longest, context).await?));
        }
    }
    Ok(())
}

/// Whether the definition fits a clustered index whose root is damaged: its first leaf is found by reading the whole
/// file. Not if there is no such leaf, or the table was altered instantly, of which the root holds a part.
async fn fits_without_root(plain: &Tree, known_id: u64, context: &IoContext) -> Result<bool> {
    let Some(leaf) = rescue::first_leaf(plain, known_id, context).await? else { return Ok(false) };
    let no = leaf.page().number();
    let first = leaf.records().next().map_err(|error| plain.at(no, &error))?;
    if let Some(first) = first
        && leaf.header(first).map_err(|error| plain.at(no, &error))?.min_rec
    {
        return Ok(false);
    }
    fit::check_leaf(plain, &leaf).map(|()| true)
}

/// The leftmost leaf of a tree whose NULL bitmap width is not known yet: the metadata record there tells. The width
/// that leads to a node of the next level without a left neighbour is right.
async fn leftmost_leaf(plain: &Tree, core: usize, root: Node, context: &IoContext) -> Result<Node> {
    let mut shape = (*plain.layout.shape).clone().with_added(core);
    let (mut node, id) = (root, plain.id(context).await?);
    let mut spans = Spans::new();
    'level: while node.level() > 0 {
        let first = node.records().next().map_err(|error| plain.at(node.page().number(), &error))?;
        let expected = shape.node_null_bytes;
        for null_bytes in std::iter::once(expected).chain(0..MAX_NULL_BYTES) {
            shape.node_null_bytes = null_bytes;
            let Some(origin) = first else { break };
            let Ok(child) = record::child(node.bytes(), origin, node.is_compact(), &shape, &mut spans) else {
                continue;
            };
            if child == 0 || child >= plain.space.pages() {
                continue;
            }
            let page = plain.space.page(PageNo(child), context).await?;
            if page.previous().is_some() {
                continue;
            }
            if let Ok(below) = Node::new(page)
                && (below.level() + 1, below.index_id()) == (node.level(), id)
            {
                node = below;
                continue 'level;
            }
        }
        return Err(plain.space.corrupt(node.page().number(), "its first node pointer leads nowhere"));
    }
    Ok(node)
}

/// The same for a REDUNDANT metadata record, the one at `origin`.
async fn redundant_layout(
    definition: &mut TableDefinition,
    plain: &Tree,
    leaf: &Node,
    origin: usize,
    core: usize,
    context: &IoContext,
) -> Result<OffPageDefaults> {
    let no = leaf.page().number();
    let placed = |error: Error| plain.at(no, &error);
    // The reference to the list comes on top of the fields, of which dropped ones are left.
    let most = record::MAX_FIELDS;
    let mut spans = Spans::new();
    record::parse_leaf(leaf.bytes(), origin, false, &plain.layout.shape, most, &mut spans).map_err(placed)?;
    let field = |at: usize| {
        let span = spans.get(at).filter(|span| !span.is_null() && !span.is_absent())?;
        Some((span.bytes(leaf.bytes()), span.is_external()))
    };
    let metadata =
        instant_mariadb::RedundantMetadata { listed: leaf.header(origin).map_err(placed)?.deleted, field };
    let list = match metadata.blob(definition).map_err(placed)? {
        Some((blob, _)) => Some(lob::first_part(&plain.space, blob, context).await?),
        None => None,
    };
    metadata.apply(definition, core, list.as_deref()).map_err(placed)
}
