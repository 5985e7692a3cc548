//! Writing memtables out to kvsets.

pub(crate) mod flusher;
pub(crate) mod packing;
pub(crate) mod table_writer;
