//! A volume as a file system: files are objects, and programs need no change.
//!
//! Above: the command. Below: `tanada-volume` for the data, `tanada-io` for the threads that do the I/O.
//!
//! - [`FileSystem`] is what a file system does, on a volume: names, attributes, reads, writes. It knows no kernel, so
//!   it runs in tests and in a simulation as well.
//! - [`Mounted`] puts one at a folder by FUSE. Requests become tasks of executors, which answer when their I/O is done,
//!   so that the depth that programs ask for reaches the devices. FUSE's library appears in [`kernel`] alone.
//!
//! What is durable: what `fsync` of a file or of a folder has returned for, as [`tanada_volume::Object::sync`] promises
//! it.
#![forbid(unsafe_code)]

mod errno;
mod extended;
pub mod kernel;
mod observer;
mod system;
mod tree;

pub use errno::{Errno, Result};
pub use kernel::{MountOptions, Mounted, kernel_refusal, mount_points, mounted_volume, unmount};
pub use observer::Observer;
pub use system::{Attributes, Change, Entry, FileSystem, Maker, Space, UNLINKED};
pub use tree::{Ino, Kind, ROOT};
