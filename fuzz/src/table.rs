//! Reading all there is of a table in memory.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use futures::executor::block_on;
use tanada_innodb::{
    Catalog, ColumnNo, Environment, IndexNo, KeyRange, MountOptions, PageCache, PageNo, Result, Row, RowSink,
    Table, TableDefinition, Tablespace, Value,
};
use tanada_io::{ExecutorOptions, Executors, Gate, GateLimits, IoContext, Method};

use crate::bases::path;
use crate::files::MemoryFiles;

static FILES: LazyLock<Arc<MemoryFiles>> = LazyLock::new(Arc::default);

static ENVIRONMENT: LazyLock<Arc<Environment>> = LazyLock::new(|| {
    tanada_io::set_warning_sink(|_| {});
    let options = ExecutorOptions { threads: 1, method: Method::Buffered, ..ExecutorOptions::default() };
    let executors = Executors::start(options).expect("an executor starts");
    let environment = Environment::new(executors, PageCache::new(8 << 20), Method::Buffered, true);
    Arc::new(environment.with_files(FILES.clone()))
});

/// Rows after which a scan does not end: no base has a tenth of them.
const MAX_ROWS: usize = 200_000;

struct Discard;

impl RowSink for Discard {
    fn push(&mut self, _: usize, value: Value<'_>) -> Result<()> {
        std::hint::black_box(value);
        Ok(())
    }
}

fn context() -> IoContext {
    IoContext::new(Gate::new(GateLimits { ios: Some(64), bytes: 64 << 20 }))
}

fn put(file: Vec<u8>, frm: Option<&Arc<Vec<u8>>>) {
    let frm = frm.map(|frm| (path("frm"), frm.clone()));
    FILES.set([(path("ibd"), Arc::new(file))].into_iter().chain(frm));
}

async fn catalog(at: &Path) -> Result<Catalog> {
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    Catalog::open(at, &options, &ENVIRONMENT).await
}

/// The definition of the table in `file`; `None` if it cannot be opened.
pub fn definition(file: &[u8], frm: Option<&Arc<Vec<u8>>>) -> Option<TableDefinition> {
    put(file.to_vec(), frm);
    block_on(async {
        let catalog = catalog(&path("ibd")).await.ok()?;
        let table = catalog.table(catalog.databases().first()?, "t").await.ok()?;
        Some((**table.definition()).clone())
    })
}

/// Mounts `file` and reads the table as a user would, its definition included.
pub fn mount(file: Vec<u8>, frm: Option<&Arc<Vec<u8>>>) {
    put(file, frm);
    // An error is as good as rows.
    let _ = block_on(async {
        let catalog = catalog(&path("ibd")).await?;
        let database = catalog.databases().into_iter().next().unwrap_or_default();
        for name in catalog.tables(&database) {
            let table = catalog.table(&database, &name).await?;
            let _ = read(&table).await;
        }
        Ok::<(), tanada_innodb::Error>(())
    });
}

/// Mounts the files of a data directory.
pub fn mount_directory(files: impl IntoIterator<Item = (std::path::PathBuf, Arc<Vec<u8>>)>) -> Result<()> {
    FILES.set(files);
    block_on(Catalog::open(Path::new("/data"), &MountOptions::default(), &ENVIRONMENT)).map(drop)
}

/// The rows that `file` has by its clustered index; 0 if it cannot be read.
pub fn rows(file: Vec<u8>, definition: &TableDefinition) -> usize {
    put(file, None);
    let mut definition = definition.clone();
    definition.partitions.iter_mut().for_each(|partition| partition.path = path("ibd"));
    let counted = block_on(async {
        let table = Table::open(definition, &ENVIRONMENT).await?;
        let (access, all) = (table.access(IndexNo(0), &[])?, KeyRange::all());
        let mut rows = 0;
        for run in table.leaves(IndexNo(0), &all, &context()).await? {
            let mut on_row = |_: &Row<'_>| {
                rows += 1;
                Ok(ControlFlow::Continue(()))
            };
            table.scan(&access, &run, &all, &context(), &mut on_row).await?;
        }
        Ok::<usize, tanada_innodb::Error>(rows)
    });
    counted.unwrap_or(0)
}

/// Reads all of `file`, of which `definition` is known.
pub fn read_all(file: Vec<u8>, definition: &TableDefinition) {
    put(file, None);
    let mut definition = definition.clone();
    definition.partitions.iter_mut().for_each(|partition| partition.path = path("ibd"));
    let _ = block_on(async {
        let table = Table::open(definition, &ENVIRONMENT).await?;
        read(&table).await
    });
}

/// The content of page `no` of `file`.
pub fn page(file: Vec<u8>, no: u32) -> Result<Vec<u8>> {
    put(file, None);
    block_on(async {
        let space = Tablespace::open(&path("ibd"), &ENVIRONMENT).await?;
        space.page(PageNo(no), &context()).await.map(|page| page.bytes().to_vec())
    })
}

async fn read(table: &Table) -> Result<()> {
    let columns = (0..table.definition().columns.len()).map(ColumnNo);
    let stored: Vec<ColumnNo> =
        columns.filter(|column| table.definition().columns[column.0].virtual_expression.is_none()).collect();
    let all = KeyRange::all();
    for no in 0..table.definition().indexes.len() {
        let index = IndexNo(no);
        if !table.readable(index) {
            continue;
        }
        let access = table.access(index, &stored)?;
        let mut rows = 0;
        let mut on_row = |row: &Row<'_>| {
            row.decode(&mut Discard)?;
            rows += 1;
            assert!(rows < MAX_ROWS, "a scan does not end");
            Ok(ControlFlow::Continue(()))
        };
        for run in table.leaves(index, &all, &context()).await? {
            if access.covering() {
                table.scan(&access, &run, &all, &context(), &mut on_row).await?;
                continue;
            }
            for bookmark in table.bookmarks(index, &run, &all, &context()).await? {
                table.fetch(&access, &bookmark, &context(), &mut on_row).await?;
            }
        }
        if table.searchable(index, 0) {
            for number in [0, 7, 1000] {
                let Ok(Some(key)) = table.key(index, &[Value::Int(number)]) else { continue };
                table.lookup(&access, &key, &context(), &mut on_row).await?;
            }
        }
    }
    table.statistics(&context()).await.map(drop)
}
