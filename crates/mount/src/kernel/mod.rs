//! A file system at a folder, by FUSE: the only place that knows the library for it.
//!
//! - [`requests`]: each request of the kernel becomes a call of [`crate::FileSystem`];
//! - [`session`]: mounting, unmounting, stale mounts.

mod convert;
mod requests;
mod session;

pub use session::{MountOptions, Mounted, kernel_refusal, mount_points, mounted_volume, unmount};
