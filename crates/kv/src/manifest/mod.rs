//! The manifest: what a database consists of, as a journal of changes.
//!
//! 1. A manifest begins with a *snapshot*: records that build the whole state from nothing. Then come the changes as
//!    they are made. What belongs together is in one [*frame*](frame), so all or nothing of it is there.
//! 2. A change is [appended](journal), made durable, and only then made in memory.
//! 3. When a manifest has grown enough, and at each opening, a new one is written, complete and durable, before the old
//!    one is deleted. At an opening the one with the highest number that has a whole snapshot counts; all others are
//!    deleted. It has the chunk behind its end before it needs it, and where space is short it is rewritten sooner:
//!    changes are what gives space back.
//! 4. A last frame that is not whole was never acknowledged and is cut off; one in the middle is damage, and an error.
//!
//! Invariant: what is deleted is referenced by no manifest that could be chosen.

pub(crate) mod frame;
pub(crate) mod journal;
pub(crate) mod record;
pub(crate) mod state;

pub(crate) use journal::Manifest;
pub(crate) use record::{LogRecord, Record};
pub(crate) use state::DatabaseRecord;
