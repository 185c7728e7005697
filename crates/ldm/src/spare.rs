//! Memory that rows have only while they are being changed: it goes from one row to the next, so that a steady
//! flow of changes allocates nothing, and rows at rest hold none.

use crate::{fragment::Version, lock::Lock};
use alloc::{boxed::Box, vec::Vec};

/// What is kept of each kind at most.
const SPARE_MAX: usize = 256;

/// Of one fragment.
#[derive(Default)]
pub(crate) struct Spare {
    stacks: Vec<Vec<Version>>,
    #[expect(clippy::vec_box, reason = "rows own their locks by a pointer")]
    locks: Vec<Box<Lock>>,
}

impl Spare {
    /// An empty stack of versions.
    pub(crate) fn stack(&mut self) -> Vec<Version> {
        self.stacks.pop().unwrap_or_default()
    }

    /// Keeps a stack that is empty again. Large ones are freed.
    pub(crate) fn keep_stack(&mut self, stack: Vec<Version>) {
        if self.stacks.len() < SPARE_MAX && stack.is_empty() && stack.capacity() <= 8 {
            self.stacks.push(stack);
        }
    }

    /// A lock that nobody holds.
    pub(crate) fn lock(&mut self) -> Box<Lock> {
        self.locks.pop().unwrap_or_default()
    }

    /// Keeps a lock that is free again.
    pub(crate) fn keep_lock(&mut self, lock: Box<Lock>) {
        if self.locks.len() < SPARE_MAX && lock.is_free() && lock.is_small() {
            self.locks.push(lock);
        }
    }
}
