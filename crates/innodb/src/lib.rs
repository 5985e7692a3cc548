//! Reads the tablespaces of MySQL 8+ and MariaDB 10.6+ in place: pages, B+trees, rows, schema.
//!
//! Above: `tanada-query`. Below: `tanada-io`. Read only.
#![forbid(unsafe_code)]

pub mod directory;
mod error;
pub mod files;
mod lob;
pub mod page;
mod record;
pub mod schema;
pub mod space;
pub mod table;
mod tree;
pub mod value;

pub use directory::{Beside, Catalog, DatabaseDescription, MountOptions, ViewDescription};
pub use error::{Error, ErrorKind, Result};
pub use files::{FileKind, FileStamp, Files, HostFiles, Lock};
pub use page::{Lsn, Page, PageNo, PageSize, SpaceId};
pub use schema::{
    Collation, Column, ColumnNo, ColumnType, Declaration, DefaultValue, Display, Index, IndexNo, IndexPart,
    Partition, RowFormat, Server, TableDefinition,
};
pub use space::{Environment, PageCache, PageCacheCounters, PageRange, PageRun, Tablespace};
pub use table::{
    Access, Bookmark, ChunkLayout, Column as StoredColumn, FileRange, IndexFacts, IndexInChunk, IndexLayout,
    IndexSegments, IndexStatistics, Key, KeyRange, LeafRun, LeafSteps, Loss, Losses, LostRows, RangeRows,
    Row, RowReceiver, Rows, SpaceLayout, SpaceSegments, Table, TableFacts, TableLayout, TableState,
    TableStatistics,
};
pub use value::{Decimal, RowSink, Value, joined_elements};
