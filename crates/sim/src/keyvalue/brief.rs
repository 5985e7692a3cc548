//! A store with a time to live, in every fourth story.
//!
//! Each of its keys is put once, and expires a second or some later: as the store has it, or as the write says. Whoever
//! reads finds it until then, and not from then on. The clock on the wall goes on over a power cut: what is found
//! behind one was written, and has not expired; what is missing has, or was not durable yet.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_kv::{Batch, CursorOptions, Durability, ErrorKind, Store, StoreSettings, WriteOptions};

use super::environment::wall_time_s;
use super::model::Keys;
use super::story::{SLACK, Teller, patient, value, walked};

/// Its name.
pub(super) const NAME: &str = "brief";

/// Seconds to live, unless a write says otherwise.
const LIFE_S: u32 = 1;

/// Whether the story has it.
pub(super) fn is_told(seed: u64) -> bool {
    seed % 4 == 2
}

/// Its settings: leaves so small that what expires lies in many.
pub(super) fn settings() -> StoreSettings {
    StoreSettings { time_to_live_s: Some(LIFE_S), leaf_bytes: 64 << 10, ..StoreSettings::default() }
}

/// One put.
#[derive(Debug, Clone)]
struct Put {
    value: Vec<u8>,
    life_s: u32,
    asked_at: Duration,
    /// When it was acknowledged, and when it is to be durable. Without it, it may be there or not.
    acknowledged: Option<(Duration, Duration)>,
}

impl Put {
    /// Seconds on the wall from which on it may be gone, and has to be, if it was not written later than `now`.
    fn expires_s(&self, now: Duration) -> (u64, u64) {
        let ended = self.acknowledged.map_or(now, |(at, _)| at);
        let life_s = u64::from(self.life_s);
        (wall_time_s(self.asked_at) + life_s, wall_time_s(ended).saturating_add(life_s))
    }
}

/// What was put.
#[derive(Debug, Clone, Default)]
pub(super) struct Brief {
    is_there: bool,
    puts: BTreeMap<Vec<u8>, Put>,
}

impl Brief {
    /// Of the story of that seed, before anything is put.
    pub(super) fn beginning(seed: u64) -> Brief {
        Brief { is_there: is_told(seed), ..Brief::default() }
    }

    /// Judges what was found by who read within the seconds `read_s` on the wall, once all that was durable at
    /// `durable_at` had to be there, and nothing was written after `now`.
    fn found(
        &self,
        found: &Keys,
        durable_at: Duration,
        now: Duration,
        read_s: &RangeInclusive<u64>,
    ) -> Result<(), String> {
        let name = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        for (key, value) in found {
            let put = self.puts.get(key).filter(|put| put.value == *value);
            let put = put.ok_or_else(|| format!("store {NAME}: nobody put so under {:?}", name(key)))?;
            let (_, last_s) = put.expires_s(now);
            if last_s <= *read_s.start() {
                return Err(format!("store {NAME}: key {:?} is there, and expired at {last_s} s", name(key)));
            }
        }
        for (key, put) in self.puts.iter().filter(|(key, _)| !found.contains_key(*key)) {
            let is_durable = put.acknowledged.is_some_and(|(_, at)| at <= durable_at);
            let (first_s, _) = put.expires_s(now);
            if is_durable && first_s > *read_s.end() {
                return Err(format!(
                    "store {NAME}: key {:?}, which lives until {first_s} s, is lost",
                    name(key)
                ));
            }
        }
        Ok(())
    }

    /// Judges what is found after a power cut at `now`, within some seconds on the wall; what is there then is durable,
    /// and nothing else comes.
    pub(super) fn judge(
        &mut self,
        found: Option<&(Keys, RangeInclusive<u64>)>,
        now: Duration,
    ) -> Result<(), String> {
        let Some((found, read_s)) = found else {
            let missing = || format!("the store {NAME} is not there");
            return if self.is_there { Err(missing()) } else { Ok(()) };
        };
        self.found(found, now, now, read_s)?;
        self.puts.retain(|key, _| found.contains_key(key));
        for put in self.puts.values_mut() {
            // Who was not told may have been late.
            let (at, _) = put.acknowledged.unwrap_or((now, now));
            put.acknowledged = Some((at, Duration::ZERO));
        }
        Ok(())
    }

    /// All that was acknowledged is durable.
    pub(super) fn closed(&mut self) {
        for (_, durable_at) in self.puts.values_mut().filter_map(|put| put.acknowledged.as_mut()) {
            *durable_at = Duration::ZERO;
        }
    }
}

