//! Databases that are not on the host's file system: everything is read through the environment's `Files`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use tanada_innodb::{
    Catalog, ErrorKind, FileKind, Files, IndexNo, KeyRange, MountOptions, Result, Table, files,
};
use tanada_io::{Backend, Completion, Device, Method, Request, Ticket};

use crate::fixtures::unpacked;
use crate::support::{
    Answer, assert_same_rows, environment_of, run, scan, scan_bookmarks, secondary_indexes, spelled,
    stored_columns, types,
};

/// Files in memory, under paths that the host does not have.
#[derive(Debug, Default)]
struct MemoryFiles(BTreeMap<PathBuf, Arc<Vec<u8>>>);

impl MemoryFiles {
    /// Takes the files of a folder of the host whose names `wanted` likes to `to`.
    fn load(&mut self, from: &Path, wanted: impl Fn(&str) -> bool, to: &str) {
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_file() && wanted(&name) {
                self.0.insert(Path::new(to).join(&name), Arc::new(std::fs::read(&path).unwrap()));
            }
        }
    }

    fn file(&self, path: &Path) -> io::Result<&Arc<Vec<u8>>> {
        self.0.get(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Files for MemoryFiles {
    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        if self.0.keys().any(|file| file != path && file.starts_with(path)) {
            return Ok(FileKind::Folder);
        }
        self.file(path).map(|file| FileKind::File { bytes: file.len() as u64 })
    }

    fn entries(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let below = self.0.keys().filter_map(|file| file.strip_prefix(folder).ok()?.components().next());
        let names: BTreeSet<_> = below.collect();
        Ok(names.into_iter().map(|name| folder.join(name)).collect())
    }

    /// Waits once, as whatever is farther away would.
    fn read<'a>(
        &'a self,
        path: &'a Path,
        offset: u64,
        most_bytes: usize,
    ) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        async move {
            let mut waited = false;
            std::future::poll_fn(|context| {
                if std::mem::replace(&mut waited, true) {
                    return std::task::Poll::Ready(());
                }
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            })
            .await;
            let rest = self.file(path)?.get(offset as usize..).unwrap_or_default();
            Ok(rest[..rest.len().min(most_bytes)].to_vec())
        }
        .boxed()
    }

    fn open(&self, path: &Path, _: Method) -> tanada_io::Result<Device> {
        let bytes = self.file(path).map_err(|error| {
            tanada_io::Error::new(tanada_io::ErrorKind::NotFound, format!("{}: {error}", path.display()))
        })?;
        Ok(Device::from_backend(MemoryFile { path: path.to_owned(), bytes: bytes.clone() }))
    }
}

#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    bytes: Arc<Vec<u8>>,
}

impl Backend for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn method(&self) -> Method {
        Method::Buffered
    }

    fn alignment(&self) -> usize {
        4096
    }

    fn start(&self, request: Request, completion: Completion) -> Ticket {
        let mut buffer = request.buffer.unwrap();
        let present = self.bytes.get(request.offset as usize..).unwrap_or_default();
        let len = present.len().min(request.len as usize);
        buffer[request.from..request.from + len].copy_from_slice(&present[..len]);
        completion.complete(Ok(len), Some(buffer));
        Ticket::default()
    }
}

/// Compares all rows, by every index that is read, with the server's answer.
async fn check(table: &Table, answer: &Answer) -> Result<()> {
    let columns = stored_columns(table);
    for index in std::iter::once(IndexNo(0)).chain(secondary_indexes(table)) {
        let access = table.access(index, &columns)?;
        let rows = match access.covering() {
            true => scan(table, &access, &KeyRange::all()).await?,
            false => scan_bookmarks(table, &access, &KeyRange::all()).await?,
        };
        let what = format!("{} by index {}", table.definition().name, index.0);
        assert_same_rows(spelled(&rows, &types(table, &columns)), answer.rows(table, &columns), &what);
    }
    Ok(())
}

/// With SDI, with `.frm`, and with partitions that a `.par` lists.
#[test]
fn a_database_in_memory_is_read_like_one_on_the_host() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let folder = unpacked("cases").join(server).join("c_dynamic");
        let of_servers = |name: &str| ["ibd", "frm", "par"].iter().any(|extension| name.ends_with(extension));
        let wanted = |name: &str| {
            (name.starts_with("instant_drop") || name.starts_with("part_hash")) && of_servers(name)
        };
        let mut memory = MemoryFiles::default();
        memory.load(&folder, wanted, "/nowhere/volume/c_dynamic");
        let environment = environment_of(Arc::new(memory));
        let within = environment.clone();
        let tables = run(&environment, move || async move {
            let folder_of = Path::new("/nowhere/volume/c_dynamic");
            let catalog = Catalog::open(folder_of, &MountOptions::default(), &within).await.unwrap();
            for name in catalog.tables("c_dynamic") {
                let table = catalog.table("c_dynamic", &name).await.unwrap();
                check(&table, &Answer::read(&folder.join(format!("{name}.tsv")))).await.unwrap();
            }
            catalog.tables("c_dynamic")
        });
        assert_eq!(tables, ["instant_drop", "part_hash"], "{server}");
    }
}

