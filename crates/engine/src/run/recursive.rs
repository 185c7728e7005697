//! WITH RECURSIVE.

use super::memory::{Chunk, ENTRY_BYTES, Held, Waiting};
use super::{Goal, Node, Operator, Params, Poll, Row, Run, build, row_bytes};
use crate::physical::Op;
use alloc::format;
use alloc::{sync::Arc, vec::Vec};
use lats_base::map::Map;
use lats_base::planted::{QueryBug, errs};
use lats_values::{ColumnType, ConvertContext, Expr, SqlError, convert_to_column, group_key};

/// What is found how.
pub(super) struct Spec<'p> {
    pub(super) id: u32,
    pub(super) step: &'p Op,
    pub(super) distinct: bool,
    pub(super) limit: Option<&'p Expr>,
    pub(super) types: &'p [ColumnType],
}

/// The recursion while it runs.
pub(super) struct Recursive<'p> {
    node: Node<'p>,
    spec: Spec<'p>,
    params: Params,
    waiting: Waiting,
    seen: Map<Vec<u8>, ()>,
    seen_held: Held,
    /// Rows that this step has found: the next step sees them.
    found: Vec<Row>,
    found_held: Held,
    /// Rows that the step before has found: this step sees them.
    current: Arc<Vec<Row>>,
    current_held: Held,
    steps: u64,
    left: Option<u64>,
    is_done: bool,
}

impl<'p> Recursive<'p> {
    pub(super) fn new(anchor: Node<'p>, spec: Spec<'p>, params: Params) -> Self {
        Self {
            node: anchor,
            spec,
            params,
            waiting: Waiting::default(),
            seen: Map::default(),
            seen_held: Held::default(),
            found: Vec::new(),
            found_held: Held::default(),
            current: Arc::default(),
            current_held: Held::default(),
            steps: 0,
            left: None,
            is_done: false,
        }
    }

    /// The row as a row of the result; none if it was there before.
    fn take(&mut self, run: &mut Run<'_>, row: Row) -> Result<Option<Row>, SqlError> {
        let mut typed = Row::with_capacity(row.len());
        for (value, of) in row.into_iter().zip(self.spec.types) {
            // The columns have the anchor's types, as those of a table.
            let mut context = ConvertContext::new(true, "", 1);
            typed.push(convert_to_column(value, of, &mut context)?);
        }
        if self.spec.distinct && !(self.steps > 0 && errs(QueryBug::RecursionFindsTwice)) {
            let mut key = Vec::new();
            group_key(&typed, &mut key);
            if self.seen.contains_key(&key) {
                return Ok(None);
            }
            self.seen_held.grow(run, key.len() + ENTRY_BYTES)?;
            self.seen.insert(key, ());
        }
        self.found_held.grow(run, row_bytes(&typed))?;
        self.found.push(typed.clone());
        Ok(Some(typed))
    }

    /// Begins the next step; false if there is nothing for it.
    fn next_step(&mut self, run: &mut Run<'_>) -> Result<bool, SqlError> {
        self.node.close(run);
        let found = core::mem::take(&mut self.found);
        if found.is_empty() {
            return Ok(false);
        }
        self.steps += 1;
        if self.steps > run.recursion_max {
            let text = format!(
                "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.",
                self.steps
            );
            return Err(SqlError::new(3636, *b"HY000", text));
        }
        self.current_held.free(run);
        self.current_held = core::mem::take(&mut self.found_held);
        self.current = Arc::new(found);
        self.node = build(run, self.spec.step, &self.params, &Goal::All);
        Ok(true)
    }

    /// How many rows may still be given.
    fn left(&mut self, run: &mut Run<'_>) -> Result<u64, SqlError> {
        let left = match (self.left, self.spec.limit) {
            (Some(left), _) => left,
            (None, Some(limit)) => run.count(limit, &self.params)?,
            (None, None) => u64::MAX,
        };
        self.left = Some(left);
        Ok(left)
    }
}

impl Operator for Recursive<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let mut left = self.left(run)?;
        let mut out = Chunk::new(run);
        while !self.is_done && left > 0 {
            while left > 0
                && let Some(row) = self.waiting.pop(run)
            {
                if let Some(row) = self.take(run, row)? {
                    left -= 1;
                    self.left = Some(left);
                    out.push(row);
                }
                if run.spend(1) {
                    return Ok(out.or(Poll::Yield));
                }
            }
            if !out.is_empty() {
                return Ok(out.or(Poll::Yield));
            }
            // Other instances of the same recursion may run in turn with this one.
            run.working.insert(self.spec.id, Arc::clone(&self.current));
            match self.node.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                Poll::Done => {
                    self.is_done = !self.next_step(run)?;
                    if run.spend(1) {
                        return Ok(Poll::Yield);
                    }
                }
                other => return Ok(other),
            }
        }
        Ok(out.or(Poll::Done))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.node.close(run);
        self.is_done = true;
        self.waiting.clear(run);
        self.seen_held.leave(run, core::mem::take(&mut self.seen));
        self.found_held.leave(run, core::mem::take(&mut self.found));
        let working = run.working.remove(&self.spec.id);
        self.current_held.leave(run, (core::mem::take(&mut self.current), working));
    }
}

/// The rows that a recursion found last.
pub(super) struct Working {
    id: u32,
    at: Option<(Arc<Vec<Row>>, usize)>,
}

impl Working {
    pub(super) fn new(id: u32) -> Self {
        Self { id, at: None }
    }
}

impl Operator for Working {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let (rows, mut at) = match self.at.take() {
            Some(at) => at,
            None => (run.working.get(&self.id).cloned().unwrap_or_default(), 0),
        };
        let mut out = Chunk::new(run);
        while !out.is_full()
            && let Some(row) = rows.get(at)
        {
            out.push(row.clone());
            at += 1;
        }
        self.at = Some((rows, at));
        Ok(out.or(Poll::Done))
    }

    fn close(&mut self, _: &mut Run<'_>) {
        self.at = Some((Arc::default(), 0));
    }
}
