//! What the volume costs against the bare device: both sides in one run, interleaved, on files of one folder.
//!
//! `cargo bench -p tanada-volume --bench overhead -- [FOLDER] [SECONDS] [ROUNDS] [overhead|opening|moving]`. Prints each round and the medians of the ratios:
//! random 16 KiB reads at depth 64 (IOPS) and 1 (added latency), sequential 1 MiB reads and writes at depth 4, opening with a million
//! chunks, 1,000 chunk moves with and without foreground reads.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use tanada_base::SplitMix64;
use tanada_io::{BufferPool, Device, DeviceOptions, ExecutorOptions, Executors, spawn_local};
use tanada_volume::directory::ThreadTimer;
use tanada_volume::{
    Attributes, ClassSettings, Object, OpenOptions, Parts, Relocation, Volume, VolumeSettings,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const FILE_BYTES: u64 = 2 << 30;
const PAGE: usize = 16 << 10;
const LARGE: usize = 1 << 20;

#[derive(Clone, Copy)]
struct Load {
    is_write: bool,
    block: usize,
    depth: usize,
    is_sequential: bool,
    seconds: f64,
    seed: u64,
}

struct Measured {
    ios_per_second: f64,
    latency_us_p50: f64,
}

/// Runs a load on a device, as many tasks as its depth.
async fn run(device: Device, pool: Arc<BufferPool>, load: Load) -> Outcome<Measured> {
    let latencies = Rc::new(RefCell::new(Vec::<u32>::new()));
    let blocks = FILE_BYTES / load.block as u64;
    let next = Rc::new(Cell::new(0u64));
    let began = Instant::now();
    let end = began + Duration::from_secs_f64(load.seconds);
    let tasks = (0..load.depth as u64).map(|task| {
        let (device, pool, latencies, next) = (device.clone(), pool.clone(), latencies.clone(), next.clone());
        spawn_local(async move {
            let mut random = SplitMix64::new(load.seed << 16 | task);
            let mut buffer = pool.allocate(load.block);
            buffer.fill(7);
            while Instant::now() < end {
                let block = if load.is_sequential {
                    next.replace(next.get() + 1) % blocks
                } else {
                    random.below(blocks)
                };
                let offset = block * load.block as u64;
                let before = Instant::now();
                buffer = if load.is_write {
                    device.write(offset, buffer).await?
                } else {
                    device.read(offset, buffer).await?
                };
                latencies.borrow_mut().push(before.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
            }
            Ok::<(), tanada_io::Error>(())
        })
    });
    try_join_all(tasks.collect::<Vec<_>>()).await?;
    let lasted = began.elapsed().as_secs_f64();
    let mut latencies = latencies.take();
    latencies.sort_unstable();
    let p50 = latencies.get(latencies.len() / 2).copied().unwrap_or_default();
    Ok(Measured { ios_per_second: latencies.len() as f64 / lasted, latency_us_p50: f64::from(p50) / 1e3 })
}

fn device(path: &Path) -> Outcome<Device> {
    Ok(Device::open(path, &DeviceOptions { writable: true, create: true, ..DeviceOptions::default() })?)
}

fn parts(folder: &Path, pool: &Arc<BufferPool>, classes: &[&str]) -> Outcome<Parts> {
    let mut parts = Parts::new(device(&folder.join("metadata"))?);
    parts.buffers = pool.clone();
    parts.timer = Some(Arc::new(ThreadTimer));
    for class in classes {
        parts = parts.with_class(class, vec![device(&folder.join(class))?]);
    }
    Ok(parts)
}

fn settings(classes: &[(&str, u64)]) -> VolumeSettings {
    let class = |(name, size_bytes): &(&str, u64)| ClassSettings {
        name: (*name).to_owned(),
        size_bytes: *size_bytes,
        ..ClassSettings::default()
    };
    VolumeSettings {
        id: *b"benchmark volume",
        classes: classes.iter().map(class).collect(),
        ..VolumeSettings::default()
    }
}

async fn fill(device: &Device, pool: &Arc<BufferPool>) -> Outcome<()> {
    let mut random = SplitMix64::new(1);
    let mut buffer = pool.allocate(LARGE);
    random.fill(&mut buffer);
    for block in 0..FILE_BYTES / LARGE as u64 {
        buffer = device.write(block * LARGE as u64, buffer).await?;
    }
    device.sync().await?;
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

async fn overhead(folder: PathBuf, pool: Arc<BufferPool>, seconds: f64, rounds: u64) -> Outcome<()> {
    let bare = device(&folder.join("bare"))?;
    fill(&bare, &pool).await?;
    let volume =
        Volume::create(parts(&folder, &pool, &["only"])?, &settings(&[("only", FILE_BYTES + (64 << 20))]))
            .await?;
    let object = volume.create_object("data", &Attributes::default())?;
    let through = object.device();
    fill(&through, &pool).await?;
    let loads = [
        ("read_iops_of_device", false, PAGE, 64, false),
        ("added_latency_us", false, PAGE, 1, false),
        ("sequential_read_of_device", false, LARGE, 4, true),
        ("sequential_write_of_device", true, LARGE, 4, true),
    ];
    for (name, is_write, block, depth, is_sequential) in loads {
        let mut figures = Vec::new();
        for round in 0..rounds {
            let load = Load { is_write, block, depth, is_sequential, seconds, seed: round + 1 };
            // Who goes first changes, so that neither profits from the order.
            let (a, b) = if round % 2 == 0 {
                let a = run(bare.clone(), pool.clone(), load).await?;
                (a, run(through.clone(), pool.clone(), load).await?)
            } else {
                let b = run(through.clone(), pool.clone(), load).await?;
                (run(bare.clone(), pool.clone(), load).await?, b)
            };
            println!(
                "{name} round {round}: device {:.0}/s p50 {:.1} us, volume {:.0}/s p50 {:.1} us",
                a.ios_per_second, a.latency_us_p50, b.ios_per_second, b.latency_us_p50
            );
            figures.push(if depth == 1 {
                b.latency_us_p50 - a.latency_us_p50
            } else {
                b.ios_per_second / a.ios_per_second
            });
        }
        println!("{name}: {:.3}", median(figures));
    }
    volume.close().await?;
    Ok(())
}

/// Opens a volume of a million chunks of 4 KiB that were all written.
async fn opening(folder: PathBuf, pool: Arc<BufferPool>) -> Outcome<()> {
    let bytes = 1_000_000 * 4096;
    let settings = VolumeSettings { chunk_bytes: 4096, ..settings(&[("only", bytes + (1 << 20))]) };
    let volume = Volume::create(parts(&folder, &pool, &["only"])?, &settings).await?;
    let object = volume.create_object("data", &Attributes::default())?;
    let mut buffer = pool.allocate(LARGE);
    let mut order: Vec<u64> = (0..bytes / LARGE as u64).collect();
    let mut random = SplitMix64::new(5);
    // In random order, so that the mapping is not one run.
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    for block in order {
        buffer = object.write(block * LARGE as u64, buffer).await?;
    }
    volume.close().await?;
    drop((object, volume));
    let mut seconds = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        let volume = Volume::open(parts(&folder, &pool, &["only"])?, &OpenOptions::default()).await?;
        seconds.push(began.elapsed().as_secs_f64());
        volume.close().await?;
    }
    println!("open_seconds_1m_chunks: {:.3}", median(seconds));
    Ok(())
}

async fn moving(folder: PathBuf, pool: Arc<BufferPool>, seconds: f64) -> Outcome<()> {
    let classes = [("fast", FILE_BYTES), ("slow", FILE_BYTES + (64 << 20))];
    let volume = Volume::create(parts(&folder, &pool, &["fast", "slow"])?, &settings(&classes)).await?;
    let object = volume.create_object("data", &Attributes::default())?;
    let through = object.device();
    fill(&through, &pool).await?;
    let write = Load { is_write: true, block: LARGE, depth: 8, is_sequential: true, seconds, seed: 1 };
    let read = Load { is_write: false, block: PAGE, depth: 16, is_sequential: false, seconds, seed: 1 };
    let slower = run(through.clone(), pool.clone(), write).await?.ios_per_second;
    let alone = run(through.clone(), pool.clone(), read).await?.ios_per_second;
    let mut rates = Vec::new();
    for (round, class) in ["fast", "slow", "fast", "slow", "fast"].into_iter().enumerate() {
        let began = Instant::now();
        let moved = object.move_to(0..1000, class, &Relocation::default()).await?;
        let rate = moved.done as f64 / began.elapsed().as_secs_f64();
        println!("move to {class}: {rate:.0} MiB/s, sequential writes {slower:.0} MiB/s");
        // The first one goes to blocks that the file system has not given out yet.
        if round > 0 {
            rates.push(rate);
        }
    }
    let moves = median(rates);
    println!("move_bandwidth_of_slower: {:.3}", moves / slower);
    let (mover, is_over) = (object.clone(), Rc::new(Cell::new(false)));
    let over = is_over.clone();
    let task = spawn_local(async move { back_and_forth(mover, over).await });
    let during = run(through.clone(), pool.clone(), read).await?.ios_per_second;
    is_over.set(true);
    task.await?;
    println!("foreground: {alone:.0}/s alone, {during:.0}/s while moving");
    println!("foreground_loss_while_moving: {:.3}", 1.0 - during / alone);
    volume.close().await?;
    // The volume is of no use after this.
    let copies = plain_copy(&folder, &pool).await?;
    println!(
        "plain copies on this disk: {copies:.0} MiB/s; move_bandwidth_of_plain_copy: {:.3}",
        moves / copies
    );
    Ok(())
}

/// MiB a second of copying 1,000 MiB from file to file, 16 at once, with one sync at the end: what moves could reach if both classes are on one
/// disk.
async fn plain_copy(folder: &Path, pool: &Arc<BufferPool>) -> Outcome<f64> {
    let (from, to) = (device(&folder.join("slow"))?, device(&folder.join("fast"))?);
    let began = Instant::now();
    let next = Rc::new(Cell::new(0u64));
    let tasks = (0..16).map(|_| {
        let (from, to, pool, next) = (from.clone(), to.clone(), pool.clone(), next.clone());
        spawn_local(async move {
            loop {
                let block = next.replace(next.get() + 1);
                if block >= 1000 {
                    return Ok::<(), tanada_io::Error>(());
                }
                let buffer = from.read(block * LARGE as u64, pool.allocate(LARGE)).await?;
                to.write(block * LARGE as u64, buffer).await?;
            }
        })
    });
    try_join_all(tasks.collect::<Vec<_>>()).await?;
    to.sync().await?;
    Ok(1000.0 / began.elapsed().as_secs_f64())
}

async fn back_and_forth(object: Object, is_over: Rc<Cell<bool>>) -> Outcome<()> {
    loop {
        for class in ["slow", "fast"] {
            for first in (0..1000).step_by(20) {
                object.move_to(first..first + 20, class, &Relocation::default()).await?;
                if is_over.get() {
                    return Ok(());
                }
            }
        }
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let folder = arguments.next().map_or_else(|| PathBuf::from("."), PathBuf::from);
    let seconds: f64 = arguments.next().map_or(Ok(2.0), |seconds| seconds.parse())?;
    let rounds: u64 = arguments.next().map_or(Ok(5), |rounds| rounds.parse())?;
    let executors = Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() })?;
    let wanted = arguments.next();
    for part in ["overhead", "opening", "moving"] {
        if wanted.as_deref().is_some_and(|wanted| wanted != part) {
            continue;
        }
        let folder = tempfile::tempdir_in(&folder)?;
        let (path, pool) = (folder.path().to_owned(), executors.buffers().clone());
        executors.block_on(move || async move {
            match part {
                "overhead" => overhead(path, pool, seconds, rounds).await,
                "opening" => opening(path, pool).await,
                _ => moving(path, pool, seconds).await,
            }
        })??;
    }
    Ok(())
}
