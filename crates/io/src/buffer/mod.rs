//! Aligned buffers for direct I/O.
//!
//! A [`BufferPool`] owns one arena of memory that rings register with the kernel, cut into power-of-two slots of 4 KiB
//! to 1 MiB. Buffers may live long (a page cache is made of them), so an exhausted arena never blocks: the next buffer
//! comes from the heap and costs a little more CPU per I/O.
//!
//! Invariants:
//! - a live [`Buffer`] is the only owner of its bytes, and all of them are initialised; buffers that were one (see
//!   [`Buffer::split_off`]) own parts of it that do not overlap, and share its memory until the last of them goes;
//! - its address is a multiple of [`BUFFER_ALIGNMENT`];
//! - its pool outlives it.

mod arena;
mod heap;
mod slots;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;

use arena::Arena;
pub(crate) use arena::REGION_BYTES;
use heap::Heap;
use slots::Slots;

/// Every buffer's address is a multiple of this.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// The largest buffer that the arena serves; larger ones come from the heap.
pub const LARGEST_POOLED_BUFFER: usize = 1 << 20;

/// An owned, aligned run of bytes (4 KiB alignment) that a device reads into or writes from.
///
/// ```
/// let pool = tanada_io::BufferPool::new(1 << 20);
/// let mut buffer = pool.allocate(16384);
/// buffer.fill(7);
/// buffer.truncate(100);
/// assert_eq!(&*buffer, [7; 100]);
/// ```
pub struct Buffer {
    bytes: NonNull<u8>,
    len: usize,
    capacity: usize,
    /// The arena slot, or `None` for the heap.
    slot: Option<u32>,
    pool: Arc<BufferPool>,
    /// The whole that this is a part of; the whole gives the memory back.
    whole: Option<Arc<Whole>>,
}

/// The memory of a buffer that was split; given back when its last part goes.
struct Whole {
    bytes: NonNull<u8>,
    capacity: usize,
    slot: Option<u32>,
    pool: Arc<BufferPool>,
}

// SAFETY: it is only an address range; the parts decide who may touch which bytes.
unsafe impl Send for Whole {}
// SAFETY: as above.
unsafe impl Sync for Whole {}

impl Drop for Whole {
    fn drop(&mut self) {
        // SAFETY: the last part has gone, so nobody has these bytes any more.
        unsafe { self.pool.give_back(self.slot, self.bytes, self.capacity) }
    }
}

