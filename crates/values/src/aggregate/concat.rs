//! GROUP_CONCAT.

use super::{AggregateSpec, distinct::key_of};
use crate::{Collation, EvalContext, SqlError, Value, compare, compare::sort_order};
use alloc::{boxed::Box, string::String, vec::Vec};
use core::cmp::Ordering;
use lats_base::planted::{QueryBug, errs};

/// The rows so far, each with its text and what orders it.
#[derive(Clone, Debug, Default)]
pub(super) struct Concat {
    rows: Vec<Row>,
    text_bytes: usize,
    order_bytes: usize,
    /// Rows that have come.
    count: u64,
    /// With so many rows, those that cannot be in the result are left out.
    prune_at: usize,
    /// Whether an argument was bytes, and the collation of the texts.
    has_bytes: bool,
    collation: Option<Collation>,
}

#[derive(Clone, Debug)]
struct Row {
    text: Box<[u8]>,
    order: Box<[Value]>,
    /// What DISTINCT compares; empty without DISTINCT.
    key: Box<[u8]>,
    /// Which it was of all that came.
    number: u64,
}

/// Rows that are kept at least before any is left out.
const KEPT_MIN: usize = 4_096;

impl Concat {
    /// Adds a row of arguments that are not NULL; `values` are those and what only orders.
    pub(super) fn add(&mut self, args: &[Value], values: &[Value], spec: &AggregateSpec) {
        for arg in args {
            match arg {
                Value::Bytes(_) => self.has_bytes = true,
                Value::Text(_, with) => self.take_collation(*with),
                _ => {}
            }
        }
        let text = args.iter().filter_map(Value::as_bytes).collect::<Vec<_>>().concat();
        let of = |(place, _): &(usize, bool)| values.get(*place).cloned().unwrap_or(Value::Null);
        let key = if spec.distinct { key_of(args) } else { Box::default() };
        // Distinct rows without an order come in their own one.
        let order = match sorts_itself(spec) {
            true => args.into(),
            false => spec.order.iter().map(of).collect(),
        };
        self.keep(Row { text: text.into(), order, key, number: 0 }, spec);
    }

    fn take_collation(&mut self, with: Collation) {
        let collation = self.collation.map_or(with, |c| compare::common_collation(c, with));
        self.collation = Some(collation);
    }

    /// Without an order, rows behind the longest result are not needed.
    fn keep(&mut self, row: Row, spec: &AggregateSpec) {
        let between = self.rows.len().saturating_sub(1) * spec.separator.len();
        let is_sorted = sorts_itself(spec) || !spec.order.is_empty();
        if !is_sorted && self.text_bytes + between > spec.max_bytes {
            return;
        }
        self.count += 1;
        let row = Row { number: self.count, ..row };
        self.order_bytes += row.order_bytes();
        self.text_bytes += row.text.len();
        self.rows.push(row);
        if is_sorted && self.rows.len() >= self.prune_at.max(KEPT_MIN) {
            self.prune(spec);
        }
    }

    /// Leaves out the rows that stand behind the longest result: so no sort is of much more rows than the result has.
    fn prune(&mut self, spec: &AggregateSpec) {
        self.sort(spec);
        let mut bytes = 0;
        let reaches = |row: &Row| {
            bytes += row.text.len() + spec.separator.len();
            bytes > spec.max_bytes.saturating_add(spec.separator.len())
        };
        let last = self.rows.iter().position(reaches).unwrap_or(self.rows.len());
        for row in self.rows.drain(self.rows.len().min(last + 1)..) {
            self.text_bytes -= row.text.len();
            self.order_bytes -= row.order_bytes();
        }
        self.prune_at = 2 * self.rows.len() + KEPT_MIN;
    }

    /// As in MySQL, of rows that are equal in the order the last one comes first.
    fn sort(&mut self, spec: &AggregateSpec) {
        let later_first = !spec.order.is_empty();
        self.rows.sort_unstable_by(|a, b| {
            let came = a.number.cmp(&b.number);
            let came = if later_first { came.reverse() } else { came };
            order_of(&spec.order, &a.order, &b.order).then(came)
        });
    }

