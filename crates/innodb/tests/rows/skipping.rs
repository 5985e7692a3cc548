//! Scans that step over damage: all rows of all sound pages, each once, and a list of what was lost.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tanada_innodb::{
    Environment, IndexNo, KeyRange, LeafRun, Loss, Losses, LostRows, PageNo, PageRange, Result, Table,
    TableDefinition,
};

use crate::fixtures::unpacked;
use crate::support::{Values, collect, context, environment, mount, run, scan, stored_columns};

/// What a table holds when nothing is damaged.
struct Sound {
    environment: Arc<Environment>,
    definition: TableDefinition,
    image: Vec<u8>,
    page_bytes: usize,
    /// Its rows by leaf of the clustered index.
    leaves: BTreeMap<u32, Vec<String>>,
    /// Nodes above the leaves of the clustered index.
    branches: Vec<u32>,
    off_page: Vec<u32>,
}

/// The rows that are left, sorted, and what was lost.
type Rest = (Vec<String>, Vec<Loss>);

/// How a page is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Zeroed,
    Flipped,
}

fn texts(rows: &[Values]) -> Vec<String> {
    rows.iter().map(|row| format!("{row:?}")).collect()
}

fn pages(ranges: &[PageRange]) -> Vec<u32> {
    ranges.iter().flat_map(|range| range.iter()).map(|page| page.0).collect()
}

async fn rows_by_leaf(table: &Table) -> Result<BTreeMap<u32, Vec<String>>> {
    let (access, range, context) =
        (table.access(IndexNo(0), &stored_columns(table))?, KeyRange::all(), context());
    let mut leaves = BTreeMap::new();
    for run in table.leaves(IndexNo(0), &range, &context).await? {
        for offset in &run.offsets {
            let first = PageNo(run.first.0 + u32::from(*offset));
            let leaf = LeafRun { partition: run.partition, first, offsets: vec![0] };
            let mut rows = Vec::new();
            table.scan(&access, &leaf, &range, &context, &mut collect(&mut rows)).await?;
            leaves.insert(first.0, texts(&rows));
        }
    }
    Ok(leaves)
}

impl Sound {
    fn of(folder: &Path, name: &str) -> Sound {
        let environment = environment(true);
        let (folder, name, within) = (folder.to_owned(), name.to_owned(), environment.clone());
        let (definition, leaves, layout) = run(&environment, move || async move {
            let catalog = mount(&folder, &within).await;
            let table = catalog.table(&catalog.databases()[0], &name).await.unwrap();
            let layout = table.layout(&context()).await.unwrap();
            ((**table.definition()).clone(), rows_by_leaf(&table).await.unwrap(), layout)
        });
        let space = &layout.spaces[0];
        let clustered = space.indexes.iter().find(|index| index.clustered).unwrap();
        Sound {
            image: std::fs::read(&definition.partitions[0].path).unwrap(),
            page_bytes: space.page_size.bytes(),
            branches: pages(&clustered.inner),
            off_page: pages(&clustered.off_page),
            environment,
            definition,
            leaves,
        }
    }

    fn all_rows(&self) -> Vec<String> {
        sorted(self.leaves.values().flatten().cloned().collect())
    }

    fn rows_without(&self, lost: &[u32]) -> Vec<String> {
        let kept = self.leaves.iter().filter(|(page, _)| !lost.contains(page));
        sorted(kept.flat_map(|(_, rows)| rows).cloned().collect())
    }

    fn damaged(&self, pages: &[u32], damage: Damage) -> Vec<u8> {
        let mut image = self.image.clone();
        for page in pages {
            let start = *page as usize * self.page_bytes;
            let page = &mut image[start..start + self.page_bytes];
            match damage {
                Damage::Zeroed => page.fill(0),
                // Within the stream of a compressed page.
                Damage::Flipped => page[100] ^= 1,
            }
        }
        image
    }

    /// Reads `image` in place of the file: as a query does, and stepping over damage.
    fn read(&self, image: &[u8]) -> (Result<Vec<String>>, Result<Rest>) {
        let copy = tempfile::NamedTempFile::with_suffix(".ibd").unwrap();
        std::fs::write(copy.path(), image).unwrap();
        let mut definition = self.definition.clone();
        definition.partitions[0].path = copy.path().to_owned();
        let environment = self.environment.clone();
        run(&self.environment, move || async move {
            let table = match Table::open(definition, &environment).await {
                Ok(table) => table,
                Err(error) => return (Err(error.clone()), Err(error)),
            };
            table.statistics(&context()).await.unwrap();
            let access = table.access(IndexNo(0), &stored_columns(&table)).unwrap();
            table.sample(&access, 16, &context(), &mut collect(&mut Vec::new())).await.unwrap();
            let strict = scan(&table, &access, &KeyRange::all()).await.map(|rows| sorted(texts(&rows)));
            (strict, read_sound(&table).await)
        })
    }

