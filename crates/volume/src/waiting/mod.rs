//! How tasks wait for each other here, without a runtime of their own.
//!
//! Invariant: wakers are woken, and guards dropped, with no lock held. A [`drive`]n future is polled right where it is
//! woken, so a waker that is woken under a lock would come back to that lock.

mod drive;
mod grace;
mod holds;
mod shared;

pub(crate) use drive::{Driven, drive};
pub(crate) use grace::{Grace, GraceGuard};
pub(crate) use holds::{HoldGuard, Holds, Writing};
pub(crate) use shared::SharedTask;
