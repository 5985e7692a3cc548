//! The task that has statements explained and tells the mount of them.
//!
//! 1. The announcement of a fingerprint is kept for a minute, or until plans change; that a statement is not explained,
//!    too.
//! 2. Its connections, to the server and to the mount, are made when they are wanted. When one fails, both are given
//!    up, and made again after a pause that grows; statements meanwhile are left out.
//! 3. As soon as a connection passes unseen, the server's list of running statements is looked at every quarter of a
//!    second. A statement that is shorter is not found there.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::sync::mpsc::Receiver;

use super::Unseen;
use super::statement::Event;
use crate::message::Announcement;
use crate::{
    Advisor, Client, Error, ErrorKind, FileLayout, PlanSource, Purpose, Result, RunningStatement, Statistics,
    fingerprint, purpose,
};

/// Fingerprints whose announcements are kept.
const MAX_KNOWN: usize = 4096;
/// How long an announcement is kept: tables grow.
const MAX_AGE: Duration = Duration::from_secs(60);
/// How often the server's list of statements is looked at, if there are connections that pass unseen.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Tells connections that are known from that list from those of the proxy.
const LISTED: u64 = 1 << 63;
/// Events that are taken at once,
const MAX_BATCH: usize = 256;
/// and the pause behind them, so that thousands of small statements cost few wakeups.
const PAUSE: Duration = Duration::from_millis(2);
/// How long an explanation may take.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The pauses between attempts to connect.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// Connections to the server and to the mount.
pub struct Explainer<P, L> {
    /// Asks the server and its files.
    pub advisor: Advisor<P, L>,
    /// Tells the mount.
    pub client: Client,
}

/// Makes the connections.
pub type Connect<P, L> = Box<dyn Fn() -> BoxFuture<'static, Result<Explainer<P, L>>> + Send + Sync>;

/// What is kept between events.
struct State<P, L> {
    connect: Connect<P, L>,
    connected: Option<Explainer<P, L>>,
    failures: usize,
    not_before: Option<Instant>,
    /// `None` where there is nothing to tell.
    known: HashMap<u64, (Option<Announcement>, Instant)>,
    /// Numbers of queries and their fingerprints, by connections and statements.
    running: BTreeMap<(u64, u64), (u32, u64)>,
    /// Fingerprints of statements that were found in the server's list, by connections.
    listed: HashMap<u64, u64>,
    has_warned: bool,
}

