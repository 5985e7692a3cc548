//! FNV-1a with 64 bits as YCSB uses it (`Utils.fnvhash64`): over the eight bytes of a number, lowest first, made
//! non-negative.

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 1_099_511_628_211;

/// The hash of `value`, below 2^63 (but for one value in 2^64).
pub fn fnv_hash_64(value: u64) -> u64 {
    let hash = value.to_le_bytes().iter().fold(OFFSET_BASIS, |hash, octet| {
        // The definition's order: mixed in first, multiplied then.
        (hash ^ u64::from(*octet)).wrapping_mul(PRIME)
    });
    (hash as i64).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keys_of_a_ycsb_load_have_their_known_names() {
        // Keys that YCSB prints for its first records: user6284781860667377211, user8517097267634966620,
        // user1820151046732198393.
        assert_eq!(
            [0, 1, 2].map(fnv_hash_64),
            [6_284_781_860_667_377_211, 8_517_097_267_634_966_620, 1_820_151_046_732_198_393]
        );
    }
}
