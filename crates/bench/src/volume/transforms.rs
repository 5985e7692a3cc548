//! What compression costs: writes of pages that become half as long, and random reads of them.
//!
//! Writes go to an emulated SATA SSD, in virtual time that counts the CPU of the one thread: an object without
//! compression and one with LZ4 in turn, 1 MiB at a time, four at once, each with its sync. Reads are of the machine's
//! disk, 16 KiB at random, one at a time, of both in turn.

use futures::future::try_join_all;
use tanada_base::SplitMix64;
use tanada_io::{Buffer, Timeline, VirtualTimeOptions};
use tanada_volume::{Attributes, Compression, Object, Volume};

use super::Run;
use super::load::{Load, whole};
use super::stage::{MIB, Stage, failed};
use crate::Result;

const PAGE: usize = 16 << 10;

/// Of each page: with LZ4's own overhead and the header it takes half of its blocks.
const NOISE_BYTES: usize = 7600;

/// Writes under way at once.
const DEPTH: u64 = 4;

pub async fn run(stage: &Stage, progress: fn(&str)) -> Result<Vec<Run>> {
    let mut runs = writes(stage, progress).await?;
    runs.extend(reads(stage, progress).await?);
    Ok(runs)
}

/// Two objects: without compression, and with LZ4.
fn objects(volume: &Volume) -> Result<[(&'static str, Object); 2]> {
    let made = |name, compression| {
        let attributes = Attributes { compression, ..Attributes::default() };
        volume.create_object(name, &attributes).map(|object| (name, object)).map_err(failed)
    };
    Ok([made("none", Compression::None)?, made("lz4", Compression::Lz4)?])
}

/// Bytes whose pages become half as long.
fn fill(buffer: &mut Buffer, seed: u64) {
    let mut random = SplitMix64::new(seed);
    buffer.fill(7);
    for page in buffer.chunks_mut(PAGE) {
        random.fill(&mut page[..NOISE_BYTES]);
    }
}

async fn writes(stage: &Stage, progress: fn(&str)) -> Result<Vec<Run>> {
    let timeline = Timeline::virtual_time(VirtualTimeOptions { cpu: true });
    let clock = timeline.clock();
    let (volume, _) = stage.modelled(&timeline, &[("only", "sata-ssd")]).await?;
    let objects = objects(&volume)?;
    // Both fit in, with what an overwrite takes until its sync.
    let blocks = stage.options.data_bytes / MIB as u64 / 4;
    let mut runs = Vec::new();
    for round in 0..=stage.options.rounds {
        progress(&format!("writing with compression and without, round {round} of {}", stage.options.rounds));
        for (name, object) in &objects {
            let mut buffers = Vec::new();
            for seed in 0..DEPTH {
                let mut buffer = stage.pool.allocate(MIB);
                fill(&mut buffer, seed);
                buffers.push(buffer);
            }
            let began = clock.now();
            let tasks = (0..DEPTH).zip(buffers).map(|(task, mut buffer)| async move {
                for block in (task..blocks).step_by(DEPTH as usize) {
                    buffer = object.write(block * MIB as u64, buffer).await?;
                }
                Ok::<(), tanada_volume::Error>(())
            });
            try_join_all(tasks).await.map_err(failed)?;
            object.sync().await.map_err(failed)?;
            let seconds = (clock.now() - began).as_secs_f64();
            let what = if *name == "lz4" { "lz4_write" } else { "none_write" };
            // In the first round files grow.
            if let Some(round) = round.checked_sub(1) {
                runs.push(whole(what, "volume", round, blocks, blocks * MIB as u64, seconds));
            }
        }
    }
    volume.close().await.map_err(failed)?;
    Ok(runs)
}

async fn reads(stage: &Stage, progress: fn(&str)) -> Result<Vec<Run>> {
    let volume = stage.volume(&["only"]).await?;
    let objects = objects(&volume)?;
    let data_bytes = stage.options.data_bytes / 4;
    for (name, object) in &objects {
        progress(&format!("writing {} MiB with compression {name}", data_bytes >> 20));
        let mut buffer = stage.pool.allocate(MIB);
        for block in 0..data_bytes / MIB as u64 {
            fill(&mut buffer, block);
            buffer = object.write(block * MIB as u64, buffer).await.map_err(failed)?;
        }
        object.sync().await.map_err(failed)?;
    }
    let mut runs = Vec::new();
    for round in 0..stage.options.rounds {
        progress(&format!("reading compressed pages, round {} of {}", round + 1, stage.options.rounds));
        for (name, object) in &objects {
            let what = if *name == "lz4" { "lz4_read" } else { "none_read" };
            let load = Load {
                what,
                is_write: false,
                is_sequential: false,
                block_bytes: PAGE,
                depth: 1,
                seconds: stage.options.seconds,
                data_bytes,
            };
            runs.push(load.run(&object.device(), &stage.pool, "volume", round).await?);
        }
    }
    volume.close().await.map_err(failed)?;
    Ok(runs)
}
