//! What the fuzz targets of InnoDB's files share: sound files to begin with, edits of them that an input describes,
//! checksums made right afterwards, and a reader of all that a table has.
//!
//! An input is not the file: it names a sound file and what to change in it. So each input reaches what lies behind
//! checksums and headers.

pub mod bases;
pub mod compression;
pub mod edits;
pub mod files;
pub mod seal;
pub mod table;

pub use bases::{Base, bases, samples};
pub use edits::Input;
pub use files::MemoryFiles;
