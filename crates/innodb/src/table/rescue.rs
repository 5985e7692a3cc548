//! The leaves of an index where the nodes above them are damaged.
//!
//! 1. Every page of the file is read and asked what it is.
//! 2. A leaf is a page of level 0 that names the index and is in use by the descriptor of its extent: pages that were
//!    given back keep their old content, whole chains of them. Where the descriptor is damaged too, nothing tells them
//!    apart, and the index is not read.
//! 3. A page that a leaf or a node of level 1 names, and that is no leaf itself, is lost. So is a page that cannot be
//!    read in the segment of the leaves; it may have been a part of an off-page value instead, which lie there too.
//! 4. All leaves are there if exactly one has nothing before it, one nothing behind it, and each is named by its
//!    neighbours. If not, and no page is known to be lost, that is listed as a loss of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tanada_io::IoContext;

use super::losses::{Losses, is_damage};
use crate::page::header::{page_type, u16_at, u64_at};
use crate::record::{self, Spans};
use crate::space::Use;
use crate::tree::{Node, Tree};
use crate::{Page, PageNo, PageRun, Result};

const LEVEL: usize = 64;
const INDEX_ID: usize = 66;

/// A node of a tree and its neighbours on its level.
#[derive(Debug, Clone, Copy)]
struct Links {
    id: u64,
    level: u16,
    previous: Option<PageNo>,
    next: Option<PageNo>,
}

/// What a page was found to be.
enum Found {
    /// A node of a tree.
    Node(Links),
    /// A part of an off-page value.
    OffPage,
    /// All zeros, or of another kind.
    Other(u16),
    Damaged(String),
}

impl Found {
    fn new(page: &Page) -> Found {
        let bytes = page.bytes();
        match page.page_type() {
            page_type::INDEX | page_type::INSTANT => Found::Node(Links {
                id: u64_at(bytes, INDEX_ID),
                level: u16_at(bytes, LEVEL),
                previous: page.previous(),
                next: page.next(),
            }),
            page_type::BLOB | page_type::LOB_FIRST | page_type::LOB_DATA | page_type::LOB_INDEX => {
                Found::OffPage
            }
            other => Found::Other(other),
        }
    }
}

/// The pages of a file.
struct Survey<'a> {
    tree: &'a Tree,
    context: &'a IoContext,
    id: u64,
    pages: Vec<Found>,
    uses: Vec<Use>,
}

/// The sound leaves of `tree`, the index `name`, ascending. What is lost goes to `losses`.
pub(super) async fn leaves(
    tree: &Tree,
    name: &str,
    losses: &Losses,
    context: &IoContext,
) -> Result<Vec<PageNo>> {
    let pages = survey(tree, context).await?;
    let id = match tree.known_id(context).await {
        Some(id) => id,
        None => lowest_id(&pages)
            .ok_or_else(|| tree.space.corrupt(tree.root, "the file has no sound page of an index"))?,
    };
    let uses = tree.space.uses(context).await;
    let survey = Survey { tree, context, id, pages, uses };
    if let Some(no) = survey.undecided() {
        let group = PageNo(no.0 - no.0 % tree.space.page_size().0);
        let what = format!(
            "the descriptors of extents there are damaged beside a node of index {name}, so that it cannot be told which of its leaves (page {no} \
             and others) are in use and which were given back"
        );
        return Err(tree.space.corrupt(group, &what));
    }
    let leaves = survey.leaves();
    let mut lost = survey.named_but_no_leaf(&leaves).await;
    let has_off_page = survey.pages.iter().any(|page| matches!(page, Found::OffPage));
    let path = tree.space.path();
    for no in survey.unread_of_segment(&leaves) {
        if has_off_page && !lost.contains(&no) {
            let what = format!("{}; it was a leaf or a part of off-page values", survey.reason(no));
            losses.unknown(path, no, name, &what);
        } else {
            lost.insert(no);
        }
    }
    for no in &lost {
        losses.leaf(path, *no, name, &survey.reason(*no));
    }
    if let Some(Found::Damaged(_) | Found::Other(0)) | None = survey.pages.get(tree.root.0 as usize) {
        let why = survey.reason(tree.root);
        match leaves.is_empty() {
            true => losses.leaf(path, tree.root, name, &why),
            false => losses.branch(path, tree.root, name, &format!("its root: {why}")),
        }
    }
    if lost.is_empty() && !survey.is_whole(&leaves) {
        losses.unknown(path, tree.root, name, "the chain of its leaves has gaps, where others were");
    }
    Ok(leaves)
}

