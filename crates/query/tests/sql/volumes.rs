//! Databases in a tiered volume: adopted and imported files give what the files themselves give, and their reads are
//! counted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tanada_innodb::MountOptions;
use tanada_io::{ExecutorOptions, Executors, Method};
use tanada_query::{ErrorKind, Session};
use tanada_volume::directory::{ClassConfig, Directory, Settings};
use tanada_volume::{Attributes, OpenOptions, Relocation, Volume, VolumeSettings};

use crate::sessions::{SERVERS, run, session, tpch_directory, value};

/// How files come into a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Adopt,
    Import,
}

/// A volume of two classes with the files of these folders, each below its name.
pub async fn volume_with(folders: &[(&str, PathBuf)], way: Way) -> tempfile::TempDir {
    volume_on(folders, way, [None, None]).await
}

/// [`volume_with`] its classes on models of devices.
pub async fn volume_on(
    folders: &[(&str, PathBuf)],
    way: Way,
    models: [Option<&str>; 2],
) -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let class = |name, model: Option<&str>| ClassConfig {
        model: model.map(str::to_owned),
        ..ClassConfig::new(name, vec![PathBuf::from(name)], Some(256 << 20))
    };
    let settings = VolumeSettings { id: [7; 16], ..VolumeSettings::default() };
    let classes = [class("fast", models[0]), class("slow", models[1])];
    let executors = Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() }).unwrap();
    let opening = tanada_query::volume::settings(&executors);
    let directory = Directory::create(folder.path(), &settings, &classes, opening).await.unwrap();
    for (name, path) in folders {
        for file in files(path) {
            let object = format!("{name}/{}", file.strip_prefix(path).unwrap().display());
            bring(directory.volume(), &object, &file, way).await;
        }
    }
    directory.close().await.unwrap();
    folder
}

