//! Whoever wants to know of the data that programs read and write.

use tanada_volume::Object;

/// Is told of the data that reach the volume, on the threads that answer the kernel. What the kernel's page cache
/// serves is not among them. Returns at once.
pub trait Observer: Send + Sync {
    /// So many bytes were read at `offset`.
    fn read(&self, object: &Object, offset: u64, bytes: u64);
    /// So many bytes were written at `offset`.
    fn written(&self, object: &Object, offset: u64, bytes: u64);
}
