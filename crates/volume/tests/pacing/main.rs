//! Moves beside foreground reads: what both reach on emulated devices, in virtual time. The devices keep no bytes, so
//! only the models take time, and every run is the same.
//!
//! With `--nocapture` the figures are printed.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{Either, select};
use parking_lot::Mutex;
use tanada_base::SplitMix64;
use tanada_io::{
    Backend, BufferPool, Completion, Device, ExecutorOptions, Executors, Method, Request, Ticket, Timeline,
    VirtualTimeOptions, spawn_local,
};
use tanada_volume::{
    Attributes, ClassSettings, Object, Parts, Relocated, Relocation, Volume, VolumeSettings,
};

const MIB: u64 = 1 << 20;
/// Chunks of the object that moves.
const MOVED: u64 = 1000;
/// Moves beside the foreground last so long at most.
const MOVING: Duration = Duration::from_secs(20);
/// Bytes that the foreground reads.
const STILL_BYTES: u64 = 256 * MIB;
const BLOCK_BYTES: u64 = 16 << 10;

/// A device below a model that takes no time and has no bytes.
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
        Method::Buffered
    }
    fn alignment(&self) -> usize {
        1
    }
    fn start(&self, request: Request, completion: Completion) -> Ticket {
        completion.complete(Ok(request.len as usize), request.buffer);
        Ticket::default()
    }
}

/// Two classes, what of them the foreground reads, and how many reads it has in flight.
#[derive(Debug, Clone, Copy)]
struct Case {
    fast: &'static str,
    slow: &'static str,
    reads: &'static str,
    depth: u64,
}

/// What a case came to.
#[derive(Debug, Clone, Copy)]
struct Reached {
    /// Moves alone, bytes a second, to the fast class and back.
    alone: [f64; 2],
    /// Moves beside the foreground.
    beside: [f64; 2],
    /// The part of its reads that the foreground loses meanwhile.
    loss: [f64; 2],
}

struct Scene {
    timeline: Timeline,
    pool: Arc<BufferPool>,
    moved: Object,
    still: Object,
    volume: Volume,
}

impl Scene {
    async fn new(case: Case, timeline: Timeline, pool: Arc<BufferPool>) -> Scene {
        let size_bytes = (MOVED + 600) * MIB;
        let mut parts = Parts::new(Device::from_backend(Immediate { size_bytes: 1 << 40 }));
        parts.buffers = pool.clone();
        parts.clock = timeline.clock();
        parts.timer = Some(Arc::new(timeline.clone()));
        let mut settings = VolumeSettings { id: [1; 16], ..VolumeSettings::default() };
        for (no, (name, model)) in [("fast", case.fast), ("slow", case.slow)].into_iter().enumerate() {
            let below = Device::from_backend(Immediate { size_bytes: size_bytes + 8 * MIB });
            let device = timeline.model(below, &model.parse().unwrap(), no as u64).unwrap();
            parts = parts.with_class(name, vec![device]);
            settings.classes.push(ClassSettings {
                name: name.to_owned(),
                size_bytes,
                ..ClassSettings::default()
            });
        }
        let volume = Volume::create(parts, &settings).await.unwrap();
        let create = |name: &'static str, class: &'static str, bytes: u64| {
            let (volume, pool) = (volume.clone(), pool.clone());
            async move {
                let attributes = Attributes { class: Some(class.to_owned()), ..Attributes::default() };
                let object = volume.create_object(name, &attributes).unwrap();
                let mut buffer = pool.allocate(MIB as usize);
                for chunk in 0..bytes / MIB {
                    buffer = object.write(chunk * MIB, buffer).await.unwrap();
                }
                object.sync().await.unwrap();
                object
            }
        };
        let moved = create("moved", "slow", MOVED * MIB).await;
        let still = create("still", case.reads, STILL_BYTES).await;
        Scene { timeline, pool, moved, still, volume }
    }

    /// Random reads of what stays until `is_over`; how many.
    async fn read(&self, depth: u64, seed: u64, is_over: &Rc<Cell<bool>>) -> u64 {
        let tasks: Vec<_> = (0..depth)
            .map(|task| {
                let (still, pool, is_over) = (self.still.clone(), self.pool.clone(), is_over.clone());
                spawn_local(async move {
                    let mut random = SplitMix64::new(seed << 16 | task);
                    let (mut buffer, mut reads) = (pool.allocate(BLOCK_BYTES as usize), 0);
                    while !is_over.get() {
                        let offset = random.below(STILL_BYTES / BLOCK_BYTES) * BLOCK_BYTES;
                        buffer = still.read(offset, buffer).await.unwrap();
                        reads += 1;
                    }
                    reads
                })
            })
            .collect();
        let mut reads = 0;
        for task in tasks {
            reads += task.await;
        }
        reads
    }

    /// Reads for some time; how many a second.
    async fn read_alone(&self, depth: u64) -> f64 {
        let is_over = Rc::new(Cell::new(false));
        let (timer, over) = (self.timeline.clone(), is_over.clone());
        let began = self.timeline.clock().now();
        let end = spawn_local(async move {
            timer.sleep(Duration::from_secs(2)).await;
            over.set(true);
        });
        let reads = self.read(depth, 1, &is_over).await;
        end.await;
        reads as f64 / (self.timeline.clock().now() - began).as_secs_f64()
    }

