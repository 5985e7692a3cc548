//! Each format that is or was written has a fixture: whoever raises one has to write a database of the new one, as
//! `tests/kv/format.rs` says how, and to keep those of the older ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tanada_io::{Device, DeviceOptions};
use tanada_volume::{Object, Parts, Volume};

use crate::environment::wait_for;
use crate::log::BLOCK;
use crate::log::group::{GROUP_HEADER, GroupHeader, LOG_FORMAT};
use crate::manifest::{Record, frame, record};
use crate::tree::{Change, Edit};
use crate::wire::Decoder;

/// Formats by what has them.
type Formats = BTreeMap<&'static str, BTreeSet<u64>>;

fn written_now() -> [(&'static str, u64); 6] {
    let mut edit = Vec::new();
    Edit::default().encode(&mut edit);
    [
        ("manifest", record::FORMAT),
        ("edit of a tree", u64::from(edit[0])),
        ("change of a tree", Change::LAST_KIND.into()),
        ("log", u64::from(LOG_FORMAT)),
        ("value segment", u64::from(crate::value::SEGMENT_FORMAT)),
        ("key file", u64::from(crate::keyfile::FORMAT)),
    ]
}

/// The format behind a magic of 8 bytes.
fn behind(magic: &[u8; 8], bytes: &[u8]) -> Option<u64> {
    let format = bytes.strip_prefix(magic)?.first_chunk::<2>()?;
    Some(u64::from(u16::from_be_bytes(*format)))
}

/// Adds what an object has.
fn look(object: &Object, formats: &mut Formats) {
    let bytes = wait_for(object.read_bytes(0, object.size_bytes() as usize)).unwrap();
    let mut add = |what, format| formats.entry(what).or_default().insert(format);
    if let Some(format) = behind(b"TANADAVS", &bytes) {
        add("value segment", format);
    }
    let name = object.name();
    let no = name.rsplit('-').next().unwrap().parse().unwrap();
    for block in (0..bytes.len()).step_by(BLOCK as usize).map(|at| &bytes[at..]) {
        if let Some(format) = behind(b"TANADAKF", block) {
            add("key file", format);
        }
        if let Some(group) = block.get(..GROUP_HEADER).and_then(GroupHeader::decode) {
            add("log", u64::from(group.format));
        }
        let Some((_, records)) = frame::decode(block, no) else { continue };
        let mut decoder = Decoder::new(records);
        while decoder.finish().is_err() {
            let at = decoder.position();
            let record = Record::decode(&mut decoder).unwrap();
            let mut again = Decoder::at(records, at);
            again.u8().unwrap();
            match record {
                Record::Database { format, .. } => {
                    add("manifest", format);
                }
                Record::Edit { edit, .. } => {
                    again.varint().unwrap();
                    add("edit of a tree", u64::from(again.u8().unwrap()));
                    for change in &edit.changes {
                        add("change of a tree", change.kind().into());
                    }
                }
                _ => continue,
            };
        }
    }
}

/// What there is in the database that is packed in `path`.
fn packed(path: &Path, formats: &mut Formats) {
    let folder = tempfile::tempdir().unwrap();
    let packed = std::fs::File::open(path).unwrap();
    tar::Archive::new(zstd::Decoder::new(packed).unwrap()).unpack(folder.path()).unwrap();
    let device = |name: &str| Device::open(folder.path().join(name), &DeviceOptions::default()).unwrap();
    let parts = Parts::new(device("metadata"))
        .with_class("fast", vec![device("fast")])
        .with_class("slow", vec![device("slow")]);
    let options = tanada_volume::OpenOptions { read_only: true, ..tanada_volume::OpenOptions::default() };
    let volume = wait_for(Volume::open(parts, &options)).unwrap();
    volume.objects().iter().for_each(|object| look(object, formats));
}

#[test]
fn every_format_is_in_a_fixture() {
    let mut formats = Formats::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("kv-format-") {
            packed(&path, &mut formats);
        }
    }
    for (what, now) in written_now() {
        let found = formats.remove(what).unwrap_or_default();
        let all: BTreeSet<u64> = (1..=now).collect();
        assert_eq!(found, all, "formats of a {what} in fixtures: write one as tests/kv/format.rs says");
    }
    assert_eq!(formats, Formats::new());
}
