//! Sound files to begin with: small tables of the fixtures that both servers wrote.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_innodb::TableDefinition;

use crate::seal::Framing;
use crate::table;

/// Files that are larger make executions slow.
const MAX_BYTES: u64 = 400 << 10;

/// A table of one file.
#[derive(Debug, Clone)]
pub struct Base {
    /// Where it lies in its archive, without extension.
    pub name: String,
    /// Its definition, as it is read from the sound file; `None` if that file is refused.
    pub definition: Option<TableDefinition>,
    /// The `.ibd` file.
    pub file: Vec<u8>,
    /// The `.frm` file, if there is one.
    pub frm: Option<Arc<Vec<u8>>>,
    /// Page size and checksum.
    pub framing: Framing,
}

/// The files of `archive` (a path from the root of the repository) that `wanted` accepts, by name.
pub fn samples(archive: &str, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(archive);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut archive = tar::Archive::new(zstd::Decoder::new(file).expect("an archive"));
    let mut found = BTreeMap::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a path").display().to_string();
        if entry.header().entry_type().is_dir() || entry.size() > MAX_BYTES || !wanted(&name) {
            continue;
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("an entry");
        found.insert(name, bytes);
    }
    found
}

/// The tables of the archives whose `.ibd` files `wanted` accepts.
pub fn bases(archives: &[&str], wanted: impl Fn(&str) -> bool) -> Vec<Base> {
    let mut bases = Vec::new();
    for archive in archives {
        let extensions = [".ibd", ".frm"];
        let mut files = samples(archive, |name| extensions.iter().any(|end| name.ends_with(end)));
        let names: Vec<String> = files
            .keys()
            .filter_map(|name| name.strip_suffix(".ibd"))
            .filter(|name| wanted(name))
            .map(str::to_owned)
            .collect();
        for name in names {
            let Some(file) = files.remove(&format!("{name}.ibd")) else { continue };
            let frm = files.remove(&format!("{name}.frm")).map(Arc::new);
            let framing = Framing::of(&file);
            let definition = table::definition(&file, frm.as_ref());
            bases.push(Base { name, definition, file, frm, framing });
        }
    }
    assert!(!bases.is_empty(), "no table of {archives:?} is wanted");
    bases
}

/// Where a table's file lies in memory.
pub fn path(extension: &str) -> PathBuf {
    Path::new("/data/d/t").with_extension(extension)
}
