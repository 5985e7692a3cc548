//! Opening a volume of many chunks.

use std::time::Instant;

use tanada_base::SplitMix64;
use tanada_io::Device;
use tanada_volume::{Attributes, ClassSettings, OpenOptions, Parts, Volume, VolumeSettings};

use super::Run;
use super::blank::Blank;
use super::load::whole;
use super::stage::{MIB, Stage, failed};
use crate::Result;

const CHUNK_BYTES: u64 = 4096;

pub async fn run(stage: &Stage, progress: fn(&str)) -> Result<Vec<Run>> {
    let chunks = stage.options.opened_chunks / 256 * 256;
    progress(&format!("mapping {chunks} chunks"));
    let bytes = chunks * CHUNK_BYTES;
    let class = Device::from_backend(Blank::new(bytes + (8 << 20)));
    let parts = || -> Result<Parts> { Ok(stage.parts(&[])?.with_class("only", vec![class.clone()])) };
    let settings = VolumeSettings {
        id: *b"tanada benchmark",
        chunk_bytes: CHUNK_BYTES,
        classes: vec![ClassSettings {
            name: "only".to_owned(),
            size_bytes: bytes + (1 << 20),
            ..ClassSettings::default()
        }],
        ..VolumeSettings::default()
    };
    let volume = Volume::create(parts()?, &settings).await.map_err(failed)?;
    let object = volume.create_object("data", &Attributes::default()).map_err(failed)?;
    let mut order: Vec<u64> = (0..chunks / 256).collect();
    let mut random = SplitMix64::new(5);
    // In random order, so that the mapping is not one run.
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let mut buffer = stage.pool.allocate(MIB);
    buffer.fill(7);
    for block in order {
        buffer = object.write(block * MIB as u64, buffer).await.map_err(failed)?;
    }
    volume.close().await.map_err(failed)?;
    drop((object, volume));
    let mut runs = Vec::new();
    for round in 0..stage.options.rounds {
        progress(&format!("opening {chunks} chunks, round {} of {}", round + 1, stage.options.rounds));
        let parts = parts()?;
        let began = Instant::now();
        let volume = Volume::open(parts, &OpenOptions::default()).await.map_err(failed)?;
        let seconds = began.elapsed().as_secs_f64();
        volume.close().await.map_err(failed)?;
        runs.push(whole("open", "volume", round, 1, 0, seconds));
    }
    Ok(runs)
}
