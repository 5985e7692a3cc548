//! The MariaDB server of one arm: the article's settings.

use std::path::Path;

use super::PageCompressionOptions;
use crate::Result;
pub(super) use crate::server::{Server, failed};

/// The article's settings that MariaDB has; the sizes of buffer pool and log are options.
const ARTICLE_SETTINGS: [&str; 8] = [
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-max-dirty-pages-pct=50",
    "--innodb-lru-scan-depth=2500",
    "--innodb-flush-neighbors=0",
    "--innodb-read-io-threads=8",
    "--innodb-write-io-threads=8",
    "--innodb-io-capacity=80000",
    "--innodb-io-capacity-max=100000",
];

/// The database of the tables, as LinkBench names it.
pub(super) const DATABASE: &str = "linkdb";

/// The settings of a server.
pub(super) fn settings(options: &PageCompressionOptions) -> Vec<String> {
    let mut all: Vec<String> = ARTICLE_SETTINGS.map(str::to_owned).to_vec();
    all.push(format!("--innodb-buffer-pool-size={}", options.pool_bytes));
    all.push(log_size(options));
    all.push(format!("--max-connections={}", options.requesters + 50));
    all.push("--innodb-flush-method=O_DIRECT".to_owned());
    all
}

fn log_size(options: &PageCompressionOptions) -> String {
    format!("--innodb-log-file-size={}", options.log_bytes)
}

/// Makes an empty data directory that all arms copy.
pub(super) fn install(data: &Path, options: &PageCompressionOptions) -> Result<()> {
    crate::server::install(data, &[log_size(options)])
}
