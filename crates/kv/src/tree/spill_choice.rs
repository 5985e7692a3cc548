//! Which kvsets of the root are spilled, and which are merged there.

use super::edit::{KvsetNo, KvsetRecord};
use super::job::{Job, PickSettings, Picked, Surroundings, data_bytes, key_bytes, numbers};
use super::shape::Tree;
use crate::tuning::tree::PICKS;

/// Values that it has apart from its keys.
fn values<K: AsRef<KvsetRecord>>(kvset: &K) -> u64 {
    kvset.as_ref().info.references.iter().map(|references| references.values).sum()
}

pub(crate) fn pick_spill<K: AsRef<KvsetRecord>>(
    tree: &Tree<K>,
    settings: &PickSettings,
    around: &Surroundings,
) -> Option<Picked> {
    let bytes: u64 = tree.root.iter().map(data_bytes).sum();
    let by_number = tree.root.len() as f64 / settings.root_kvsets.max(1) as f64;
    let by_bytes = bytes as f64 / settings.root_bytes.max(1) as f64;
    let oldest = tree.root.last()?;
    // Output that precedes any freed space has to fit.
    let free_bytes = around.free_bytes.filter(|_| around.is_tight).unwrap_or(u64::MAX);
    let mut chosen = vec![oldest.as_ref().no];
    let (mut spilled, mut values) = (data_bytes(oldest), values(oldest));
    for kvset in tree.root.iter().rev().skip(1) {
        spilled += data_bytes(kvset);
        values += self::values(kvset);
        let is_one_round = values <= settings.moved_values && spilled <= settings.moved_bytes;
        if spilled > free_bytes / 2 || (spilled > settings.spill_bytes && !is_one_round) {
            break;
        }
        chosen.push(kvset.as_ref().no);
    }
    chosen.reverse();
    let pressure = by_number.max(by_bytes).max(around.log_pressure.min(PICKS.max_log_urgency));
    Some(Picked { job: Job::Spill { kvsets: chosen }, pressure })
}

/// Returns the root kvsets to merge, newest first; none if there are too few. The oldest is left to spills, and so are
/// those that are taken or older than a taken one. The merge has at most `most_bytes` of keys and values.
pub(crate) fn pick_merge<K: AsRef<KvsetRecord>>(
    root: &[K],
    settings: &PickSettings,
    most_bytes: u64,
    is_taken: impl Fn(KvsetNo) -> bool,
) -> Vec<KvsetNo> {
    let candidates = root.iter().take(root.len().saturating_sub(1));
    let candidates: Vec<&K> = candidates.take_while(|kvset| !is_taken(kvset.as_ref().no)).collect();
    let (mut newer, mut bytes, mut count) = (0, 0, 0);
    for (index, kvset) in candidates.iter().enumerate() {
        bytes += data_bytes(kvset);
        if bytes > most_bytes || (index >= 2 && key_bytes(kvset) > PICKS.leave_out_factor * newer) {
            break;
        }
        newer += key_bytes(kvset);
        count += 1;
    }
    if count < settings.root_kvsets.div_ceil(2).max(2) {
        return Vec::new();
    }
    numbers(&candidates[..count])
}
