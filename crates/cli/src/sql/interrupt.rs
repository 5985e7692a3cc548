//! Ctrl-C, noticed on a thread of its own: an operator that keeps every worker busy must not keep the shell from
//! hearing it.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::failure::{Failure, Outcome};

/// From now on Ctrl-C does not end the process but wakes whoever waits on the returned handle.
pub fn watch() -> Outcome<Arc<Notify>> {
    let pressed = Arc::new(Notify::new());
    let handle = Arc::clone(&pressed);
    let failed = |error| Failure::failed(format!("cannot watch for Ctrl-C: {error}; use -c or -f"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // Here and not on the thread: a key pressed before the thread runs must not end the process.
    let mut interrupts = {
        let _inside = runtime.enter();
        signal(SignalKind::interrupt()).map_err(failed)?
    };
    let watcher = move || {
        runtime.block_on(async {
            while interrupts.recv().await.is_some() {
                handle.notify_waiters();
            }
        });
    };
    std::thread::Builder::new().name("ctrl-c".to_owned()).spawn(watcher).map_err(failed)?;
    Ok(pressed)
}
