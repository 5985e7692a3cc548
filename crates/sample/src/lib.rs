//! The sample: TPC-H at scale 0.02 as InnoDB files that MySQL 9.7 and MariaDB 10.11 wrote, some queries, the servers'
//! answers, and the out-of-order experiment on emulated disks, which is run on it.
//!
//! Above: `tanada demo` and the benchmarks. Below: `tanada-query`. The archives of the files lie beside the program, or
//! in the folder `fixtures` of the sources; [`Sample::data_directory`] unpacks one to a work folder, once.
//!
//! ```
//! let query = &tanada_sample::EXPERIMENT[0];
//! assert!(query.sql.contains("lineitem"));
//! assert!(query.answer.starts_with("line_count\trevenue\n"));
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answer;
mod archive;
mod emulated;
mod error;

use std::path::{Path, PathBuf};

pub use emulated::{EmulatedFiles, EmulatedRun, EmulatedSettings, run as run_emulated, runtime_on};
pub use error::{Error, ErrorKind, Result};

/// Files of one server.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The server and its version, for people.
    pub server: &'static str,
    /// The folder's name in the archive: the data directory.
    pub directory: &'static str,
    /// The archive's file.
    archive: &'static str,
}

/// A query and its answer.
#[derive(Debug, Clone, Copy)]
pub struct SampleQuery {
    /// `ooode`, or a TPC-H number like `q3`.
    pub name: &'static str,
    /// What it asks.
    pub title: &'static str,
    /// The statement.
    pub sql: &'static str,
    /// The server's answer, as `mysql --batch` prints it.
    pub answer: &'static str,
}

/// The samples, one per server.
pub const SAMPLES: [Sample; 2] = [
    Sample { server: "MySQL 9.7", directory: "mysql-9.7", archive: "tpch-sf0.02-mysql-9.7.tar.zst" },
    Sample {
        server: "MariaDB 10.11",
        directory: "mariadb-10.11",
        archive: "tpch-sf0.02-mariadb-10.11.tar.zst",
    },
];

macro_rules! sample_query {
    ($name:literal, $title:literal) => {
        SampleQuery {
            name: $name,
            title: $title,
            sql: include_str!(concat!("../../../fixtures/tpch-sf0.02-golden/sql/", $name, ".sql")),
            answer: include_str!(concat!("../../../fixtures/tpch-sf0.02-golden/tsv/", $name, ".tsv")),
        }
    };
}

/// The tables of TPC-H with DBT-3's indexes, as MariaDB shows them; statements end with a line `;`.
pub const SCHEMA: &str = include_str!("../../../fixtures/tpch-sf0.02-golden/mariadb-schema.sql");

/// The indexes of DBT-3 that the sample does not have, by their table.
pub const LATER_KEYS: [(&str, &str); 2] = [
    ("lineitem", "KEY `i_l_suppkey_partkey` (`l_partkey`,`l_suppkey`)"),
    ("lineitem", "KEY `i_l_orderkey_quantity` (`l_orderkey`,`l_quantity`)"),
];

/// The out-of-order experiment's join: as the paper has it, and for a whole brand, so that small files have something
/// to look up too.
pub const EXPERIMENT: [SampleQuery; 2] = [
    sample_query!("ooode", "line items of few parts"),
    sample_query!("ooode-brand", "line items of a brand"),
];

/// Queries of TPC-H.
pub const TPCH: [SampleQuery; 3] = [
    sample_query!("q3", "unshipped orders of highest value"),
    sample_query!("q5", "revenue by nation"),
    sample_query!("q10", "customers who return items"),
];

/// The nine queries of the tiering paper.
pub const TIERING: [SampleQuery; 9] = [
    TPCH[0],
    sample_query!("q4", "orders by priority"),
    TPCH[1],
    sample_query!("q7", "shipping between two nations"),
    sample_query!("q8", "market share"),
    sample_query!("q9", "profit by nation and year"),
    TPCH[2],
    sample_query!("q20", "suppliers with a surplus"),
    sample_query!("q21", "suppliers who kept orders waiting"),
];

/// The 22 queries of TPC-H, in the order of their numbers.
pub const TPCH_ALL: [SampleQuery; 22] = [
    sample_query!("q1", "pricing summary"),
    sample_query!("q2", "suppliers of least cost"),
    sample_query!("q3", "unshipped orders of highest value"),
    sample_query!("q4", "orders by priority"),
    sample_query!("q5", "revenue by nation"),
    sample_query!("q6", "revenue without small discounts"),
    sample_query!("q7", "shipping between two nations"),
    sample_query!("q8", "market share"),
    sample_query!("q9", "profit by nation and year"),
    sample_query!("q10", "customers who return items"),
    sample_query!("q11", "important stock"),
    sample_query!("q12", "shipping modes and priority"),
    sample_query!("q13", "orders of customers"),
    sample_query!("q14", "effect of a promotion"),
    sample_query!("q15", "best supplier"),
    sample_query!("q16", "suppliers of parts"),
    sample_query!("q17", "revenue of small orders"),
    sample_query!("q18", "customers of large orders"),
    sample_query!("q19", "discounted revenue"),
    sample_query!("q20", "suppliers with a surplus"),
    sample_query!("q21", "suppliers who kept orders waiting"),
    sample_query!("q22", "customers worth a call"),
];

/// The queries of the demonstration.
pub fn queries() -> impl Iterator<Item = &'static SampleQuery> {
    EXPERIMENT.iter().chain(&TPCH)
}

impl Sample {
    /// Unpacks the sample under `folder`, or finds it there complete; gives its data directory.
    ///
    /// # Errors
    /// When the archive is not beside the program, or the folder cannot be written.
    pub fn data_directory(&self, folder: &Path) -> Result<PathBuf> {
        archive::unpack(&archive::read(self.archive)?, self.directory, folder)
    }

    /// Whether `path` is a data directory that [`data_directory`](Self::data_directory) has returned.
    pub fn is_at(&self, path: &Path) -> bool {
        path.ends_with(self.directory)
            && archive::read(self.archive)
                .is_ok_and(|archive| archive::is_unpacked(&archive, self.directory, path))
    }
}
