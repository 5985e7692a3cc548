//! Damaged definitions are errors: whatever bytes stand in an SDI, a `.frm`, a `.par` or a DDL file, reading them ends
//! without a panic.

use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use tanada_innodb::Server;
use tanada_innodb::schema::{partition_names, table_from_ddl, table_from_frm, table_from_sdi};

use crate::fixtures;

/// All sample files called `*.extension`.
fn samples(extension: &str) -> Vec<Vec<u8>> {
    let mut folders = vec![fixtures::unpacked("cases")];
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(extension) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

static FRM: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| samples(".frm"));
static PAR: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| samples(".par"));
static DDL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| samples(".create.sql"));
/// The objects inside of what `ibd2sdi` printed.
static SDI: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let objects = |file: &Vec<u8>| -> Vec<Vec<u8>> {
        let file: serde_json::Value = serde_json::from_slice(file).unwrap();
        let objects = file.as_array().unwrap().iter().filter_map(|entry| entry.get("object"));
        objects.map(|object| object.to_string().into_bytes()).collect()
    };
    // ibd2sdi printed nothing for page-compressed files.
    samples(".sdi.json").iter().filter(|file| !file.is_empty()).flat_map(objects).collect()
});

/// Which sample, what to overwrite, and where to cut or repeat.
#[derive(Debug, Clone)]
struct Damage {
    sample: prop::sample::Index,
    bytes: Vec<(prop::sample::Index, u8)>,
    end: Option<prop::sample::Index>,
    insert: Vec<u8>,
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    let end = prop::option::weighted(0.2, any::<prop::sample::Index>());
    let insert = prop::collection::vec(any::<u8>(), 0..4);
    (any::<prop::sample::Index>(), bytes, end, insert).prop_map(|(sample, bytes, end, insert)| Damage {
        sample,
        bytes,
        end,
        insert,
    })
}

impl Damage {
    fn apply(&self, samples: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = samples[self.sample.index(samples.len())].clone();
        for (at, byte) in &self.bytes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        if let Some((at, _)) = self.bytes.first() {
            let at = at.index(bytes.len());
            bytes.splice(at..at, self.insert.iter().copied());
        }
        if let Some(end) = self.end {
            bytes.truncate(end.index(bytes.len() + 1));
        }
        bytes
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_frm_is_no_panic(damage in damage()) {
        let _ = table_from_frm(&damage.apply(&FRM), "d", "t");
    }

    #[test]
    fn a_damaged_par_is_no_panic(damage in damage()) {
        let _ = partition_names(&damage.apply(&PAR));
    }

    #[test]
    fn a_damaged_statement_is_no_panic(damage in damage()) {
        let bytes = damage.apply(&DDL);
        let text = String::from_utf8_lossy(&bytes);
        for name in ["all_types", "instant_add", "part_hash", "str_pk"] {
            let _ = table_from_ddl(&text, "d", name, Server::MariaDb);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_sdi_is_no_panic(damage in damage()) {
        let _ = table_from_sdi(&damage.apply(&SDI));
    }

    /// Digits are where JSON stays JSON, so that the numbers reach the reader.
    #[test]
    fn other_numbers_in_an_sdi_are_no_panic(sample in any::<prop::sample::Index>(), places in prop::collection::vec((any::<prop::sample::Index>(), 0u8..10), 1..20)) {
        let mut bytes = SDI[sample.index(SDI.len())].clone();
        let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
        for (place, digit) in places {
            bytes[digits[place.index(digits.len())]] = b'0' + digit;
        }
        let _ = table_from_sdi(&bytes);
    }
}

#[test]
fn undamaged_samples_are_read() {
    assert!(FRM.iter().all(|frm| table_from_frm(frm, "d", "t").is_ok()));
    assert!(PAR.iter().all(|par| partition_names(par).is_ok()));
    assert!(SDI.iter().all(|sdi| table_from_sdi(sdi).is_ok()));
    assert!(SDI.iter().any(|sdi| table_from_sdi(sdi).unwrap().is_some()));
    assert!([&FRM, &PAR, &DDL, &SDI].iter().all(|samples| !samples.is_empty()));
}
