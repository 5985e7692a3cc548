//! Who is told when classes come, go or change.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

type Told = dyn Fn() + Send + Sync;

/// Has somebody told of changed classes as long as it lives; see
/// [`Volume::on_class_change`](crate::Volume::on_class_change).
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let listener = volume.on_class_change(|| println!("classes have changed"));
/// drop(listener); // nobody is told any more
/// # Ok(()) }).unwrap();
/// ```
pub struct ClassListener(pub(super) Arc<Told>);

impl fmt::Debug for ClassListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassListener").finish_non_exhaustive()
    }
}

/// Who is told of changed classes.
#[derive(Default)]
pub(crate) struct ClassListeners(Mutex<Vec<Weak<Told>>>);

impl ClassListeners {
    pub(super) fn add(&self, listener: &ClassListener) {
        self.0.lock().push(Arc::downgrade(&listener.0));
    }

    pub(super) fn tell(&self) {
        let listeners: Vec<Arc<Told>> = {
            let mut listeners = self.0.lock();
            listeners.retain(|listener| listener.strong_count() > 0);
            listeners.iter().filter_map(Weak::upgrade).collect()
        };
        // Without the lock: they may look at the classes, or be dropped here.
        listeners.into_iter().for_each(|listener| listener());
    }
}
