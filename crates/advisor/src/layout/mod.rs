//! Where tables and indexes lie in files, by asking the files.

pub mod heap;
pub mod innodb;
pub mod trees;

pub use innodb::InnodbLayout;