// SAFETY: a buffer owns its bytes exclusively, and the pool it points to is `Sync`.
unsafe impl Send for Buffer {}
// SAFETY: a shared buffer only hands out shared bytes.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Valid bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no byte is valid.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes it could hold: the length asked for, rounded up to a slot.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Shortens the valid part to `len` bytes (no effect if it is shorter).
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes `len` bytes valid, at most [`capacity`](Self::capacity); what lies past the former length is unspecified.
    pub fn resize(&mut self, len: usize) {
        assert!(len <= self.capacity, "a buffer of {} bytes cannot hold {len}", self.capacity);
        self.len = len;
    }

    /// Whether it lies in the arena that rings register, rather than on the heap.
    pub fn is_pooled(&self) -> bool {
        self.slot.is_some()
    }

    /// Splits off what follows byte `at` (a multiple of [`BUFFER_ALIGNMENT`], at most the capacity) without copying;
    /// this buffer keeps what comes before, and neither grows into the other any more. What an I/O on several places
    /// works on is made so.
    pub fn split_off(&mut self, at: usize) -> Buffer {
        assert!(
            at.is_multiple_of(BUFFER_ALIGNMENT) && at <= self.capacity,
            "a buffer of {} bytes cannot be split at {at}",
            self.capacity
        );
        let whole = self.whole.get_or_insert_with(|| {
            Arc::new(Whole {
                bytes: self.bytes,
                capacity: self.capacity,
                slot: self.slot,
                pool: self.pool.clone(),
            })
        });
        let rest = Buffer {
            // SAFETY: `at` is within the allocation, as just checked.
            bytes: unsafe { self.bytes.add(at) },
            len: self.len.saturating_sub(at),
            capacity: self.capacity - at,
            slot: self.slot,
            pool: self.pool.clone(),
            whole: Some(whole.clone()),
        };
        self.len = self.len.min(at);
        self.capacity = at;
        rest
    }

    /// Joins `next` to the end of this buffer again, where [`split_off`](Self::split_off) took it; all of this buffer's
    /// capacity counts as valid then.
    ///
    /// # Errors
    /// Gives `next` back if it does not follow this buffer in the same memory.
    pub fn unsplit(&mut self, next: Buffer) -> Result<(), Buffer> {
        let same = match (&self.whole, &next.whole) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            _ => false,
        };
        // SAFETY: the end of the allocation at most.
        if !same || unsafe { self.bytes.add(self.capacity) } != next.bytes {
            return Err(next);
        }
        self.len = self.capacity + next.len;
        self.capacity += next.capacity;
        Ok(())
    }

    /// The address of byte `from`; valid for `len - from` bytes.
    pub(crate) fn pointer_at(&mut self, from: usize) -> *mut u8 {
        assert!(from <= self.len);
        // SAFETY: `from` is within the allocation, as just checked.
        unsafe { self.bytes.as_ptr().add(from) }
    }

    /// Its place in the arena of `pool`, in bytes; `None` for a heap buffer or another pool's.
    pub(crate) fn arena_offset(&self, pool: &BufferPool) -> Option<usize> {
        self.slot?;
        std::ptr::eq(&*self.pool, pool).then(|| self.bytes.as_ptr() as usize - pool.arena.start() as usize)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.whole.is_none() {
            // SAFETY: nobody else has these bytes.
            unsafe { self.pool.give_back(self.slot, self.bytes, self.capacity) }
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `len <= capacity` initialised bytes that this buffer owns.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len)
            .field("pooled", &self.is_pooled())
            .finish_non_exhaustive()
    }
}

/// Where buffers come from: recycled, aligned, registered with the rings as far as the memory lock limit allows.
pub struct BufferPool {
    slots: Mutex<Slots>,
    heap: Heap,
    arena: Arena,
    /// How much of the arena's beginning is to be registered.
    registered_bytes: usize,
}

impl BufferPool {
    /// A pool with an arena of `arena_bytes` (rounded up to whole MiB; 0 for none). If the arena cannot be mapped, the
    /// heap serves all.
    pub fn new(arena_bytes: usize) -> Arc<BufferPool> {
        BufferPool::with_registered(arena_bytes, arena_bytes)
    }

    /// A pool with an arena of `arena_bytes`, at least `registered_bytes`, of which only the beginning is registered
    /// with rings. The rest takes memory as it is used.
    pub fn with_registered(arena_bytes: usize, registered_bytes: usize) -> Arc<BufferPool> {
        let mut arena = Arena::map(arena_bytes.max(registered_bytes));
        if arena.len() == 0 {
            // More address space than the system gives: the registered part may fit.
            arena = Arena::map(registered_bytes);
        }
        let slots = Slots::new(arena.len() / LARGEST_POOLED_BUFFER);
        let registered_bytes = registered_bytes.next_multiple_of(LARGEST_POOLED_BUFFER).min(arena.len());
        let heap = Heap::new(arena.len());
        Arc::new(BufferPool { slots: Mutex::new(slots), heap, arena, registered_bytes })
    }

