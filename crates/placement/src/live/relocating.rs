//! The task that carries out what a policy wants.
//!
//! 1. It asks for the next wish, [`COPIES`] of them at once, and tells what came of each.
//! 2. Where there is none it sleeps until it is woken, or until the policy has to think.
//! 3. When placement is stopped, copies under way come to their end; when it is gone they are given up, and their
//!    chunks stay where they are.

use std::pin::pin;
use std::sync::Weak;
use std::time::Duration;

use async_channel::Receiver;
use futures::StreamExt;
use futures::future::{Either, pending, select};
use futures::stream::FuturesUnordered;
use tanada_io::Timeline;

use super::Settled;
use crate::{Wish, WishOutcome};

/// Chunks that are copied at once.
const COPIES: usize = 4;

/// What is to be done next.
#[derive(Debug)]
pub enum Next {
    /// This wish, of the policy of this generation.
    Wish(Box<Wish>, u64),
    /// Nothing before so much time has passed.
    Later(Duration),
    /// Nothing until something happens.
    Nothing,
}

/// Placement that has its wishes carried out.
pub trait Steered {
    /// Lets the policy think; its next wish.
    fn next(&self) -> Next;
    /// Tells the policy of that generation what came of a wish.
    fn finish(&self, wish: Wish, outcome: WishOutcome, generation: u64);
    /// Whose time it is.
    fn timeline(&self) -> &Timeline;
    /// Those who wait until nothing is left to do.
    fn settled(&self) -> &Settled;
}

/// Carries out wishes until placement is gone or nobody can wake this any more. Runs on an executor.
pub async fn relocate<S: Steered>(steered: Weak<S>, woken: Receiver<()>) {
    let mut running = FuturesUnordered::new();
    loop {
        let Some(placement) = steered.upgrade() else { return };
        let mut pause = None;
        placement.settled().let_go_if(|| {
            while running.len() < COPIES {
                match placement.next() {
                    Next::Wish(wish, generation) => running.push(async move {
                        let outcome = wish.run().await;
                        (wish, outcome, generation)
                    }),
                    Next::Later(until) => {
                        pause = Some(placement.timeline().sleep(until));
                        break;
                    }
                    Next::Nothing => break,
                }
            }
            running.is_empty() && pause.is_none()
        });
        // Whoever drops placement while this waits ends it.
        drop(placement);
        let done = async { if running.is_empty() { pending().await } else { running.next().await } };
        let paused = async {
            match pause {
                Some(pause) => pause.await,
                None => pending().await,
            }
        };
        let (done, paused, woken) = (pin!(done), pin!(paused), pin!(woken.recv()));
        match select(woken, select(done, paused)).await {
            Either::Left((Err(_), _)) => break,
            Either::Right((Either::Left((Some((wish, outcome, generation)), _)), _)) => {
                if let Some(placement) = steered.upgrade() {
                    placement.finish(*wish, outcome, generation);
                }
            }
            // Woken, the pause is over, or the last copy has gone: whatever is next.
            _ => {}
        }
    }
    // Who brought a chunk is remembered, so it has to be known whether it came.
    while let Some((wish, outcome, generation)) = running.next().await {
        let Some(placement) = steered.upgrade() else { return };
        placement.finish(*wish, outcome, generation);
    }
}
