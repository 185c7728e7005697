//! WITH RECURSIVE.

use super::{Node, Operator, Params, Poll, Row, Run, build, row_bytes};
use crate::physical::Op;
use alloc::format;
use alloc::{sync::Arc, vec::Vec};
use lats_base::map::Map;
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
    seen: Map<Vec<u8>, ()>,
    /// Rows that this step has found: the next step sees them.
    found: Vec<Row>,
    /// Rows that the step before has found: this step sees them.
    current: Arc<Vec<Row>>,
    steps: u64,
    /// Memory that the operators of this step hold.
    held: usize,
    left: Option<u64>,
    is_done: bool,
}

impl<'p> Recursive<'p> {
    pub(super) fn new(anchor: Node<'p>, spec: Spec<'p>, params: Params) -> Self {
        let (seen, found) = (Map::default(), Vec::new());
        let current = Arc::default();
        let (steps, held, left, is_done) = (0, 0, None, false);
        Self { node: anchor, spec, params, seen, found, current, steps, held, left, is_done }
    }

    /// Rows that count, as rows of the result.
    fn take(&mut self, run: &mut Run<'_>, rows: Vec<Row>) -> Result<Vec<Row>, SqlError> {
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            let mut typed = Row::with_capacity(row.len());
            for (value, of) in row.into_iter().zip(self.spec.types) {
                // The columns have the anchor's types, as those of a table.
                let mut context = ConvertContext::new(true, "", 1);
                typed.push(convert_to_column(value, of, &mut context)?);
            }
            let row = typed;
            if self.spec.distinct {
                let mut key = Vec::new();
                group_key(&row, &mut key);
                let bytes = key.len() + 64;
                if self.seen.insert(key, ()).is_some() {
                    continue;
                }
                run.hold(bytes)?;
            }
            run.hold(row_bytes(&row))?;
            self.found.push(row.clone());
            out.push(row);
        }
        Ok(out)
    }

    /// Begins the next step; false if there is nothing for it.
    fn next_step(&mut self, run: &mut Run<'_>) -> Result<bool, SqlError> {
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
        run.release(found.iter().map(|row| row_bytes(row)).sum());
        self.current = Arc::new(found);
        run.release(core::mem::take(&mut self.held));
        self.node = build(self.spec.step, &self.params);
        Ok(true)
    }
}

impl Operator for Recursive<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let mut left = match (self.left, self.spec.limit) {
            (Some(left), _) => left,
            (None, Some(limit)) => run.count(limit, &self.params)?,
            (None, None) => u64::MAX,
        };
        self.left = Some(left);
        while !self.is_done && left > 0 {
            // Other instances of the same recursion may run in turn with this one.
            run.working.insert(self.spec.id, Arc::clone(&self.current));
            let before = run.bytes;
            let polled = self.node.next(run)?;
            self.held += run.bytes.saturating_sub(before);
            match polled {
                Poll::Rows(rows) => {
                    let tired = run.spend(rows.len());
                    let mut out = self.take(run, rows)?;
                    out.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                    left -= out.len() as u64;
                    self.left = Some(left);
                    if !out.is_empty() {
                        return Ok(Poll::Rows(out));
                    }
                    if tired {
                        return Ok(Poll::Yield);
                    }
                }
                Poll::Done => self.is_done = !self.next_step(run)?,
                other => return Ok(other),
            }
        }
        Ok(Poll::Done)
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.node.close(run);
        self.is_done = true;
    }
}

/// The rows that a recursion found last.
pub(super) struct Working {
    id: u32,
    at: Option<(Arc<Vec<Row>>, usize)>,
}

/// Rows that are handed on at once.
const ROWS_AT_ONCE: usize = 1_024;

impl Working {
    pub(super) fn new(id: u32) -> Self {
        Self { id, at: None }
    }
}

impl Operator for Working {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let (rows, from) = match self.at.take() {
            Some(at) => at,
            None => (run.working.get(&self.id).cloned().unwrap_or_default(), 0),
        };
        let to = rows.len().min(from + ROWS_AT_ONCE);
        let out = rows[from..to].to_vec();
        self.at = Some((rows, to));
        Ok(if out.is_empty() { Poll::Done } else { Poll::Rows(out) })
    }

    fn close(&mut self, _: &mut Run<'_>) {
        self.at = Some((Arc::default(), 0));
    }
}
