//! What emulation costs, and whether virtual time agrees with real time. Prints; asserts nothing.
//!
//! 1. 1,024 emulated disks with 4,096 I/Os in flight in real time, over a device below that answers at once: all CPU
//!    time of the process is the executors' and the model's. Half a core is the bar.
//! 2. The same random reads of emulated devices in real time and in virtual time, over such a device.
//! 3. The same over a file in the folder for temporary files, by io_uring.
//!
//! `cargo bench -p tanada-io --bench models`; a number behind `--` sets the seconds of each run.

use std::cell::Cell;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tanada_base::SplitMix64;
use tanada_io::{
    Backend, Completion, Device, DeviceOptions, ExecutorOptions, Executors, Method, ModelSpec, Request,
    Ticket, Timeline, VirtualTimeOptions,
};

const PAGE: u64 = 16384;

/// A device below that takes no time and has no bytes.
#[derive(Debug)]
struct Immediate {
    size_bytes: u64,
}

impl Backend for Immediate {
    fn path(&self) -> &Path {
        Path::new("immediate")
    }
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }
    fn method(&self) -> Method {
        Method::Uring
    }
    fn alignment(&self) -> usize {
        1
    }
    fn start(&self, request: Request, completion: Completion) -> Ticket {
        completion.complete(Ok(request.len as usize), request.buffer);
        Ticket::default()
    }
}

/// CPU time of the whole process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name: the state, ten more, then ticks in user and in kernel mode.
    let ticks = |no| -> u64 {
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace());
        fields.and_then(|mut fields| fields.nth(no)?.parse().ok()).unwrap_or(0)
    };
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

struct Run {
    ios: u64,
    took: Duration,
}

impl Run {
    fn iops(&self) -> f64 {
        self.ios as f64 / self.took.as_secs_f64()
    }
}

/// Random reads by `depth` tasks for `time` by the timeline's clock.
fn random_reads(
    executors: &Executors,
    timeline: &Timeline,
    device: &Device,
    depth: u64,
    time: Duration,
) -> Run {
    let (device, pool, clock) = (device.clone(), executors.buffers().clone(), timeline.clock());
    let pages = device.size_bytes().expect("a size") / PAGE;
    let run = executors.block_on(move || async move {
        let ios = Rc::new(Cell::new(0));
        let began = clock.now();
        let tasks = (0..depth).map(|task| {
            let (device, pool, clock, ios) = (device.clone(), pool.clone(), clock.clone(), ios.clone());
            tanada_io::spawn_local(async move {
                let mut random = SplitMix64::new(task);
                let mut buffer = pool.allocate(512);
                while clock.now() - began < time {
                    let place = random.below(pages) * PAGE;
                    buffer = device.read(place, buffer).await.expect("a read");
                    ios.set(ios.get() + 1);
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await;
        }
        Run { ios: ios.get(), took: clock.now() - began }
    });
    run.expect("no panic")
}

fn executors() -> Arc<Executors> {
    Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() }).expect("an executor")
}

fn overhead(seconds: u64) {
    let executors = executors();
    let timeline = Timeline::real();
    let model: ModelSpec = "1024xhdd-7200".parse().expect("a model");
    let below = || Device::from_backend(Immediate { size_bytes: 1 << 40 });
    let device = timeline.model(below(), &model, 1).expect("a device");
    for _ in 0..3 {
        let (began, before) = (Instant::now(), cpu());
        let run = random_reads(&executors, &timeline, &device, 4096, Duration::from_secs(seconds));
        let (took, used) = (began.elapsed(), cpu() - before);
        println!(
            "{model}, 4096 in flight, real time: {:.0} IOPS, {:.2} cores in all, {:.2} us an I/O",
            run.iops(),
            used.as_secs_f64() / took.as_secs_f64(),
            used.as_secs_f64() * 1e6 / run.ios as f64
        );
        let before = cpu();
        let bare = random_reads(&executors, &timeline, &below(), 1, Duration::from_secs(1));
        let us = (cpu() - before).as_secs_f64() * 1e6 / bare.ios as f64;
        println!(
            "  the same loop without a model: {us:.2} us an I/O; so the model costs {:.2} cores",
            (used.as_secs_f64() - us * run.ios as f64 / 1e6) / took.as_secs_f64()
        );
    }
}

/// Random reads in real time and in virtual time.
fn compare(model: &str, depth: u64, seconds: u64, below: &dyn Fn() -> Device) {
    let executors = executors();
    let spec: ModelSpec = model.parse().expect("a model");
    let run = |timeline: Timeline| {
        let device = timeline.model(below(), &spec, 1).expect("a device");
        random_reads(&executors, &timeline, &device, depth, Duration::from_secs(seconds)).iops()
    };
    let real = run(Timeline::real());
    let began = Instant::now();
    let virtually = run(Timeline::virtual_time(VirtualTimeOptions::default()));
    let took = began.elapsed().as_secs_f64();
    let without_cpu = run(Timeline::virtual_time(VirtualTimeOptions { cpu: false }));
    println!(
        "{model} depth {depth}: {real:.0} IOPS in real time, {virtually:.0} in virtual time ({:.3}, took {took:.2} s), {without_cpu:.0} \
         without CPU time",
        virtually / real,
    );
}

fn over_a_file(seconds: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let bytes: Vec<u8> = (0..64 << 20).map(|no: u32| (no >> 9) as u8).collect();
    let mut file = std::fs::File::create(&path).expect("a file");
    for _ in 0..16 {
        file.write_all(&bytes).expect("room for 1 GiB");
    }
    file.sync_all().expect("a sync");
    let below = || Device::open(&path, &DeviceOptions::default()).expect("a device");
    println!("over a file of 1 GiB, {:?}:", below().method());
    for (model, depth) in [("8xhdd-7200", 1), ("8xhdd-7200", 64), ("8xhdd-7200", 256), ("64xhdd-7200", 1024)]
    {
        compare(model, depth, seconds, &below);
    }
}

fn agreement(seconds: u64) {
    for (model, depth) in [
        ("hdd-7200", 1),
        ("hdd-7200", 32),
        ("8xhdd-7200", 1),
        ("8xhdd-7200", 64),
        ("8xhdd-7200", 256),
        ("sata-qlc", 16),
        ("nvme", 1),
        ("nvme", 16),
    ] {
        compare(model, depth, seconds, &|| Device::from_backend(Immediate { size_bytes: 8 << 30 }));
    }
}

fn main() {
    let seconds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(3);
    overhead(seconds);
    agreement(seconds);
    over_a_file(seconds);
}
