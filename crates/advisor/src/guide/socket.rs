//! The socket in the volume's folder over which announcements come. Only the user who mounted, and root, may open it.
//!
//! A folder's path may be longer than a socket's may be, so both sides name the socket by an open folder.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use super::Guide;
use crate::message::{Answer, MAX_LINE_BYTES, Request, SOCKET};
use crate::{Error, Result};

/// Accesses in one announcement.
const MAX_ACCESSES: usize = 4096;

/// Listens until it is dropped; then the socket is gone.
#[derive(Debug)]
pub struct Listening {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A name for the socket in `folder` that is short, as long as the folder is open.
pub(crate) fn short_name(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))
}

/// Begins to listen in the folder of a volume, whose lock this process has.
///
/// # Errors
/// If the socket cannot be made.
pub fn listen(folder: &Path, guide: Arc<Guide>) -> Result<Listening> {
    let path = folder.join(SOCKET);
    let failed = |error: io::Error| Error::io(path.display(), error);
    // One that is left over from a process that was killed: the lock says that no other one is alive.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let opened = File::open(folder).map_err(failed)?;
    let listener = UnixListener::bind(short_name(&opened)).map_err(failed)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let task = tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve(stream, guide.clone()));
                }
                // Too many open files: some will be closed.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            }
        }
    });
    Ok(Listening { path, task })
}

/// Answers one client, and ends its queries with it.
async fn serve(stream: UnixStream, guide: Arc<Guide>) {
    let (input, mut output) = stream.into_split();
    let mut input = BufReader::new(input);
    let mut queries = Vec::new();
    while let Ok(Some(line)) = read_line(&mut input).await {
        let answer = match serde_json::from_slice::<Request>(&line) {
            Ok(request) => answer(&guide, request, &mut queries).await,
            Err(error) => Answer::Refused { why: format!("the request is not understood: {error}") },
        };
        let Ok(mut line) = serde_json::to_vec(&answer) else { break };
        line.push(b'\n');
        if output.write_all(&line).await.is_err() {
            break;
        }
    }
    queries.into_iter().for_each(|query| guide.end(query));
}

async fn answer(guide: &Guide, request: Request, queries: &mut Vec<u32>) -> Answer {
    if let Request::Forecast(announcement) | Request::Begin(announcement) = &request
        && announcement.accesses.len() > MAX_ACCESSES
    {
        return Answer::Refused { why: format!("more than {MAX_ACCESSES} accesses are announced") };
    }
    match request {
        Request::Forecast(announcement) => Answer::Forecast(guide.forecast(&announcement)),
        Request::Begin(announcement) => {
            let query = guide.begin(&announcement);
            queries.push(query);
            Answer::Begun { query }
        }
        Request::End { query } => {
            // Only its own.
            if let Some(at) = queries.iter().position(|own| *own == query) {
                queries.swap_remove(at);
                guide.end(query);
            }
            Answer::Done
        }
        Request::Settle => {
            guide.settle().await;
            Answer::Done
        }
        Request::Placed { from } => Answer::Placed(guide.placed(from)),
        Request::Counted(reads) => {
            guide.count(&reads);
            Answer::Done
        }
    }
}

/// A line without its end; `None` at the end of the stream.
pub(crate) async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = input.take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line).await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) if read < MAX_LINE_BYTES => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long")),
    }
}