    /// A buffer of `len` valid bytes (zeroed only when fresh; contents otherwise unspecified).
    pub fn allocate(self: &Arc<Self>, len: usize) -> Buffer {
        let capacity = heap::capacity_for(len);
        if capacity <= LARGEST_POOLED_BUFFER {
            let taken = self.slots.lock().take(capacity);
            if let Some((slot, offset)) = taken {
                return Buffer {
                    bytes: self.arena.at(offset),
                    len,
                    capacity,
                    slot: Some(slot),
                    pool: self.clone(),
                    whole: None,
                };
            }
        }
        Buffer { bytes: self.heap.take(capacity), len, capacity, slot: None, pool: self.clone(), whole: None }
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// `allocate` of this pool gave it with this slot and capacity, and nobody uses it any more.
    unsafe fn give_back(&self, slot: Option<u32>, bytes: NonNull<u8>, capacity: usize) {
        match slot {
            Some(slot) => self.slots.lock().give_back(slot),
            // SAFETY: as the caller promises.
            None => unsafe { self.heap.give_back(bytes, capacity) },
        }
    }

    /// Bytes of the arena.
    pub fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Bytes of live buffers, arena and heap.
    pub fn bytes_in_use(&self) -> usize {
        self.slots.lock().bytes_in_use() + self.heap.bytes_in_use()
    }

    /// Bytes of the arena that rings are to register, from its beginning.
    pub(crate) fn registered_bytes(&self) -> usize {
        self.registered_bytes
    }

    /// The arena, for registration.
    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("arena_bytes", &self.arena_bytes())
            .field("bytes_in_use", &self.bytes_in_use())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_when_fresh_and_apart() {
        let pool = BufferPool::new(4 << 20);
        let mut buffers: Vec<Buffer> =
            [1, 4096, 5000, 16384, 65536, 1 << 20, 3 << 20, 16384].map(|len| pool.allocate(len)).into();
        for (i, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!(buffer.as_ptr() as usize % BUFFER_ALIGNMENT, 0);
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer.fill(i as u8 + 1);
        }
        for (i, buffer) in buffers.iter().enumerate() {
            assert!(buffer.iter().all(|byte| *byte == i as u8 + 1));
        }
        drop(buffers);
        assert_eq!(pool.bytes_in_use(), 0);
    }

    #[test]
    fn an_exhausted_arena_falls_back_to_the_heap() {
        let pool = BufferPool::new(1 << 20);
        let held: Vec<Buffer> = (0..64).map(|_| pool.allocate(16384)).collect();
        assert!(held.iter().all(Buffer::is_pooled));
        let extra = pool.allocate(16384);
        assert!(!extra.is_pooled());
        drop(held);
        assert!(pool.allocate(1 << 20).is_pooled());
    }

    #[test]
    fn buffer_parts_share_memory_until_the_last_is_dropped() {
        for arena in [1 << 20, 0] {
            let pool = BufferPool::new(arena);
            let mut first = pool.allocate(3 * 4096);
            let capacity = first.capacity();
            for (i, byte) in first.iter_mut().enumerate() {
                *byte = (i / 4096) as u8;
            }
            let mut second = first.split_off(4096);
            let third = second.split_off(4096);
            assert_eq!((first.len(), second.len(), third.len()), (4096, 4096, 4096));
            assert!(first.iter().all(|b| *b == 0) && second.iter().all(|b| *b == 1));
            assert!(third.iter().all(|b| *b == 2) && third.is_pooled() == (arena > 0));
            let third = first.unsplit(third).expect_err("it does not follow");
            assert_eq!(pool.bytes_in_use(), capacity);
            drop(first);
            second.unsplit(third).expect("it follows");
            assert_eq!((second.len(), second.capacity()), (8192, capacity - 4096));
            assert_eq!(second[4096], 2);
            assert_eq!(pool.bytes_in_use(), capacity);
            let stranger = pool.allocate(4096);
            drop(second.unsplit(stranger).expect_err("another's memory"));
            drop(second);
            assert_eq!(pool.bytes_in_use(), 0);
        }
    }

    #[test]
    fn only_the_beginning_is_registered() {
        let pool = BufferPool::with_registered(8 << 20, 2 << 20);
        assert_eq!((pool.arena_bytes(), pool.registered_bytes()), (8 << 20, 2 << 20));
        let held: Vec<Buffer> = (0..8).map(|_| pool.allocate(1 << 20)).collect();
        assert!(held.iter().all(Buffer::is_pooled));
        assert!(!pool.allocate(1 << 20).is_pooled());
        assert_eq!(BufferPool::with_registered(0, 3 << 20).arena_bytes(), 3 << 20);
        // No system has that much address space.
        assert_eq!(BufferPool::with_registered(1 << 60, 1 << 20).arena_bytes(), 1 << 20);
    }

    #[test]
    fn no_arena_is_no_trouble() {
        let pool = BufferPool::new(0);
        assert_eq!(pool.allocate(0).len(), 0);
        assert_eq!(pool.allocate(100).capacity(), 4096);
    }
}
