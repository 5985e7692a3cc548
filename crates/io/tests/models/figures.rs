//! Virtual time gives the model's figures through the whole stack: executor, device, file.

use tanada_io::{Gate, GateLimits, IoContext, Method, Timeline};

use crate::{PAGE, executors, numbered_files, open, random_reads, spec, virtual_time};

fn iops(model: &str, depth: u64, ios: u64) -> f64 {
    let (_folder, paths) = numbered_files(1, 4096);
    let (executors, timeline) = (executors(1), virtual_time(false));
    let device = timeline.model(open(&paths[0], Method::Uring, false), &spec(model), 1).unwrap();
    let (took, _) = random_reads(&executors, &timeline, &device, depth, ios);
    ios as f64 / took.as_secs_f64()
}

#[test]
fn eight_disks_reach_ten_times_the_iops_of_one() {
    let alone = iops("hdd-7200", 1, 300);
    assert!((115.0..155.0).contains(&alone), "{alone}");
    let in_order = iops("8xhdd-7200", 1, 300);
    assert!((115.0..155.0).contains(&in_order), "one I/O at a time keeps one disk busy: {in_order}");
    let out_of_order = iops("8xhdd-7200", 256, 256 * 16);
    assert!(out_of_order > 10.0 * in_order, "{out_of_order} to {in_order}");
}

#[test]
fn files_of_one_array_share_its_spindles() {
    let (_folder, paths) = numbered_files(2, 1024);
    let took = |shared: bool| {
        let (executors, timeline) = (executors(1), virtual_time(false));
        let first = timeline.array(&spec("hdd-7200"), 1);
        let second = if shared { first.clone() } else { timeline.array(&spec("hdd-7200"), 2) };
        let place = |array: &tanada_io::ModelledArray, no: usize| {
            array.place(open(&paths[no], Method::Uring, false)).unwrap()
        };
        let devices = [place(&first, 0), place(&second, 1)];
        let (pool, clock) = (executors.buffers().clone(), timeline.clock());
        executors
            .block_on(move || async move {
                let began = clock.now();
                let readers = devices.into_iter().map(|device| {
                    let pool = pool.clone();
                    tanada_io::spawn_local(async move {
                        for no in 0..100 {
                            device.read(no * 389 % 1024 * PAGE, pool.allocate(PAGE as usize)).await.unwrap();
                        }
                    })
                });
                futures::future::join_all(readers.collect::<Vec<_>>()).await;
                clock.now() - began
            })
            .unwrap()
    };
    let (shared, apart) = (took(true), took(false));
    assert!(shared > apart * 3 / 2, "{shared:?} to {apart:?}");
}

#[test]
fn counters_measure_in_virtual_time() {
    let (_folder, paths) = numbered_files(1, 1024);
    let (executors, timeline) = (executors(1), virtual_time(false));
    let device = timeline.model(open(&paths[0], Method::Uring, false), &spec("hdd-7200"), 1).unwrap();
    let context =
        IoContext::new(Gate::new(GateLimits { ios: Some(1), bytes: 1 << 20 })).on_timeline(&timeline);
    let (counted, pool) = (context.clone(), executors.buffers().clone());
    executors
        .block_on(move || async move {
            for no in 0..50 {
                context.read(&device, no * 389 % 1024 * PAGE, pool.allocate(PAGE as usize)).await.unwrap();
            }
        })
        .unwrap();
    let counted = counted.counters().snapshot();
    assert_eq!((counted.ios, counted.depth_max, counted.depth_mean), (50, 1, 1.0));
    assert_eq!(counted.wait.as_nanos(), timeline.clock().now().as_nanos());
    assert!(counted.wait.as_millis() > 100, "{:?}", counted.wait);
}

#[test]
fn the_newest_timeline_is_the_current_one_while_it_lives() {
    // Other tests have theirs at the same time; so only what must hold all the same.
    let timeline = virtual_time(true);
    assert!(Timeline::current_virtual().is_some_and(|current| current.is_virtual()));
    assert!(timeline.is_virtual() && !Timeline::real().is_virtual());
}
