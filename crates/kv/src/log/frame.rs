//! Frames: what one batch is in the log.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | magic |
//! | 4 | CRC-32C of what follows in the header |
//! | 8 | LSN of the frame |
//! | 8 | sequence number |
//! | 4 | bytes of the payload |
//! | 4 | CRC-32C of the payload without values |
//! | 4 | operations |
//! | 4 | the epoch's low bits |
//!
//! The payload has one operation after another:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | kind: 1 put, 2 delete, 3 delete a range, 4 delete a range without end |
//! | 1 | codec of the value |
//! | 4 | store |
//! | 4 | bytes of the key (of a range: of its first key) |
//! | 4 | bytes of the value as it is stored (of a range: of the first key behind it) |
//! | 4 | bytes of the value |
//! | 4 | seconds since 1970 at which it expires, 0 for never |
//! | 4 | CRC-32C of the stored value |
//! | | key, stored value |
//!
//! Each byte is under one checksum: values under their own, which pointers to them carry too, everything else under the
//! payload's or the header's. All but the header is made outside of any lock.

use bytes::{Buf, Bytes};
use tanada_base::Reader;

use super::Lsn;
use crate::entry::{Codec, LONGEST_KEY, LONGEST_VALUE, Pair, SequenceNo};

/// Number of a store in its database.
pub(crate) type StoreNo = u32;

/// Bytes of a frame's header.
pub(crate) const FRAME_HEADER: usize = 40;

/// Bytes of an operation before its key.
pub(crate) const OPERATION_HEADER: usize = 26;

/// Most bytes of a frame's payload.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 512 << 20;

const MAGIC: u32 = u32::from_be_bytes(*b"TKfr");

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Put,
    Delete,
    /// From the key on to the key in the value's place.
    DeleteRange,
    /// From the key on.
    DeleteFrom,
}

impl OperationKind {
    fn from_byte(byte: u8) -> Option<OperationKind> {
        match byte {
            1 => Some(OperationKind::Put),
            2 => Some(OperationKind::Delete),
            3 => Some(OperationKind::DeleteRange),
            4 => Some(OperationKind::DeleteFrom),
            _ => None,
        }
    }

    fn byte(self) -> u8 {
        match self {
            OperationKind::Put => 1,
            OperationKind::Delete => 2,
            OperationKind::DeleteRange => 3,
            OperationKind::DeleteFrom => 4,
        }
    }
}

/// One operation of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) store: StoreNo,
    pub(crate) kind: OperationKind,
    /// The key and the value as it is stored, in the payload's memory.
    pub(crate) pair: Pair,
    /// The value's length, which differs from that of what is stored if that is compressed.
    pub(crate) value_len: u32,
    pub(crate) codec: Codec,
    pub(crate) expires_s: Option<u32>,
    /// Checksum of the stored value.
    pub(crate) checksum: u32,
    /// Offset of the stored value in the payload.
    pub(crate) value_at: usize,
}

impl Operation {
    /// The same, to be added to another payload.
    pub(crate) fn as_new(&self) -> NewOperation<'_> {
        NewOperation {
            store: self.store,
            kind: self.kind,
            key: self.pair.key(),
            value: self.pair.value(),
            value_len: self.value_len,
            codec: self.codec,
            expires_s: self.expires_s,
        }
    }
}

/// An operation that is being added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewOperation<'a> {
    pub(crate) store: StoreNo,
    pub(crate) kind: OperationKind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) value_len: u32,
    pub(crate) codec: Codec,
    pub(crate) expires_s: Option<u32>,
}

/// A payload while it is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct PayloadBuilder {
    bytes: Vec<u8>,
    checksum: u32,
    operations: u32,
}

