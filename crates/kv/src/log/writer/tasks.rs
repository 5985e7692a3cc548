//! The log's tasks in the background: one writes groups and makes them durable, one prepares segments ahead.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, join_all, select};

use super::Log;
use crate::crash::PlantedBug;
use crate::log::Lsn;
use crate::log::filling::Group;
use crate::log::segment::LogSegment;
use crate::written::Purpose;
use crate::{Error, ErrorKind, Result};

/// Longest wait of a segment for space on its class.
const MAX_SPACE_WAIT: Duration = Duration::from_secs(1);
/// Interval at which a waiting segment checks for space.
const SPACE_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Idle time after which the log records that its contents are durable.
const CONFIRM_DELAY: Duration = Duration::from_millis(250);

/// Patience of the log for space on its class. It waits again only after space has appeared once: in a full volume each
/// segment would take that long.
#[derive(Debug, Default)]
struct Patience {
    waited: Duration,
    was_in_vain: bool,
}

impl Patience {
    /// Returns whether the next segment waits until it is looked once more, given whether there is too little space,
    /// and more is on its way.
    fn waits(&mut self, room_comes: bool) -> bool {
        let waits = room_comes && !self.was_in_vain && self.waited < MAX_SPACE_WAIT;
        if waits {
            self.waited += SPACE_POLL_INTERVAL;
        } else {
            *self = Patience { waited: Duration::ZERO, was_in_vain: room_comes };
        }
        waits
    }
}

/// The next step of the writing task.
enum Next {
    /// Write these groups; make everything up to the position durable then, if there is one.
    Write(Vec<Group>, Option<Lsn>),
    /// Confirm what is there, unless something comes before.
    Confirm,
    /// Nothing before this time, if there is one.
    Wait(Option<Duration>),
    End,
}

impl Log {
    fn next(&self, now: Duration) -> Next {
        let mut state = self.state.lock();
        if state.failed.is_some() {
            state.has_ended = true;
            return Next::End;
        }
        let durable = state.durable;
        let is_due = state.wanted.deadline.is_some_and(|(deadline, _)| deadline <= now);
        let is_wanted = state.wanted.waiters.last_key_value().is_some_and(|((lsn, _), _)| *lsn > durable);
        if is_due || is_wanted {
            self.close_group(&mut state);
            state.wanted.deadline = None;
        }
        let sync_to = ((is_due || is_wanted) && state.end > durable).then_some(state.end);
        if !state.closed.is_empty() || sync_to.is_some() {
            let groups = state.closed.drain(..).collect();
            return Next::Write(groups, sync_to);
        }
        if state.is_closing {
            state.has_ended = true;
            return Next::End;
        }
        match state.wanted.deadline {
            Some((deadline, _)) => Next::Wait(Some(deadline)),
            None if state.durable >= state.end && state.confirmed < state.end => Next::Confirm,
            None => Next::Wait(None),
        }
    }

    /// Writes groups; those of one segment are noted as written there.
    async fn write(&self, groups: Vec<Group>, dirty: &mut Vec<LogSegment>) -> Result<()> {
        for group in &groups {
            if dirty.last().is_none_or(|segment| segment.no != group.segment.no) {
                dirty.push(group.segment.clone());
            }
        }
        // CRASH: nobody was told that any of it is durable.
        self.crash.reached("log.before-write");
        let writes = groups.into_iter().map(|group| async move {
            let Group { segment, offset, buffer, .. } = group;
            let bytes = buffer.len() as u64;
            let written = segment.object.write(offset, buffer).await.map(drop);
            if written.is_ok() {
                self.objects.note_written(Purpose::Log, &segment.object, offset, bytes);
            }
            (bytes, written.map_err(|error| Error::volume("cannot write the log", &error)))
        });
        let written = join_all(writes).await;
        let bytes: u64 = written.iter().map(|(bytes, _)| bytes).sum();
        self.counters.groups.add(written.len() as u64);
        let without_room = {
            let mut state = self.state.lock();
            state.closed_bytes -= bytes;
            std::mem::take(&mut state.wanted.without_room)
        };
        drop(without_room);
        written.into_iter().try_for_each(|(_, written)| written)
    }

    async fn make_durable(&self, end: Lsn, dirty: &mut Vec<LogSegment>) -> Result<()> {
        // CRASH: as before; any part of what was written may be there, and a replay ends at the first frame that is
        // not.
        self.crash.reached("log.before-sync");
        if self.crash.has(PlantedBug::AcknowledgeBeforeSync) {
            self.tell(end);
        }
        let syncs = dirty.drain(..).map(|segment| async move {
            segment.object.sync().await.map_err(|error| Error::volume("cannot sync the log", &error))
        });
        join_all(syncs).await.into_iter().collect::<Result<()>>()?;
        self.counters.syncs.add(1);
        // CRASH: it is durable, and nobody knows: as if the acknowledgements had been lost.
        self.crash.reached("log.after-sync");
        self.tell(end);
        Ok(())
    }

    /// Tells those who wait that the log is durable up to `end`.
    fn tell(&self, end: Lsn) {
        let told = {
            let mut state = self.state.lock();
            state.durable = state.durable.max(end);
            let later = state.wanted.waiters.split_off(&(end + 1, 0));
            std::mem::replace(&mut state.wanted.waiters, later)
        };
        for (_, waiter) in told {
            let _ = waiter.send(Ok(()));
        }
    }
}