    /// Checks what a copy with damaged `pages` gives; returns whether it could be read at all.
    fn check(&self, pages: &[u32], damage: Damage) -> bool {
        let what = format!("{} pages {pages:?} {damage:?}", self.definition.name);
        let (strict, sound) = self.read(&self.damaged(pages, damage));
        match strict {
            Ok(rows) => assert!(rows == self.all_rows(), "{what}: other rows and no error"),
            Err(error) => assert!(error.to_string().contains(".ibd"), "{what}: {error}"),
        }
        let Ok((rows, losses)) = sound else { return false };
        let lost: u64 = losses
            .iter()
            .map(|loss| match loss.rows {
                LostRows::Exactly(rows) => rows,
                _ => 0,
            })
            .sum();
        if pages.iter().any(|page| self.off_page.contains(page)) {
            assert_eq!(rows.len() as u64 + lost, self.all_rows().len() as u64, "{what}: {losses:?}");
            let all = self.all_rows();
            assert!(rows.iter().all(|row| all.binary_search(row).is_ok()), "{what}");
            return true;
        }
        assert!(rows == self.rows_without(pages), "{what}: not the rows of the sound pages: {losses:?}");
        let mut listed: Vec<u32> =
            losses.iter().filter(|loss| loss.rows != LostRows::Zero).map(|loss| loss.page.0).collect();
        listed.dedup();
        let leaves: Vec<u32> = pages.iter().copied().filter(|page| self.leaves.contains_key(page)).collect();
        assert_eq!(listed, leaves, "{what}: {losses:?}");
        true
    }

