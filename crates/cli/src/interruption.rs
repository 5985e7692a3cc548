//! Work that Ctrl-C ends in order.

use std::future::Future;

use crate::failure::{Failure, Outcome};

/// Waits for `work`; on Ctrl-C or SIGTERM drops it, which stops servers and removes copies; whoever asked goes on.
pub async fn interruptible<T>(work: impl Future<Output = T>) -> Outcome<T> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
    tokio::select! {
        done = work => Ok(done),
        _ = tokio::signal::ctrl_c() => Err(Failure::failed("interrupted")),
        _ = terminated.recv() => Err(Failure::failed("terminated")),
    }
}
