//! Each row once.

use super::{Node, Operator, Poll, Run};
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_values::{SqlError, group_key};

/// The operator while it runs.
pub(super) struct Distinct<'p> {
    input: Node<'p>,
    slots: &'p [u32],
    seen: Map<Vec<u8>, ()>,
}

impl<'p> Distinct<'p> {
    pub(super) fn new(input: Node<'p>, slots: &'p [u32]) -> Self {
        Self { input, slots, seen: Map::default() }
    }
}

impl Operator for Distinct<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        loop {
            let rows = match self.input.next(run)? {
                Poll::Rows(rows) => rows,
                other => return Ok(other),
            };
            let tired = run.spend(rows.len());
            let mut out = Vec::with_capacity(rows.len());
            for row in rows {
                let mut key = Vec::new();
                for slot in self.slots {
                    if let Some(value) = row.get(*slot as usize) {
                        group_key(core::slice::from_ref(value), &mut key);
                    }
                }
                let bytes = key.len() + 64;
                if self.seen.insert(key, ()).is_none() {
                    run.hold(bytes)?;
                    out.push(row);
                }
            }
            if !out.is_empty() {
                return Ok(Poll::Rows(out));
            }
            if tired {
                return Ok(Poll::Yield);
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.input.close(run);
    }
}