impl PayloadBuilder {
    pub(crate) fn with_capacity(bytes: usize) -> PayloadBuilder {
        PayloadBuilder { bytes: Vec::with_capacity(bytes), checksum: 0, operations: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn push(&mut self, operation: &NewOperation<'_>) {
        let start = self.bytes.len();
        let NewOperation { store, kind, key, value, value_len, codec, expires_s } = *operation;
        let mut header = [0; OPERATION_HEADER];
        header[0] = kind.byte();
        header[1] = codec as u8;
        header[2..6].copy_from_slice(&store.to_be_bytes());
        header[6..10].copy_from_slice(&(key.len() as u32).to_be_bytes());
        header[10..14].copy_from_slice(&(value.len() as u32).to_be_bytes());
        header[14..18].copy_from_slice(&value_len.to_be_bytes());
        header[18..22].copy_from_slice(&expires_s.unwrap_or(0).to_be_bytes());
        header[22..26].copy_from_slice(&crc32c::crc32c(value).to_be_bytes());
        self.bytes.reserve(OPERATION_HEADER + key.len() + value.len());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(key);
        self.checksum = crc32c::crc32c_append(self.checksum, &self.bytes[start..]);
        self.bytes.extend_from_slice(value);
        self.operations += 1;
    }

    pub(crate) fn finish(self) -> Payload {
        Payload { bytes: self.bytes.into(), checksum: self.checksum, operations: self.operations }
    }
}

/// All operations of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    pub(crate) bytes: Bytes,
    /// Checksum of everything but values.
    pub(crate) checksum: u32,
    pub(crate) operations: u32,
}

impl Payload {
    /// Returns whether anything is put in.
    pub(crate) fn has_puts(&self) -> bool {
        self.operations().flatten().any(|operation| operation.kind == OperationKind::Put)
    }

    /// Bytes of the frame.
    pub(crate) fn frame_len(&self) -> usize {
        FRAME_HEADER + self.bytes.len()
    }

    /// Bytes of keys and stored values.
    pub(crate) fn written_bytes(&self) -> u64 {
        (self.bytes.len() as u64).saturating_sub(u64::from(self.operations) * OPERATION_HEADER as u64)
    }

    /// The operations in their order.
    pub(crate) fn operations(&self) -> Operations<'_> {
        Operations { payload: &self.bytes, at: 0 }
    }

    /// The same, the last one first. The only one has the payload's memory to itself; several share it.
    pub(crate) fn latest_first(self) -> LatestFirst {
        let (mut behind, mut next) = (Vec::new(), decode(&self.bytes, 0));
        while let Some(end) = next.map(|decoded| decoded.end) {
            next = decode(&self.bytes, end);
            behind.extend(next.is_some().then_some(end as u32));
        }
        LatestFirst { payload: self.bytes, behind, first: Some(0) }
    }

    /// Returns whether all checksums are right and the operations are possible ones.
    fn is_whole(&self) -> bool {
        let (mut checksum, mut count, mut end) = (0, 0u32, 0);
        for operation in self.operations() {
            let Some(operation) = operation else { return false };
            let Some(meta) = self.bytes.get(end..operation.value_at) else { return false };
            checksum = crc32c::crc32c_append(checksum, meta);
            if crc32c::crc32c(operation.pair.value()) != operation.checksum {
                return false;
            }
            end = operation.value_at + operation.pair.value().len();
            count += 1;
        }
        checksum == self.checksum && count == self.operations
    }
}

/// Walks over the operations of a payload; `None` as an item, and no more, where bytes make no sense.
pub(crate) struct Operations<'a> {
    payload: &'a Bytes,
    at: usize,
}

/// See [`Payload::latest_first`].
pub(crate) struct LatestFirst {
    payload: Bytes,
    /// Offsets of all operations but the first.
    behind: Vec<u32>,
    first: Option<u32>,
}

/// An operation without its key and value, and where those lie in the payload.
struct Decoded {
    operation: Operation,
    key_at: usize,
    end: usize,
}

