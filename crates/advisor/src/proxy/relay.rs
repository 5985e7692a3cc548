//! The two copies of a connection, and the task that looks on.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::statement::{Event, Running};
use super::{Protocol, Stream, Unseen, mysql, postgres};

/// Bytes that are read at once.
const COPY_BYTES: usize = 64 << 10;
/// Pieces that wait for the one who looks on: 16 MiB at most.
const MAX_WAITING: usize = 256;
/// Who looks on pauses so long between looks, so that a statement costs less than a wakeup. The first piece after a
/// silence is looked at at once.
const PAUSE: Duration = Duration::from_millis(5);
/// After so much silence behind what ends an answer, it has ended.
const QUIET: Duration = Duration::from_millis(200);

/// A piece of what passed.
#[derive(Debug)]
pub enum Chunk {
    /// From the client, as it was.
    FromClient(Vec<u8>),
    /// From the server: how it begins and ends.
    FromServer(Tail),
    /// Something before was left out.
    Gap,
}

/// The beginning and the end of what a server sent at once.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes.
    pub tail: Vec<u8>,
    /// All bytes.
    pub len: usize,
}

impl Tail {
    /// Of `bytes`.
    pub fn of(bytes: &[u8]) -> Tail {
        let tail = bytes.len().saturating_sub(64);
        Tail { head: bytes[..bytes.len().min(32)].to_vec(), tail: bytes[tail..].to_vec(), len: bytes.len() }
    }
}

/// Looks at what passes.
pub(super) trait Watch: Send {
    /// A piece passed. Whether anything more can be seen.
    fn see(&mut self, chunk: &Chunk, running: &mut Running) -> bool;
    /// What it is that cannot be seen.
    fn hidden(&self) -> &'static str;
}

pub(super) async fn relay(
    client: Box<dyn Stream>,
    server: Box<dyn Stream>,
    protocol: Protocol,
    connection: u64,
    events: Sender<Event>,
    unseen: Arc<Unseen>,
) {
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, to_server) = tokio::io::split(server);
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let watch: Box<dyn Watch> = match protocol {
        Protocol::MySql => Box::new(mysql::Session::default()),
        Protocol::Postgres => Box::new(postgres::Session::default()),
    };
    // If it panics, the connection goes on.
    tokio::spawn(look_on(watch, receiver, Running::new(connection, events), unseen));
    let piece = |bytes: &[u8]| Chunk::FromClient(bytes.to_vec());
    let up = copy(from_client, to_server, Copying { sender: sender.clone(), piece, has_gap: false });
    let piece = |bytes: &[u8]| Chunk::FromServer(Tail::of(bytes));
    let down = copy(from_server, to_client, Copying { sender, piece, has_gap: false });
    // Each side is closed when the other one is; the other direction may still have something to say.
    tokio::join!(up, down);
}

/// Tells of pieces, unless there are too many.
struct Copying<F> {
    sender: Sender<Chunk>,
    piece: F,
    has_gap: bool,
}

impl<F: Fn(&[u8]) -> Chunk> Copying<F> {
    fn tell(&mut self, bytes: &[u8]) {
        if self.sender.is_closed() {
            return;
        }
        if self.has_gap {
            self.has_gap = self.sender.try_send(Chunk::Gap).is_err();
        }
        self.has_gap = self.has_gap || self.sender.try_send((self.piece)(bytes)).is_err();
    }
}

async fn copy<F: Fn(&[u8]) -> Chunk>(
    mut from: ReadHalf<Box<dyn Stream>>,
    mut to: WriteHalf<Box<dyn Stream>>,
    mut copying: Copying<F>,
) {
    let mut buffer = vec![0; COPY_BYTES];
    while let Ok(len @ 1..) = from.read(&mut buffer).await {
        // Before it is sent, or the answer might be seen first. This waits for nothing.
        copying.tell(&buffer[..len]);
        if to.write_all(&buffer[..len]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}

async fn look_on(
    mut watch: Box<dyn Watch>,
    mut chunks: Receiver<Chunk>,
    mut running: Running,
    unseen: Arc<Unseen>,
) {
    let mut pieces = Vec::new();
    loop {
        let received = if running.may_have_ended() {
            match tokio::time::timeout(QUIET, chunks.recv_many(&mut pieces, MAX_WAITING)).await {
                Ok(received) => received,
                Err(_) => {
                    running.end();
                    continue;
                }
            }
        } else {
            chunks.recv_many(&mut pieces, MAX_WAITING).await
        };
        let is_seen = pieces.drain(..).all(|chunk| watch.see(&chunk, &mut running));
        if !is_seen {
            unseen.say(watch.hidden());
            break;
        }
        if received == 0 {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    running.end();
}
