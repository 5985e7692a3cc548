//! What the parts of a database keep of each store.

pub(crate) mod cleaning;
pub(crate) mod promotion;
pub(crate) mod remirroring;
pub(crate) mod store_state;
pub(crate) mod taken;
pub(crate) mod task_states;
pub(crate) mod unsettled;
