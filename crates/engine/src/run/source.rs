//! Rows of a table.

use super::{Ask, AskId, Operator, Params, Poll, Row, Run};
use alloc::vec::Vec;
use lats_values::{Expr, SqlError};

enum State {
    Idle,
    Asked(AskId),
    Done,
}

/// Asks for all rows of a source for one list of parameters.
pub(super) struct Source<'p> {
    source: usize,
    requests: &'p [Expr],
    params: Params,
    state: State,
}

impl<'p> Source<'p> {
    pub(super) fn new(source: usize, requests: &'p [Expr], params: Params) -> Self {
        Self { source, requests, params, state: State::Idle }
    }
}

impl Operator for Source<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let id = match self.state {
            State::Done => return Ok(Poll::Done),
            State::Asked(id) => id,
            State::Idle => {
                let mut request = Row::with_capacity(self.requests.len());
                for expr in self.requests {
                    request.push(run.eval(expr, &[], &self.params)?);
                }
                let id = run.ask(self.source, Vec::from([request]));
                self.state = State::Asked(id);
                id
            }
        };
        let Some(answer) = run.take(id) else { return Ok(Poll::Pending) };
        match answer.more {
            true => run.asks.push(Ask::More(id)),
            false => self.state = State::Done,
        }
        if answer.rows.is_empty() {
            return Ok(if answer.more { Poll::Pending } else { Poll::Done });
        }
        Ok(Poll::Rows(answer.rows.into_iter().map(|(_, row)| row).collect()))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        if let State::Asked(id) = self.state {
            run.asks.push(Ask::Close(id));
            run.take(id);
        }
        self.state = State::Done;
    }
}
