//! The right side of an Apply that is the same for all rows: it runs once, and its rows are kept.

use super::apply::{Found, Spec, truth};
use super::memory::{ENTRY_BYTES, Held, Waiting};
use super::{Node, Params, Poll, Row, Run, keys, more_than_one_row, row_bytes};
use crate::physical::ApplyOutput;
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_base::planted::{QueryBug, errs};
use lats_values::SqlError;

/// The right side's rows, as far as they are needed.
#[derive(Default)]
pub(super) struct Once<'p> {
    state: State<'p>,
    /// Rows that were not looked at yet.
    waiting: Waiting,
    /// All rows, or the first one if one is enough.
    rows: Vec<Row>,
    /// The bytes of the values that are looked up.
    values: Map<Vec<u8>, ()>,
    /// A row has NULL.
    has_null: bool,
    held: Held,
    /// How far the row at hand has come, and what it has found.
    at: usize,
    found: Found,
}

#[derive(Default)]
enum State<'p> {
    /// It has not run yet.
    #[default]
    Unknown,
    Running(Node<'p>),
    Ready,
}

impl<'p> Once<'p> {
    /// Goes on with the right side; what a pause is, or none when all is there.
    pub(super) fn build(
        &mut self,
        run: &mut Run<'_>,
        spec: &Spec<'p>,
        node: impl FnOnce(&Run<'_>) -> Node<'p>,
        params: &Params,
    ) -> Result<Option<Poll>, SqlError> {
        if matches!(self.state, State::Unknown) {
            self.state = State::Running(node(run));
        }
        // Whether there is a row at all is known with the first one.
        let one_is_enough = spec.output == ApplyOutput::Mark && spec.on.is_none();
        loop {
            while let Some(row) = self.waiting.pop(run) {
                self.add(run, spec, row, params)?;
                if run.spend(1) {
                    return Ok(Some(Poll::Yield));
                }
            }
            let State::Running(node) = &mut self.state else { return Ok(None) };
            let is_done = match node.next(run)? {
                Poll::Rows(mut rows) => {
                    if one_is_enough {
                        rows.truncate(1);
                    }
                    self.waiting.fill(run, rows)?;
                    one_is_enough
                }
                Poll::Done => true,
                other => return Ok(Some(other)),
            };
            if is_done {
                node.close(run);
                self.state = State::Ready;
            }
        }
    }

    fn add(
        &mut self,
        run: &mut Run<'_>,
        spec: &Spec<'p>,
        row: Row,
        params: &Params,
    ) -> Result<(), SqlError> {
        let Some(pair) = spec.equal else {
            self.held.grow(run, row_bytes(&row))?;
            self.rows.push(row);
            return Ok(());
        };
        let value = run.eval(&pair.right, &row, params)?;
        let mut key = Vec::new();
        if !keys::append(pair.class, value, &mut key) {
            self.has_null = true;
        } else if !self.values.contains_key(&key) {
            self.held.grow(run, key.len() + ENTRY_BYTES)?;
            self.values.insert(key, ());
        }
        Ok(())
    }

    /// What the rows give for a row of the left side; none if it takes longer, and is to be asked for again.
    pub(super) fn find(
        &mut self,
        run: &mut Run<'_>,
        spec: &Spec<'_>,
        left: &Row,
        params: &Params,
    ) -> Result<Option<Found>, SqlError> {
        if let Some(pair) = spec.equal {
            let mut found = Found::default();
            let value = run.eval(&pair.left, left, params)?;
            let mut key = Vec::new();
            let is_null = !keys::append(pair.class, value, &mut key);
            found.holds = !is_null && self.values.contains_key(&key);
            // NULL is unlike no row: it is unknown whether it is like one.
            let asks_null = is_null && !self.values.is_empty();
            found.is_unknown = self.has_null || (asks_null && !errs(QueryBug::NullInIsFalse));
            return Ok(Some(found));
        }
        while let Some(row) = self.rows.get(self.at) {
            self.at += 1;
            if look(run, spec, (left, row), params, &mut self.found)? {
                break;
            }
            if run.spend(1) && self.at < self.rows.len() {
                return Ok(None);
            }
        }
        self.at = 0;
        Ok(Some(core::mem::take(&mut self.found)))
    }

    pub(super) fn close(&mut self, run: &mut Run<'_>) {
        if let State::Running(node) = &mut self.state {
            node.close(run);
        }
        self.state = State::Ready;
        self.waiting.clear(run);
        let rows = core::mem::take(&mut self.rows);
        self.held.leave(run, (rows, core::mem::take(&mut self.values)));
    }
}

/// Looks at a row for a row of the left side; true if no more are needed.
fn look(
    run: &mut Run<'_>,
    spec: &Spec<'_>,
    (left, row): (&Row, &Row),
    params: &Params,
    found: &mut Found,
) -> Result<bool, SqlError> {
    let truth = match spec.on {
        None => Some(true),
        Some(on) => truth(run, on, (left, row), params)?,
    };
    match (spec.output, truth) {
        (_, Some(false)) => {}
        (_, None) => found.is_unknown = true,
        (ApplyOutput::Single, _) => {
            if found.values.is_some() {
                return Err(more_than_one_row());
            }
            found.values = Some(spec.values_of(row));
        }
        (ApplyOutput::Mark | ApplyOutput::Join(_), _) => {
            found.holds = true;
            return Ok(true);
        }
    }
    Ok(false)
}
