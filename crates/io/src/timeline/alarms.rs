//! Who sleeps on a timeline. In virtual time the clock jumps to the next alarm as it does to a model's next event; in
//! real time one thread of the process sleeps until the next is due.
//!
//! Invariant: who has not been woken and still waits is in `wake`; what is in `due` only is of sleepers that were
//! dropped.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use futures::channel::oneshot;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::real;
use crate::model::Nanos;

/// Sleepers of one clock: the earliest first, and by number among those that are due at once.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    due: BinaryHeap<Reverse<(Nanos, u64)>>,
    wake: HashMap<u64, oneshot::Sender<()>>,
    count: u64,
}

impl Alarms {
    /// Has somebody woken at `at`.
    fn set(&mut self, at: Nanos) -> oneshot::Receiver<()> {
        let (send, receive) = oneshot::channel();
        self.count += 1;
        self.due.push(Reverse((at, self.count)));
        self.wake.insert(self.count, send);
        receive
    }

    /// When the next is due. Who has been dropped is due no more.
    fn next(&mut self) -> Option<Nanos> {
        while let Some(Reverse((at, no))) = self.due.peek() {
            if self.wake.get(no).is_some_and(|sleeper| !sleeper.is_canceled()) {
                return Some(*at);
            }
            self.wake.remove(no);
            self.due.pop();
        }
        None
    }

    /// Takes one that is due at `now`.
    fn take(&mut self, now: Nanos) -> Option<oneshot::Sender<()>> {
        self.next().filter(|at| *at <= now)?;
        let Reverse((_, no)) = self.due.pop()?;
        self.wake.remove(&no)
    }
}

/// The alarms of a virtual clock.
#[derive(Debug, Default)]
pub(super) struct VirtualAlarms(Mutex<Alarms>);

impl VirtualAlarms {
    pub(super) fn set(&self, at: Nanos) -> oneshot::Receiver<()> {
        self.0.lock().set(at)
    }

    pub(super) fn next(&self) -> Option<Nanos> {
        self.0.lock().next()
    }

    /// Wakes all that are due.
    pub(super) fn ring(&self, now: Nanos) {
        loop {
            // Whoever is woken may run right here.
            let Some(sleeper) = self.0.lock().take(now) else { return };
            let _ = sleeper.send(());
        }
    }
}

static ALARMS: Mutex<Option<Alarms>> = Mutex::new(None);
static EARLIER: Condvar = Condvar::new();

/// Has somebody woken after `duration` of the machine's time; `None` if there can be no thread for it.
pub(super) fn set_real(duration: Duration) -> Option<oneshot::Receiver<()>> {
    static STARTED: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
        let thread = std::thread::Builder::new().name("tanada-alarms".to_owned());
        thread.spawn(serve).is_ok()
    });
    if !*STARTED {
        return None;
    }
    let at = real::now().saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    let mut alarms = ALARMS.lock();
    let alarms = alarms.get_or_insert_default();
    let is_first = alarms.next().is_none_or(|next| at < next);
    let receive = alarms.set(at);
    if is_first {
        EARLIER.notify_one();
    }
    Some(receive)
}

fn serve() {
    let mut guard = ALARMS.lock();
    loop {
        let now = real::now();
        let alarms = guard.get_or_insert_default();
        if let Some(sleeper) = alarms.take(now) {
            // Whoever is woken may run right here.
            let _ = MutexGuard::unlocked(&mut guard, || sleeper.send(()));
            continue;
        }
        match alarms.next() {
            Some(at) => drop(EARLIER.wait_for(&mut guard, Duration::from_nanos(at - now))),
            None => EARLIER.wait(&mut guard),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::future::join;

    use crate::Timeline;

    use super::*;

    #[test]
    fn alarms_wake_in_the_order_of_their_times() {
        let order = Mutex::new(Vec::new());
        let timeline = Timeline::real();
        let sleep = |ms| {
            let (order, timeline) = (&order, &timeline);
            async move {
                timeline.sleep(Duration::from_millis(ms)).await;
                order.lock().push(ms);
            }
        };
        // One that nobody waits for is in nobody's way.
        drop(timeline.sleep(Duration::from_millis(1)));
        // Far enough apart for a machine that stands still for a while.
        block_on(join(join(sleep(1200), sleep(5)), sleep(400)));
        assert_eq!(*order.lock(), [5, 400, 1200]);
    }

    #[test]
    fn dropped_alarms_are_not_waited_for() {
        let mut alarms = Alarms::default();
        drop(alarms.set(5));
        let stays = alarms.set(7);
        assert_eq!(alarms.next(), Some(7));
        assert!(alarms.take(6).is_none() && alarms.take(7).is_some());
        drop(stays);
        assert_eq!((alarms.next(), alarms.wake.len()), (None, 0));
    }
}
