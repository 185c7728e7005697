//! Memory of all statements that run in a process: each takes its share, and gives it back when it ends.

use super::STATEMENT_BYTES_MAX;
use crate::error;
use lats_engine::run::{Budget, Pool};
use lats_values::SqlError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What statements may hold together where nobody has said it.
const NODE_BYTES: usize = 1 << 30;

/// The memory of a process for statements.
#[derive(Debug)]
pub(crate) struct NodeMemory {
    used: AtomicUsize,
    max: AtomicUsize,
}

impl Default for NodeMemory {
    fn default() -> Self {
        Self { used: AtomicUsize::new(0), max: AtomicUsize::new(NODE_BYTES) }
    }
}

impl NodeMemory {
    pub(crate) fn limit(&self, bytes: usize) {
        self.max.store(bytes, Ordering::Relaxed);
    }

    /// What one statement may hold.
    pub(crate) fn budget(self: &Arc<Self>) -> Budget {
        Budget {
            bytes_max: STATEMENT_BYTES_MAX,
            too_much: error::out_of_statement_memory,
            pool: Some(Arc::clone(self) as Arc<dyn Pool>),
        }
    }
}

/// So much is taken at once.
const SHARE_BYTES: usize = 256 << 10;

/// What a part of a statement holds that the engine does not run.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Arc<NodeMemory>,
    taken: usize,
}

impl Share {
    /// Nothing so far.
    pub(crate) fn of(pool: &Arc<NodeMemory>) -> Self {
        Self { pool: Arc::clone(pool), taken: 0 }
    }

    /// Makes sure that so many bytes may be held.
    ///
    /// # Errors
    /// 1038: it is more than a statement may have, or than is left.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), SqlError> {
        if bytes <= self.taken {
            return Ok(());
        }
        if bytes > STATEMENT_BYTES_MAX {
            return Err(error::out_of_statement_memory());
        }
        let missing = bytes - self.taken;
        let share = [missing.max(SHARE_BYTES), missing];
        let share = share.into_iter().find(|share| self.pool.take(*share));
        self.taken += share.ok_or_else(|| self.pool.refusal())?;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.give_back(self.taken);
    }
}

impl Pool for NodeMemory {
    fn take(&self, bytes: usize) -> bool {
        let max = self.max.load(Ordering::Relaxed);
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        let less = |used: usize| Some(used.saturating_sub(bytes));
        // It always changes.
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn refusal(&self) -> SqlError {
        error::out_of_node_memory(self.max.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_statements_hold_is_shared_and_comes_back() {
        let node = Arc::new(NodeMemory::default());
        node.limit(3 << 20);
        let mut first = Share::of(&node);
        first.cover(2 << 20).unwrap();
        let mut second = Share::of(&node);
        second.cover(1 << 10).unwrap();
        let error = second.cover(2 << 20).unwrap_err();
        assert!(error.message.contains("of this node (3 MiB together)"), "{}", error.message);
        drop(first);
        second.cover(2 << 20).unwrap();
        let error = second.cover(STATEMENT_BYTES_MAX + 1).unwrap_err();
        assert!(error.message.contains("this statement (256 MiB)"), "{}", error.message);
        drop(second);
        assert_eq!(node.used.load(Ordering::Relaxed), 0);
    }
}