async fn bring(volume: &Volume, name: &str, file: &Path, way: Way) {
    match way {
        Way::Adopt => {
            volume.adopt(name, file.to_str().unwrap(), &Attributes::default()).unwrap();
        }
        Way::Import => {
            let object = volume.create_object(name, &Attributes::default()).unwrap();
            let bytes = std::fs::read(file).unwrap();
            if !bytes.is_empty() {
                object.write_bytes(0, &bytes).await.unwrap();
            }
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

async fn mounted(folder: &Path) -> (Session, Vec<String>, Vec<String>) {
    let session = session(Method::Uring);
    let (databases, warnings) = session.mount_volume(folder, &MountOptions::default()).await.unwrap();
    session.use_database("tpch").unwrap();
    (session, databases, warnings)
}

pub async fn open(folder: &Path) -> Directory {
    Directory::open(folder, &OpenOptions::default(), Settings::default()).await.unwrap()
}

const COUNT: &str = "select count(*) from lineitem";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_servers_in_one_volume_are_told_apart() {
    let [mysql, mariadb] = SERVERS.map(tpch_directory);
    let only = mariadb.join("tpch");
    let folder = volume_with(&[("a", mysql), ("b/shop", only)], Way::Adopt).await;
    let session = session(Method::Uring);
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    let (databases, _) = session.mount_volume(folder.path(), &options).await.unwrap();
    assert_eq!(databases, ["tpch", "tpch_pc", "shop"]);
    for database in ["tpch", "shop"] {
        session.use_database(database).unwrap();
        assert_eq!(value(&session, COUNT).await.as_deref(), Some("120515"), "{database}");
    }
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_a_session_are_counted_for_good_and_mirrors_serve_them() {
    let folder = volume_with(&[("data", tpch_directory(SERVERS[1]))], Way::Adopt).await;
    let name = "data/tpch/lineitem.ibd";
    let reads = async |folder: &Path| {
        let directory = open(folder).await;
        let object = directory.volume().open_object(name).unwrap();
        let reads: u64 =
            object.chunks(0..u64::MAX).iter().map(|chunk| u64::from(chunk.statistics.reads)).sum();
        directory.close().await.unwrap();
        reads
    };
    assert_eq!(reads(folder.path()).await, 0);
    let (one, databases, warnings) = mounted(folder.path()).await;
    assert_eq!((databases, warnings), (vec!["tpch".to_owned(), "tpch_pc".to_owned()], Vec::new()));
    assert_eq!(value(&one, COUNT).await.as_deref(), Some("120515"));
    one.close().await.unwrap();
    let counted = reads(folder.path()).await;
    assert!(counted > 0);

    let directory = open(folder.path()).await;
    let object = directory.volume().open_object(name).unwrap();
    let mirrored = object.mirror_to(0..u64::MAX, "fast", &Relocation::default()).await.unwrap();
    assert!(mirrored.done > 0);
    directory.close().await.unwrap();
    let (two, ..) = mounted(folder.path()).await;
    assert_eq!(value(&two, COUNT).await.as_deref(), Some("120515"));
    two.close().await.unwrap();
    assert!(reads(folder.path()).await > counted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn out_of_order_depth_survives_the_volume() {
    let folder = volume_with(&[("data", tpch_directory(SERVERS[0]))], Way::Import).await;
    let (session, ..) = mounted(folder.path()).await;
    run(&session, "set tanada.lookup_join = 'always'").await.unwrap();
    run(&session, "set tanada.io_depth = 64").await.unwrap();
    let join =
        "select sum(o_totalprice) from lineitem join orders on o_orderkey = l_orderkey where l_partkey < 100";
    let answer = run(&session, join).await.unwrap();
    assert!(answer.report.depth_max > 8, "{:?}", answer.report);
    session.close().await.unwrap();
}

/// The query failed with the name of the adopted file, which was sound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_read_where_their_mirror_is_damaged() {
    const PAGE: usize = 16 << 10;
    let data = tpch_directory(SERVERS[1]);
    let folder = volume_with(&[("data", data.clone())], Way::Adopt).await;
    let directory = open(folder.path()).await;
    let object = directory.volume().open_object("data/tpch/lineitem.ibd").unwrap();
    let mirrored = object.mirror_to(0..u64::MAX, "fast", &Relocation::default()).await.unwrap().done;
    directory.close().await.unwrap();
    // Where its pages lie in the class: page 0 has no type, the root and every fifth page are zeros, of all others one
    // bit is another.
    let file = std::fs::read(data.join("tpch/lineitem.ibd")).unwrap();
    let pages: HashMap<&[u8], usize> =
        file.chunks(PAGE).zip(0..).filter(|(page, _)| page.iter().any(|byte| *byte != 0)).collect();
    let mut class = std::fs::read(folder.path().join("fast")).unwrap();
    let mut damaged = 0;
    for block in class.chunks_mut(PAGE) {
        match pages.get(&*block) {
            Some(0) => block[24..26].fill(0xff),
            Some(no) if *no == 3 || no % 5 == 0 => block.fill(0),
            Some(_) => block[5000] ^= 1,
            None => continue,
        }
        damaged += 1;
    }
    assert!(damaged >= pages.len());
    std::fs::write(folder.path().join("fast"), class).unwrap();

    let (session, _, warnings) = mounted(folder.path()).await;
    assert_eq!(warnings, Vec::<String>::new());
    run(&session, "set tanada.placement = 'off'").await.unwrap();
    let mirrors = "select count(*) from tanada.volume_stats where mirror = 'fast'";
    assert_eq!(value(&session, mirrors).await, Some(mirrored.to_string()));
    for sql in [COUNT, "select count(*) from lineitem where l_comment <> 'x'"] {
        assert_eq!(value(&session, sql).await.as_deref(), Some("120515"), "{sql}");
    }
    let one = "select l_quantity from lineitem where l_orderkey = 1 and l_linenumber = 1";
    assert_eq!(value(&session, one).await.as_deref(), Some("17.00"));
    let left: u64 = value(&session, mirrors).await.unwrap().parse().unwrap();
    assert!(left < mirrored / 2, "{left} of {mirrored}");
    session.close().await.unwrap();
}

/// Its mirrors were read until the volume was opened again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_changes_in_the_middle_of_a_session_is_read_itself() {
    let copy = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let original = tpch_directory(SERVERS[1]).join("tpch");
    for file in files(&original) {
        std::fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    let folder = volume_with(&[("tpch", copy.path().to_owned())], Way::Adopt).await;
    let directory = open(folder.path()).await;
    let object = directory.volume().open_object("tpch/orders.ibd").unwrap();
    assert!(object.mirror_to(0..u64::MAX, "fast", &Relocation::default()).await.unwrap().done > 0);
    directory.close().await.unwrap();

    let session = session(Method::Uring);
    session.set("tanada.placement", "off").await.unwrap();
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    session.mount_volume(folder.path(), &options).await.unwrap();
    session.use_database("tpch").unwrap();
    let mirrors = "select count(*) from tanada.volume_stats where mirror = 'fast'";
    let orders = "select count(*) from orders where o_comment <> 'x'";
    let before = run(&session, orders).await.unwrap();
    assert_eq!(before.report.warnings, Vec::<String>::new());
    assert_ne!(value(&session, mirrors).await.as_deref(), Some("0"));

    let file = std::fs::File::options().write(true).open(copy.path().join("orders.ibd")).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    session.clear_cache();
    let after = run(&session, orders).await.unwrap();
    assert_eq!(after.rows, before.rows);
    let warnings = &after.report.warnings;
    assert!(
        matches!(&warnings[..], [warning] if warning.contains("orders.ibd has changed since")),
        "{warnings:?}"
    );
    assert_eq!(value(&session, mirrors).await.as_deref(), Some("0"));
    assert_eq!(run(&session, orders).await.unwrap().report.warnings, Vec::<String>::new());

    // Whoever gets no answer is to know why.
    std::fs::write(copy.path().join("orders.ibd"), vec![0xff; 1 << 20]).unwrap();
    session.clear_cache();
    let mut failing = session.execute(orders).await.unwrap();
    failing.collect().await.unwrap_err();
    let warnings = failing.report().warnings;
    assert!(
        matches!(&warnings[..], [warning] if warning.contains("orders.ibd has changed since")),
        "{warnings:?}"
    );
    session.close().await.unwrap();
}

/// Of a file that is gone it was said that its mirrors were dropped, at each opening anew, though it had none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adopted_file_that_is_gone_is_told_as_that() {
    let folder = volume_with(&[("data", tpch_directory(SERVERS[1]))], Way::Adopt).await;
    let lone = folder.path().join("lone");
    std::fs::write(&lone, b"some bytes").unwrap();
    let directory = open(folder.path()).await;
    directory.volume().adopt("lone", lone.to_str().unwrap(), &Attributes::default()).unwrap();
    directory.close().await.unwrap();
    std::fs::remove_file(&lone).unwrap();
    let (session, _, warnings) = mounted(folder.path()).await;
    assert!(matches!(&warnings[..], [warning] if warning.contains("lone is gone;")), "{warnings:?}");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_that_is_in_use_or_has_no_tables_says_so() {
    let folder = volume_with(&[("data", tpch_directory(SERVERS[1]))], Way::Adopt).await;
    let (first, ..) = mounted(folder.path()).await;
    let error = first.mount_volume(folder.path(), &MountOptions::default()).await.unwrap_err();
    assert!(error.to_string().ends_with("is mounted already"), "{error}");
    let second = session(Method::Uring);
    let error = second.mount_volume(folder.path(), &MountOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    first.close().await.unwrap();
    drop(first);

    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let reader = Directory::open(folder.path(), &options, Settings::default()).await.unwrap();
    let (_, warnings) = second.mount_volume(folder.path(), &MountOptions::default()).await.unwrap();
    assert!(warnings.iter().any(|warning| warning.contains("not counted")), "{warnings:?}");
    drop(reader);

    let empty = volume_with(&[], Way::Adopt).await;
    let error = second.mount_volume(empty.path(), &MountOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("adopt"), "{error}");
    let none = tempfile::tempdir().unwrap();
    assert!(second.mount_volume(none.path(), &MountOptions::default()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_show_sizes_and_pages_by_algorithm() {
    let tpch = tpch_directory(SERVERS[1]).join("tpch");
    let folder = volume_with(&[("tpch", tpch)], Way::Adopt).await;
    let directory = open(folder.path()).await;
    let lz4 = Attributes { compression: tanada_volume::Compression::Lz4, ..Attributes::default() };
    let object = directory.volume().create_object("paged", &lz4).unwrap();
    object.write_bytes(0, &[7; 3 * 16384]).await.unwrap();
    object.write_bytes(5 * 16384, &[7]).await.unwrap();
    object.alter(&Attributes { compression: "zstd".parse().unwrap(), ..lz4 }).await.unwrap();
    object.write_bytes(0, &[8; 16384]).await.unwrap();
    directory.volume().create_object("plain", &Attributes::default()).unwrap();
    directory.close().await.unwrap();

    let (session, _, _) = mounted(folder.path()).await;
    let columns = "concat_ws(',', object, fs_block_size, logical_size, allocated_size, ifnull(stored_size, 'none'), compression,
        ifnull(page_size, 'none'), ifnull(pages_lz4, 'none'), ifnull(pages_zstd, 'none'), ifnull(pages_hole, 'none'))";
    let of = async |name: &str| {
        value(&session, &format!("select {columns} from tanada.objects where object = '{name}'"))
            .await
            .unwrap()
    };
    assert_eq!(of("paged").await, "paged,4096,81921,1048576,16384,zstd:3,16384,3,1,2");
    assert_eq!(of("plain").await, "plain,4096,0,0,none,none,none,none,none,none");
    session.close().await.unwrap();
}
