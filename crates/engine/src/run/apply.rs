//! The right side for each row of the left one: several instances run at once, so that what they ask for travels together.

use super::hash_join::finish_row;
use super::once::{Built, Gathered, Once};
use super::{Node, Operator, Params, Poll, Row, Run, build, more_than_one_row};
use crate::ir::JoinKind;
use crate::physical::{ApplyOutput, EqualPair, Op};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_values::{Expr, SqlError, Value};

/// What is applied how.
pub(super) struct Spec<'p> {
    pub(super) output: ApplyOutput,
    pub(super) right: &'p Op,
    pub(super) given: &'p [Expr],
    pub(super) on: Option<&'p Expr>,
    pub(super) right_width: usize,
    pub(super) keeps: bool,
    pub(super) once: bool,
    pub(super) slots: &'p [u32],
    pub(super) when: Option<&'p Expr>,
    pub(super) equal: Option<&'p EqualPair>,
}

impl<'p> Spec<'p> {
    /// What an operator says; none if it is no Apply.
    pub(super) fn of(op: &'p Op) -> Option<Self> {
        let Op::Apply {
            output,
            right,
            params,
            on,
            right_width,
            keeps,
            once,
            slots,
            when,
            equal,
            ..
        } = op
        else {
            return None;
        };
        Some(Self {
            output: *output,
            right,
            given: params,
            on: on.as_ref(),
            right_width: *right_width as usize,
            keeps: *keeps,
            once: *once,
            slots,
            when: when.as_deref(),
            equal: equal.as_ref(),
        })
    }

    /// False if nobody looks at what the right side gives for this row.
    fn is_needed(&self, run: &mut Run<'_>, left: &Row, params: &Params) -> bool {
        let Some(when) = self.when else { return true };
        // It is computed for the row once more: then it warns, or fails.
        let (warnings, strict) = (run.context.warnings.len(), run.context.strict);
        run.context.strict = false;
        let needed = run.is_true(when, (left, &[]), params);
        run.context.strict = strict;
        run.context.warnings.truncate(warnings);
        needed.unwrap_or(true)
    }

    /// The values of the single row.
    pub(super) fn values_of(&self, row: &[Value]) -> Row {
        let value = |slot: &u32| row.get(*slot as usize).cloned().unwrap_or(Value::Null);
        self.slots.iter().map(value).collect()
    }
}

/// The right side for one row.
struct Instance<'p> {
    left: Row,
    node: Option<Node<'p>>,
    /// The bytes of the parameters, if the answer is to be kept for rows with the same.
    key: Option<Vec<u8>>,
    found: Found,
    /// Memory that its operators hold.
    held: usize,
}

/// What an instance has found.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// Rows of the right side, for joins.
    pub(super) rows: Vec<Row>,
    /// The condition held for a row.
    pub(super) holds: bool,
    /// It was unknown for a row.
    pub(super) is_unknown: bool,
    /// The values of the one row.
    pub(super) values: Option<Row>,
}

/// The operator while it runs.
pub(super) struct Apply<'p> {
    left: Node<'p>,
    left_is_done: bool,
    spec: Spec<'p>,
    params: Params,
    waiting: Vec<Row>,
    running: VecDeque<Instance<'p>>,
    /// The results by parameters, while there is room; rows of joins are not kept.
    known: Map<Vec<u8>, Found>,
    /// The right side, if it is the same for all rows.
    once: Once<'p>,
    gathered: Gathered,
}

/// Instances that run at once.
const INSTANCES_MAX: usize = 64;
/// Results that are kept.
const KNOWN_MAX: usize = 4_096;

impl<'p> Apply<'p> {
    pub(super) fn new(left: Node<'p>, spec: Spec<'p>, params: Params) -> Self {
        let (waiting, running, known) = (Vec::new(), VecDeque::new(), Map::default());
        let (once, gathered) = (Once::Unknown, Gathered::default());
        Self { left, left_is_done: false, spec, params, waiting, running, known, once, gathered }
    }

