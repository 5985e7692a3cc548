//! From what a plan reads to a footprint: which bytes of which file, how, and how many pages.
//!
//! 1. A scan reads all pages of its index. A range reads as large a part of them as its rows are of the table's.
//! 2. Look-ups of `n` keys reach pages at random; of `p` pages they touch `p (1 - (1 - 1/p)^n)` different ones
//!    (Cardenas 1975), and a page that was read is taken to stay in the server's cache.
//! 3. An index that has not all that is needed leads to look-ups in the index that holds the rows.
//! 4. What lies in several files, those of partitions, is read there by the share that each has of the pages.

use tanada_placement::Pattern;

use crate::message::AccessInFile;
use crate::{AccessKind, IndexPlaces, PlannedAccess};

/// Rows of a leaf where nothing is known of the table.
const ROWS_PER_PAGE: f64 = 64.0;

/// The share of a range's rows that is assumed where the plan does not say.
const UNKNOWN_SHARE: f64 = 0.1;

/// The reads of one access, in the files of its table. `rows` are those of the table, if they are known.
pub fn reads(access: &PlannedAccess, places: &[IndexPlaces], rows: Option<f64>) -> Vec<AccessInFile> {
    let in_partition = |place: &&IndexPlaces| match (&access.partitions, &place.partition) {
        (Some(wanted), Some(partition)) => wanted.iter().any(|name| name.eq_ignore_ascii_case(partition)),
        _ => true,
    };
    let of = |is_it: &dyn Fn(&IndexPlaces) -> bool| -> Vec<&IndexPlaces> {
        places.iter().filter(in_partition).filter(|place| is_it(place)).collect()
    };
    let holds_rows = of(&|place| place.has_rows);
    let index = match &access.index {
        Some(name) => of(&|place| place.name.eq_ignore_ascii_case(name)),
        None => holds_rows.clone(),
    };
    // An index that its server names otherwise than its files do is a part of the table all the same.
    let index = if index.is_empty() { holds_rows.clone() } else { index };
    // The table's rows, as far as they are in partitions that are read.
    let everywhere: Vec<&IndexPlaces> = places.iter().filter(|place| place.has_rows).collect();
    let share = leaf_pages(&holds_rows) / leaf_pages(&everywhere).max(1.0);
    let all_rows = rows.map_or_else(|| leaf_pages(&holds_rows) * ROWS_PER_PAGE, |rows| rows * share).max(1.0);
    let wanted = access.rows.unwrap_or(match access.kind {
        AccessKind::FullScan | AccessKind::IndexScan => all_rows,
        AccessKind::Range => all_rows * UNKNOWN_SHARE,
        AccessKind::LookUp => 1.0,
    });
    let in_all = (wanted * access.loops).max(0.0);
    let own = leaf_pages(&index);
    let (pattern, pages) = match access.kind {
        AccessKind::FullScan => (Pattern::SequentialScan, own),
        AccessKind::IndexScan => (Pattern::IndexRange, own),
        AccessKind::Range => (Pattern::IndexRange, (own * wanted / all_rows).ceil().clamp(1.0, own.max(1.0))),
        // Rows of a table without an index are looked up one by one.
        AccessKind::LookUp if access.index.is_none() => look_ups(in_all.max(1.0), own),
        AccessKind::LookUp => look_ups(access.loops.max(1.0), own),
    };
    let mut found = in_files(access, &index, pattern, pages);
    let leads_on = !access.is_covering && index.iter().any(|place| !place.has_rows);
    if leads_on {
        let (pattern, pages) = look_ups(in_all, leaf_pages(&holds_rows));
        found.extend(in_files(access, &holds_rows, pattern, pages));
    }
    found
}

/// The pattern of so many look-ups, and the pages that they read of `pages`.
fn look_ups(keys: f64, pages: f64) -> (Pattern, f64) {
    let keys = keys.clamp(0.0, u64::MAX as f64);
    let touched =
        if pages <= 1.0 { pages.min(keys.ceil()) } else { pages * (1.0 - (1.0 - 1.0 / pages).powf(keys)) };
    (Pattern::RandomLookUps { expected: keys.ceil() as u64 }, touched.ceil())
}

