//! Layouts by extent descriptors and segment inodes against a walk over every page.

use std::collections::HashMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_innodb::page::page_type;
use tanada_innodb::schema::IndexKind;
use tanada_innodb::{
    Index, IndexNo, KeyRange, Page, PageNo, PageRange, PageSize, RowFormat, SpaceLayout, Table, Tablespace,
    Value,
};

use crate::fixtures::unpacked;
use crate::support::{
    Answer, assert_same_rows, context, environment, mount, run, scan, spelled, stored_columns, types,
};

/// What a page says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    page_type: u16,
    index: u64,
    level: u16,
    previous: Option<PageNo>,
    next: Option<PageNo>,
}

impl Header {
    fn of(page: &Page) -> Header {
        let bytes = page.bytes();
        Header {
            page_type: page.page_type(),
            index: u64::from_be_bytes(bytes[66..74].try_into().unwrap()),
            level: u16::from_be_bytes(bytes[64..66].try_into().unwrap()),
            previous: page.previous(),
            next: page.next(),
        }
    }

    fn is_of_index(&self) -> bool {
        [page_type::INDEX, page_type::INSTANT, page_type::RTREE].contains(&self.page_type)
    }

    fn is_value(&self) -> bool {
        page_type::is_value(self.page_type)
    }
}

/// The headers of all pages; `None` for an image of another page, as the doublewrite buffer keeps them.
async fn walk(space: &Tablespace) -> Vec<Option<Header>> {
    let context = context();
    let mut headers = Vec::new();
    for first in (0..space.pages()).step_by(16) {
        let count = 16.min(space.pages() - first);
        let run = space.run(PageNo(first), count, &context).await.unwrap();
        headers.extend((0..count).map(|i| run.page(i).ok().map(|page| Header::of(&page))));
    }
    headers
}

/// The pages of an index in chains of each level, by the pages' own links: from the one page of the level that none is
/// before. What was freed keeps its header, and maybe neighbours, but no page in use leads there.
fn chained(headers: &[Option<Header>], pages: &[PageNo], label: &str) -> Vec<PageNo> {
    let header = |no: PageNo| headers[no.0 as usize].unwrap();
    let mut found = Vec::new();
    let mut levels: Vec<u16> = pages.iter().map(|no| header(*no).level).collect();
    levels.sort_unstable();
    levels.dedup();
    for level in levels {
        let firsts: Vec<PageNo> = pages
            .iter()
            .copied()
            .filter(|no| header(*no).level == level && header(*no).previous.is_none())
            .collect();
        assert_eq!(firsts.len(), 1, "{label}: level {level} starts at {firsts:?}");
        let mut next = Some(firsts[0]);
        while let Some(no) = next {
            found.push(no);
            assert!(found.len() <= headers.len(), "{label}: a circle");
            next = header(no).next;
        }
    }
    found.sort_unstable();
    found
}

/// The kind and the index of each page of a layout; a page without or with two is an error.
fn kinds(layout: &SpaceLayout, label: &str) -> Vec<(&'static str, Option<u64>)> {
    let mut kinds = vec![None; layout.pages as usize];
    let mut take = |ranges: &[PageRange], kind, index| {
        assert!(ranges.windows(2).all(|pair| pair[0].end() < pair[1].first.0), "{label}: {kind} {ranges:?}");
        for page in ranges.iter().flat_map(PageRange::iter) {
            let before = kinds[page.0 as usize].replace((kind, index));
            assert_eq!(before, None, "{label}: page {page} is {kind} too");
        }
    };
    for index in &layout.indexes {
        take(&index.leaf, "leaf", Some(index.id));
        take(&index.inner, "inner", Some(index.id));
        take(&index.off_page, "value", Some(index.id));
        take(&index.reserved, "reserved", Some(index.id));
    }
    take(&layout.free, "free", None);
    take(&layout.other, "other", None);
    kinds
        .into_iter()
        .enumerate()
        .map(|(no, kind)| kind.unwrap_or_else(|| panic!("{label}: page {no}")))
        .collect()
}

