//! Chunks that move: how fast, and what that costs who reads meanwhile.
//!
//! Once between two classes on one disk, which a move reads and writes: there a plain copy is what it can reach. And
//! once between two emulated devices, of which the slower one sets the pace, in virtual time without that of the CPU:
//! what is measured is the pacing, not this machine. There the foreground reads data that stay, on the faster device
//! while all chunks move, which has bandwidth to spare; and then on the slower device, which it fills, so that moves
//! get what it loses.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures::stream::{self, StreamExt, TryStreamExt};
use tanada_base::Clock;
use tanada_io::{Device, Timeline, VirtualTimeOptions, spawn_local};
use tanada_volume::{Attributes, Budget, Object, Relocated, Relocation, Volume};

use super::Run;
use super::load::{Load, whole};
use super::stage::{MIB, Stage, failed};
use crate::Result;

/// Reads in flight in the foreground.
const FOREGROUND_DEPTH: usize = 16;
/// The classes on emulated devices.
const MODELS: [(&str, &str); 2] = [("fast", "nvme"), ("slow", "sata-qlc")];
/// Bytes that stay where they are, for the foreground to read.
const STILL_BYTES: u64 = 64 << 20;
/// What runs of the foreground are called: alone, while chunks move, and the moves beside it.
const ON_DISK: [&str; 3] = ["foreground_alone", "foreground_while_moving", "moved_beside"];
const ON_FAST: [&str; 3] = ["model_foreground_alone", "model_foreground_while_moving", "model_moved_beside"];
const ON_SLOW: [&str; 3] = [
    "model_slower_foreground_alone",
    "model_slower_foreground_while_moving",
    "model_moved_beside_slower_foreground",
];
/// Chunks that one relocation in the background moves.
const CHUNKS_AT_ONCE: u64 = 20;

pub async fn run(stage: &Stage, progress: fn(&str)) -> Result<Vec<Run>> {
    let options = &stage.options;
    progress(&format!("writing two files of {} MiB", options.data_bytes >> 20));
    let (from, to) = (stage.filled("bare-from").await?, stage.filled("bare-to").await?);
    let volume = stage.volume(&["fast", "slow"]).await?;
    let object = volume.create_object("data", &Attributes::default()).map_err(failed)?;
    let through = object.device();
    stage.fill(&through).await?;
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        progress(&format!("moving {} chunks, round {} of {}", options.moves, round + 1, options.rounds));
        let load = |what, is_write| Load {
            what,
            is_write,
            is_sequential: true,
            block_bytes: MIB,
            depth: 8,
            seconds: options.seconds,
            data_bytes: options.data_bytes,
        };
        runs.push(load("device_read", false).run(&to, &stage.pool, "device", round).await?);
        runs.push(load("device_write", true).run(&to, &stage.pool, "device", round).await?);
        runs.push(copy(stage, &from, &to, round).await?);
        let began = Instant::now();
        let moved = object.move_to(0..options.moves, "fast", &Relocation::default()).await.map_err(failed)?;
        let seconds = began.elapsed().as_secs_f64();
        runs.push(whole("copy_or_move", "volume", round, moved.done, moved.bytes, seconds));
        object.move_to(0..options.moves, "slow", &Relocation::default()).await.map_err(failed)?;
    }
    for round in 0..options.rounds {
        progress(&format!("reading while chunks move, round {} of {}", round + 1, options.rounds));
        let read = (&through, options.data_bytes);
        runs.extend(foreground(stage, &object, read, round, ON_DISK).await?);
    }
    volume.close().await.map_err(failed)?;
    runs.extend(between_models(stage, progress).await?);
    Ok(runs)
}

/// The same between two emulated devices.
async fn between_models(stage: &Stage, progress: fn(&str)) -> Result<Vec<Run>> {
    let options = &stage.options;
    progress("filling emulated devices");
    let timeline = Timeline::virtual_time(VirtualTimeOptions { cpu: false });
    let clock = timeline.clock();
    let (volume, devices) = stage.modelled(&timeline, &MODELS).await?;
    let [fast, slow] = &devices[..] else { return Err(failed("two devices were asked for")) };
    let object = volume.create_object("data", &Attributes::default()).map_err(failed)?;
    stage.fill(&object.device()).await?;
    let on_fast = still(stage, &volume, "fast").await?;
    let on_slow = still(stage, &volume, "slow").await?;
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        progress(&format!("moving between models, round {} of {}", round + 1, options.rounds));
        let load = |what, is_write| Load {
            what,
            is_write,
            is_sequential: true,
            block_bytes: MIB,
            depth: 8,
            seconds: options.seconds,
            data_bytes: options.data_bytes,
        };
        runs.push(load("model_read", false).run(slow, &stage.pool, "device", round).await?);
        runs.push(load("model_write", true).run(fast, &stage.pool, "device", round).await?);
        runs.push(move_all(stage, &object, "fast", &*clock, "model_move", round).await?);
        move_all(stage, &object, "slow", &*clock, "model_move_back", round).await?;
        for (still, names) in [(&on_fast, ON_FAST), (&on_slow, ON_SLOW)] {
            runs.extend(beside(stage, &object, still, &clock, round, names).await?);
            move_all(stage, &object, "slow", &*clock, "model_move_back", round).await?;
        }
    }
    volume.close().await.map_err(failed)?;
    Ok(runs)
}

