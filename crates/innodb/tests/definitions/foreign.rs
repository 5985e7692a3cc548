//! Files that are not those that their names say: errors that say so, or warnings where they are read all the same.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use tanada_innodb::{
    Catalog, Environment, ErrorKind, FileKind, Files, HostFiles, MountOptions, PageCache, Result, Table,
};
use tanada_io::{Device, ExecutorOptions, Executors, Method};
use tempfile::TempDir;

use crate::{fixtures, mounted};

const TARGET: &str = env!("CARGO_TARGET_TMPDIR");

/// A copy of a folder of samples whose files are links to the originals; what is replaced has to be removed first.
fn linked(original: &Path) -> TempDir {
    fn link(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let to = to.join(path.file_name().unwrap());
            if path.is_dir() { link(&path, &to) } else { std::fs::hard_link(&path, &to).unwrap() }
        }
    }
    let folder = tempfile::tempdir_in(TARGET).unwrap();
    link(original, folder.path());
    folder
}

fn replace(with: &Path, file: &Path) {
    let _ = std::fs::remove_file(file);
    std::fs::copy(with, file).unwrap();
}

fn case(name: &str) -> PathBuf {
    fixtures::unpacked("cases").join(name)
}

fn open(path: &Path, options: MountOptions) -> Result<Catalog> {
    mounted(path, options, |catalog| async { catalog })
}

/// The table's warnings, or why it cannot be read.
fn warnings(path: &Path, database: &str, table: &str) -> Result<Vec<String>> {
    let (database, table) = (database.to_owned(), table.to_owned());
    mounted(path, MountOptions { allow_stale: true, ..MountOptions::default() }, move |catalog| async move {
        let table: Arc<Table> = catalog?.table(&database, &table).await?;
        Ok(table.warnings().to_vec())
    })
}

fn mariadb() -> TempDir {
    linked(&fixtures::unpacked("shared").join("mariadb-10.11"))
}

#[test]
fn another_tables_file_in_a_mariadb_directory_is_an_error() {
    let folder = mariadb();
    let file = folder.path().join("c_shared/o@002dw@0020n.ibd");
    for extension in ["ibd", "frm"] {
        replace(
            &case("mariadb-10.11/c_dynamic/empty_t.ibd").with_extension(extension),
            &file.with_extension(extension),
        );
    }
    for mount in [folder.path(), &folder.path().join("c_shared")] {
        let error = warnings(mount, "c_shared", "o-w n").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        for word in ["o@002dw@0020n.ibd", "it is tablespace ", "has tablespace ", "restore the right file"] {
            assert!(error.to_string().contains(word), "{error}");
        }
        assert_eq!(warnings(mount, "c_shared", "t").unwrap(), [""; 0], "the other tables are there");
    }
    // Named itself, it is read as it is.
    let told = warnings(&file, "c_shared", "o-w n").unwrap();
    assert!(matches!(&told[..], [warning] if warning.contains("read as it is")), "{told:?}");
    // Away from that server nothing contradicts.
    std::fs::remove_file(folder.path().join("ibdata1")).unwrap();
    std::fs::remove_file(folder.path().join("ib_logfile0")).unwrap();
    assert_eq!(warnings(&folder.path().join("c_shared"), "c_shared", "o-w n").unwrap(), [""; 0]);
}

#[test]
fn a_table_that_was_put_into_a_directory_is_read_with_a_warning() {
    let folder = mariadb();
    for extension in ["ibd", "frm"] {
        let name = format!("str_pk.{extension}");
        replace(&case("mariadb-10.11/c_dynamic").join(&name), &folder.path().join("c_shared").join(&name));
    }
    let catalog = open(folder.path(), MountOptions::default()).unwrap();
    let told = catalog.warnings();
    assert!(
        matches!(&told[..], [warning] if warning.contains("does not know the files of c_shared.str_pk")),
        "{told:?}"
    );
    assert_eq!(warnings(folder.path(), "c_shared", "str_pk").unwrap(), [""; 0]);
}

