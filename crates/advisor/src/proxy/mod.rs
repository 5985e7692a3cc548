//! A proxy between clients and a server, which sees the statements that pass.
//!
//! 1. Bytes pass untouched and at once, in both directions. A copy of what a client sends, and the ends of what the
//!    server sends, go into a bounded queue of the connection; if it is full they are left out.
//! 2. A task beside takes the queue apart ([`mysql`], [`postgres`]) and tells an [`Explainer`] of statements that begin
//!    and end; if that is busy, statements are left out.
//! 3. The explainer asks the server over a connection of its own, once for each fingerprint, and tells the mount. What
//!    changes tables or statistics makes it forget.
//!
//! Statements of connections that pass unseen are looked up in the server's own list of what runs.
//!
//! Nothing that fails or is slow here holds up a connection: no copy waits for any of these queues. What is encrypted
//! or compressed passes unseen, which is said once.

mod explainer;
pub mod mysql;
pub mod postgres;
mod relay;
pub mod statement;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc::Sender;

pub use explainer::{Connect, Explainer, explain};
pub use relay::{Chunk, Tail};
pub use statement::Event;

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// That of MySQL and MariaDB.
    MySql,
    /// That of PostgreSQL.
    Postgres,
}

/// Where to listen, or to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Host and port.
    Tcp(String, u16),
    /// A socket.
    Unix(PathBuf),
}

impl Address {
    /// From `HOST:PORT`, or a path with a slash.
    pub fn parse(text: &str) -> Option<Address> {
        if text.contains('/') {
            return Some(Address::Unix(text.into()));
        }
        let (host, port) = text.rsplit_once(':')?;
        Some(Address::Tcp(host.to_owned(), port.parse().ok()?))
    }
}

/// A connection of either kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn connect(address: &Address) -> io::Result<Box<dyn Stream>> {
    Ok(match address {
        Address::Tcp(host, port) => {
            let stream = TcpStream::connect((host.as_str(), *port)).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
    })
}

/// Says once that something passes unseen.
#[derive(Debug, Default)]
pub struct Unseen(AtomicBool);

impl Unseen {
    /// Whether there was any.
    pub fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn say(&self, what: &str) {
        if !self.0.swap(true, Ordering::Relaxed) {
            tanada_io::warn(&format!(
                "{what} connections pass through the proxy unseen: their statements are looked up in the server's list"
            ));
        }
    }
}

/// A proxy that listens.
#[derive(Debug)]
pub struct Proxy {
    listener: Listener,
    server: Address,
    protocol: Protocol,
    unseen: Arc<Unseen>,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Proxy {
    /// Listens at `at` for a server at `server`.
    ///
    /// # Errors
    /// If the address is taken.
    pub async fn listen(at: &Address, server: Address, protocol: Protocol) -> io::Result<Proxy> {
        let listener = match at {
            Address::Tcp(host, port) => Listener::Tcp(TcpListener::bind((host.as_str(), *port)).await?),
            Address::Unix(path) => {
                remove_stale(path).await;
                Listener::Unix(UnixListener::bind(path)?, path.clone())
            }
        };
        Ok(Proxy { listener, server, protocol, unseen: Arc::default() })
    }

    /// Whether connections pass that cannot be seen.
    pub fn unseen(&self) -> Arc<Unseen> {
        self.unseen.clone()
    }

    /// The port that it listens at, if it has one.
    pub fn port(&self) -> Option<u16> {
        match &self.listener {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix(..) => None,
        }
    }

    /// Serves clients until it is dropped. Statements go to `events`, as long as there is space.
    pub async fn serve(self, events: Sender<Event>) {
        let unseen = self.unseen.clone();
        let server = Arc::new(self.server.clone());
        let mut connection: u64 = 0;
        loop {
            let accepted: io::Result<Box<dyn Stream>> = match &self.listener {
                Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                    let _ = stream.set_nodelay(true);
                    Box::new(stream) as Box<dyn Stream>
                }),
                Listener::Unix(listener, _) => {
                    listener.accept().await.map(|(stream, _)| Box::new(stream) as _)
                }
            };
            let Ok(client) = accepted else {
                // Too many open files: some will be closed.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            connection += 1;
            let (server, events, unseen) = (server.clone(), events.clone(), unseen.clone());
            let (protocol, connection) = (self.protocol, connection);
            tokio::spawn(async move {
                // Who cannot be served sees the connection closed.
                if let Ok(server) = connect(&server).await {
                    relay::relay(client, server, protocol, connection, events, unseen).await;
                }
            });
        }
    }
}

/// Removes a socket that nobody listens at any more.
async fn remove_stale(path: &Path) {
    if UnixStream::connect(path).await.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        let _ = std::fs::remove_file(path);
    }
}