/// Compares the chunks of a layout with the kinds of its pages, counted one by one.
fn check_chunks(layout: &SpaceLayout, kinds: &[(&'static str, Option<u64>)], label: &str) {
    let mut expected: HashMap<(u64, u64), (u32, u32)> = HashMap::new();
    for (no, (kind, index)) in kinds.iter().enumerate() {
        let Some(index) = index else { continue };
        let chunk = no as u64 * u64::from(layout.page_size.0) / (1 << 20);
        let pages = expected.entry((chunk, *index)).or_default();
        pages.0 += u32::from(*kind != "reserved");
        pages.1 += 1;
    }
    for chunk in layout.chunks(1 << 20).unwrap() {
        for found in chunk.indexes {
            let expected = expected.remove(&(chunk.chunk, found.index.id));
            assert_eq!(
                Some((found.used_pages, found.allocated_pages)),
                expected,
                "{label}: {} in chunk {}",
                found.index.name,
                chunk.chunk
            );
        }
    }
    assert!(expected.is_empty(), "{label}: {expected:?}");
}

/// Compares the layout of one space with what its pages say. `is_shared`: other tables lie there too.
async fn check_space(layout: &SpaceLayout, space: &Tablespace, is_shared: bool, label: &str) {
    let headers = walk(space).await;
    assert_eq!((layout.pages as usize, layout.walked), (headers.len(), false), "{label}");
    let kinds = kinds(layout, label);
    let ids: HashMap<u64, bool> = layout.indexes.iter().map(|index| (index.id, index.clustered)).collect();
    let of = |no: usize| layout.index_of(PageNo(no as u32)).map(|index| index.id);
    assert!(kinds.iter().enumerate().all(|(no, (_, index))| of(no) == *index), "{label}");
    check_chunks(layout, &kinds, label);
    let mut freed = 0;
    for (no, (kind, index)) in kinds.iter().enumerate() {
        let Some(header) = headers[no] else {
            assert!(is_shared && *kind == "other", "{label}: page {no}");
            continue;
        };
        let place = format!("{label}: page {no} is {kind} of {index:?}, but {header:?}");
        let is_of_table = header.is_of_index() && ids.contains_key(&header.index);
        match *kind {
            "leaf" => assert!(is_of_table && Some(header.index) == *index && header.level == 0, "{place}"),
            "inner" => assert!(is_of_table && Some(header.index) == *index && header.level > 0, "{place}"),
            "value" => assert!(header.is_value() && index.is_some_and(|id| ids[&id]), "{place}"),
            "other" => assert!(!is_of_table && (is_shared || !header.is_value()), "{place}"),
            _ => freed += usize::from(is_of_table || header.is_value()),
        }
    }
    for index in &layout.indexes {
        let mut pages: Vec<PageNo> =
            index.leaf.iter().chain(&index.inner).flat_map(PageRange::iter).collect();
        pages.sort_unstable();
        let is_rtree = headers[index.root.0 as usize].unwrap().page_type == page_type::RTREE;
        // The levels of an R-tree are in no order.
        assert!(is_rtree || chained(&headers, &pages, label) == pages, "{label}: {}", index.name);
    }
    // Tables that were loaded once and left alone have hardly any page that was freed.
    assert!(freed <= 1 + headers.len() / 200 || !label.contains("tpch"), "{label}: {freed} pages");
}

/// Pages of several lists in the order of the file.
fn pages_of(lists: &[&[PageRange]]) -> Vec<PageNo> {
    let mut pages: Vec<PageNo> =
        lists.iter().flat_map(|ranges| ranges.iter()).flat_map(PageRange::iter).collect();
    pages.sort_unstable();
    pages
}

async fn check_table(table: &Arc<Table>, label: &str) {
    let layout = table.layout(&context()).await.unwrap_or_else(|error| panic!("{label}: {error}"));
    assert_eq!(layout.spaces.len(), table.definition().partitions.len());
    let segments = table.segments(&context()).await.unwrap_or_else(|error| panic!("{label}: {error}"));
    for (partition, (layout, space)) in layout.spaces.iter().zip(table.spaces()).enumerate() {
        let is_shared = space.path().ends_with("ibdata1");
        check_space(layout, space, is_shared, label).await;
        for (no, index) in table.definition().indexes.iter().enumerate() {
            let Some(found) = layout.index(IndexNo(no)) else {
                assert!(!table.readable(IndexNo(no)), "{label}: {}", index.name);
                continue;
            };
            assert_eq!((&found.name, found.clustered), (&index.name, no == 0), "{label}");
            if !table.readable(IndexNo(no)) {
                continue;
            }
            // Leaves by key, in ranges that follow the file.
            let all = KeyRange::all();
            let in_order = table.leaves_in_key_order(IndexNo(no), &all, &context()).await.unwrap();
            assert_eq!(PageRange::count(&in_order[partition]), PageRange::count(&found.leaf), "{label}");
            let steps = found.steps.unwrap();
            assert_eq!(steps.all + 1, PageRange::count(&found.leaf), "{label}");
            assert_eq!(steps.all - steps.to_neighbour + 1, in_order[partition].len() as u64, "{label}");
            let in_segments =
                segments[partition].indexes.iter().find(|found| found.index == Some(IndexNo(no)));
            let in_segments = in_segments.unwrap_or_else(|| panic!("{label}: {}", index.name));
            assert_eq!(in_segments.name, index.name, "{label}");
            assert_eq!(
                pages_of(&[&in_segments.leaves]),
                pages_of(&[&found.leaf, &found.off_page]),
                "{label}"
            );
            assert_eq!(pages_of(&[&in_segments.upper]), pages_of(&[&found.inner]), "{label}");
            let mut pages: Vec<PageNo> = in_order[partition].iter().flat_map(PageRange::iter).collect();
            pages.sort_unstable();
            assert!(pages.into_iter().eq(found.leaf.iter().flat_map(PageRange::iter)), "{label}");
        }
    }
}

/// Checks the tables of a folder; gives their number.
fn check_folder(folder: &Path) -> usize {
    let (environment, folder) = (environment(true), folder.to_owned());
    let within = environment.clone();
    run(&environment, move || async move {
        let catalog = mount(&folder, &within).await;
        let mut tables = 0;
        for database in catalog.databases() {
            for name in catalog.tables(&database) {
                // The sample was made without the files of some tables.
                let table = match catalog.table(&database, &name).await {
                    Err(error) if error.to_string().contains("but its file is missing") => continue,
                    opened => opened.unwrap(),
                };
                check_table(&table, &format!("{}/{database}.{name}", folder.display())).await;
                tables += 1;
            }
        }
        tables
    })
}

/// Each page that says that it is an index's is in that index's layout and nothing else is, in all samples: both
/// servers, partitions, tables in the system tablespace, and what was freed, dropped, altered and left in the change
/// buffer.
#[test]
fn every_page_is_of_the_index_that_it_names() {
    for (folder, tables) in [
        ("cases/mysql-9.7", 3 * 11),
        ("cases/mariadb-10.11", 5 * 11),
        ("forms/mysql-8.0/c_forms", 3),
        ("forms/mysql-9.7/c_forms", 14),
        ("forms/mariadb-10.11/c_forms", 14),
        ("altered/mariadb-10.11/c_altered", 15),
        ("change-buffer/mariadb-10.11/c_buffered", 4),
        ("rare/mariadb-10.11", 13),
        ("compressed/mariadb-10.11", 5 * 8),
        ("compressed/mariadb-10.11-4k", 3 * 8),
        ("compressed/mariadb-10.11-8k", 4 * 8),
        ("compressed/mysql-9.7", 5 * 9),
        ("compressed/mysql-9.7-4k", 3 * 9),
        ("compressed/mysql-9.7-8k", 4 * 9),
        ("shared/mariadb-10.11", 3),
        ("tpch-sf0.02-mysql-9.7/mysql-9.7", 9),
        ("tpch-sf0.02-mariadb-10.11/mariadb-10.11", 9),
    ] {
        let (archive, rest) = folder.split_once('/').unwrap();
        assert_eq!(check_folder(&unpacked(archive).join(rest)), tables, "{folder}");
    }
}

fn of_size(kilobytes: u32) -> PathBuf {
    unpacked("page-sizes").join(format!("{kilobytes}k/c_sizes"))
}

#[test]
fn all_page_sizes_are_laid_out_and_read() {
    for kilobytes in [4, 8, 32, 64] {
        let folder = of_size(kilobytes);
        assert_eq!(check_folder(&folder), 3);
        let environment = environment(true);
        let within = environment.clone();
        run(&environment, move || async move {
            let catalog = mount(&folder, &within).await;
            for name in catalog.tables("c_sizes") {
                let table = catalog.table("c_sizes", &name).await.unwrap();
                assert_eq!(table.spaces()[0].page_size(), PageSize(kilobytes << 10));
                let columns = stored_columns(&table);
                let access = table.access(IndexNo(0), &columns).unwrap();
                let rows = scan(&table, &access, &KeyRange::all()).await.unwrap();
                let answer = Answer::read(&folder.join(format!("{name}.tsv"))).rows(&table, &columns);
                assert_same_rows(spelled(&rows, &types(&table, &columns)), answer, &name);
            }
            // SPATIAL and hidden indexes have pages too, FULLTEXT ones have not.
            let spatial = catalog.table("c_sizes", "g").await.unwrap();
            let layout = spatial.layout(&context()).await.unwrap();
            let names: Vec<&str> = layout.spaces[0].indexes.iter().map(|index| index.name.as_str()).collect();
            assert_eq!(names.len(), 3, "{names:?}");
            assert_eq!(spatial.definition().row_format, RowFormat::Dynamic);
        });
    }
}

#[test]
fn pages_are_ranges_of_bytes() {
    let environment = environment(true);
    let within = environment.clone();
    run(&environment, move || async move {
        let catalog = mount(&of_size(8), &within).await;
        let table = catalog.table("c_sizes", "parts").await.unwrap();
        let layout = table.layout(&context()).await.unwrap();
        let space = &layout.spaces[1];
        let leaf = &space.indexes[0].leaf;
        let bytes = space.file_ranges(leaf);
        assert_eq!(bytes, table.file_ranges(1, leaf).unwrap());
        assert!(bytes[0].path.ends_with("parts#P#p1.ibd"));
        assert_eq!((bytes[0].offset, bytes[0].bytes), leaf[0].bytes(PageSize(8192)));
        let size = std::fs::metadata(&bytes[0].path).unwrap().len();
        assert!(bytes.iter().all(|range| range.offset + range.bytes <= size));
        assert!(table.file_ranges(2, leaf).is_err());
        // A range of keys takes a part of the leaves, in their order.
        let table = catalog.table("c_sizes", "t").await.unwrap();
        let [low, high] = [1200, 1300].map(|id| table.key(IndexNo(0), &[Value::Int(id)]).unwrap().unwrap());
        let range = KeyRange { lower: Bound::Included(low), upper: Bound::Excluded(high) };
        let pages = async |range: &KeyRange| {
            let ranges = table.leaves_in_key_order(IndexNo(0), range, &context()).await.unwrap().remove(0);
            ranges.iter().flat_map(PageRange::iter).collect::<Vec<PageNo>>()
        };
        let (part, all) = (pages(&range).await, pages(&KeyRange::all()).await);
        // 1,400 bytes a row: four to six on a page.
        assert!((16..40).contains(&part.len()), "{}", part.len());
        assert!(all.windows(part.len()).any(|window| window == part));
    });
}

#[test]
fn table_summaries_match_layout_and_rows() {
    let environment = environment(true);
    let within = environment.clone();
    run(&environment, move || async move {
        for (folder, database, name, row_format, compressed, rows) in [
            ("mysql-9.7/c_dynamic", "c_dynamic", "part_hash", RowFormat::Dynamic, false, None),
            ("mysql-9.7/c_pc_lz4", "c_pc_lz4", "deleted_rows", RowFormat::Dynamic, true, None),
            ("mariadb-10.11/c_compact", "c_compact", "deleted_rows", RowFormat::Compact, false, None),
            ("mariadb-10.11/c_pc_zlib_crc32", "c_pc_zlib_crc32", "str_pk", RowFormat::Dynamic, true, None),
            ("mariadb-10.11/c_dynamic", "c_dynamic", "empty_t", RowFormat::Dynamic, false, Some(0)),
        ] {
            let catalog = mount(&unpacked("cases").join(folder), &within).await;
            let table = catalog.table(database, name).await.unwrap();
            let (facts, layout) = table.facts(&context()).await.unwrap();
            assert_eq!((facts.row_format, facts.page_size), (row_format, PageSize(16384)), "{folder} {name}");
            assert_eq!(
                facts.compressed_share > 0.5,
                compressed,
                "{folder} {name}: {}",
                facts.compressed_share
            );
            let of_indexes: u64 = facts.indexes.iter().map(|index| index.allocated_pages()).sum();
            assert_eq!(facts.pages, of_indexes + facts.free_pages + facts.other_pages, "{folder} {name}");
            assert_eq!(facts.partitions, layout.spaces.len());
            let statistics = table.statistics(&context()).await.unwrap();
            assert_eq!((facts.rows, facts.rows_exact), (statistics.rows, statistics.exact));
            assert!(rows.is_none_or(|rows| facts.rows == rows), "{folder} {name}");
            for (index, statistics) in facts.indexes.iter().zip(&statistics.indexes) {
                assert_eq!((index.leaf_pages, index.height), (statistics.leaf_pages, statistics.height));
                let fragmentation = index.steps.unwrap().fragmentation();
                assert!((1.0 - fragmentation - statistics.contiguity).abs() < 1e-9, "{folder} {name}");
            }
        }
    });
}

/// MySQL names a root for FULLTEXT indexes that is none.
#[test]
fn an_index_without_a_tree_is_not_laid_out() {
    let environment = environment(true);
    let within = environment.clone();
    run(&environment, move || async move {
        let catalog = mount(&unpacked("cases").join("mysql-9.7/c_dynamic"), &within).await;
        let mut definition = catalog.definition("c_dynamic", "str_pk").await.unwrap();
        let fulltext = Index {
            name: "words".into(),
            id: 77,
            roots: vec![Some(PageNo::NULL)],
            unique: false,
            kind: IndexKind::Other,
            parts: Vec::new(),
        };
        definition.indexes.push(fulltext);
        let table = Table::open(definition, &within).await.unwrap();
        let layout = table.layout(&context()).await.unwrap();
        assert_eq!((layout.spaces[0].indexes.len(), layout.spaces[0].walked), (2, false));
        assert!(layout.spaces[0].index(IndexNo(2)).is_none());
    });
}

/// Damage to descriptors and inodes: the layout is found by reading all pages, or the damage is named.
#[test]
fn damaged_descriptors_are_not_believed() {
    let original = of_size(4).join("t.ibd");
    let sound = layout_of(&original).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.ibd");
    std::fs::copy(original.with_extension("frm"), file.with_extension("frm")).unwrap();
    let bytes = std::fs::read(&original).unwrap();
    let extents = 150 + 5 * 88;
    let inode = 2 * 4096 + 50;
    let mut walked = 0;
    for (at, value) in [
        (extents + 20, 0u32),      // no such state
        (extents + 20, 1),         // free, though in use
        (extents + 4, 0x7777),     // of a segment that is not there
        (extents + 24, u32::MAX),  // all pages free
        (50, u32::MAX),            // free limit
        (50, 0),                   // nothing was ever given away
        (inode + 64, 0xffff_fff0), // a single page outside of the file
        (inode + 4, 0x7777_7777),  // another id
        (inode + 60, 1),           // no inode
        (134 + 4, 3),              // the list of inodes leads elsewhere
        (2 * 4096 + 44, 2),        // ... or in circles
    ] {
        let mut damaged = bytes.clone();
        damaged[at..at + 4].copy_from_slice(&value.to_be_bytes());
        std::fs::write(&file, &damaged).unwrap();
        match layout_of(&file) {
            Ok(layout) => {
                let space = &layout.spaces[0];
                walked += usize::from(space.walked);
                for (index, other) in space.indexes.iter().zip(&sound.spaces[0].indexes) {
                    let [leaf, expected] = [index, other].map(|index| PageRange::count(&index.leaf));
                    assert!(leaf >= expected, "{at}: {leaf} {expected}");
                }
            }
            Err(error) => assert!(error.to_string().contains("t.ibd"), "{at}: {error}"),
        }
    }
    assert!(walked >= 6, "{walked}");
}

/// The layout of the table in `file`, without verifying checksums.
fn layout_of(file: &Path) -> tanada_innodb::Result<tanada_innodb::TableLayout> {
    let (environment, file) = (environment(false), file.to_owned());
    let within = environment.clone();
    run(&environment, move || async move {
        let catalog = mount(&file, &within).await;
        let database = catalog.databases().remove(0);
        let table = catalog.table(&database, "t").await?;
        table.layout(&context()).await
    })
}
