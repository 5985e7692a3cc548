//! Pages of ROW_FORMAT=COMPRESSED for themselves: all of the samples, sound and damaged.

use std::path::Path;

use tanada_base::SplitMix64;
use tanada_innodb::PageSize;
use tanada_innodb::page::{page_type, zip};

use crate::fixtures::unpacked;

/// Folders of servers and the size of pages that each works on.
const FOLDERS: [(&str, u32); 6] = [
    ("mariadb-10.11", 16384),
    ("mariadb-10.11-8k", 8192),
    ("mariadb-10.11-4k", 4096),
    ("mysql-9.7", 16384),
    ("mysql-9.7-8k", 8192),
    ("mysql-9.7-4k", 4096),
];
const SIZES: [usize; 5] = [1, 2, 4, 8, 16];

fn u16_at(page: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([page[at], page[at + 1]]))
}

/// Calls `check` with the stored B+tree pages of all files.
fn for_each_page(mut check: impl FnMut(&[u8], PageSize)) {
    for (folder, page_bytes) in FOLDERS {
        for kilobytes in SIZES.into_iter().filter(|size| size << 10 <= page_bytes as usize) {
            let folder = unpacked("compressed").join(folder).join(format!("c_z{kilobytes}"));
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.extension().is_some_and(|extension| extension == "ibd") {
                    pages_of(&path, kilobytes << 10).for_each(|page| check(&page, PageSize(page_bytes)));
                }
            }
        }
    }
}

fn pages_of(path: &Path, stored_bytes: usize) -> impl Iterator<Item = Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let pages: Vec<Vec<u8>> = bytes.chunks_exact(stored_bytes).map(<[u8]>::to_vec).collect();
    let trees = [page_type::INDEX, page_type::SDI].map(usize::from);
    pages.into_iter().filter(move |page| trees.contains(&u16_at(page, 24)))
}

/// The records of a page, by their links, from infimum to supremum.
fn linked_records(page: &[u8]) -> usize {
    let mut at = 99;
    for count in 0..page.len() {
        at = (at + u16_at(page, at - 2)) % 65536;
        if at == 112 {
            return count;
        }
    }
    panic!("the records are not linked");
}

#[test]
fn every_page_has_the_records_that_its_header_counts() {
    let (mut pages, mut records) = (0, 0);
    for_each_page(|stored, size| {
        let page = zip::decompress(stored, size).unwrap();
        assert_eq!(page.len(), size.bytes());
        assert_eq!(linked_records(&page), u16_at(&page, 54));
        pages += 1;
        records += u16_at(&page, 54);
    });
    assert!(pages > 2000 && records > 60_000, "{pages} pages, {records} records");
}

#[test]
fn flipped_bits_and_cut_streams_are_pages_or_reasons() {
    let mut random = SplitMix64::new(7);
    let (mut given, mut refused, mut no) = (0, 0, 0);
    for_each_page(|stored, size| {
        no += 1;
        if no % 5 != 0 {
            return;
        }
        for _ in 0..8 {
            let mut page = stored.to_vec();
            let len = page.len() as u64;
            for _ in 0..=random.below(3) {
                let at = match random.below(4) {
                    0 => 38 + random.below(56),
                    1 => 94 + random.below(40),
                    2 => len - 1 - random.below(200),
                    _ => random.below(len),
                };
                page[at as usize] ^= 1 << random.below(8) as u8;
            }
            if random.below(4) == 0 {
                page[94 + random.below(len - 94) as usize..].fill(0);
            }
            match zip::decompress(&page, size) {
                Ok(page) => given += usize::from(page.len() == size.bytes()),
                Err(reason) => refused += usize::from(!reason.is_empty()),
            }
        }
    });
    assert!(given > 100 && refused > 1000, "{given} pages, {refused} reasons");
}

#[test]
fn images_of_other_sizes_are_refused() {
    for len in [0, 1, 93, 94, 1000, 1025, 3072, 32768] {
        assert!(zip::decompress(&vec![0xff; len], PageSize(16384)).is_err());
    }
    for size in [0, 1024, 2048, 5000, 32768, 65536] {
        assert!(zip::decompress(&[0xff; 1024], PageSize(size)).is_err());
    }
    assert!(zip::decompress(&[0; 16384], PageSize(8192)).is_err());
}