    /// Moves chunks for [`MOVING`] or until all are moved, with so many reads beside; bytes a second, and reads a
    /// second.
    async fn move_all(&self, class: &'static str, depth: u64) -> (f64, f64) {
        let is_over = Rc::new(Cell::new(false));
        let (moved, over, timeline) = (self.moved.clone(), is_over.clone(), self.timeline.clone());
        let clock = self.timeline.clock();
        let began = clock.now();
        let mover = spawn_local(async move {
            let clock = timeline.clock();
            let began = clock.now();
            let bytes = Arc::new(AtomicU64::new(0));
            let counted = bytes.clone();
            let progress = move |report: &Relocated| counted.store(report.bytes, Ordering::Relaxed);
            let relocation = Relocation { progress: Some(Arc::new(progress)), ..Relocation::default() };
            let moving = pin!(moved.move_to(0..MOVED, class, &relocation));
            if let Either::Left((report, _)) = select(moving, pin!(timeline.sleep(MOVING))).await {
                report.unwrap();
            }
            over.set(true);
            bytes.load(Ordering::Relaxed) as f64 / (clock.now() - began).as_secs_f64()
        });
        let reads = self.read(depth, 2, &is_over).await;
        let took = (clock.now() - began).as_secs_f64();
        let rate = mover.await;
        (rate, reads as f64 / took)
    }
}

fn measure(case: Case) -> Reached {
    let _turn = ONE_AT_A_TIME.lock();
    let timeline = Timeline::virtual_time(VirtualTimeOptions { cpu: false });
    let executors = Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() }).unwrap();
    let pool = executors.buffers().clone();
    let reached = executors.block_on(move || async move {
        let scene = Scene::new(case, timeline, pool).await;
        let mut reached = Reached { alone: [0.0; 2], beside: [0.0; 2], loss: [0.0; 2] };
        for (way, class) in ["fast", "slow"].into_iter().enumerate() {
            (reached.alone[way], _) = scene.move_all(class, 0).await;
        }
        for (way, class) in ["fast", "slow"].into_iter().enumerate() {
            // What a bounded run left is moved first, so that both ways begin with all chunks.
            let other = ["slow", "fast"][way];
            scene.moved.move_to(0..MOVED, other, &Relocation::default()).await.unwrap();
            let undisturbed = scene.read_alone(case.depth).await;
            let (beside, reads) = scene.move_all(class, case.depth).await;
            (reached.beside[way], reached.loss[way]) = (beside, 1.0 - reads / undisturbed);
        }
        scene.volume.close().await.unwrap();
        reached
    });
    let reached = reached.unwrap();
    for (way, name) in ["promoting", "demoting"].into_iter().enumerate() {
        println!(
            "{} over {}, {} reads of {}: {name} {:.0} MB/s, alone {:.0}: {:.2}; the reads lose {:.1} %",
            case.fast,
            case.slow,
            case.depth,
            case.reads,
            reached.beside[way] / 1e6,
            reached.alone[way] / 1e6,
            reached.beside[way] / reached.alone[way],
            reached.loss[way] * 100.0
        );
    }
    reached
}

/// Virtual time is the whole process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Bandwidths of the slower device, for reading and writing, of which moves have to reach so much, while reads lose no
/// more than a fifth.
fn check(case: Case, least: [f64; 2]) {
    let reached = measure(case);
    let is_fast = reached.beside.iter().zip(least).all(|(beside, least)| *beside >= least);
    assert!(is_fast, "{case:?}: {reached:?}");
    assert!(reached.loss.iter().all(|loss| *loss <= 0.20), "{case:?}: {reached:?}");
}

/// What is read has bandwidth to spare, and what moves is bound by the other class.
#[test]
fn reads_of_the_faster_class_leave_moves_the_slower_device() {
    let case = Case { fast: "nvme", slow: "sata-qlc", reads: "fast", depth: 16 };
    check(case, [0.8 * 540e6, 0.8 * 350e6]);
}

/// There a chunk is read as a whole, however quick the reads of the other class are: its pieces would cost a seek each.
#[test]
fn the_same_over_a_disk_with_an_arm() {
    let case = Case { fast: "nvme", slow: "hdd-7200", reads: "fast", depth: 16 };
    check(case, [0.8 * 150e6, 0.8 * 130e6]);
}

/// Sixteen reads fill the link, so what moves get is what the reads lose.
#[test]
fn reads_that_saturate_the_slower_device_lose_a_fifth_at_most() {
    let case = Case { fast: "nvme", slow: "sata-qlc", reads: "slow", depth: 16 };
    check(case, [0.08 * 540e6, 0.08 * 540e6]);
}

#[test]
fn reads_that_saturate_both_ways_of_a_link_lose_a_fifth_at_most() {
    let case = Case { fast: "sata-ssd", slow: "sata-qlc", reads: "fast", depth: 16 };
    check(case, [0.08 * 270e6, 0.08 * 270e6]);
}

/// An arm that is always wanted elsewhere: a move comes to its end all the same.
#[test]
fn reads_that_keep_an_arm_busy_lose_a_fifth_at_most() {
    let case = Case { fast: "nvme", slow: "hdd-7200", reads: "slow", depth: 16 };
    check(case, [2e6, 2e6]);
}