/// A task of a log. If it goes before its end, by a panic, with its executor or without ever having run, the log has
/// failed: nobody is to wait for it.
struct Running {
    log: Arc<Log>,
    has_ended: bool,
}

impl Running {
    fn begin(log: Arc<Log>) -> Running {
        Running { log, has_ended: false }
    }

    fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended {
            self.log.fail(&Error::new(ErrorKind::Closed, "a task of the log has gone"));
        }
    }
}

/// The task that writes.
pub(super) fn write_groups(log: Arc<Log>) -> impl Future<Output = ()> + Send {
    let running = Running::begin(log);
    async move {
        running.log.write_groups().await;
        running.log.kept.lock().take();
        running.end();
    }
}

/// The task that prepares segments ahead.
pub(super) fn prepare_segments(log: Arc<Log>) -> impl Future<Output = ()> + Send {
    let running = Running::begin(log);
    async move {
        running.log.prepare_segments().await;
        running.end();
    }
}

impl Log {
    async fn write_groups(&self) {
        let mut dirty = Vec::new();
        loop {
            let noticed = self.work.notified();
            match self.next(self.environment.now()) {
                Next::Write(groups, sync_to) => {
                    let mut done = self.write(groups, &mut dirty).await;
                    if let (Ok(()), Some(end)) = (&done, sync_to) {
                        done = self.make_durable(end, &mut dirty).await;
                    }
                    if let Err(error) = done {
                        self.fail(&error);
                    }
                }
                Next::Confirm => {
                    let slept = self.environment.sleep(CONFIRM_DELAY);
                    if let Either::Right(_) = select(Box::pin(noticed), slept).await {
                        self.confirm();
                    }
                }
                Next::Wait(None) => noticed.await,
                Next::Wait(Some(deadline)) => {
                    let left = deadline.saturating_sub(self.environment.now());
                    let slept = self.environment.sleep(left);
                    drop(select(Box::pin(noticed), slept).await);
                }
                Next::End => return,
            }
        }
    }

    /// Returns whether the class has too little space for a segment of `bytes`, and will have more. As much again is
    /// left to the keys that are flushed meanwhile.
    fn room_comes(&self, class: Option<&str>, bytes: u64) -> bool {
        if !self.classes.log_comes_free() {
            return false;
        }
        let volume = self.objects.volume();
        let classes = volume.classes();
        let class = classes.iter().find(|info| Some(info.name.as_str()) == class);
        class.is_some_and(|class| class.free().saturating_mul(volume.chunk_bytes()) < 2 * bytes)
    }

    async fn prepare_segments(&self) {
        let mut patience = Patience::default();
        loop {
            let noticed = self.prepare.notified();
            // The last chunks are not for what nobody waits for.
            let is_for_later = self.objects.have_hardly_room();
            let wanted = {
                let state = self.state.lock();
                if state.is_closing || state.failed.is_some() {
                    return;
                }
                let is_missing = state.prepared.is_none() && state.prepare_error.is_none();
                let is_wanted = is_missing && (!is_for_later || !state.wanted.without_room.is_empty());
                is_wanted.then_some((state.next_bytes, state.wanted_bytes.max(self.options.group_bytes)))
            };
            let Some((bytes, least)) = wanted else {
                noticed.await;
                continue;
            };
            // The reserve for deletes has space for a few small segments.
            let bytes = if self.objects.is_short() { least } else { bytes };
            let class = self.classes.of_log();
            if patience.waits(self.room_comes(class.as_deref(), bytes)) {
                self.environment.sleep(SPACE_POLL_INTERVAL).await;
                continue;
            }
            let mut prepared = LogSegment::prepare(&self.objects, class.as_deref(), bytes).await;
            if bytes > least && prepared.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
                prepared = LogSegment::prepare(&self.objects, class.as_deref(), least).await;
            }
            self.objects.look_at_room();
            // CRASH: nothing leads to the segment; the next opening deletes it.
            self.crash.reached("log.after-prepare");
            let without_room = {
                let mut state = self.state.lock();
                match prepared {
                    // Or smaller ones are wanted since it was begun.
                    Ok(segment) if state.is_closing || bytes > state.next_bytes.max(least) => {
                        segment.lease.retire();
                    }
                    Ok(segment) => state.prepared = Some(segment),
                    // Callers that need the space get the error and ask again later.
                    Err(error) => state.prepare_error = Some(error),
                }
                std::mem::take(&mut state.wanted.without_room)
            };
            drop(without_room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of the segments of a full volume took a second, in which nothing else was done.
    #[test]
    fn room_that_did_not_come_is_waited_for_when_there_was_some_again() {
        let mut patience = Patience::default();
        let most = (MAX_SPACE_WAIT.as_micros() / SPACE_POLL_INTERVAL.as_micros()) as usize;
        let mut waits_of = |looks: &[bool]| looks.iter().filter(|comes| patience.waits(**comes)).count();
        assert_eq!(waits_of(&[true; 10]), 10);
        assert_eq!(waits_of(&[false]), 0, "it came");
        assert_eq!(waits_of(&vec![true; 3 * most]), most);
        assert_eq!(waits_of(&[true; 10]), 0);
        assert_eq!(waits_of(&[false, true, true]), 2);
    }
}
