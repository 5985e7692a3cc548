//! Reads and writes through an object, and of a file beside it.

use tanada_volume::Attributes;

use super::Run;
use super::load::Load;
use super::stage::{MIB, Stage, failed};
use crate::Result;

pub async fn run(stage: &Stage, progress: fn(&str)) -> Result<Vec<Run>> {
    let options = &stage.options;
    progress(&format!("writing two files of {} MiB", options.data_bytes >> 20));
    let bare = stage.filled("bare").await?;
    let volume = stage.volume(&["only"]).await?;
    let object = volume.create_object("data", &Attributes::default()).map_err(failed)?;
    let through = object.device();
    stage.fill(&through).await?;
    let load = |what, is_write, is_sequential, block_bytes, depth| Load {
        what,
        is_write,
        is_sequential,
        block_bytes,
        depth,
        seconds: options.seconds,
        data_bytes: options.data_bytes,
    };
    let loads = [
        load("random_16k_depth_64", false, false, 16 << 10, 64),
        load("random_16k_depth_1", false, false, 16 << 10, 1),
        load("sequential_read", false, true, MIB, 4),
        load("sequential_write", true, true, MIB, 4),
    ];
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        for load in loads {
            progress(&format!("{}, round {} of {}", load.what.replace('_', " "), round + 1, options.rounds));
            // Who goes first changes, so that neither profits from the order.
            let mut sides = [("device", &bare), ("volume", &through)];
            if round % 2 == 1 {
                sides.reverse();
            }
            for (side, device) in sides {
                runs.push(load.run(device, &stage.pool, side, round).await?);
            }
        }
    }
    volume.close().await.map_err(failed)?;
    Ok(runs)
}