    fn begin(&mut self, run: &mut Run<'_>, left: Row) -> Result<(), SqlError> {
        if !self.spec.is_needed(run, &left, &self.params) {
            let found = Found::default();
            self.running.push_back(Instance { left, node: None, key: None, found, held: 0 });
            return Ok(());
        }
        let mut given = Vec::with_capacity(self.spec.given.len());
        for expr in self.spec.given {
            given.push(run.eval(expr, &left, &self.params)?);
        }
        // A condition sees the left row, so that its results are of this row alone.
        let keeps = self.spec.keeps
            && !matches!(self.spec.output, ApplyOutput::Join(_))
            && self.spec.on.is_none();
        let mut key = None;
        if keeps {
            let mut bytes = Vec::new();
            given.iter().for_each(|value| append_exact(value, &mut bytes));
            if let Some(found) = self.known.get(&bytes) {
                let found = found.clone();
                self.running.push_back(Instance { left, node: None, key: None, found, held: 0 });
                return Ok(());
            }
            key = Some(bytes);
        }
        let node = Some(build(self.spec.right, &Params::from(given)));
        let found = Found::default();
        self.running.push_back(Instance { left, node, key, found, held: 0 });
        Ok(())
    }

    /// Steps an instance until it is through or waits; false if it waits.
    fn step(&self, run: &mut Run<'_>, at: &mut Instance<'p>) -> Result<Stepped, SqlError> {
        while let Some(node) = &mut at.node {
            let before = run.bytes;
            let polled = node.next(run)?;
            at.held += run.bytes.saturating_sub(before);
            let rows = match polled {
                Poll::Rows(rows) => rows,
                Poll::Pending => return Ok(Stepped::Waits),
                Poll::Yield => return Ok(Stepped::Yields),
                Poll::Done => {
                    at.node = None;
                    break;
                }
            };
            if self.take(run, &at.left, rows, &mut at.found)?
                && let Some(mut node) = at.node.take()
            {
                node.close(run);
            }
        }
        Ok(Stepped::Through)
    }

    /// Takes rows of the right side; true if no more are needed.
    fn take(
        &self,
        run: &mut Run<'_>,
        left: &Row,
        rows: Vec<Row>,
        found: &mut Found,
    ) -> Result<bool, SqlError> {
        for row in rows {
            let truth = match self.spec.on {
                None => Some(true),
                Some(on) => truth(run, on, (left, &row), &self.params)?,
            };
            match (self.spec.output, truth) {
                (_, Some(false)) => {}
                (_, None) => found.is_unknown = true,
                (ApplyOutput::Mark | ApplyOutput::Join(JoinKind::Semi | JoinKind::Anti), _) => {
                    found.holds = true;
                    return Ok(true);
                }
                (ApplyOutput::Join(_), _) => found.rows.push(row),
                (ApplyOutput::Single, _) => {
                    if found.values.is_some() {
                        return Err(more_than_one_row());
                    }
                    found.values = Some(self.spec.values_of(&row));
                }
            }
        }
        Ok(false)
    }

    fn finish(&mut self, instance: Instance<'p>, out: &mut Vec<Row>) {
        let Instance { mut left, key, found, .. } = instance;
        if let Some(key) = key
            && self.known.len() < KNOWN_MAX
        {
            self.known.insert(key, found.clone());
        }
        match self.spec.output {
            ApplyOutput::Mark => {
                left.push(match (found.holds, found.is_unknown) {
                    (true, _) => Value::Int(1),
                    (false, true) => Value::Null,
                    (false, false) => Value::Int(0),
                });
                out.push(left);
            }
            ApplyOutput::Single => {
                let nulls = || self.spec.slots.iter().map(|_| Value::Null).collect();
                left.extend(found.values.unwrap_or_else(nulls));
                out.push(left);
            }
            ApplyOutput::Join(kind) => {
                let partnered = found.holds || !found.rows.is_empty();
                for right in found.rows {
                    let mut row = left.clone();
                    row.extend(right);
                    out.push(row);
                }
                finish_row(kind, partnered, left, self.spec.right_width, out);
            }
        }
    }

