//! What was pushed out not long ago.

/// Fingerprints of keys. A new one takes the place of another one, so that most are forgotten when about as many have
/// come as there are places.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    places: Vec<u32>,
}

/// Returns the fingerprint of a key, never 0, which marks an empty slot. Keys of a shard share some bits of their
/// hashes.
fn fingerprint(hash: u64) -> u32 {
    (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32 | 1
}

/// The table shrinks when it has more than this many slots for each key.
const SHRINK_FACTOR: usize = 4;

impl Ghosts {
    /// Has space for as many as `count`, and not much more.
    pub(super) fn fit(&mut self, count: usize) {
        let places = count.max(16).next_power_of_two();
        if places <= self.places.len() && self.places.len() <= SHRINK_FACTOR * places {
            return;
        }
        let before = std::mem::replace(&mut self.places, vec![0; places]);
        before
            .into_iter()
            .filter(|fingerprint| *fingerprint != 0)
            .for_each(|fingerprint| self.put(fingerprint));
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.len() * size_of::<u32>()
    }

    fn place(&self, fingerprint: u32) -> usize {
        (fingerprint >> 1) as usize & (self.places.len() - 1)
    }

    fn put(&mut self, fingerprint: u32) {
        let place = self.place(fingerprint);
        self.places[place] = fingerprint;
    }

    pub(super) fn add(&mut self, hash: u64) {
        if !self.places.is_empty() {
            self.put(fingerprint(hash));
        }
    }

    /// Returns whether it is one of them, from now on not any more.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        let fingerprint = fingerprint(hash);
        let is_one = !self.places.is_empty() && self.places[self.place(fingerprint)] == fingerprint;
        if is_one {
            let place = self.place(fingerprint);
            self.places[place] = 0;
        }
        is_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(ghosts: &mut Ghosts, hashes: impl Iterator<Item = u64>) -> usize {
        hashes.filter(|hash| ghosts.take(*hash)).count()
    }

    #[test]
    fn ghosts_remember_as_many_keys_as_fit() {
        // As of keys of one shard.
        let hash = |no: u64| (no + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93) & !(63 << 40);
        let mut ghosts = Ghosts::default();
        ghosts.add(hash(0));
        assert!(!ghosts.take(hash(0)), "there is no room yet");
        ghosts.fit(1000);
        assert_eq!(ghosts.bytes(), 4096);
        (0..500).for_each(|no| ghosts.add(hash(no)));
        ghosts.fit(2000);
        let told = known(&mut ghosts, (0..500).map(hash));
        assert!((350..=500).contains(&told), "{told}");
        assert_eq!(known(&mut ghosts, (0..500).map(hash)), 0, "each is told once");
        assert_eq!(known(&mut ghosts, (500..1000).map(hash)), 0, "no other is known");
        (0..500).for_each(|no| ghosts.add(hash(no)));
        ghosts.fit(600);
        assert_eq!(ghosts.bytes(), 8192, "that is not much more");
        ghosts.fit(250);
        assert_eq!(ghosts.bytes(), 1024);
        assert!(known(&mut ghosts, (0..500).map(hash)) > 150);
    }
}
