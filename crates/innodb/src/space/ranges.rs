//! Page numbers as ranges.

use crate::{PageNo, PageSize};

/// Consecutive pages of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageRange {
    /// The first.
    pub first: PageNo,
    /// How many, at least one.
    pub pages: u32,
}

impl PageRange {
    /// The number behind the last page.
    pub fn end(&self) -> u32 {
        self.first.0.saturating_add(self.pages)
    }

    /// Whether `page` is among them.
    pub fn holds(&self, page: PageNo) -> bool {
        (self.first.0..self.end()).contains(&page.0)
    }

    /// The pages, ascending.
    pub fn iter(&self) -> impl Iterator<Item = PageNo> + use<> {
        (self.first.0..self.end()).map(PageNo)
    }

    /// Where they start in their file, and how many bytes they have there.
    pub fn bytes(&self, page_size: PageSize) -> (u64, u64) {
        (u64::from(self.first.0) * u64::from(page_size.0), u64::from(self.pages) * u64::from(page_size.0))
    }

    /// All pages of `ranges`.
    pub fn count(ranges: &[PageRange]) -> u64 {
        ranges.iter().map(|range| u64::from(range.pages)).sum()
    }
}

/// Adds a page to ranges: to the last one, if it comes next to it.
pub(crate) fn push(ranges: &mut Vec<PageRange>, page: PageNo) {
    push_range(ranges, PageRange { first: page, pages: 1 });
}

/// Adds pages to ranges: to the last one, if they come next to it.
pub(crate) fn push_range(ranges: &mut Vec<PageRange>, added: PageRange) {
    match ranges.last_mut() {
        _ if added.pages == 0 => {}
        Some(last) if last.end() == added.first.0 => last.pages = last.pages.saturating_add(added.pages),
        _ => ranges.push(added),
    }
}

/// Ranges of `pages` in their order: pages that follow each other in the file and in the list are one range.
pub(crate) fn ranges(pages: impl IntoIterator<Item = PageNo>) -> Vec<PageRange> {
    let mut ranges = Vec::new();
    pages.into_iter().for_each(|page| push(&mut ranges, page));
    ranges
}

/// The pages of ascending `ranges` that are not among ascending `without`. The first of `without` that is in none of
/// `ranges` is the error.
pub(crate) fn difference(
    ranges: &[PageRange],
    without: impl IntoIterator<Item = PageNo>,
) -> std::result::Result<Vec<PageRange>, PageNo> {
    let mut left = Vec::new();
    let mut rest = ranges.iter();
    let mut current: Option<PageRange> = rest.next().copied();
    for page in without {
        loop {
            let range = current.ok_or(page)?;
            if range.holds(page) {
                break;
            }
            if page.0 < range.first.0 {
                return Err(page);
            }
            push_range(&mut left, range);
            current = rest.next().copied();
        }
        if let Some(range) = &mut current {
            push_range(&mut left, PageRange { first: range.first, pages: page.0 - range.first.0 });
            *range = PageRange { first: PageNo(page.0 + 1), pages: range.end() - page.0 - 1 };
        }
        current = current.filter(|range| range.pages > 0).or_else(|| rest.next().copied());
    }
    current.into_iter().chain(rest.copied()).for_each(|range| push_range(&mut left, range));
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u32, pages: u32) -> PageRange {
        PageRange { first: PageNo(first), pages }
    }

    #[test]
    fn neighbours_are_one_range() {
        assert_eq!(ranges([4, 5, 6, 9, 2, 3].map(PageNo)), [range(4, 3), range(9, 1), range(2, 2)]);
        assert_eq!(PageRange::count(&[range(4, 3), range(9, 1)]), 4);
        assert_eq!(range(4, 3).bytes(PageSize(4096)), (16384, 12288));
    }

    #[test]
    fn differences_keep_what_is_left() {
        let all = [range(1, 4), range(8, 3), range(20, 1)];
        let without = |pages: &[u32]| difference(&all, pages.iter().copied().map(PageNo));
        assert_eq!(without(&[]).unwrap(), all);
        assert_eq!(without(&[1, 4, 9]).unwrap(), [range(2, 2), range(8, 1), range(10, 1), range(20, 1)]);
        assert_eq!(without(&[1, 2, 3, 4, 8, 9, 10, 20]).unwrap(), []);
        for strange in [0, 5, 7, 11, 21] {
            assert_eq!(without(&[strange]), Err(PageNo(strange)));
        }
        assert_eq!(without(&[2, 2]), Err(PageNo(2)));
    }
}
