//! From a root to a leaf.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::OnceLock;

use tanada_io::IoContext;

use super::key::{Key, KeyShape};
use super::{MAX_LEVELS, Node};
use crate::record::{self, Layout, Spans};
use crate::{Error, ErrorKind, PageNo, Result, Tablespace};

/// One index of one partition.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) space: Arc<Tablespace>,
    pub(crate) root: PageNo,
    pub(crate) layout: Arc<Layout>,
    pub(crate) key: Arc<KeyShape>,
    /// The index's id by the definition, 0 if unknown.
    pub(crate) defined_id: u64,
    /// The index's id by its root.
    id: OnceLock<u64>,
}

/// Where a search arrived: the rows sought begin after record `before` of this leaf.
#[derive(Debug)]
pub(crate) struct Position {
    pub(crate) leaf: Node,
    pub(crate) before: usize,
}

/// Which of the children to take, and where to stand in the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seek {
    /// Before all records that equal the key (of which it may be a prefix).
    First,
    /// At the one record that can equal the key: it is the whole key of a clustered index.
    Unique,
}

impl Tree {
    pub(crate) fn new(
        space: Arc<Tablespace>,
        root: PageNo,
        layout: Arc<Layout>,
        key: Arc<KeyShape>,
        defined_id: u64,
    ) -> Tree {
        Tree { space, root, layout, key, defined_id, id: OnceLock::new() }
    }

    /// `error` with the file and the page it was met on.
    #[cold]
    pub(crate) fn at(&self, page: PageNo, error: &Error) -> Error {
        match error.kind() {
            ErrorKind::Corrupt => self.space.corrupt(page, &error.to_string()),
            _ => error.clone().within(format_args!("{}: page {page}", self.space.path().display())),
        }
    }

    /// The root, checked.
    pub(crate) async fn root(&self, context: &IoContext) -> Result<Node> {
        let page = self.space.page(self.root, context).await?;
        let node = Node::new(page).map_err(|error| self.at(self.root, &error))?;
        if node.level() >= MAX_LEVELS {
            return Err(self.space.corrupt(self.root, &format!("a tree of {} levels", node.level())));
        }
        let id = *self.id.get_or_init(|| node.index_id());
        if id != node.index_id() || (self.defined_id != 0 && id != self.defined_id) {
            let what = format!("it is of index {} where the root of index {id} should be", node.index_id());
            return Err(self.space.corrupt(self.root, &what));
        }
        Ok(node)
    }

    /// The index's id (reads the root the first time).
    pub(crate) async fn id(&self, context: &IoContext) -> Result<u64> {
        match self.id.get() {
            Some(id) => Ok(*id),
            None => self.root(context).await.map(|root| root.index_id()),
        }
    }

    /// Checks that `node` is of this index and on `level`.
    pub(crate) fn check(&self, node: Node, level: u16, id: u64) -> Result<Node> {
        if node.level() == level && node.index_id() == id {
            return Ok(node);
        }
        let (found, found_id) = (node.level(), node.index_id());
        let what = format!("it is on level {found} of index {found_id}, not on level {level} of index {id}");
        Err(self.space.corrupt(node.page().number(), &what))
    }

    /// The node `no` of `level`.
    pub(crate) async fn node(&self, no: PageNo, level: u16, id: u64, context: &IoContext) -> Result<Node> {
        let page = self.space.page(no, context).await?;
        let node = Node::new(page).map_err(|error| self.at(no, &error))?;
        self.check(node, level, id)
    }

    /// How the key fields of the record at `origin` compare with `key`. The smallest node pointer of a level, and
    /// MariaDB's metadata record, are less than any key.
    #[inline]
    pub(crate) fn compare(
        &self,
        node: &Node,
        origin: usize,
        key: &Key,
        spans: &mut Spans,
    ) -> Result<Ordering> {
        if node.header(origin)?.min_rec {
            return Ok(Ordering::Less);
        }
        let (bytes, shape, parts) = (node.bytes(), &self.layout.shape, self.layout.key_fields);
        if node.level() == 0 {
            record::parse_leaf(bytes, origin, node.is_compact(), shape, parts, spans)?;
        } else {
            let parts = parts.min(shape.node_fields);
            record::parse_node_key(bytes, origin, node.is_compact(), shape, parts, spans)?;
        }
        Ok(self.key.compare(bytes, spans, key))
    }

    /// The last record of `node` before those that `seek` is after, or the infimum.
    pub(crate) fn seek(&self, node: &Node, key: &Key, seek: Seek, spans: &mut Spans) -> Result<usize> {
        node.last_before(|origin| {
            let order = self.compare(node, origin, key, spans)?;
            // In a leaf, even the unique record must come after the place.
            Ok(if seek == Seek::First || node.level() == 0 { order.is_lt() } else { order.is_le() })
        })
    }

    /// The child that the node pointer at `origin` names, or the first child if `origin` is the infimum.
    pub(crate) fn child(&self, node: &Node, origin: usize, spans: &mut Spans) -> Result<PageNo> {
        let origin = if origin == node.infimum() {
            let empty = || Error::new(ErrorKind::Corrupt, "a node without children");
            node.records().next()?.ok_or_else(empty)?
        } else {
            origin
        };
        record::child(node.bytes(), origin, node.is_compact(), &self.layout.shape, spans).map(PageNo)
    }

    /// Goes down to the leaf where `key` is or would be.
    pub(crate) async fn descend(&self, key: &Key, seek: Seek, context: &IoContext) -> Result<Position> {
        let mut spans = Spans::new();
        let mut node = self.root(context).await?;
        let id = node.index_id();
        while node.level() > 0 {
            let level = node.level() - 1;
            let no = node.page().number();
            let place = self.seek(&node, key, seek, &mut spans);
            let child = place.and_then(|origin| self.child(&node, origin, &mut spans));
            let child = child.map_err(|error| self.at(no, &error))?;
            node = self.node(child, level, id, context).await?;
        }
        let before = self.seek(&node, key, seek, &mut spans);
        let before = before.map_err(|error| self.at(node.page().number(), &error))?;
        Ok(Position { leaf: node, before })
    }
}
