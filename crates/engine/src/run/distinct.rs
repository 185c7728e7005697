//! Each row once.

use super::memory::{Chunk, ENTRY_BYTES, Held, Waiting};
use super::{Node, Operator, Poll, Run};
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_values::{SqlError, group_key};

/// The operator while it runs.
pub(super) struct Distinct<'p> {
    input: Node<'p>,
    slots: &'p [u32],
    seen: Map<Vec<u8>, ()>,
    held: Held,
    waiting: Waiting,
}

impl<'p> Distinct<'p> {
    pub(super) fn new(input: Node<'p>, slots: &'p [u32]) -> Self {
        let (seen, held, waiting) = (Map::default(), Held::default(), Waiting::default());
        Self { input, slots, seen, held, waiting }
    }
}

impl Operator for Distinct<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let mut chunk = Chunk::new(run);
        loop {
            while let Some(row) = self.waiting.pop(run) {
                let mut key = Vec::new();
                for slot in self.slots {
                    if let Some(value) = row.get(*slot as usize) {
                        group_key(core::slice::from_ref(value), &mut key);
                    }
                }
                if !self.seen.contains_key(&key) {
                    self.held.grow(run, key.len() + ENTRY_BYTES)?;
                    self.seen.insert(key, ());
                    chunk.push(row);
                }
                if run.spend(1) || chunk.is_full() {
                    return Ok(chunk.or(Poll::Yield));
                }
            }
            if !chunk.is_empty() {
                return Ok(chunk.or(Poll::Yield));
            }
            match self.input.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                other => return Ok(other),
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
        self.waiting.clear(run);
        self.held.leave(run, core::mem::take(&mut self.seen));
    }
}