    /// Rows of the left side beside what the one run of the right side gives for them.
    fn with_once(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let right = self.spec.right;
        let mut out = Vec::new();
        while out.len() < INSTANCES_MAX
            && let Some(left) = self.waiting.pop()
        {
            run.spend(1);
            let mut found = Found::default();
            if self.spec.is_needed(run, &left, &self.params) {
                let node = || build(right, &Params::from([]));
                let parts = (&self.spec, &mut self.gathered);
                if let Built::Not(poll) = self.once.build(run, parts, node, &self.params)? {
                    self.waiting.push(left);
                    return Ok(if out.is_empty() { poll } else { Poll::Rows(out) });
                }
                found = self.once.find(run, &self.spec, &left, &self.params)?;
            }
            self.finish(Instance { left, node: None, key: None, found, held: 0 }, &mut out);
        }
        Ok(Poll::Rows(out))
    }

    /// Steps all instances once; hands on the rows of those at the front that are through.
    fn step_all(&mut self, run: &mut Run<'_>) -> Result<(Vec<Row>, bool), SqlError> {
        let mut running = core::mem::take(&mut self.running);
        let mut yields = false;
        for instance in &mut running {
            yields |= self.step(run, instance)? == Stepped::Yields;
        }
        let mut out = Vec::new();
        while running.front().is_some_and(|instance| instance.node.is_none())
            && let Some(instance) = running.pop_front()
        {
            run.spend(1);
            run.release(instance.held);
            self.finish(instance, &mut out);
        }
        self.running = running;
        Ok((out, yields))
    }
}

/// Appends bytes that are the same for the same value only: a subquery may tell apart what a collation does not.
fn append_exact(value: &Value, key: &mut Vec<u8>) {
    let (tag, text): (u8, Option<Vec<u8>>) = match value {
        Value::Null => (0, None),
        Value::Int(_) => (1, value.to_text()),
        Value::UInt(_) => (2, value.to_text()),
        Value::Float(number) => (3, Some(number.to_bits().to_be_bytes().to_vec())),
        Value::Double(number) => (4, Some(number.to_bits().to_be_bytes().to_vec())),
        Value::Decimal(_) => (5, value.to_text()),
        Value::Text(..) => (6, value.to_text()),
        Value::Bytes(_) => (7, value.to_text()),
        Value::Date(_) => (8, value.to_text()),
        Value::Time(_) => (9, value.to_text()),
        Value::DateTime(_) => (10, value.to_text()),
    };
    let text = text.unwrap_or_default();
    key.push(tag);
    key.extend_from_slice(&text.len().to_be_bytes());
    key.extend_from_slice(&text);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stepped {
    Through,
    Waits,
    Yields,
}

/// The truth of a condition for a pair of rows; none if it is unknown.
pub(super) fn truth(
    run: &mut Run<'_>,
    on: &Expr,
    rows: (&[Value], &[Value]),
    params: &[Value],
) -> Result<Option<bool>, SqlError> {
    if run.eval_pair(on, rows, params)?.is_null() {
        return Ok(None);
    }
    run.is_true(on, rows, params).map(Some)
}

impl Operator for Apply<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        loop {
            if self.spec.once && !self.waiting.is_empty() {
                match self.with_once(run)? {
                    Poll::Rows(rows) if rows.is_empty() => continue,
                    other => return Ok(other),
                }
            }
            while self.running.len() < INSTANCES_MAX
                && let Some(left) = self.waiting.pop()
            {
                self.begin(run, left)?;
            }
            if !self.running.is_empty() {
                let (out, yields) = self.step_all(run)?;
                if !out.is_empty() {
                    return Ok(Poll::Rows(out));
                }
                return Ok(if yields { Poll::Yield } else { Poll::Pending });
            }
            if self.left_is_done {
                return Ok(Poll::Done);
            }
            match self.left.next(run)? {
                Poll::Rows(mut rows) => {
                    rows.reverse();
                    self.waiting = rows;
                }
                Poll::Done => self.left_is_done = true,
                other => return Ok(other),
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left.close(run);
        self.waiting.clear();
        for instance in &mut self.running {
            if let Some(node) = &mut instance.node {
                node.close(run);
            }
        }
        self.running.clear();
        if let Once::Running(node) = &mut self.once {
            node.close(run);
        }
        self.left_is_done = true;
    }
}