/// The operation at `at`; its pair is still empty.
fn decode(payload: &[u8], at: usize) -> Option<Decoded> {
    let mut reader = Reader::at(payload, at).ok()?;
    let kind = OperationKind::from_byte(reader.u8().ok()?)?;
    let codec = Codec::from_byte(reader.u8().ok()?)?;
    let store = reader.u32().ok()?;
    let key_len = reader.u32().ok()?;
    let stored_len = reader.u32().ok()? as usize;
    let value_len = reader.u32().ok()?;
    let expires_s = Some(reader.u32().ok()?).filter(|expires_s| *expires_s != 0);
    let checksum = reader.u32().ok()?;
    if key_len as usize > LONGEST_KEY || stored_len > LONGEST_VALUE || value_len as usize > LONGEST_VALUE {
        return None;
    }
    let key_at = at + OPERATION_HEADER;
    let value_at = key_at.checked_add(key_len as usize)?;
    let end = value_at.checked_add(stored_len).filter(|end| *end <= payload.len())?;
    let pair = Pair::new(Bytes::new(), 0);
    let operation = Operation { store, kind, pair, value_len, codec, expires_s, checksum, value_at };
    Some(Decoded { operation, key_at, end })
}

impl Decoded {
    fn with(self, bytes: Bytes) -> Operation {
        let key_len = self.operation.value_at - self.key_at;
        Operation { pair: Pair::new(bytes, key_len), ..self.operation }
    }
}

impl Iterator for Operations<'_> {
    type Item = Option<Operation>;

    fn next(&mut self) -> Option<Option<Operation>> {
        if self.at >= self.payload.len() {
            return None;
        }
        let decoded = decode(self.payload, self.at);
        self.at = decoded.as_ref().map_or(self.payload.len(), |decoded| decoded.end);
        Some(decoded.map(|decoded| {
            let bytes = self.payload.slice(decoded.key_at..decoded.end);
            decoded.with(bytes)
        }))
    }
}

impl Iterator for LatestFirst {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        let decoded = decode(&self.payload, self.behind.pop().or_else(|| self.first.take())? as usize)?;
        let is_only = decoded.key_at == OPERATION_HEADER && decoded.end == self.payload.len();
        if is_only {
            let mut bytes = std::mem::take(&mut self.payload);
            bytes.advance(decoded.key_at);
            return Some(decoded.with(bytes));
        }
        let bytes = self.payload.slice(decoded.key_at..decoded.end);
        Some(decoded.with(bytes))
    }
}

/// The header of a frame.
pub(crate) fn frame_header(
    payload: &Payload,
    lsn: Lsn,
    sequence: SequenceNo,
    epoch: u64,
) -> [u8; FRAME_HEADER] {
    let mut header = [0; FRAME_HEADER];
    header[..4].copy_from_slice(&MAGIC.to_be_bytes());
    header[8..16].copy_from_slice(&lsn.to_be_bytes());
    header[16..24].copy_from_slice(&sequence.to_be_bytes());
    header[24..28].copy_from_slice(&(payload.bytes.len() as u32).to_be_bytes());
    header[28..32].copy_from_slice(&payload.checksum.to_be_bytes());
    header[32..36].copy_from_slice(&payload.operations.to_be_bytes());
    header[36..40].copy_from_slice(&(epoch as u32).to_be_bytes());
    let checksum = crc32c::crc32c(&header[8..]);
    header[4..8].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// A frame that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) lsn: Lsn,
    pub(crate) sequence: SequenceNo,
    pub(crate) payload: Payload,
}

/// The frame that begins with `bytes`, if it is whole, and is the one at `lsn`.
pub(crate) fn decode_frame(bytes: &[u8], lsn: Lsn, epoch: u64) -> Option<Frame> {
    claimed_frame(bytes, lsn, epoch).filter(|frame| frame.payload.is_whole())
}