fn leaf_pages(places: &[&IndexPlaces]) -> f64 {
    places.iter().map(|place| place.leaf_pages as f64).sum()
}

fn in_files(
    access: &PlannedAccess,
    places: &[&IndexPlaces],
    pattern: Pattern,
    pages: f64,
) -> Vec<AccessInFile> {
    let all = leaf_pages(places).max(1.0);
    let here = places.iter().filter(|place| !place.extents.is_empty()).map(|place| AccessInFile {
        file: place.file.clone(),
        index: match place.name.as_str() {
            "" => access.table.clone(),
            name if name.eq_ignore_ascii_case(&access.table) => name.to_owned(),
            name => format!("{}.{name}", access.table),
        },
        extents: place.extents.clone(),
        pattern: match pattern {
            Pattern::RandomLookUps { expected } => {
                let share = place.leaf_pages as f64 / all;
                Pattern::RandomLookUps { expected: (expected as f64 * share).ceil() as u64 }
            }
            pattern => pattern,
        },
        expected_pages: (pages * place.leaf_pages as f64 / all).ceil() as u64,
        page_bytes: place.page_bytes,
        stage: access.stage,
    });
    here.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tanada_placement::Extent;

    fn place(name: &str, partition: Option<&str>, leaf_pages: u64) -> IndexPlaces {
        IndexPlaces {
            file: format!("t{}.ibd", partition.unwrap_or_default()).into(),
            name: name.to_owned(),
            has_rows: name == "PRIMARY",
            partition: partition.map(str::to_owned),
            extents: vec![Extent { offset: 65536, len: leaf_pages << 14 }],
            leaf_pages,
            page_bytes: 16384,
        }
    }

    fn access(index: Option<&str>, kind: AccessKind, rows: f64, loops: f64) -> PlannedAccess {
        PlannedAccess {
            database: "shop".into(),
            table: "t".into(),
            index: index.map(str::to_owned),
            kind,
            rows: Some(rows),
            loops,
            is_covering: false,
            partitions: None,
            stage: 0,
        }
    }

    fn pages(reads: &[AccessInFile]) -> Vec<(&str, u64)> {
        reads.iter().map(|read| (read.index.as_str(), read.expected_pages)).collect()
    }

    #[test]
    fn ranges_read_their_share_and_look_rows_up() {
        let places = [place("PRIMARY", None, 1000), place("i", None, 100)];
        let full = reads(&access(None, AccessKind::FullScan, 1e5, 1.0), &places, Some(1e5));
        assert_eq!(pages(&full), [("t.PRIMARY", 1000)]);
        let range = reads(&access(Some("i"), AccessKind::Range, 1000.0, 1.0), &places, Some(1e5));
        assert_eq!(pages(&range), [("t.i", 1), ("t.PRIMARY", 633)]);
        let keys = reads(&access(Some("PRIMARY"), AccessKind::LookUp, 1.0, 10.0), &places, Some(1e5));
        assert_eq!(
            (pages(&keys), keys[0].pattern),
            (vec![("t.PRIMARY", 10)], Pattern::RandomLookUps { expected: 10 })
        );
    }

    #[test]
    fn partitions_that_are_not_read_have_no_part() {
        let places = [place("PRIMARY", Some("p1"), 10), place("PRIMARY", Some("p2"), 30)];
        let mut scan = access(None, AccessKind::FullScan, 100.0, 1.0);
        assert_eq!(pages(&reads(&scan, &places, None)), [("t.PRIMARY", 10), ("t.PRIMARY", 30)]);
        scan.partitions = Some(vec!["P2".into()]);
        assert_eq!(pages(&reads(&scan, &places, None)), [("t.PRIMARY", 30)]);
    }
}
