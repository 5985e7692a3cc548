//! From a statement to what a mount is told of it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::client::Mounts;
use crate::estimate::reads;
use crate::fingerprint::fingerprint;
use crate::message::{Announcement, ObjectReads};
use crate::{FileLayout, IndexPlaces, PlanSource, Result, Statistics};

/// Tables whose places are kept.
const MAX_TABLES: usize = 4096;

/// How long the places of a table are kept.
const MAX_AGE: Duration = Duration::from_secs(60);

/// What is known of a table.
struct Known {
    places: Vec<IndexPlaces>,
    rows: Option<f64>,
    /// Bytes that its files had when they were looked at,
    bytes: u64,
    /// and when that was.
    at: Instant,
}

impl Known {
    /// Whether it was looked at within a minute, and its files have neither grown nor shrunk by more than an eighth. A
    /// server writes what it has changed when it likes, so what its files say may change without that.
    fn holds(&self) -> bool {
        self.at.elapsed() < MAX_AGE && bytes_of(&self.places).abs_diff(self.bytes) <= self.bytes / 8
    }
}

/// Bytes of the files, each counted as often as an index lies in it.
fn bytes_of(places: &[IndexPlaces]) -> u64 {
    let bytes = |place: &IndexPlaces| std::fs::metadata(&place.file).map_or(0, |metadata| metadata.len());
    places.iter().map(bytes).sum()
}

/// Asks a system about statements, and its files about tables.
pub struct Advisor<P, L> {
    /// What the system plans and counts.
    pub server: P,
    layout: L,
    mounts: Mounts,
    tables: HashMap<(String, String), Known>,
    /// I/Os that a statement keeps in flight.
    depth: u32,
}

impl<P: PlanSource + Statistics, L: FileLayout> Advisor<P, L> {
    /// Of a system whose files lie in a volume that is mounted. It executes a statement with one I/O in flight.
    pub fn new(server: P, layout: L, mounts: Mounts) -> Advisor<P, L> {
        Advisor { server, layout, mounts, tables: HashMap::new(), depth: 1 }
    }

    /// Tables may have changed.
    pub fn forget(&mut self) {
        self.tables.clear();
        self.layout.forget();
    }

    /// What a statement is going to read of objects of the volume.
    ///
    /// # Errors
    /// If the server does not explain it. A table whose files cannot be read is left out.
    pub async fn announcement(&mut self, database: Option<&str>, statement: &str) -> Result<Announcement> {
        let planned = self.server.accesses(database, statement).await?;
        let mut accesses = Vec::new();
        for access in &planned {
            let key = (access.database.clone(), access.table.clone());
            if !self.tables.get(&key).is_some_and(Known::holds) {
                let places = match self.layout.places(&access.database, &access.table).await {
                    Ok(places) => places,
                    // A table of memory, or one that is gone since.
                    Err(_) => continue,
                };
                let rows = self.server.rows(&access.database, &access.table).await.unwrap_or(None);
                if self.tables.len() >= MAX_TABLES {
                    self.tables.clear();
                }
                let bytes = bytes_of(&places);
                self.tables.insert(key.clone(), Known { places, rows, bytes, at: Instant::now() });
            }
            if let Some(known) = self.tables.get(&key) {
                accesses.extend(self.mounts.objects(reads(access, &known.places, known.rows)));
            }
        }
        Ok(Announcement { fingerprint: fingerprint(database, statement), depth: self.depth, accesses })
    }

    /// What the server has counted for objects of the volume.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub async fn counted(&mut self) -> Result<Vec<ObjectReads>> {
        let reads = self.server.file_reads().await?;
        let of = |reads: crate::FileReads| {
            let object = self.mounts.object(&reads.file)?;
            Some(ObjectReads { object, reads: reads.reads, bytes: reads.bytes })
        };
        Ok(reads.into_iter().filter_map(of).collect())
    }
}
