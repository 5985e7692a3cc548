//! Blocks in the order in which they were filled.

use std::collections::VecDeque;

#[derive(Debug, Clone, Copy)]
pub(super) enum Block {
    Slot { no: usize, used_bytes: usize },
    Large { no: usize },
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The oldest first.
    pub(super) blocks: VecDeque<Block>,
    /// The block that is being filled: its slot and its used bytes.
    pub(super) open: Option<(usize, usize)>,
    pub(super) bytes: usize,
}

impl Queue {
    /// The oldest block.
    pub(super) fn pop(&mut self) -> Option<Block> {
        let open = |(no, used_bytes)| Block::Slot { no, used_bytes };
        self.blocks.pop_front().or_else(|| self.open.take().map(open))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.open.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Small,
    Main,
}