/// An object that stays in `class`, for the foreground to read.
async fn still(stage: &Stage, volume: &Volume, class: &str) -> Result<Object> {
    let attributes = Attributes { class: Some(class.to_owned()), ..Attributes::default() };
    let still = volume.create_object(&format!("still in {class}"), &attributes).map_err(failed)?;
    let mut buffer = stage.pool.allocate(MIB);
    buffer.fill(7);
    for block in 0..STILL_BYTES / MIB as u64 {
        buffer = still.write(block * MIB as u64, buffer).await.map_err(failed)?;
    }
    still.sync().await.map_err(failed)?;
    Ok(still)
}

/// Moves all chunks that are to be moved.
async fn move_all(
    stage: &Stage,
    object: &Object,
    class: &str,
    clock: &dyn Clock,
    what: &'static str,
    round: usize,
) -> Result<Run> {
    let began = clock.now();
    let chunks = 0..stage.options.moves;
    let moved = object.move_to(chunks, class, &Relocation::default()).await.map_err(failed)?;
    let seconds = (clock.now() - began).as_secs_f64();
    Ok(whole(what, "volume", round, moved.done, moved.bytes, seconds))
}

/// Random reads of what stays: alone, and as long as all chunks that are to be moved take to the fast class.
async fn beside(
    stage: &Stage,
    object: &Object,
    still: &Object,
    clock: &Arc<dyn Clock>,
    round: usize,
    [alone, while_moving, moved]: [&'static str; 3],
) -> Result<Vec<Run>> {
    let through = still.device();
    let load = |what| random_reads(stage, what, STILL_BYTES);
    let alone = load(alone).run(&through, &stage.pool, "volume", round).await?;
    let is_over = Rc::new(Cell::new(false));
    let moving = async {
        let run = move_all(stage, object, "fast", &**clock, moved, round).await;
        is_over.set(true);
        run
    };
    let over = is_over.clone();
    let reading = load(while_moving).run_while(&through, &stage.pool, "volume", round, move |_| !over.get());
    let (moved, during) = futures::future::try_join(moving, reading).await?;
    Ok(vec![alone, during, moved])
}

fn random_reads(stage: &Stage, what: &'static str, data_bytes: u64) -> Load {
    Load {
        what,
        is_write: false,
        is_sequential: false,
        block_bytes: 16 << 10,
        depth: FOREGROUND_DEPTH,
        seconds: stage.options.seconds,
        data_bytes,
    }
}

/// A plain copy of as many bytes as are moved, with as many at once, made durable.
async fn copy(stage: &Stage, from: &Device, to: &Device, round: usize) -> Result<Run> {
    let moves = stage.options.moves;
    let began = Instant::now();
    let copies = (0..moves).map(|chunk| async move {
        let offset = chunk * MIB as u64;
        let buffer = from.read(offset, stage.pool.allocate(MIB)).await?;
        to.write(offset, buffer).await.map(drop)
    });
    let all = stream::iter(copies).buffer_unordered(Budget::default().concurrency);
    all.try_collect::<()>().await.map_err(failed)?;
    to.sync().await.map_err(failed)?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(whole("copy_or_move", "device", round, moves, moves * MIB as u64, seconds))
}

/// Random reads of a device and so many bytes of it, alone and while chunks of `object` move.
async fn foreground(
    stage: &Stage,
    object: &Object,
    (through, data_bytes): (&Device, u64),
    round: usize,
    [alone, while_moving, beside]: [&'static str; 3],
) -> Result<Vec<Run>> {
    let load = |what| random_reads(stage, what, data_bytes);
    let alone = load(alone).run(through, &stage.pool, "volume", round).await?;
    let (moved, is_over) = (Arc::new(AtomicU64::new(0)), Rc::new(Cell::new(false)));
    let mover = Mover {
        object: object.clone(),
        chunks: stage.options.moves,
        moved: moved.clone(),
        is_over: is_over.clone(),
    };
    let task = spawn_local(mover.run());
    let during = load(while_moving).run(through, &stage.pool, "volume", round).await?;
    let done = moved.load(Ordering::Relaxed);
    is_over.set(true);
    task.await?;
    let beside = whole(beside, "volume", round, done, done * MIB as u64, during.seconds);
    Ok(vec![alone, during, beside])
}

/// Moves chunks back and forth until it is over.
struct Mover {
    object: Object,
    chunks: u64,
    moved: Arc<AtomicU64>,
    is_over: Rc<Cell<bool>>,
}

impl Mover {
    async fn run(self) -> Result<()> {
        loop {
            for class in ["fast", "slow"] {
                for first in (0..self.chunks).step_by(CHUNKS_AT_ONCE as usize) {
                    let chunks = first..(first + CHUNKS_AT_ONCE).min(self.chunks);
                    let (moved, before) = (self.moved.clone(), self.moved.load(Ordering::Relaxed));
                    let progress =
                        move |report: &Relocated| moved.store(before + report.done, Ordering::Relaxed);
                    let relocation =
                        Relocation { progress: Some(Arc::new(progress)), ..Relocation::default() };
                    self.object.move_to(chunks, class, &relocation).await.map_err(failed)?;
                    if self.is_over.get() {
                        return Ok(());
                    }
                }
            }
        }
    }
}
