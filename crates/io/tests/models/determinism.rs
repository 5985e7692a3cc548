//! Without CPU time, one executor's completions come in the same order, at the same times, in every run.

use tanada_io::Method;

use crate::{executors, numbered_files, open, random_reads, spec, virtual_time};

#[test]
fn completions_come_in_the_same_order_at_the_same_times() {
    let (_folder, paths) = numbered_files(1, 1024);
    for (model, depth) in [("8xhdd-7200", 1), ("8xhdd-7200", 64), ("4xnvme", 16)] {
        let run = |seed| {
            let (executors, timeline) = (executors(1), virtual_time(false));
            let device = timeline.model(open(&paths[0], Method::Uring, false), &spec(model), seed).unwrap();
            random_reads(&executors, &timeline, &device, depth, 640)
        };
        let first = run(1);
        assert_eq!(first.1.len(), 640);
        // No assert_eq: a difference would be printed as thousands of numbers.
        let again = run(1);
        let differs = first.1.iter().zip(&again.1).position(|(one, other)| one != other);
        assert_eq!((differs, first.0), (None, again.0), "{model} at depth {depth}");
        assert_ne!(first.0, run(2).0, "{model} at depth {depth}");
    }
}

/// Executors that fall asleep and wake up all the time, for I/O in a time of their own, look for jumps all the time:
/// they must not take a task that was woken and has not run yet for idleness.
#[test]
fn spurious_wakeups_do_not_advance_virtual_time() {
    let (_folder, paths) = numbered_files(1, 1024);
    let run = |restless: bool| {
        let (executors, timeline) = (executors(1), virtual_time(false));
        let device = timeline.model(open(&paths[0], Method::Uring, false), &spec("8xnvme"), 1).unwrap();
        let others = crate::executors(2);
        let array = virtual_time(false).array(&spec("8xnvme"), 2);
        let tasks = (0..32 * u64::from(restless)).map(|task| {
            let device = array.place(open(&paths[0], Method::Uring, false)).unwrap();
            let pool = others.buffers().clone();
            others.spawn_on(task as usize, move || async move {
                for no in 0.. {
                    let page = (task * 97 + no * 389) % 1024;
                    device.read(page * crate::PAGE, pool.allocate(4096)).await.unwrap();
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let traced = random_reads(&executors, &timeline, &device, 64, 6400);
        drop(tasks);
        traced
    };
    let quiet = run(false);
    let restless = run(true);
    let differs = quiet.1.iter().zip(&restless.1).position(|(one, other)| one != other);
    assert_eq!((differs, quiet.0), (None, restless.0));
}
