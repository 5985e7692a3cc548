//! Virtual time: it stands still while tasks run and jumps to the next event when none can.

use std::sync::Arc;
use std::time::Duration;

use tanada_base::Clock;

use super::shared::Shared;

/// The simulation's clock, for whatever takes a [`Clock`].
#[derive(Debug, Clone)]
pub struct VirtualClock {
    pub(super) shared: Arc<Shared>,
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.shared.now_ns())
    }
}
