//! Table definitions from SDI, `.frm` and DDL, and the catalog that finds them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../fixtures/mod.rs"]
mod fixtures;

mod catalog;
mod declared;
mod foreign;
mod frm;
mod hostile;
mod samples;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use tanada_innodb::{Catalog, Environment, MountOptions, PageCache, Result};
use tanada_io::{ExecutorOptions, Executors, Method};

fn environment() -> Arc<Environment> {
    let options = ExecutorOptions { threads: 1, method: Method::Threads, ..ExecutorOptions::default() };
    Arc::new(Environment::new(
        Executors::start(options).unwrap(),
        PageCache::new(16 << 20),
        Method::Threads,
        true,
    ))
}

/// Mounts `path` and runs what `use_it` makes of the catalog on an executor.
fn mounted<F, T>(
    path: &Path,
    options: MountOptions,
    use_it: impl FnOnce(Result<Catalog>) -> F + Send + 'static,
) -> T
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let environment = environment();
    let executors = environment.executors.clone();
    let path = path.to_owned();
    let make = move || async move { use_it(Catalog::open(&path, &options, &environment).await).await };
    executors.block_on(make).unwrap()
}