/// The frame whose header `bytes` begin with; the payload need not be whole.
pub(crate) fn claimed_frame(bytes: &[u8], lsn: Lsn, epoch: u64) -> Option<Frame> {
    let mut reader = Reader::new(bytes);
    if reader.u32().ok()? != MAGIC {
        return None;
    }
    let checksum = reader.u32().ok()?;
    if crc32c::crc32c(bytes.get(8..FRAME_HEADER)?) != checksum {
        return None;
    }
    let found = reader.u64().ok()?;
    let sequence = reader.u64().ok()?;
    let len = reader.u32().ok()? as usize;
    let checksum = reader.u32().ok()?;
    let operations = reader.u32().ok()?;
    if found != lsn || reader.u32().ok()? != epoch as u32 || len > MAX_PAYLOAD_BYTES {
        return None;
    }
    let payload = reader.take(len).ok()?;
    let payload = Payload { bytes: Bytes::copy_from_slice(payload), checksum, operations };
    Some(Frame { lsn, sequence, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What, store, key, value, expiry.
    type Drawn = (u8, u32, Vec<u8>, Vec<u8>, Option<u32>);

    fn operations() -> impl Strategy<Value = Vec<Drawn>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
        let expires = proptest::option::of(1u32..);
        proptest::collection::vec((1u8..=4, any::<u32>(), bytes(), bytes(), expires), 0..8)
    }

    fn build(operations: &[Drawn]) -> Payload {
        let mut builder = PayloadBuilder::default();
        for (kind, store, key, value, expires_s) in operations {
            builder.push(&NewOperation {
                store: *store,
                kind: OperationKind::from_byte(*kind).unwrap(),
                key,
                value,
                value_len: value.len() as u32,
                codec: Codec::None,
                expires_s: *expires_s,
            });
        }
        builder.finish()
    }

    fn encode(payload: &Payload, lsn: Lsn) -> Vec<u8> {
        [&frame_header(payload, lsn, 9, 3)[..], &payload.bytes].concat()
    }

    proptest! {
        #[test]
        fn frames_come_back_as_they_were(given in operations(), lsn in any::<u64>(), rest in 0usize..50) {
            let payload = build(&given);
            let mut bytes = encode(&payload, lsn);
            bytes.resize(bytes.len() + rest, 7);
            let frame = decode_frame(&bytes, lsn, 3).unwrap();
            prop_assert_eq!((frame.lsn, frame.sequence), (lsn, 9));
            let read: Vec<_> = frame.payload.operations().map(Option::unwrap).collect();
            prop_assert_eq!(read.len(), given.len());
            for (operation, (kind, store, key, value, expires_s)) in read.iter().zip(&given) {
                prop_assert_eq!((operation.kind.byte(), operation.store), (*kind, *store));
                prop_assert_eq!((operation.pair.key(), operation.pair.value()), (&key[..], &value[..]));
                prop_assert_eq!(operation.expires_s, *expires_s);
                let at = operation.value_at;
                prop_assert_eq!(&frame.payload.bytes[at..at + value.len()], &value[..]);
            }
            let mut kept: Vec<_> = frame.payload.clone().latest_first().collect();
            kept.reverse();
            prop_assert_eq!(kept, read);
            prop_assert!(decode_frame(&bytes, lsn.wrapping_add(1), 3).is_none());
            prop_assert!(decode_frame(&bytes, lsn, 4).is_none());
        }

        #[test]
        fn a_changed_bit_is_found(given in operations(), at in any::<proptest::sample::Index>(), bit in 0u8..8) {
            let mut bytes = encode(&build(&given), 77);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(decode_frame(&bytes, 77, 3).is_none());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let _ = decode_frame(&bytes, 0, 0);
            let payload = Payload { bytes: bytes.clone().into(), checksum: 0, operations: 0 };
            let _ = payload.is_whole();
            let mut walked: Vec<_> = payload.operations().flatten().collect();
            walked.reverse();
            prop_assert_eq!(walked, payload.latest_first().collect::<Vec<_>>());
            let mut whole = encode(&build(&[(1, 1, b"key".to_vec(), bytes, None)]), 5);
            whole.truncate(cut);
            let _ = decode_frame(&whole, 5, 3);
        }
    }
}
