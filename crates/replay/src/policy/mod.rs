//! Policies for replays alone: caches of blocks and other systems' ways, to compare with.
//!
//! They run the fast class as other systems do, so no volume follows them; those that can act on a volume are
//! `tanada_placement`'s. What each one does and whose it is: `docs/placement.md`.

mod blocks;
mod bufferpool_extension;
mod in_page_logging;
mod learned;
mod lru;
mod priority;
mod smq;
mod streams;
mod write_back;

use tanada_placement::{Policy, Registered, Result, policy_among};

/// All policies that a replay knows: those of volumes, ours first, and those of other systems.
pub const POLICIES: [Registered; 13] = [
    tanada_placement::POLICIES[0],
    tanada_placement::POLICIES[1],
    tanada_placement::POLICIES[2],
    tanada_placement::POLICIES[3],
    Registered {
        name: "lru",
        summary: "FlashCache: a read cache of blocks; fifo, skip-sequential[=SIZE], ways=N, block=SIZE",
        make: lru::make,
    },
    Registered {
        name: "write-back",
        summary: "bcache: a write-back cache in buckets; cutoff=SIZE, bucket=SIZE, dirty=PERCENT, block=SIZE",
        make: write_back::make,
    },
    Registered { name: "smq", summary: "dm-cache: multi-queue hotspots; block=SIZE", make: smq::make },
    Registered {
        name: "priority",
        summary: "hStorage-DB: a block cache by the requests' class and plan level; block=SIZE",
        make: priority::make,
    },
    Registered {
        name: "learned",
        summary: "CLIC: a block cache by learned hint sets; window=N, top=N, block=SIZE",
        make: learned::make,
    },
    tanada_placement::POLICIES[4],
    tanada_placement::POLICIES[5],
    Registered {
        name: "bufferpool-extension",
        summary: "clean pages that the page cache gives up, LRU-2; block=SIZE",
        make: bufferpool_extension::make,
    },
    Registered {
        name: "in-page-logging",
        summary: "updates go to log sectors of their erase unit; unit=SIZE, sectors=N",
        make: in_page_logging::make,
    },
];

/// Whether the policy called `name` can act on a volume.
pub fn is_live(name: &str) -> bool {
    tanada_placement::POLICIES.iter().any(|registered| registered.name == name)
}

/// The policy that `text` describes: `name[:option[=value],...]`. `seed` is for what a policy draws; the same seed, the
/// same decisions.
///
/// ```
/// let policy = tanada_replay::policy("lru:fifo,skip-sequential", 0)?;
/// assert_eq!(policy.name(), "lru");
/// # Ok::<(), tanada_placement::Error>(())
/// ```
///
/// # Errors
/// If there is no such policy or option, with what there is.
pub fn policy(text: &str, seed: u64) -> Result<Box<dyn Policy>> {
    policy_among(&POLICIES, text, seed)
}

#[cfg(test)]
pub(crate) mod tests {
    use tanada_placement::testing::Bench;

    use super::*;

    /// The policy that `text` describes, on a bench.
    pub(crate) fn bench(text: &str, chunks: u64, capacity: u32) -> Bench {
        Bench::new(policy(text, 1).unwrap(), chunks, capacity)
    }

    #[test]
    fn policies_are_made_by_name_and_refuse_unknown_options() {
        for registered in POLICIES {
            assert_eq!(policy(registered.name, 1).unwrap().name(), registered.name);
            let error = policy(&format!("{}:no-such-option", registered.name), 1).unwrap_err();
            assert!(error.to_string().contains("no-such-option"), "{error}");
        }
        // Each policy of volumes is known to replays, once.
        let live = POLICIES.iter().filter(|registered| is_live(registered.name)).count();
        assert_eq!(live, tanada_placement::POLICIES.len());
    }

    #[test]
    fn numbers_that_no_policy_can_use_are_refused() {
        for (text, expected) in [
            ("in-page-logging:sectors=4294967295", "sectors is a number from 1 to 256"),
            ("in-page-logging:unit=4KiB,sectors=9", "sectors is a number from 1 to 8"),
            ("write-back:dirty=101", "dirty is a number from 0 to 100"),
            ("lru:ways=4294967295", "ways is a number from 1 to 134217728"),
            ("learned:top=0", "top is a number from 1 to 134217728"),
            ("learned:window=18446744073709551615", "window is a number from 1 to 134217728"),
            ("smq:block=18446744073709551615", "block is 512 bytes to 1 GiB"),
        ] {
            let error = policy(text, 1).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