/// The first leaf of `tree` where its root is damaged; `None` if that is not among the sound ones. `known_id` is the
/// index's id, 0 if unknown.
pub(super) async fn first_leaf(tree: &Tree, known_id: u64, context: &IoContext) -> Result<Option<Node>> {
    let pages = survey(tree, context).await?;
    let id = match known_id {
        0 => lowest_id(&pages),
        id => Some(id),
    };
    let Some(id) = id else { return Ok(None) };
    let uses = tree.space.uses(context).await;
    let survey = Survey { tree, context, id, pages, uses };
    let is_first = |no: &PageNo| survey.node(*no).is_some_and(|node| node.previous.is_none());
    let firsts: Vec<PageNo> = survey.leaves().into_iter().filter(is_first).collect();
    let [first] = firsts.as_slice() else { return Ok(None) };
    let page = tree.space.page(*first, context).await?;
    Node::new(page).map(Some).map_err(|error| tree.at(*first, &error))
}

/// Reads every page of the file once.
async fn survey(tree: &Tree, context: &IoContext) -> Result<Vec<Found>> {
    let space = &tree.space;
    let longest = (PageRun::MOST_BYTES / space.page_size().bytes()) as u32;
    let mut pages = Vec::with_capacity(space.pages() as usize);
    for first in (0..space.pages()).step_by(longest as usize) {
        let count = longest.min(space.pages() - first);
        let run = match space.run(PageNo(first), count, context).await {
            Ok(run) => Some(run),
            Err(error) if is_damage(&error) => None,
            Err(error) => return Err(error),
        };
        for at in 0..count {
            let page = match &run {
                Some(run) => space.page_of(run, at, context).await,
                None => space.page(PageNo(first + at), context).await,
            };
            pages.push(match page {
                Ok(page) => Found::new(&page),
                Err(error) if is_damage(&error) => Found::Damaged(error.to_string()),
                Err(error) => return Err(error),
            });
        }
    }
    Ok(pages)
}

/// The lowest id of an index: that of the clustered one, which is made first.
fn lowest_id(pages: &[Found]) -> Option<u64> {
    let ids = pages.iter().filter_map(|page| match page {
        Found::Node(node) => Some(node.id),
        _ => None,
    });
    ids.min()
}