    pub(super) fn merge(&mut self, other: Self, spec: &AggregateSpec) {
        self.merge_new(other, spec, |_| true);
    }

    /// Adds the rows of another one whose keys are new.
    pub(super) fn merge_new(
        &mut self,
        other: Self,
        spec: &AggregateSpec,
        mut is_new: impl FnMut(&[u8]) -> bool,
    ) {
        self.has_bytes |= other.has_bytes;
        other.collation.into_iter().for_each(|with| self.take_collation(with));
        let mut rows = other.rows;
        rows.sort_unstable_by_key(|row| row.number);
        for row in rows {
            if is_new(&row.key) {
                self.keep(row, spec);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.len() * size_of::<Row>() + self.text_bytes + self.order_bytes
    }

    /// The text, cut where a character ends.
    pub(super) fn finish(
        mut self,
        spec: &AggregateSpec,
        ctx: &mut EvalContext,
    ) -> Result<Value, SqlError> {
        if self.rows.is_empty() {
            return Ok(Value::Null);
        }
        self.sort(spec);
        let mut out = Vec::with_capacity(self.text_bytes.min(spec.max_bytes));
        for (number, row) in (1_u64..).zip(&self.rows) {
            if number > 1 {
                out.extend_from_slice(spec.separator.as_bytes());
            }
            out.extend_from_slice(&row.text);
            if out.len() > spec.max_bytes {
                ctx.warn(SqlError::cut_by_group_concat(number))?;
                break;
            }
        }
        let cut = out.len().min(spec.max_bytes);
        if self.has_bytes {
            out.truncate(cut);
            return Ok(Value::Bytes(out));
        }
        // Every part was UTF-8.
        let mut text = String::from_utf8(out).unwrap_or_default();
        text.truncate(text.floor_char_boundary(cut));
        Ok(Value::Text(text, self.collation.unwrap_or_default()))
    }
}

impl Row {
    fn order_bytes(&self) -> usize {
        let of = |value: &Value| size_of::<Value>() + string_bytes(value);
        self.order.iter().map(of).sum::<usize>() + self.key.len()
    }
}

/// DISTINCT without ORDER BY: MySQL keeps such rows in a tree.
fn sorts_itself(spec: &AggregateSpec) -> bool {
    spec.distinct && spec.order.is_empty()
}

fn string_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text, _) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

/// As in MySQL, NULL is ordered as the zero of its type here, not before all values.
fn beside_zero(value: &Value) -> Ordering {
    match value {
        Value::Text(text, _) => text.len().cmp(&0),
        Value::Bytes(bytes) => bytes.len().cmp(&0),
        // There is none before the zero date.
        Value::Date(_) | Value::DateTime(_) => Ordering::Greater,
        Value::Time(time) => time.total_micros().cmp(&0),
        number => sort_order(number, &Value::Int(0)),
    }
}

fn order_of(spec: &[(usize, bool)], a: &[Value], b: &[Value]) -> Ordering {
    for (at, (x, y)) in a.iter().zip(b).enumerate() {
        let order = match (x, y) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, value) => beside_zero(value).reverse(),
            (value, Value::Null) => beside_zero(value),
            _ => sort_order(x, y),
        };
        if order.is_ne() {
            let forgets = at > 0 && errs(QueryBug::ConcatForgetsDescending);
            let descends = spec.get(at).is_some_and(|(_, descending)| *descending) && !forgets;
            return if descends { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

impl SqlError {
    /// 1260: the result of GROUP_CONCAT was longer than it may be.
    pub fn cut_by_group_concat(row: u64) -> Self {
        let text = alloc::format!("Row {row} was cut by GROUP_CONCAT()");
        Self::new(1260, *b"HY000", text)
    }
}