    /// Damages each of `pages` in turn; returns those without which the table cannot be opened.
    fn check_each(&self, pages: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
        let mut needed = Vec::new();
        for damage in [Damage::Zeroed, Damage::Flipped] {
            needed.extend(pages.clone().filter(|page| !self.check(&[*page], damage)));
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    fn pages(&self) -> u32 {
        (self.image.len() / self.page_bytes) as u32
    }
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

async fn read_sound(table: &Table) -> Result<Rest> {
    let (access, losses, context) =
        (table.access(IndexNo(0), &stored_columns(table))?, Losses::default(), context());
    let mut rows = Vec::new();
    for run in table.sound_leaves(IndexNo(0), &losses, &context).await? {
        table.scan_sound(&access, &run, &losses, &context, &mut collect(&mut rows)).await?;
    }
    Ok((sorted(texts(&rows)), losses.list()))
}

#[test]
fn each_damaged_page_costs_its_own_rows_alone() {
    for (folder, name, needed) in [
        ("mysql-9.7/c_dynamic", "deleted_rows", &[][..]),
        ("mysql-9.7/c_dynamic", "instant_drop", &[]),
        ("mysql-9.7/c_pc_lz4", "str_pk", &[]),
        ("mariadb-10.11/c_dynamic", "deleted_rows", &[]),
        ("mariadb-10.11/c_crc32", "no_pk", &[]),
        ("mariadb-10.11/c_pc_lz4", "desc_idx", &[]),
        // The root and the first leaf say how the table was altered.
        ("mariadb-10.11/c_compact", "instant_add", &[3, 4]),
    ] {
        let sound = Sound::of(&unpacked("cases").join(folder), name);
        assert!(sound.leaves.len() > 1, "{folder}/{name}");
        assert_eq!(sound.check_each(0..sound.pages()), needed, "{folder}/{name}");
    }
}

#[test]
fn each_damaged_page_of_a_compressed_table_costs_its_own_rows_alone() {
    for (folder, name) in [
        ("mariadb-10.11/c_z8", "churn"),
        ("mariadb-10.11/c_z1", "no_key"),
        ("mysql-9.7/c_z4", "churn"),
        ("mysql-9.7/c_z2", "text_key"),
    ] {
        let sound = Sound::of(&unpacked("compressed").join(folder), name);
        let step = (sound.pages() as usize / 12).max(1);
        let needed = sound.check_each((0..sound.pages()).step_by(step));
        assert!(needed.is_empty(), "{folder}/{name}: {needed:?}");
    }
}

#[test]
fn a_partition_without_a_sound_page_costs_its_own_rows_alone() {
    let folder = unpacked("cases").join("mysql-9.7/c_dynamic");
    let environment = environment(true);
    let within = environment.clone();
    let (all, rest, losses) = run(&environment, move || async move {
        let catalog = mount(&folder, &within).await;
        let table = catalog.table(&catalog.databases()[0], "part_range").await.unwrap();
        let all = read_sound(&table).await.unwrap().0;
        let mut definition = (**table.definition()).clone();
        let copy = tempfile::NamedTempFile::with_suffix(".ibd").unwrap();
        // All but the dictionary information.
        let mut image = std::fs::read(&definition.partitions[0].path).unwrap();
        image[4 * 16384..].fill(0);
        std::fs::write(copy.path(), image).unwrap();
        definition.partitions[0].path = copy.path().to_owned();
        let table = Table::open(definition, &within).await.unwrap();
        let (rest, losses) = read_sound(&table).await.unwrap();
        (all, rest, losses)
    });
    assert!(!rest.is_empty() && rest.len() < all.len(), "{} of {}", rest.len(), all.len());
    assert!(rest.iter().all(|row| all.binary_search(row).is_ok()));
    assert!(losses.iter().any(|loss| loss.rows == LostRows::Unknown), "{losses:?}");
}

#[test]
fn leaves_below_a_lost_branch_are_found_by_themselves() {
    let sound = Sound::of(&unpacked("page-sizes").join("4k/c_sizes"), "t");
    assert!(sound.branches.len() > 3, "{:?}", sound.branches);
    for damage in [Damage::Zeroed, Damage::Flipped] {
        assert!(sound.check(&sound.branches[..1], damage));
        assert!(sound.check(&sound.branches[1..3], damage));
        assert!(sound.check(&sound.branches, damage));
        // With a leaf below it.
        let leaf = *sound.leaves.keys().nth(sound.leaves.len() / 2).unwrap();
        assert!(sound.check(&[sound.branches[1], leaf], damage));
        // Without the descriptors of extents, pages that were given back look like leaves: nothing is read then.
        assert!(!sound.check(&[0, sound.branches[1]], damage));
    }
}

#[test]
fn a_row_whose_off_page_value_is_damaged_is_left_out_and_counted() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let sound = Sound::of(&unpacked("forms").join(server).join("c_forms"), "off_page");
        let step = (sound.off_page.len() / 8).max(1);
        let needed = sound.check_each(sound.off_page.iter().copied().step_by(step));
        assert!(needed.is_empty(), "{server}: {needed:?}");
    }
}

/// A file that was cut, at a page boundary or not, and one of which the beginning is missing.
#[test]
fn fragments_of_a_file_give_the_rows_that_they_hold() {
    let sound = Sound::of(&unpacked("cases").join("mysql-9.7/c_dynamic"), "deleted_rows");
    let last = *sound.leaves.keys().last().unwrap();
    for bytes in [0, 1, 5000] {
        let kept = last as usize - 1;
        let (strict, rest) = sound.read(&sound.image[..kept * sound.page_bytes + bytes]);
        let error = strict.unwrap_err().to_string();
        assert!(error.contains("cut short") && error.contains("--skip-damaged"), "{error}");
        let (rows, losses) = rest.unwrap();
        let lost: Vec<u32> = sound.leaves.keys().copied().filter(|page| *page as usize >= kept).collect();
        assert_eq!(rows, sound.rows_without(&lost));
        let listed: Vec<u32> = losses.iter().map(|loss| loss.page.0).collect();
        assert_eq!(listed, lost, "{losses:?}");
        assert!(losses.iter().all(|loss| loss.reason.contains("past the end of the file")), "{losses:?}");
    }
    // The first pages, as after writing a rescued part to its place in an empty file.
    let mut late = sound.image.clone();
    late[..3 * sound.page_bytes].fill(0);
    let (_, rest) = sound.read(&late);
    assert_eq!(rest.unwrap().0, sound.all_rows());
    // A part that is not at its place.
    let (strict, rest) = sound.read(&sound.image[2 * sound.page_bytes..]);
    assert!(rest.is_err());
    let error = strict.unwrap_err().to_string();
    assert!(
        error.contains("a part of a tablespace that begins with page 2") && error.contains("seek=2"),
        "{error}"
    );
}
