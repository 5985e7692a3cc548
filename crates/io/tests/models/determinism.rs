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