impl Survey<'_> {
    /// The node of the index on page `no`, if there is one.
    fn node(&self, no: PageNo) -> Option<Links> {
        match self.pages.get(no.0 as usize)? {
            Found::Node(node) if node.id == self.id => Some(*node),
            _ => None,
        }
    }

    fn uses(&self, no: PageNo) -> Use {
        self.uses.get(no.0 as usize).copied().unwrap_or(Use::Unknown)
    }

    /// The leaves that are in use by the descriptors of their extents.
    fn leaves(&self) -> Vec<PageNo> {
        let is_used = |no: PageNo| matches!(self.uses(no), Use::Single | Use::Segment(_));
        let is_leaf = |no: &PageNo| self.node(*no).is_some_and(|node| node.level == 0) && is_used(*no);
        (0..self.pages.len() as u32).map(PageNo).filter(is_leaf).collect()
    }

    /// A leaf of which it is not known whether it is in use.
    fn undecided(&self) -> Option<PageNo> {
        let is_undecided = |no: &PageNo| self.node(*no).is_some() && self.uses(*no) == Use::Unknown;
        (0..self.pages.len() as u32).map(PageNo).find(is_undecided)
    }

    /// Pages that a leaf or a node of level 1 names as a leaf, but are none.
    async fn named_but_no_leaf(&self, leaves: &[PageNo]) -> BTreeSet<PageNo> {
        let mut named: BTreeSet<PageNo> = BTreeSet::new();
        for no in leaves {
            if let Some(node) = self.node(*no) {
                named.extend(node.previous.into_iter().chain(node.next));
            }
        }
        for no in (0..self.pages.len() as u32).map(PageNo) {
            let is_parent = self.node(no).is_some_and(|node| node.level == 1) && self.uses(no) != Use::Free;
            if is_parent && let Ok(page) = self.tree.space.page(no, self.context).await {
                named.extend(Node::new(page).ok().iter().flat_map(|node| self.children(node)));
            }
        }
        named.retain(|no| leaves.binary_search(no).is_err());
        named
    }

    /// The children of a node, as far as its records can be taken apart.
    fn children(&self, node: &Node) -> Vec<PageNo> {
        let (mut spans, mut children, mut records) = (Spans::new(), Vec::new(), node.records());
        while let Ok(Some(origin)) = records.next() {
            let shape = &self.tree.layout.shape;
            let Ok(child) = record::child(node.bytes(), origin, node.is_compact(), shape, &mut spans) else {
                break;
            };
            children.push(PageNo(child));
        }
        children
    }

    /// Pages in use in the segment of the leaves that cannot be read, are all zeros, or lie behind the end of the file.
    fn unread_of_segment(&self, leaves: &[PageNo]) -> Vec<PageNo> {
        let mut count: BTreeMap<u64, usize> = BTreeMap::new();
        for no in leaves {
            if let Use::Segment(segment) = self.uses(*no) {
                *count.entry(segment).or_default() += 1;
            }
        }
        let segment = count.iter().max_by_key(|(_, count)| **count).map(|(segment, _)| *segment);
        let Some(segment) = segment else { return Vec::new() };
        let is_unread = |no: &PageNo| {
            self.uses(*no) == Use::Segment(segment)
                && matches!(self.pages.get(no.0 as usize), None | Some(Found::Damaged(_) | Found::Other(0)))
        };
        (0..self.uses.len() as u32).map(PageNo).filter(is_unread).collect()
    }

    /// Why `no` is no leaf.
    fn reason(&self, no: PageNo) -> String {
        match self.pages.get(no.0 as usize) {
            None => format!("it lies past the end of the file{}", self.tree.space.shortage()),
            Some(Found::Damaged(why)) => why.clone(),
            Some(Found::Other(0)) => "it is all zeros".to_owned(),
            Some(Found::Other(other)) => format!("it has type {other} and is no page of a B+tree"),
            Some(Found::OffPage) => "it is a page of off-page values where a leaf should be".to_owned(),
            Some(Found::Node(Links { id, level, .. })) => {
                format!("it is on level {level} of index {id} where a leaf of index {} should be", self.id)
            }
        }
    }

    /// Whether the leaves make one chain.
    fn is_whole(&self, leaves: &[PageNo]) -> bool {
        let nodes: HashMap<PageNo, Links> =
            leaves.iter().filter_map(|no| Some((*no, self.node(*no)?))).collect();
        let heads = nodes.values().filter(|node| node.previous.is_none()).count();
        let tails = nodes.values().filter(|node| node.next.is_none()).count();
        let is_linked = |(no, node): (&PageNo, &Links)| match node.next {
            Some(next) => nodes.get(&next).is_some_and(|node| node.previous == Some(*no)),
            None => true,
        };
        heads == 1 && tails == 1 && nodes.iter().all(is_linked)
    }
}