#[test]
fn a_definition_of_another_table_is_an_error() {
    // The server's dictionary tells by the columns.
    let folder = mariadb();
    let own = folder.path().join("c_shared/o@002dw@0020n.frm");
    replace(&folder.path().join("c_shared/t.frm"), &own);
    let error = warnings(folder.path(), "c_shared", "o-w n").unwrap_err();
    assert!(
        error.to_string().contains("of another table") && error.to_string().contains("column a"),
        "{error}"
    );
    // Without it the number of trees does, and the rows.
    let alone = tempfile::tempdir().unwrap();
    let database = alone.path().file_name().unwrap().to_str().unwrap().to_owned();
    let source = case("mariadb-10.11/c_dynamic");
    for (space, definition, what) in [
        ("str_pk", "all_types", "indexes, the definition"),
        ("all_types", "str_pk", "indexes, the definition"),
        ("no_pk", "deleted_rows", "its rows are not as its definition says"),
        ("part_hash#P#p0", "str_pk", "1 index, the definition 2"),
    ] {
        replace(&source.join(format!("{space}.ibd")), &alone.path().join("t.ibd"));
        replace(&source.join(format!("{definition}.frm")), &alone.path().join("t.frm"));
        let error = warnings(alone.path(), &database, "t").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(what), "{space} as {definition}: {error}");
    }
    // One leaf, whose rows have an INT.
    let file = alone.path().join("t.ibd");
    replace(&fixtures::unpacked("shared").join("mariadb-10.11/c_shared/o@002dw@0020n.ibd"), &file);
    std::fs::remove_file(file.with_extension("frm")).unwrap();
    for (column, fits) in [("int", true), ("bigint", false), ("varchar(20)", false)] {
        let statement = format!("create table t (id {column} primary key)");
        std::fs::write(alone.path().join("t.create.sql"), statement).unwrap();
        let opened = warnings(alone.path(), &database, "t");
        assert_eq!(opened.is_ok(), fits, "{column}: {opened:?}");
    }
}

#[test]
fn another_tables_file_in_a_mysql_directory_is_an_error() {
    let folder = linked(&fixtures::unpacked("tpch-sf0.02-mysql-9.7").join("mysql-9.7"));
    let database = folder.path().join("tpch");
    let file = database.join("nation.ibd");
    replace(&fixtures::unpacked("tpch-sf0.02-mysql-9.7").join("mysql-9.7/tpch/region.ibd"), &file);
    for mount in [folder.path(), &database] {
        let error = warnings(mount, "tpch", "nation").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        for word in ["nation.ibd", "tpch.region", "restore the right file"] {
            assert!(error.to_string().contains(word), "{error}");
        }
        assert_eq!(warnings(mount, "tpch", "region").unwrap(), [""; 0]);
    }
    // The same table of another server: its number tells.
    replace(
        &fixtures::unpacked("tpch-sf0.02-mysql-9.7").join("mysql-9.7/tpch_pc/orders.ibd"),
        &database.join("orders.ibd"),
    );
    let error = warnings(folder.path(), "tpch", "orders").unwrap_err();
    assert!(error.to_string().contains("tpch_pc.orders"), "{error}");
    let told = warnings(&file, "tpch", "nation").unwrap();
    assert_eq!(told.len(), 2, "by its number and by its name: {told:?}");
    // Away from the server it is shown after its file.
    let alone = tempfile::tempdir().unwrap();
    replace(&file, &alone.path().join("nation.ibd"));
    let name = alone.path().file_name().unwrap().to_str().unwrap();
    let told = warnings(alone.path(), name, "nation").unwrap();
    assert!(
        matches!(&told[..], [warning] if warning.contains("says that it is table tpch.region")),
        "{told:?}"
    );
}

#[test]
fn another_tables_partition_is_an_error() {
    let folder = linked(&case("mysql-9.7/c_dynamic"));
    let database = folder.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(warnings(folder.path(), database, "part_hash").unwrap(), [""; 0]);
    replace(&case("mysql-9.7/c_dynamic/part_range#p#pm.ibd"), &folder.path().join("part_hash#p#p2.ibd"));
    let error = warnings(folder.path(), database, "part_hash").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("for partition p2"), "{error}");
    // MariaDB's files name no others, but no two of them are the same.
    let folder = linked(&case("mariadb-10.11/c_dynamic"));
    let database = folder.path().file_name().unwrap().to_str().unwrap();
    replace(&case("mariadb-10.11/c_dynamic/part_hash#P#p1.ibd"), &folder.path().join("part_hash#P#p2.ibd"));
    let error = warnings(folder.path(), database, "part_hash").unwrap_err();
    assert!(error.to_string().contains("are the same tablespace"), "{error}");
}

#[test]
fn files_without_checksums_are_read_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("str_pk.ibd");
    let mut bytes = std::fs::read(case("mysql-9.7/c_dynamic/str_pk.ibd")).unwrap();
    for page in bytes.chunks_mut(16384) {
        for at in [0, 16384 - 8] {
            page[at..at + 4].copy_from_slice(&0xdead_beef_u32.to_be_bytes());
        }
    }
    std::fs::write(&file, bytes).unwrap();
    let database = folder.path().file_name().unwrap().to_str().unwrap();
    let told = warnings(folder.path(), database, "str_pk").unwrap();
    assert!(matches!(&told[..], [warning] if warning.contains("without checksums")), "{told:?}");
}

#[test]
fn a_file_that_was_cut_is_not_taken_for_another_tables() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let folder = linked(&case(server).join("c_dynamic"));
        let file = folder.path().join("all_types.ibd");
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let database = folder.path().file_name().unwrap().to_str().unwrap();
        for pages in [8, 20, 40] {
            std::fs::write(&file, &bytes[..pages * 16384]).unwrap();
            if let Err(error) = warnings(folder.path(), database, "all_types") {
                assert!(error.to_string().contains("past the end"), "{server} {pages}: {error}");
            }
        }
    }
    // Its roots are known and there, its first leaf is not: that is for who reads it to find out.
    let folder = linked(&fixtures::unpacked("rare").join("mariadb-10.11"));
    let file = folder.path().join("c_rare/versioned.ibd");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, &bytes[..20 * 16384]).unwrap();
    let told = warnings(folder.path(), "c_rare", "versioned").unwrap();
    assert!(matches!(&told[..], [warning] if warning.contains("the file has 20 of 576 pages")), "{told:?}");
}

