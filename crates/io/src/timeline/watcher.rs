//! A thread that tries again: where a jump is due and only a foreign thread still runs, nobody else would notice when
//! it falls asleep.
//!
//! Started when it is first needed. It looks after a pause that doubles, so a long computation costs little; a thread
//! that says it goes to sleep shortens the pause.

use std::sync::Once;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::virtually;

const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_micros(500);

static WANTED: Mutex<bool> = Mutex::new(false);
static WANT: Condvar = Condvar::new();

/// Has somebody look again soon.
pub(super) fn look_again() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let spawned = std::thread::Builder::new().name("tanada-timeline".to_owned()).spawn(watch);
        if let Err(error) = spawned {
            // Virtual time would stand still for ever: a process that cannot start one thread is at its end anyway.
            panic!("cannot start the thread of virtual time: {error}");
        }
    });
    let mut wanted = WANTED.lock();
    if !*wanted {
        *wanted = true;
        WANT.notify_one();
    }
}

fn watch() {
    super::cpu::sleep_precisely();
    loop {
        let mut wanted = WANTED.lock();
        while !*wanted {
            WANT.wait(&mut wanted);
        }
        *wanted = false;
        drop(wanted);
        let mut pause = FIRST_PAUSE;
        while virtually::jump_all() {
            let mut wanted = WANTED.lock();
            WANT.wait_for(&mut wanted, pause);
            pause = if std::mem::take(&mut *wanted) { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        }
    }
}
