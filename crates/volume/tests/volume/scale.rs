//! What millions of chunks take: memory for each, time to open them and to write a checkpoint of them. Not run with the
//! other tests, for it takes a minute: `cargo test --release -p tanada-volume --test volume scale --
//! --ignored --nocapture`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::executor::block_on;
use parking_lot::Mutex;
use tanada_base::SplitMix64;
use tanada_io::{Backend, BufferPool, Completion, Device, Method, Operation, Request, Ticket};
use tanada_volume::{Attributes, ClassSettings, OpenOptions, Parts, Volume, VolumeSettings};

use crate::{Place, device};

const CHUNK: u64 = 4096;
const MIB: u64 = 1 << 20;

/// A device that keeps its label and nothing else.
#[derive(Debug)]
struct Blank(Mutex<Vec<u8>>);

impl Backend for Blank {
    fn path(&self) -> &Path {
        Path::new("blank")
    }
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(1 << 46)
    }
    fn method(&self) -> Method {
        Method::Buffered
    }
    fn alignment(&self) -> usize {
        1
    }
    fn start(&self, mut request: Request, completion: Completion) -> Ticket {
        let mut label = self.0.lock();
        if request.offset == 0
            && let Some(buffer) = &mut request.buffer
        {
            match request.operation {
                Operation::Write => label.copy_from_slice(&buffer[..4096]),
                _ => buffer[..4096].copy_from_slice(&label),
            }
        }
        drop(label);
        completion.complete(Ok(request.len as usize), request.buffer);
        Ticket::default()
    }
}

/// Resident memory of the process, without what is shared with files.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Writes a checkpoint, and changes the metadata all the time meanwhile: how long it takes, and the longest that one
/// change waited.
async fn checkpoint(volume: &Volume) -> (Duration, Duration) {
    let is_over = Arc::new(AtomicBool::new(false));
    let watcher = std::thread::spawn({
        let (volume, is_over) = (volume.clone(), is_over.clone());
        move || {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::SeqCst) {
                let began = Instant::now();
                volume.create_object("short-lived", &Attributes::default()).unwrap();
                longest = longest.max(began.elapsed());
                block_on(volume.delete("short-lived")).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            longest
        }
    });
    let began = Instant::now();
    let written = volume.checkpoint().await;
    let took = began.elapsed();
    is_over.store(true, Ordering::SeqCst);
    let longest = watcher.join().unwrap();
    written.unwrap();
    (took, longest)
}

/// Makes a volume of so many chunks, all written, and opens it; bytes of memory that each takes, at the most. Their
/// places follow each other in runs of a MiB at the most.
async fn measure(chunks: u64) -> f64 {
    let before = memory();
    let place = Place::new(&[]);
    let class = Device::from_backend(Blank(Mutex::new(vec![0; 4096])));
    let parts = || Parts::new(device(&place.path("metadata"))).with_class("only", vec![class.clone()]);
    let settings = VolumeSettings {
        id: *b"millions of them",
        chunk_bytes: CHUNK,
        classes: vec![ClassSettings {
            name: "only".to_owned(),
            size_bytes: chunks * CHUNK + MIB,
            ..ClassSettings::default()
        }],
        ..VolumeSettings::default()
    };
    let volume = Volume::create(parts(), &settings).await.unwrap();
    let object = volume.create_object("data", &Attributes::default()).unwrap();
    let mut order: Vec<u64> = (0..chunks * CHUNK / MIB).collect();
    let mut random = SplitMix64::new(5);
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let mut buffer = BufferPool::new(0).allocate(MIB as usize);
    for (no, block) in order.iter().enumerate() {
        buffer = object.write(block * MIB, buffer).await.unwrap();
        if no % 64 == 0 {
            object.sync().await.unwrap();
        }
    }
    let (checkpoint, stall) = checkpoint(&volume).await;
    volume.close().await.unwrap();
    drop((object, volume));
    let began = Instant::now();
    let volume = Volume::open(parts(), &OpenOptions::default()).await.unwrap();
    let opening = began.elapsed();
    let each = memory().saturating_sub(before) as f64 / chunks as f64;
    println!(
        "{chunks} chunks: {each:.1} bytes each, open in {opening:.2?}, checkpoint in {checkpoint:.2?}, names wait for \
         {stall:.2?} of it"
    );
    volume.close().await.unwrap();
    each
}

#[test]
#[ignore = "takes a minute and a GB"]
fn ten_million_chunks_take_less_than_64_bytes_each() {
    // First, so that nothing that was let go of makes room for it.
    let each = block_on(measure(10_000_000));
    block_on(measure(1_000_000));
    assert!(each < 64.0, "{each} bytes a chunk");
}
