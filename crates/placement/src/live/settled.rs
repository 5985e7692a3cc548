//! Those who wait until nothing is left to do.
//!
//! Invariant: who is let go has waited since before it was looked whether something is left, so that whatever happened
//! before he began to wait was seen.

use futures::channel::oneshot;
use parking_lot::Mutex;

/// Those who wait.
#[derive(Debug, Default)]
pub struct Settled(Mutex<Vec<oneshot::Sender<()>>>);

impl Settled {
    /// A further one; he goes on when this comes to its end.
    pub fn wait(&self) -> oneshot::Receiver<()> {
        let (sender, settled) = oneshot::channel();
        self.0.lock().push(sender);
        settled
    }

    /// Lets those go who wait by now, if `look` finds nothing left to do.
    pub fn let_go_if(&self, look: impl FnOnce() -> bool) {
        let waiting = std::mem::take(&mut *self.0.lock());
        if look() {
            for one in waiting {
                // Whoever no longer waits does not mind.
                let _ = one.send(());
            }
        } else {
            self.0.lock().extend(waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// He was let go by a look that was over when his query ended.
    #[test]
    fn a_waiter_registered_during_a_check_waits_for_the_next() {
        let settled = Settled::default();
        let (mut first, mut second) = (settled.wait(), None);
        settled.let_go_if(|| false);
        assert_eq!(first.try_recv(), Ok(None));
        settled.let_go_if(|| {
            second = Some(settled.wait());
            true
        });
        let mut second = second.unwrap();
        assert_eq!((first.try_recv(), second.try_recv()), (Ok(Some(())), Ok(None)));
        settled.let_go_if(|| true);
        assert_eq!(second.try_recv(), Ok(Some(())));
    }
}
