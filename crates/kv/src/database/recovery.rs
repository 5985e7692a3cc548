//! Recovery: the log is replayed into memtables, a new manifest is begun, and orphans are deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tanada_volume::Claim;

use crate::cache::Owner;
use crate::classes::Classes;
use crate::crash::{CrashPoints, PlantedBug};
use crate::database::commit::committer::insert;
use crate::database::shared::Writing;
use crate::database::space::size_limits::log_segment_bytes;
use crate::database::state::store_state::StoreState;
use crate::entry::{SegmentNo, SequenceNo};
use crate::environment::Environment;
use crate::log::BLOCK;
use crate::log::frame::StoreNo;
use crate::log::replay::{ReplayFrom, Replayed, replay};
use crate::log::segment::PlacedSegment;
use crate::log::writer::{Appended, Log, LogOptions};
use crate::manifest::{DatabaseRecord, LogRecord, Manifest};
use crate::memory::{Blocks, Memtable};
use crate::objects::{ObjectKind, Objects};
use crate::opening::{OpenOptions, RecoveryProgress};
use crate::tree::Opener;
use crate::{Error, ErrorKind, Result};

/// The state that a replay builds.
pub(crate) struct Recovered {
    pub(crate) stores: BTreeMap<StoreNo, Arc<StoreState>>,
    pub(crate) sequence: SequenceNo,
    pub(crate) replayed: Replayed,
    /// Segments that are neither referenced nor part of the log.
    pub(crate) orphans: Vec<(ObjectKind, u64)>,
}

/// The objects of a database, by what they are to it.
struct Sorted {
    /// Segments that trees know.
    pub(crate) known_segments: BTreeSet<SegmentNo>,
    /// Segments that may be of the log, ascending.
    pub(crate) candidates: Vec<SegmentNo>,
    /// Objects that nothing references.
    pub(crate) orphans: Vec<(ObjectKind, u64)>,
}

/// Takes copies that are lost out of what is to be opened. The segments of values that there were before: what lies in
/// those of lost copies is not of the log.
pub(crate) async fn leave_out_lost_copies(
    opener: &Opener,
    state: &mut DatabaseRecord,
) -> Result<BTreeSet<SegmentNo>> {
    let mut value_segments = BTreeSet::new();
    for store in state.stores.values_mut() {
        value_segments.extend(store.tree.segments.keys().copied());
        opener.leave_out_lost_copies(&mut store.tree).await?;
    }
    Ok(value_segments)
}

/// `value_segments` are those that the manifest knows, some of which may belong to copies that are lost.
fn sorted(objects: &Objects, state: &DatabaseRecord, value_segments: &BTreeSet<SegmentNo>) -> Sorted {
    let mut known_segments: BTreeSet<SegmentNo> = BTreeSet::new();
    let mut known_keys: BTreeSet<u64> = BTreeSet::new();
    for store in state.stores.values() {
        known_segments.extend(store.tree.references().keys().chain(store.tree.mirrors.keys()));
        known_segments.extend(store.tree.segments.keys());
        known_keys.extend(store.tree.kvsets().map(|kvset| kvset.no));
    }
    let first = state.log.segment.unwrap_or(0);
    let (mut candidates, mut orphans) = (Vec::new(), Vec::new());
    for (kind, no) in objects.list() {
        match kind {
            ObjectKind::Segment if no >= first && !value_segments.contains(&no) => candidates.push(no),
            ObjectKind::Segment if !known_segments.contains(&no) => orphans.push((kind, no)),
            ObjectKind::Keys if !known_keys.contains(&no) => orphans.push((kind, no)),
            _ => {}
        }
    }
    candidates.sort_unstable();
    Sorted { known_segments, candidates, orphans }
}

