//! What two keys begin with alike.

/// Bytes that `a` and `b` begin with alike.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
