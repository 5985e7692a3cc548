//! The state of mirrors and of copies on the fastest class, over all stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use parking_lot::Mutex;

use crate::database::maintenance::installer::TreeInstaller;
use crate::database::shared::Shared;
use crate::database::space::account::SpaceManager;

/// Keeps mirrors as long as the fastest class has space for them.
#[derive(Debug)]
pub(crate) struct MirrorKeeper {
    pub(crate) shared: Arc<Shared>,
    pub(crate) space: Arc<SpaceManager>,
    pub(crate) installer: Arc<TreeInstaller>,
    /// Bytes of the fastest class that jobs may yet take for copies.
    pub(crate) copying: Mutex<u64>,
    /// Mirrors are being taken away.
    pub(crate) is_trimming: AtomicBool,
    /// A caller was refused while another one trimmed mirrors.
    pub(crate) trims_again: AtomicBool,
    /// Bytes of the fastest class that are wanted for copies of values that are read more than those of evictable
    /// mirrors.
    pub(crate) making_way: AtomicU64,
    /// Time of the last such request, if it had no effect yet.
    pub(crate) asked_for_way: Mutex<Option<Duration>>,
    /// Reads that counted when a round of them ended last, with and without mirrors.
    pub(crate) counted_reads: Mutex<u64>,
}

impl MirrorKeeper {
    pub(crate) fn new(installer: &Arc<TreeInstaller>) -> MirrorKeeper {
        MirrorKeeper {
            shared: installer.shared.clone(),
            space: installer.space.clone(),
            installer: installer.clone(),
            copying: Mutex::default(),
            is_trimming: AtomicBool::default(),
            trims_again: AtomicBool::default(),
            making_way: AtomicU64::default(),
            asked_for_way: Mutex::default(),
            counted_reads: Mutex::default(),
        }
    }
}

/// Room of the fastest class that a job may take for copies; given back when it goes, for by then it is taken or not
/// wanted.
#[derive(Debug)]
pub(crate) struct Copying<'a> {
    pub(crate) copying: &'a Mutex<u64>,
    pub(crate) bytes: u64,
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        *self.copying.lock() -= self.bytes;
    }
}