/// Handles events until there are no more.
pub async fn explain<P, L>(connect: Connect<P, L>, mut events: Receiver<Event>, unseen: Arc<Unseen>)
where
    P: PlanSource + Statistics,
    L: FileLayout,
{
    let mut state = State {
        connect,
        connected: None,
        failures: 0,
        not_before: None,
        known: HashMap::new(),
        running: BTreeMap::new(),
        listed: HashMap::new(),
        has_warned: false,
    };
    let mut batch = Vec::new();
    loop {
        match tokio::time::timeout(LOOK_EVERY, events.recv_many(&mut batch, MAX_BATCH)).await {
            // There are no more.
            Ok(0) => break,
            Ok(_) => {}
            Err(_) if unseen.is_any() => state.look(&mut batch).await,
            Err(_) => continue,
        }
        for event in batch.drain(..) {
            let handled = tokio::time::timeout(MAX_WAIT, state.handle(event)).await;
            let late = |_| Err(Error::new(ErrorKind::Server, "no answer within five seconds"));
            if let Err(error) = handled.unwrap_or_else(late) {
                state.fail(&error);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl<P: PlanSource + Statistics, L: FileLayout> State<P, L> {
    fn fail(&mut self, error: &Error) {
        self.connected = None;
        // The mount ends a client's queries with its connection.
        self.running.clear();
        self.not_before = Some(Instant::now() + PAUSES[self.failures.min(PAUSES.len() - 1)]);
        self.failures += 1;
        if !std::mem::replace(&mut self.has_warned, true) {
            tanada_io::warn(&format!("statements pass without advice for now: {error}"));
        }
    }

    async fn connected(&mut self) -> Result<Option<&mut Explainer<P, L>>> {
        if self.connected.is_none() {
            if self.not_before.is_some_and(|then| Instant::now() < then) {
                return Ok(None);
            }
            self.connected = Some((self.connect)().await?);
            self.has_warned = false;
        }
        Ok(self.connected.as_mut())
    }

    async fn handle(&mut self, event: Event) -> Result<()> {
        match event {
            Event::PlansChange => {
                self.known.clear();
                if let Some(connected) = &mut self.connected {
                    connected.advisor.forget();
                }
                Ok(())
            }
            Event::Begins { connection, no, database, statement, prepared } => {
                let text = prepared.as_deref().unwrap_or(&statement);
                let key = fingerprint(database.as_deref(), text);
                if self.connected().await?.is_none() {
                    return Ok(());
                }
                if self.known.get(&key).is_none_or(|(_, at)| at.elapsed() > MAX_AGE) {
                    let explained = self.explained(database.as_deref(), &statement, key).await?;
                    if self.known.len() >= MAX_KNOWN {
                        self.known.clear();
                    }
                    self.known.insert(key, (explained, Instant::now()));
                }
                if let Some((Some(announcement), _)) = self.known.get(&key)
                    && let Some(connected) = &mut self.connected
                {
                    let query = connected.client.begin(announcement).await?;
                    self.running.insert((connection, no), (query, key));
                }
                self.failures = 0;
                Ok(())
            }
            Event::Ends { connection, no } => {
                let over: Vec<(u64, u64)> =
                    self.running.range((connection, 0)..=(connection, no)).map(|(key, _)| *key).collect();
                for key in over {
                    let query = self.running.remove(&key);
                    if let (Some((query, _)), Some(connected)) = (query, &mut self.connected) {
                        connected.client.end(query).await?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Adds what has begun and ended in the server's list of statements since the last look. What was seen on its way
    /// is left out.
    async fn look(&mut self, batch: &mut Vec<Event>) {
        let Ok(Some(connected)) = self.connected().await else { return };
        let asked = tokio::time::timeout(MAX_WAIT, connected.advisor.server.statements()).await;
        let Ok(Ok(statements)) = asked else { return };
        let mut listed = HashMap::new();
        for RunningStatement { connection, database, statement } in statements {
            let key = fingerprint(database.as_deref(), &statement);
            let is_seen = || self.running.iter().any(|((of, _), (_, other))| *of < LISTED && *other == key);
            let was_listed = self.listed.get(&connection) == Some(&key);
            if purpose(&statement) != Purpose::Reads || (!was_listed && is_seen()) {
                continue;
            }
            listed.insert(connection, key);
            if !was_listed {
                batch.push(Event::Ends { connection: LISTED | connection, no: 1 });
                let connection = LISTED | connection;
                batch.push(Event::Begins { connection, no: 1, database, statement, prepared: None });
            }
        }
        let gone = self.listed.keys().filter(|connection| !listed.contains_key(connection));
        batch.extend(gone.map(|connection| Event::Ends { connection: LISTED | connection, no: 1 }));
        self.listed = listed;
    }

    /// What a statement reads in the volume; `None` if that is nothing, or the server refuses to explain it while the
    /// connection is sound.
    async fn explained(
        &mut self,
        database: Option<&str>,
        statement: &str,
        key: u64,
    ) -> Result<Option<Announcement>> {
        let Some(connected) = &mut self.connected else { return Ok(None) };
        match connected.advisor.announcement(database, statement).await {
            Ok(announcement) if announcement.accesses.is_empty() => Ok(None),
            Ok(announcement) => Ok(Some(Announcement { fingerprint: key, ..announcement })),
            Err(error) => match connected.advisor.server.accesses(None, "select 1").await {
                Ok(_) => Ok(None),
                Err(_) => Err(error),
            },
        }
    }
}