/// Devices that read blocks of 4 KiB alone, as direct I/O and volumes may, hold pages of 1 and 2 KiB.
#[test]
fn pages_smaller_than_the_devices_blocks_are_read() {
    for (server, kilobytes) in
        [("mysql-9.7", 1), ("mysql-9.7", 2), ("mariadb-10.11", 1), ("mariadb-10.11-4k", 2)]
    {
        let database = format!("c_z{kilobytes}");
        let folder = unpacked("compressed").join(server).join(&database);
        let mut memory = MemoryFiles::default();
        memory.load(&folder, |name| !name.ends_with("tsv"), &format!("/nowhere/volume/{database}"));
        let environment = environment_of(Arc::new(memory));
        let within = environment.clone();
        let tables = run(&environment, move || async move {
            let folder_of = Path::new("/nowhere/volume").join(&database);
            let catalog = Catalog::open(&folder_of, &MountOptions::default(), &within).await.unwrap();
            for name in catalog.tables(&database) {
                let table = catalog.table(&database, &name).await.unwrap();
                check(&table, &Answer::read(&folder.join(format!("{name}.tsv")))).await.unwrap();
            }
            catalog.tables(&database)
        });
        assert!(tables.len() >= 8, "{server}");
    }
}

/// The redo log, the system tablespace and MySQL's dictionary are read through `Files` too.
#[test]
fn a_data_directory_in_memory_is_verified() {
    let original = unpacked("tpch-sf0.02-mysql-9.7").join("mysql-9.7");
    let load = |to: &str| {
        let mut memory = MemoryFiles::default();
        memory.load(&original, |name| ["ibdata1", "mysql.ibd"].contains(&name), to);
        memory.load(&original.join("#innodb_redo"), |_| true, &format!("{to}/#innodb_redo"));
        memory.load(
            &original.join("tpch"),
            |name| ["nation.ibd", "region.ibd"].contains(&name),
            &format!("{to}/tpch"),
        );
        memory
    };
    let open = |memory: MemoryFiles| {
        let environment = environment_of(Arc::new(memory));
        let within = environment.clone();
        run(&environment, move || async move {
            let path = Path::new("/nowhere/data");
            let catalog = Catalog::open(path, &MountOptions::default(), &within).await?;
            Result::Ok((catalog.tables("tpch"), catalog.warnings()))
        })
    };
    // The server's dictionary has more than the two whose files were loaded.
    let tables = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];
    let tables = tables.map(str::to_owned).to_vec();
    let (found, warnings) = open(load("/nowhere/data")).unwrap();
    assert_eq!(found, tables);
    // The sample was made without them.
    let lack = ["/nowhere/data/undo_001", "/nowhere/data/undo_002 are not there"];
    assert!(
        matches!(&warnings[..], [warning] if lack.iter().all(|lack| warning.contains(lack))),
        "{warnings:?}"
    );

    let mut without_log = load("/nowhere/data");
    for (_, log) in
        without_log.0.iter_mut().filter(|(path, _)| path.starts_with("/nowhere/data/#innodb_redo"))
    {
        *log = Arc::new(vec![0; 4096]);
    }
    assert_eq!(open(without_log).unwrap_err().kind(), ErrorKind::NotClean);

    // The dictionary says that an undo tablespace lies in another directory, where nothing is.
    let mut far = load("/nowhere/data");
    let dictionary = far.0.get_mut(Path::new("/nowhere/data/mysql.ibd")).unwrap();
    let bytes = Arc::make_mut(dictionary);
    let at = |bytes: &[u8]| bytes.windows(10).position(|window| window == b"./undo_001");
    while let Some(at) = at(bytes) {
        bytes[at] = b'/';
    }
    let (found, warnings) = open(far).unwrap();
    assert_eq!(found, tables);
    assert!(
        matches!(&warnings[..], [warning] if warning.contains(" /undo_001") || warning.contains("//undo_001")),
        "{warnings:?}"
    );
}

#[test]
fn the_hosts_files_are_the_default() {
    let environment = crate::support::environment(true);
    assert_eq!(format!("{:?}", environment.files), format!("{:?}", files::HostFiles));
}
