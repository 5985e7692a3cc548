//! State of a store that belongs to one kind of maintenance alone: found by its type, made when it is first asked for.
//!
//! So a new kind of maintenance keeps what it has to know of a store beside its code, and the store does not name it.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// States by their types.
#[derive(Default)]
pub(crate) struct TaskStates(Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl fmt::Debug for TaskStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskStates").field("states", &self.0.lock().len()).finish()
    }
}

impl TaskStates {
    /// Returns the state of that type.
    pub(crate) fn of<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut states = self.0.lock();
        let state = states.entry(TypeId::of::<T>()).or_insert_with(|| Arc::<T>::default());
        // Under its type there is nothing else.
        state.clone().downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use super::*;

    #[test]
    fn task_states_are_kept_by_their_type() {
        let states = TaskStates::default();
        states.of::<AtomicU32>().store(3, Ordering::Relaxed);
        states.of::<AtomicU64>().store(5, Ordering::Relaxed);
        assert_eq!(states.of::<AtomicU32>().load(Ordering::Relaxed), 3);
        assert_eq!(states.of::<AtomicU64>().load(Ordering::Relaxed), 5);
    }
}
