//! Joins by equal values: the right side is kept in a table by the bytes of its values.

use super::memory::{Chunk, ENTRY_BYTES, Held, Waiting};
use super::{Node, Operator, Params, Poll, Row, Run, keys, row_bytes};
use crate::ir::JoinKind;
use crate::physical::EqualPair;
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_base::planted::{QueryBug, errs};
use lats_values::{Expr, SqlError, Value};

/// What is joined how.
pub(super) struct Spec<'p> {
    pub(super) kind: JoinKind,
    pub(super) pairs: &'p [EqualPair],
    pub(super) residual: Option<&'p Expr>,
    pub(super) right_width: usize,
}

/// The join while it runs.
pub(super) struct HashJoin<'p> {
    left: Node<'p>,
    right: Node<'p>,
    spec: Spec<'p>,
    params: Params,
    rows: Vec<Row>,
    /// The rows with the same key are a list: the first and the last, and for each row the next.
    ends: Map<Vec<u8>, (u32, u32)>,
    next: Vec<u32>,
    held: Held,
    is_built: bool,
    /// Rows of the right side that are not in the table yet, then rows of the left side that are not joined yet.
    waiting: Waiting,
    probe: Option<Probe>,
}

/// A row of the left side, and how far it has come.
struct Probe {
    left: Row,
    at: u32,
    found: bool,
}

const NONE: u32 = u32::MAX;

impl<'p> HashJoin<'p> {
    pub(super) fn new((left, right): (Node<'p>, Node<'p>), spec: Spec<'p>, params: Params) -> Self {
        let (rows, next, ends) = (Vec::new(), Vec::new(), Map::default());
        let (held, waiting, probe) = (Held::default(), Waiting::default(), None);
        Self { left, right, spec, params, rows, ends, next, held, is_built: false, waiting, probe }
    }

    fn key(
        &self,
        run: &mut Run<'_>,
        row: &[Value],
        of_left: bool,
    ) -> Result<Option<Vec<u8>>, SqlError> {
        let mut key = Vec::with_capacity(16);
        for pair in self.spec.pairs {
            let expr = if of_left { &pair.left } else { &pair.right };
            let value = run.eval(expr, row, &self.params)?;
            let null_safe = pair.null_safe || errs(QueryBug::HashJoinsNulls);
            if !keys::append(pair.class, value, &mut key) && !null_safe {
                return Ok(None);
            }
        }
        Ok(Some(key))
    }

    /// Goes on with the table; what a pause is, or none when all is there.
    fn build(&mut self, run: &mut Run<'_>) -> Result<Option<Poll>, SqlError> {
        while !self.is_built {
            while let Some(row) = self.waiting.pop(run) {
                self.keep(run, row)?;
                if run.spend(1) {
                    return Ok(Some(Poll::Yield));
                }
            }
            match self.right.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                Poll::Done => {
                    self.right.close(run);
                    self.is_built = true;
                }
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
    }

    fn keep(&mut self, run: &mut Run<'_>, row: Row) -> Result<(), SqlError> {
        let Some(key) = self.key(run, &row, false)? else { return Ok(()) };
        self.held.grow(run, row_bytes(&row) + key.len() + ENTRY_BYTES)?;
        let at = u32::try_from(self.rows.len()).unwrap_or(NONE);
        self.next.push(NONE);
        self.rows.push(row);
        match self.ends.get_mut(&key) {
            Some(_) if errs(QueryBug::HashKeepsOneOfEach) => {}
            Some((_, last)) => {
                if let Some(next) = self.next.get_mut(*last as usize) {
                    *next = at;
                }
                *last = at;
            }
            None => {
                self.ends.insert(key, (at, at));
            }
        }
        Ok(())
    }

    /// Begins with a row of the left side.
    fn probe(&self, run: &mut Run<'_>, left: Row) -> Result<Probe, SqlError> {
        let key = self.key(run, &left, true)?;
        let ends = key.and_then(|key| self.ends.get(&key));
        Ok(Probe { left, at: ends.map_or(NONE, |(first, _)| *first), found: false })
    }

    /// Goes on with the pairs of a row of the left side; true if it is through.
    fn pairs(
        &self,
        run: &mut Run<'_>,
        probe: &mut Probe,
        out: &mut Chunk,
    ) -> Result<bool, SqlError> {
        let is_semi = matches!(self.spec.kind, JoinKind::Semi | JoinKind::Anti);
        while let Some(right) = self.rows.get(probe.at as usize) {
            probe.at = self.next.get(probe.at as usize).copied().unwrap_or(NONE);
            let fits = match self.spec.residual {
                None => true,
                Some(residual) => run.is_true(residual, (&probe.left, right), &self.params)?,
            };
            probe.found |= errs(QueryBug::HashFindsTooEarly);
            if fits {
                probe.found = true;
                if is_semi {
                    return Ok(true);
                }
                out.push(pair(&probe.left, right));
            }
            if run.spend(1) || out.is_full() {
                return Ok(probe.at == NONE || errs(QueryBug::HashDropsBehindFullChunk));
            }
        }
        Ok(true)
    }
}

/// A row of both sides.
pub(super) fn pair(left: &[Value], right: &[Value]) -> Row {
    let mut row = Row::with_capacity(left.len() + right.len());
    row.extend(left.iter().cloned());
    row.extend(right.iter().cloned());
    row
}

/// What a row of the left side gives by itself, when its partners are known.
pub(super) fn finish_row(
    kind: JoinKind,
    found: bool,
    mut left: Row,
    right_width: usize,
    out: &mut Chunk,
) {
    match (kind, found) {
        (JoinKind::Left, false) => {
            left.extend(core::iter::repeat_n(Value::Null, right_width));
            out.push(left);
        }
        (JoinKind::Semi, true) | (JoinKind::Anti, false) => out.push(left),
        _ => {}
    }
}

impl Operator for HashJoin<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        if let Some(pause) = self.build(run)? {
            return Ok(pause);
        }
        let mut out = Chunk::new(run);
        loop {
            while let Some(mut probe) = self.probe.take() {
                let is_through = self.pairs(run, &mut probe, &mut out)?;
                if is_through {
                    let width = self.spec.right_width;
                    finish_row(self.spec.kind, probe.found, probe.left, width, &mut out);
                } else {
                    self.probe = Some(probe);
                }
                if run.spend(1) || out.is_full() {
                    return Ok(out.or(Poll::Yield));
                }
                if is_through && let Some(left) = self.waiting.pop(run) {
                    self.probe = Some(self.probe(run, left)?);
                }
            }
            if !out.is_empty() {
                return Ok(out.or(Poll::Yield));
            }
            if self.waiting.is_empty() {
                match self.left.next(run)? {
                    Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                    other => return Ok(other),
                }
            }
            if let Some(left) = self.waiting.pop(run) {
                self.probe = Some(self.probe(run, left)?);
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left.close(run);
        self.right.close(run);
        self.waiting.clear(run);
        self.probe = None;
        let (rows, next) = (core::mem::take(&mut self.rows), core::mem::take(&mut self.next));
        self.held.leave(run, (rows, next, core::mem::take(&mut self.ends)));
    }
}
