//! The right side of an Apply that is the same for all rows: it runs once, and its rows are kept.

use super::apply::{Found, Spec, truth};
use super::{Node, Params, Poll, Row, Run, keys, more_than_one_row, row_bytes};
use crate::physical::ApplyOutput;
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_values::SqlError;

/// The right side's rows, as far as they are needed.
pub(super) enum Once<'p> {
    /// It has not run yet.
    Unknown,
    /// It runs.
    Running(Node<'p>),
    /// All rows, or the first one if one is enough.
    Rows(Vec<Row>),
    /// The bytes of the values that are looked up, and whether there are NULLs.
    Values {
        /// The bytes.
        values: Map<Vec<u8>, ()>,
        /// A row has NULL.
        has_null: bool,
    },
}

/// Rows of the right side while it runs.
#[derive(Default)]
pub(super) struct Gathered {
    rows: Vec<Row>,
    values: Map<Vec<u8>, ()>,
    has_null: bool,
}

/// What building has come to.
pub(super) enum Built {
    /// It is there.
    Ready,
    /// It waits, or lets others work.
    Not(Poll),
}

impl<'p> Once<'p> {
    /// Goes on with the right side until all is there.
    pub(super) fn build(
        &mut self,
        run: &mut Run<'_>,
        (spec, gathered): (&Spec<'p>, &mut Gathered),
        node: impl FnOnce() -> Node<'p>,
        params: &Params,
    ) -> Result<Built, SqlError> {
        if matches!(self, Self::Unknown) {
            *self = Self::Running(node());
        }
        // Whether there is a row at all is known with the first one.
        let one_is_enough = spec.output == ApplyOutput::Mark && spec.on.is_none();
        while let Self::Running(node) = self {
            match node.next(run)? {
                Poll::Rows(rows) => {
                    let tired = run.spend(rows.len());
                    gathered.add(run, spec, rows, params)?;
                    if one_is_enough {
                        node.close(run);
                        *self = gathered.finish(spec);
                    } else if tired {
                        return Ok(Built::Not(Poll::Yield));
                    }
                }
                Poll::Done => *self = gathered.finish(spec),
                other => return Ok(Built::Not(other)),
            }
        }
        Ok(Built::Ready)
    }

    /// What the rows give for a row of the left side.
    pub(super) fn find(
        &self,
        run: &mut Run<'_>,
        spec: &Spec<'_>,
        left: &Row,
        params: &Params,
    ) -> Result<Found, SqlError> {
        let mut found = Found::default();
        match self {
            Self::Values { values, has_null } => {
                let Some(pair) = spec.equal else { return Ok(found) };
                let value = run.eval(&pair.left, left, params)?;
                let mut key = Vec::new();
                let is_null = !keys::append(pair.class, value, &mut key);
                found.holds = !is_null && values.contains_key(&key);
                // NULL is unlike no row: it is unknown whether it is like one.
                found.is_unknown = *has_null || (is_null && !values.is_empty());
            }
            Self::Rows(rows) => self.walk(run, spec, (left, rows), params, &mut found)?,
            Self::Unknown | Self::Running(_) => {}
        }
        Ok(found)
    }

    fn walk(
        &self,
        run: &mut Run<'_>,
        spec: &Spec<'_>,
        (left, rows): (&Row, &[Row]),
        params: &Params,
        found: &mut Found,
    ) -> Result<(), SqlError> {
        for row in rows {
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
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Gathered {
    fn add(
        &mut self,
        run: &mut Run<'_>,
        spec: &Spec<'_>,
        rows: Vec<Row>,
        params: &Params,
    ) -> Result<(), SqlError> {
        let Some(pair) = spec.equal else {
            for row in &rows {
                run.hold(row_bytes(row))?;
            }
            self.rows.extend(rows);
            return Ok(());
        };
        for row in rows {
            let value = run.eval(&pair.right, &row, params)?;
            let mut key = Vec::new();
            if !keys::append(pair.class, value, &mut key) {
                self.has_null = true;
                continue;
            }
            let bytes = key.len() + 48;
            if self.values.insert(key, ()).is_none() {
                run.hold(bytes)?;
            }
        }
        Ok(())
    }

    fn finish<'p>(&mut self, spec: &Spec<'p>) -> Once<'p> {
        let Self { rows, values, has_null } = core::mem::take(self);
        match spec.equal {
            Some(_) => Once::Values { values, has_null },
            None => Once::Rows(rows),
        }
    }
}
