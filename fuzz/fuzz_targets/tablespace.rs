//! A whole tablespace from any bytes, checksums off: opening and scanning it ends with rows or an error.
//! Give samples as the corpus, e.g. the small `.ibd` files of `fixtures/cases.tar.zst`.
#![no_main]

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use tanada_innodb::{
    Catalog, ColumnNo, Environment, IndexNo, KeyRange, MountOptions, PageCache, Result, RowSink, Value,
};
use tanada_io::{ExecutorOptions, Executors, Gate, GateLimits, IoContext, Method};

const DDL: &str = "CREATE TABLE `t` (`id` int NOT NULL, `a` int DEFAULT NULL, `b` varchar(20) DEFAULT NULL, PRIMARY KEY (`id`), KEY `a` (`a`));";

static ENVIRONMENT: LazyLock<Arc<Environment>> = LazyLock::new(|| {
    let options = ExecutorOptions { threads: 1, method: Method::Buffered, ..ExecutorOptions::default() };
    Arc::new(Environment::new(
        Executors::start(options).expect("an executor starts"),
        PageCache::new(16 << 20),
        Method::Buffered,
        false,
    ))
});

struct Discard;

impl RowSink for Discard {
    fn push(&mut self, _: usize, _: Value<'_>) -> Result<()> {
        Ok(())
    }
}

async fn read(folder: std::path::PathBuf) -> Result<()> {
    let options =
        MountOptions { allow_stale: true, ddl: vec![folder.join("t.sql")], ..MountOptions::default() };
    let catalog = Catalog::open(&folder.join("t.ibd"), &options, &ENVIRONMENT).await?;
    let database = catalog.databases().into_iter().next().unwrap_or_default();
    let table = catalog.table(&database, "t").await?;
    let context = IoContext::new(Gate::new(GateLimits { ios: Some(16), bytes: 16 << 20 }));
    let columns: Vec<ColumnNo> = (0..table.definition().columns.len()).map(ColumnNo).collect();
    let access = table.access(IndexNo(0), &columns)?;
    let range = KeyRange::all();
    for run in table.leaves(IndexNo(0), &range, &context).await? {
        let mut on_row = |row: &tanada_innodb::Row<'_>| {
            row.decode(&mut Discard)?;
            Ok(ControlFlow::Continue(()))
        };
        table.scan(&access, &run, &range, &context, &mut on_row).await?;
    }
    table.statistics(&context).await.map(drop)
}

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("t.ibd"), bytes).expect("the input is written");
    std::fs::write(folder.path().join("t.sql"), DDL).expect("the definition is written");
    let path = folder.path().to_path_buf();
    let _ = ENVIRONMENT.executors.block_on(move || read(path)).expect("no task panics");
});
