//! Joins with rows that are asked for with values of the left side: all rows of a batch ask at once.

use super::hash_join::finish_row;
use super::{Ask, AskId, Node, Operator, Params, Poll, Row, Run};
use crate::ir::JoinKind;
use alloc::vec::Vec;
use lats_values::{Expr, SqlError};

/// A row of the left side, and the rows that have come for it.
type Asking = (Row, Vec<Row>);

/// The join while it runs.
pub(super) struct LookupJoin<'p> {
    kind: JoinKind,
    left: Node<'p>,
    source: usize,
    requests: &'p [Expr],
    right_width: usize,
    params: Params,
    /// Rows of the left side that wait for the answer, and the rows that have come for each.
    asked: Option<(AskId, Vec<Asking>)>,
    /// Rows of the left side that have not asked yet, the next one last.
    waiting: Vec<Row>,
}

/// Rows of the left side that ask at once.
const BATCH_MAX: usize = 1_024;

impl<'p> LookupJoin<'p> {
    pub(super) fn new(
        kind: JoinKind,
        left: Node<'p>,
        source: usize,
        requests: &'p [Expr],
        right_width: usize,
        params: Params,
    ) -> Self {
        let (asked, waiting) = (None, Vec::new());
        Self { kind, left, source, requests, right_width, params, asked, waiting }
    }

    /// Asks for the partners of the next rows.
    fn ask(&mut self, run: &mut Run<'_>) -> Result<(), SqlError> {
        let count = self.waiting.len().min(BATCH_MAX);
        let mut requests = Vec::with_capacity(count);
        let mut lefts = Vec::with_capacity(count);
        while lefts.len() < count
            && let Some(left) = self.waiting.pop()
        {
            let mut request = Row::with_capacity(self.requests.len());
            for expr in self.requests {
                request.push(run.eval(expr, &left, &self.params)?);
            }
            requests.push(request);
            lefts.push((left, Vec::new()));
        }
        let id = run.ask(self.source, requests);
        self.asked = Some((id, lefts));
        Ok(())
    }

    fn pairs(&self, lefts: Vec<Asking>) -> Vec<Row> {
        let mut out = Vec::with_capacity(lefts.len());
        let pairs = matches!(self.kind, JoinKind::Inner | JoinKind::Left);
        for (mut left, rights) in lefts {
            let found = !rights.is_empty();
            let count = rights.len();
            for (at, right) in rights.into_iter().enumerate() {
                if !pairs {
                    break;
                }
                // The last pair takes the row itself.
                let mut row =
                    if at + 1 == count { core::mem::take(&mut left) } else { left.clone() };
                row.extend(right);
                out.push(row);
            }
            finish_row(self.kind, found, left, self.right_width, &mut out);
        }
        out
    }
}

impl Operator for LookupJoin<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        loop {
            if let Some((id, mut lefts)) = self.asked.take() {
                let Some(answer) = run.take(id) else {
                    self.asked = Some((id, lefts));
                    return Ok(Poll::Pending);
                };
                run.spend(answer.rows.len());
                for (at, row) in answer.rows {
                    if let Some((_, rights)) = lefts.get_mut(at as usize) {
                        rights.push(row);
                    }
                }
                if answer.more {
                    run.asks.push(Ask::More(id));
                    self.asked = Some((id, lefts));
                    return Ok(Poll::Pending);
                }
                let out = self.pairs(lefts);
                if !out.is_empty() {
                    return Ok(Poll::Rows(out));
                }
            }
            if !self.waiting.is_empty() {
                self.ask(run)?;
                continue;
            }
            match self.left.next(run)? {
                Poll::Rows(mut rows) => {
                    rows.reverse();
                    self.waiting = rows;
                }
                other => return Ok(other),
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left.close(run);
        self.waiting.clear();
        if let Some((id, _)) = self.asked.take() {
            run.asks.push(Ask::Close(id));
            run.take(id);
        }
    }
}
