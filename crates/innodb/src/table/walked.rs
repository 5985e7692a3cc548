//! The layout of a space whose descriptors are damaged: every page is read and asked what it is.
//!
//! A page of a B+tree names its index and its level. Off-page values name nobody; they are taken for the clustered
//! index's, the only one that has any. A page that cannot be read, and one that says nothing, is something else.

use std::collections::HashMap;

use tanada_io::IoContext;

use super::layout::{IndexLayout, Root, SpaceLayout};
use crate::page::header::{page_type, u16_at, u64_at};
use crate::space::ranges::push;
use crate::{IndexNo, Page, PageNo, PageRun, Result, Tablespace};

const LEVEL: usize = 64;
const INDEX_ID: usize = 66;

/// The layout of `space` by reading all its pages.
pub(super) async fn walk(space: &Tablespace, roots: &[Root], context: &IoContext) -> Result<SpaceLayout> {
    let mut layout = SpaceLayout::of(space);
    layout.walked = true;
    let mut by_id = HashMap::new();
    for root in roots {
        let page = space.page(root.page, context).await?;
        let id = u64_at(page.bytes(), INDEX_ID);
        by_id.insert(id, layout.indexes.len());
        layout.indexes.push(IndexLayout {
            index: root.index,
            name: root.name.clone(),
            id,
            clustered: root.index == Some(IndexNo(0)),
            root: root.page,
            height: u32::from(u16_at(page.bytes(), LEVEL)) + 1,
            leaf: Vec::new(),
            inner: Vec::new(),
            off_page: Vec::new(),
            reserved: Vec::new(),
            steps: None,
        });
    }
    let longest = (PageRun::MOST_BYTES / space.page_size().bytes()) as u32;
    let mut first = 0;
    while first < space.pages() {
        let count = longest.min(space.pages() - first);
        let run = space.run(PageNo(first), count, context).await?;
        for i in 0..count {
            // Free pages may be all zeros.
            let page = match run.page(i) {
                Err(_) => space.page_of(&run, i, context).await,
                page => page,
            };
            take(PageNo(first + i), page.ok().as_ref(), &by_id, &mut layout);
        }
        first += count;
    }
    Ok(layout)
}

fn take(no: PageNo, page: Option<&Page>, by_id: &HashMap<u64, usize>, layout: &mut SpaceLayout) {
    let Some(page) = page else { return push(&mut layout.other, no) };
    let bytes = page.bytes();
    let of_index = by_id.get(&u64_at(bytes, INDEX_ID)).copied();
    let place = match (page.page_type(), of_index) {
        (page_type::INDEX | page_type::INSTANT | page_type::RTREE, Some(at)) => {
            let index = &mut layout.indexes[at];
            if u16_at(bytes, LEVEL) == 0 { &mut index.leaf } else { &mut index.inner }
        }
        (kind, _) if page_type::is_value(kind) => {
            let clustered = layout.indexes.iter_mut().find(|index| index.clustered);
            clustered.map_or(&mut layout.other, |index| &mut index.off_page)
        }
        (page_type::ALLOCATED, _) => &mut layout.free,
        _ => &mut layout.other,
    };
    push(place, no);
}