#[test]
fn partitions_that_nothing_lists_are_read_with_a_warning() {
    let folder = linked(&case("mariadb-10.11/c_dynamic"));
    let database = folder.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(warnings(folder.path(), database, "part_hash").unwrap(), [""; 0]);
    std::fs::remove_file(folder.path().join("part_hash.par")).unwrap();
    let told = warnings(folder.path(), database, "part_hash").unwrap();
    assert!(matches!(&told[..], [warning] if warning.contains("part_hash.par")), "{told:?}");
}

#[test]
fn names_that_differ_in_case_are_two_tables() {
    let source = case("mariadb-10.11/c_dynamic");
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [("str_pk", "t"), ("desc_idx", "T")] {
        for extension in ["ibd", "frm"] {
            replace(
                &source.join(from).with_extension(extension),
                &folder.path().join(to).with_extension(extension),
            );
        }
    }
    let name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
    let catalog = open(folder.path(), MountOptions::default()).unwrap();
    assert_eq!(catalog.tables(&name), ["T", "t"]);
    let columns = |table: &'static str| {
        let name = name.clone();
        mounted(folder.path(), MountOptions::default(), move |catalog| async move {
            catalog?.definition(&name, table).await.map(|definition| definition.columns.len())
        })
    };
    assert_ne!(columns("t").unwrap(), columns("T").unwrap());
}

#[test]
fn statements_have_to_be_there_and_worth_a_warning_if_of_no_use() {
    let folder = tempfile::tempdir().unwrap();
    let ddl = folder.path().join("statements.sql");
    let with = |path: &Path| MountOptions { ddl: vec![path.to_owned()], ..MountOptions::default() };
    let mount = case("mariadb-10.11/c_dynamic");
    let error = open(&mount, with(&ddl)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("statements.sql"), "{error}");
    assert_eq!(open(&mount, with(folder.path())).unwrap_err().kind(), ErrorKind::InvalidInput);
    let without = open(&mount, MountOptions::default()).unwrap().warnings();
    for (text, warns) in [
        ("create table nowhere (id int)", true),
        ("create table elsewhere.str_pk (id int)", true),
        ("-- nothing", true),
        ("create table nowhere (id int); create table STR_PK (id int)", false),
        ("create table c_dynamic.str_pk (id int)", false),
    ] {
        std::fs::write(&ddl, text).unwrap();
        let told = open(&mount, with(&ddl)).unwrap().warnings();
        assert_eq!(told.len() - without.len(), usize::from(warns), "{text}: {told:?}");
        assert_eq!(told.last().is_some_and(|last| last.contains("statements.sql")), warns);
    }
}

/// The host's files, of which one folder may not be entered.
#[derive(Debug)]
struct Locked(PathBuf);

impl Files for Locked {
    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        HostFiles.kind(path)
    }

    fn entries(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        if folder == self.0 { Err(io::ErrorKind::PermissionDenied.into()) } else { HostFiles.entries(folder) }
    }

    fn read<'a>(&'a self, path: &'a Path, offset: u64, most: usize) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        HostFiles.read(path, offset, most)
    }

    fn open(&self, path: &Path, method: Method) -> tanada_io::Result<Device> {
        HostFiles.open(path, method)
    }
}

#[test]
fn a_database_that_may_not_be_entered_is_said_to_be_so() {
    let folder = tempfile::tempdir().unwrap();
    let [locked, other] = ["shop", "other"].map(|name| folder.path().join(name));
    std::fs::create_dir(&locked).unwrap();
    let mount = || {
        let options = ExecutorOptions { threads: 1, method: Method::Threads, ..ExecutorOptions::default() };
        let executors = Executors::start(options).unwrap();
        let environment = Environment::new(executors.clone(), PageCache::new(1 << 20), Method::Threads, true);
        let environment = Arc::new(environment.with_files(Arc::new(Locked(locked.clone()))));
        let path = folder.path().to_owned();
        let open = move || async move { Catalog::open(&path, &MountOptions::default(), &environment).await };
        executors.block_on(open).unwrap()
    };
    let error = mount().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("shop") && !error.to_string().contains("holds no"), "{error}");
    std::fs::create_dir(&other).unwrap();
    replace(&case("mariadb-10.11/c_dynamic/str_pk.ibd"), &other.join("t.ibd"));
    let catalog = mount().unwrap();
    assert_eq!(catalog.databases(), ["other"]);
    assert!(catalog.warnings().iter().any(|warning| warning.contains("database shop is left out")));
}