/// Replays the log into memtables.
pub(crate) async fn recover(
    opener: &Opener,
    (state, value_segments): (&DatabaseRecord, &BTreeSet<SegmentNo>),
    options: &OpenOptions,
    (instance, next_table, blocks): (u64, &AtomicU64, &Arc<Blocks>),
) -> Result<Recovered> {
    let objects = &opener.objects;
    let table = || {
        let no = next_table.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Memtable::new(no, state.log.begin, blocks)
    };
    let mut stores: BTreeMap<StoreNo, Arc<StoreState>> = BTreeMap::new();
    for (no, store) in &state.stores {
        let tree = opener.holding(store.settings.filters.at_opening()).open_tree(&store.tree).await?;
        let owner = Owner::next(&opener.cache);
        let store = StoreState::new(instance, *no, &store.name, &store.settings, (table(), tree), owner);
        stores.insert(*no, store);
    }
    let Sorted { known_segments, candidates, mut orphans } = sorted(objects, state, value_segments);
    let from = ReplayFrom {
        database: state.identity,
        lsn: state.log.begin,
        segment: state.log.segment,
        durable: state.log.durable,
        takes_torn: options.crash_points.has(PlantedBug::CutTooLate),
    };
    let mut sequence = state.log.sequence;
    let flushed: BTreeMap<StoreNo, u64> =
        state.stores.iter().map(|(no, store)| (*no, store.flushed)).collect();
    let mut last = 0;
    let mut on_frame = |frame: crate::log::frame::Frame, place: crate::log::replay::FramePlace| {
        if frame.sequence <= last {
            return Err(Error::corrupted(format!(
                "the log's frame at LSN {} has sequence number {}, and {last} was before",
                frame.lsn, frame.sequence
            )));
        }
        last = frame.sequence;
        sequence = sequence.max(frame.sequence);
        let appended = Appended { segment: place.segment, offset: place.payload, end: frame.lsn };
        let left_out = usize::from(options.crash_points.has(PlantedBug::ReplayInPart));
        let left_out = left_out.min((frame.payload.operations as usize).saturating_sub(1));
        for operation in frame.payload.latest_first().skip(left_out) {
            // A store is in the manifest, durably, before anybody has it.
            if operation.store >= state.next_store.max(1) {
                return Err(Error::corrupted(format!(
                    "the log writes to store {} at LSN {}, and the manifest knows of none of that number: it has lost its end",
                    operation.store, frame.lsn
                )));
            }
            // Operations that were flushed, or are of dropped stores, are skipped.
            if let Some(store) = stores.get(&operation.store)
                && flushed.get(&operation.store).is_some_and(|flushed| frame.lsn >= *flushed)
            {
                let table = store.view.read().active.clone();
                insert(&table, store, operation, frame.sequence, appended);
            }
        }
        Ok(())
    };
    let mut on_progress = |progress: &RecoveryProgress| {
        if let Some(told) = &options.progress {
            told(progress);
        }
    };
    let replayed =
        replay(objects, &opener.segments, &candidates, from, &mut on_frame, &mut on_progress).await?;
    for no in candidates {
        let is_log = replayed.segments.iter().any(|segment| segment.no == no);
        if !is_log && !known_segments.contains(&no) {
            orphans.push((ObjectKind::Segment, no));
        }
    }
    Ok(Recovered { stores, sequence, replayed, orphans })
}

/// Makes what was recovered durable, and begins a new part of the log.
pub(crate) async fn begin_writing(
    opener: &Opener,
    mut state: DatabaseRecord,
    recovered: &Recovered,
    crash: CrashPoints,
    environment: Arc<dyn Environment>,
    classes: Arc<Classes>,
    claim: Arc<Claim>,
) -> Result<Writing> {
    let objects = &opener.objects;
    let Replayed { cut, end, segments, last, .. } = &recovered.replayed;
    if let Some((object, used)) = last {
        settle_segment(object, *used).await?;
    }
    state.log = LogRecord {
        // The replayed log is durable, and a later opening must not find less.
        durable: *cut,
        segment: segments.first().map(|segment| segment.no).or(state.log.segment),
        ..state.log
    };
    let options = LogOptions {
        segment_bytes: log_segment_bytes(objects.volume(), &state.settings),
        group_bytes: state.settings.group_bytes(),
        waiting_bytes: state.settings.waiting_log_bytes(),
        database: state.identity,
        epoch: state.epoch,
        start: *end,
        durable: *cut,
    };
    debug_assert!(end.is_multiple_of(BLOCK));
    let begin = |state| Manifest::begin(objects.clone(), classes.clone(), state, crash.clone());
    let mut begun = begin(state.clone()).await;
    if begun.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) && !recovered.orphans.is_empty()
    {
        // The room may be what a stop left behind, which nothing leads to.
        for (kind, no) in &recovered.orphans {
            objects.delete(*kind, *no).await?;
        }
        begun = begin(state).await;
    }
    let manifest = begun?;
    // CRASH: the next opening finds the same orphans.
    crash.reached("open.before-orphans");
    for (kind, no) in recovered.orphans.iter().filter(|(kind, no)| objects.find(*kind, *no).is_some()) {
        objects.delete(*kind, *no).await?;
    }
    // CRASH: as before, or they are gone.
    crash.reached("open.after-orphans");
    let placed: Vec<PlacedSegment> = segments.clone();
    let segments = opener.segments.clone();
    let log = Log::start(options, classes, placed, objects.clone(), segments, environment, crash);
    log.keep_until_ended(claim);
    Ok(Writing { log, manifest })
}

/// Cuts off what was torn, and makes what stands before it durable: it may have been read from a cache of the device.
async fn settle_segment(object: &tanada_volume::Object, used: u64) -> Result<()> {
    let failed = |error| Error::volume("cannot settle the log's last segment", &error);
    let used = used.next_multiple_of(BLOCK);
    object.resize(used).await.map_err(failed)?;
    match object.write_bytes(used, &[0; BLOCK as usize]).await {
        Err(error) if error.kind() != tanada_volume::ErrorKind::NoSpace => return Err(failed(error)),
        _ => {}
    }
    object.sync().await.map_err(failed)
}
