//! The advisor's side of the socket.

use std::fs::File;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::guide::socket::{read_line, short_name};
use crate::message::{
    AccessInFile, Announcement, Answer, Foreseen, ObjectAccess, ObjectReads, Relocated, Request,
};
use crate::{Error, ErrorKind, Result};

/// A connection to the process that serves a mounted volume.
#[derive(Debug)]
pub struct Client {
    input: BufReader<OwnedReadHalf>,
    output: OwnedWriteHalf,
}

impl Client {
    /// Connects to whoever has the volume in `folder` mounted with a policy.
    ///
    /// # Errors
    /// `NotFound` if nobody has.
    pub async fn connect(folder: &Path) -> Result<Client> {
        let nobody = |error: std::io::Error| {
            let folder = folder.display();
            let what = format!(
                "nobody places the chunks of {folder} ({error}): mount it with `tanada mount {folder} MOUNTPOINT --policy benefit`"
            );
            Error::new(ErrorKind::NotFound, what)
        };
        let opened = File::open(folder).map_err(nobody)?;
        let stream = UnixStream::connect(short_name(&opened)).await.map_err(nobody)?;
        let (input, output) = stream.into_split();
        Ok(Client { input: BufReader::new(input), output })
    }

    async fn ask(&mut self, request: &Request) -> Result<Answer> {
        let failed = |error: std::io::Error| Error::io("the connection to the mount", error);
        let mut line = serde_json::to_vec(request).map_err(|error| Error::protocol(error.to_string()))?;
        line.push(b'\n');
        self.output.write_all(&line).await.map_err(failed)?;
        let line = read_line(&mut self.input).await.map_err(failed)?;
        let line = line.ok_or_else(|| Error::io("the connection to the mount", "it was closed"))?;
        let answer = serde_json::from_slice(&line);
        match answer.map_err(|error| Error::protocol(format!("the mount's answer: {error}")))? {
            Answer::Refused { why } => Err(Error::invalid(format!("the mount refuses: {why}"))),
            answer => Ok(answer),
        }
    }

    /// What would be done for a query.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn forecast(&mut self, announcement: &Announcement) -> Result<Foreseen> {
        match self.ask(&Request::Forecast(announcement.clone())).await? {
            Answer::Forecast(foreseen) => Ok(foreseen),
            other => Err(unexpected(&other)),
        }
    }

    /// A query begins; its number.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn begin(&mut self, announcement: &Announcement) -> Result<u32> {
        match self.ask(&Request::Begin(announcement.clone())).await? {
            Answer::Begun { query } => Ok(query),
            other => Err(unexpected(&other)),
        }
    }

    /// A query is over.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn end(&mut self, query: u32) -> Result<()> {
        self.ask(&Request::End { query }).await.map(drop)
    }

    /// Waits until nothing is left to place.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn settle(&mut self) -> Result<()> {
        self.ask(&Request::Settle).await.map(drop)
    }

    /// Relocations from this number on.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn placed(&mut self, from: u64) -> Result<Vec<Relocated>> {
        match self.ask(&Request::Placed { from }).await? {
            Answer::Placed(placed) => Ok(placed),
            other => Err(unexpected(&other)),
        }
    }

    /// Hands a server's counters over.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn count(&mut self, reads: Vec<ObjectReads>) -> Result<()> {
        self.ask(&Request::Counted(reads)).await.map(drop)
    }
}

fn unexpected(answer: &Answer) -> Error {
    Error::protocol(format!("the mount answers something else: {answer:?}"))
}

/// Where a mounted volume appears, to name its files as objects.
#[derive(Debug, Clone)]
pub struct Mounts(Vec<PathBuf>);

impl Mounts {
    /// Of the volume in `folder`.
    ///
    /// # Errors
    /// `NotFound` if it is not mounted.
    pub fn of(folder: &Path) -> Result<Mounts> {
        let points = tanada_mount::mount_points(folder);
        if points.is_empty() {
            let what = format!("the volume {} is not mounted", folder.display());
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        Ok(Mounts(points))
    }

    /// At this folder, whatever is there.
    pub fn at(folder: &Path) -> Mounts {
        Mounts(vec![folder.to_owned()])
    }

    /// The object that a file is; `None` if it lies elsewhere.
    pub fn object(&self, file: &Path) -> Option<String> {
        let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let inside = self.0.iter().find_map(|point| file.strip_prefix(point).ok())?;
        Some(inside.to_str()?.to_owned())
    }

    /// The accesses to files that are objects.
    pub fn objects(&self, accesses: Vec<AccessInFile>) -> Vec<ObjectAccess> {
        let of = |access: AccessInFile| {
            let AccessInFile { file, index, extents, pattern, expected_pages, page_bytes, stage } = access;
            let object = self.object(&file)?;
            Some(ObjectAccess { object, index, extents, pattern, expected_pages, page_bytes, stage })
        };
        accesses.into_iter().filter_map(of).collect()
    }
}
