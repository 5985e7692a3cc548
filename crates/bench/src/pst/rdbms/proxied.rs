//! `tanada advise --proxy` before a server, as its users start it, and what it costs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use serde::Serialize;
use tanada_base::SplitMix64;
use tanada_report::median;

use super::RdbmsSettings;
use super::system::{Client, Server};
use crate::{Error, Result};

/// Customers that are looked up: their pages are in the server's cache after a moment.
const CUSTOMERS: u64 = 1000;

/// Sides take turns so often.
const ROUNDS: usize = 4;

/// A running proxy; it is stopped when it is dropped.
pub(super) struct Proxy {
    child: Child,
    path: PathBuf,
}

impl Proxy {
    /// Starts the proxy before `server`, for the volume in `volume`; its socket lies in `beside`. Waits until it
    /// listens.
    pub(super) fn start(
        settings: &RdbmsSettings,
        server: &Server,
        volume: &Path,
        beside: &Path,
    ) -> Result<Proxy> {
        let folder = beside.join("proxied");
        if !folder.exists() {
            std::fs::create_dir(&folder).map_err(|error| Error::at_path("make", &folder, &error))?;
        }
        let path = server.proxy_path(&folder);
        let mut command = Command::new(&settings.program);
        command.arg("advise").arg(format!("--{}", server.option())).arg(server.url());
        command.arg("--volume").arg(volume).arg("--proxy").arg(&path);
        let log = beside.join("proxy.log");
        let file = std::fs::File::create(&log).map_err(|error| Error::at_path("write", &log, &error))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(|error| Error::at_path("start", &settings.program, &error))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut line);
        }
        let proxy = Proxy { child, path };
        if line.starts_with("listening at ") {
            return Ok(proxy);
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        Err(Error::failed(format!("the proxy does not listen: {}", said.trim())))
    }

    /// A client that comes through the proxy.
    pub(super) async fn connect(&self, server: &Server) -> Result<Client> {
        server.connect_through(&self.path).await
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What the proxy costs clients that look rows up by their key.
#[derive(Debug, Clone, Serialize)]
pub struct ProxyCost {
    /// `proxy`.
    pub kind: &'static str,
    /// The median of a look-up by one client, in microseconds: straight to the server,
    pub direct_us_p50: f64,
    /// and through the proxy.
    pub proxied_us_p50: f64,
    /// Clients at once in the other half.
    pub clients: usize,
    /// Look-ups a second of all of them: straight to the server,
    pub direct_per_second: f64,
    /// and through the proxy.
    pub proxied_per_second: f64,
}

/// Measures it, both sides in turns.
pub(super) async fn cost(settings: &RdbmsSettings, server: &Server, proxy: &Proxy) -> Result<ProxyCost> {
    let connect = async |is_proxied: bool| match is_proxied {
        true => proxy.connect(server).await,
        false => server.connect().await,
    };
    let (mut latencies, mut rates) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for round in 0..2 * ROUNDS {
        let side = round % 2;
        let mut client = connect(side == 1).await?;
        latencies[side].extend(look_ups(&mut client, settings.look_ups / ROUNDS, round as u64).await?);
        client.close().await;
    }
    for round in 0..2 * ROUNDS {
        let side = round % 2;
        let connections = (0..settings.clients).map(|_| connect(side == 1));
        let clients = try_join_all(connections).await?;
        let seconds = Duration::from_secs_f64(settings.seconds / ROUNDS as f64);
        let begun = Instant::now();
        let tasks = clients.into_iter().enumerate().map(|(no, mut client)| {
            tokio::spawn(async move {
                let (mut random, mut done) = (SplitMix64::new(no as u64 + 1), 0u64);
                while begun.elapsed() < seconds {
                    client.rows(&look_up(&mut random)).await?;
                    done += 1;
                }
                client.close().await;
                Ok::<u64, Error>(done)
            })
        });
        let mut done = 0;
        for task in tasks.collect::<Vec<_>>() {
            done += task.await.map_err(|error| Error::failed(format!("a client stopped: {error}")))??;
        }
        rates[side].push(done as f64 / begun.elapsed().as_secs_f64());
    }
    let [direct_us, proxied_us] = latencies;
    let [direct, proxied] = rates;
    Ok(ProxyCost {
        kind: "proxy",
        direct_us_p50: median(direct_us),
        proxied_us_p50: median(proxied_us),
        clients: settings.clients,
        direct_per_second: median(direct),
        proxied_per_second: median(proxied),
    })
}

fn look_up(random: &mut SplitMix64) -> String {
    format!("select c_name from customer where c_custkey = {}", 1 + random.below(CUSTOMERS))
}

/// So many look-ups by one client; how long each took, in microseconds.
async fn look_ups(client: &mut Client, count: usize, seed: u64) -> Result<Vec<f64>> {
    let mut random = SplitMix64::new(seed + 1);
    // The first ones open the table and read its pages.
    for _ in 0..100 {
        client.rows(&look_up(&mut random)).await?;
    }
    let mut latencies = Vec::with_capacity(count);
    for _ in 0..count {
        let statement = look_up(&mut random);
        let begun = Instant::now();
        let rows = client.rows(&statement).await?;
        latencies.push(begun.elapsed().as_secs_f64() * 1e6);
        if rows.len() != 1 {
            return Err(Error::failed(format!("{statement} has {} rows", rows.len())));
        }
    }
    Ok(latencies)
}