impl Teller {
    /// The part of the one who writes what expires.
    pub(super) async fn fade(self, steps: u64, mut random: SplitMix64) -> Result<(), String> {
        let store = match self.database.open_store(NAME) {
            Ok(store) => store,
            Err(error) => return Err(format!("the store {NAME} is not there: {error}")),
        };
        for step in 0..steps {
            self.world.sleep(Duration::from_micros(random.below(200_000))).await;
            let goes_on = match random.below(8) {
                0 => self.tidy(&store).await?,
                1 | 2 => self.look_for_all(&store).await?,
                _ => self.put_briefly(&store, step, &mut random).await?,
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Has what expired dropped.
    async fn tidy(&self, store: &Store) -> Result<bool, String> {
        self.count("compaction of what expires");
        match store.compact().await {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NoSpace) => Ok(true),
            Err(_) if self.expects_errors => Ok(false),
            Err(error) => Err(format!("the store {NAME} cannot be compacted: {error}")),
        }
    }

    /// Walks over all of it.
    async fn look_for_all(&self, store: &Store) -> Result<bool, String> {
        self.count("walk over what expires");
        let began = wall_time_s(self.world.now());
        let found = match walked(store, CursorOptions::default(), true, &mut patient()).await {
            Ok(found) => found?,
            Err(_) if self.expects_errors => return Ok(false),
            Err(error) => return Err(format!("a cursor of the store {NAME} failed: {error}")),
        };
        let now = self.world.now();
        let brief = self.model.borrow().brief.clone();
        brief.found(&found, Duration::MAX, now, &(began..=wall_time_s(now))).map(|()| true)
    }

    /// Writes a batch.
    async fn put_briefly(&self, store: &Store, step: u64, random: &mut SplitMix64) -> Result<bool, String> {
        self.count("batch that expires");
        let own_s = (random.below(3) == 0).then(|| 1 + random.below(3) as u32);
        let durability = match random.below(3) {
            0 => Durability::Sync,
            _ => Durability::Within(1 + random.below(60) as u16),
        };
        let keys: Vec<Vec<u8>> =
            (0..1 + random.below(6)).map(|no| format!("b{step:04}/{no}").into_bytes()).collect();
        let asked_at = self.world.now();
        let mut batch = Batch::new();
        for key in &keys {
            let put =
                Put { value: value(random), life_s: own_s.unwrap_or(LIFE_S), asked_at, acknowledged: None };
            batch.put(store, key, &put.value);
            self.model.borrow_mut().brief.puts.insert(key.clone(), put);
        }
        let options =
            WriteOptions { durability: Some(durability), time_to_live_s: own_s, ..WriteOptions::default() };
        let written = self.database.write(batch, &options).await;
        let at = self.world.now();
        let durable_at = match (durability, &written) {
            (Durability::Sync, Ok(())) => at,
            // As for other batches: a device that fails may take it with it.
            (Durability::Within(_), Ok(())) if self.expects_errors => Duration::MAX,
            (Durability::Within(ms), Ok(())) => at + Duration::from_millis(ms.into()) + SLACK,
            (_, Err(_)) if self.expects_errors => return Ok(false),
            (_, Err(error)) => return Err(format!("a write that expires failed: {error}")),
        };
        let puts = &mut self.model.borrow_mut().brief.puts;
        for key in &keys {
            if let Some(put) = puts.get_mut(key) {
                put.acknowledged = Some((at, durable_at));
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A key that was asked for at 1 s, acknowledged at 2 s, durable at 3 s, and lives for five.
    fn one() -> (Brief, Keys) {
        let put = Put {
            value: b"value".to_vec(),
            life_s: 5,
            asked_at: SECOND,
            acknowledged: Some((2 * SECOND, 3 * SECOND)),
        };
        let keys = Keys::from([(b"key".to_vec(), put.value.clone())]);
        (Brief { is_there: true, puts: BTreeMap::from([(b"key".to_vec(), put)]) }, keys)
    }

    fn read(found: &Keys, at: Duration) -> (Keys, RangeInclusive<u64>) {
        (found.clone(), wall_time_s(at)..=wall_time_s(at))
    }

    fn judged(found: &Keys, now: Duration) -> Result<(), String> {
        one().0.judge(Some(&read(found, now)), now)
    }

    #[test]
    fn expiring_keys_are_present_until_they_expire() {
        let ((_, there), gone) = (one(), Keys::new());
        assert_eq!(judged(&there, 2 * SECOND), Ok(()));
        assert_eq!(judged(&gone, 2 * SECOND), Ok(()));
        assert!(judged(&gone, 3 * SECOND).unwrap_err().contains("is lost"));
        assert!(judged(&gone, 5 * SECOND).unwrap_err().contains("is lost"));
        for found in [&there, &gone] {
            assert_eq!(judged(found, 6 * SECOND), Ok(()));
        }
        assert_eq!(judged(&gone, 7 * SECOND), Ok(()));
        assert!(judged(&there, 7 * SECOND).unwrap_err().contains("expired"));
        let other = Keys::from([(b"key".to_vec(), b"other".to_vec())]);
        assert!(judged(&other, 3 * SECOND).unwrap_err().contains("nobody put"));
    }

    #[test]
    fn found_keys_stay_until_they_expire() {
        let (mut brief, there) = one();
        let mut judged = |found: &Keys, at| brief.judge(Some(&read(found, at)), 2 * SECOND);
        assert_eq!(judged(&there, 2 * SECOND), Ok(()));
        assert!(judged(&Keys::new(), 4 * SECOND).unwrap_err().contains("is lost"));
        assert_eq!(judged(&Keys::new(), 7 * SECOND), Ok(()));
        // It does not come back.
        assert!(judged(&there, 2 * SECOND).is_err());
        assert!(brief.judge(None, 2 * SECOND).unwrap_err().contains("not there"));
        assert_eq!(Brief::beginning(1).judge(None, SECOND), Ok(()));
    }
}
