//! Rows of a table.

use super::memory::{Chunk, Waiting};
use super::{Ask, AskId, Goal, Operator, Params, Poll, Row, Run};
use alloc::vec::Vec;
use lats_values::{Expr, SqlError};

enum State {
    Idle,
    Asked(AskId),
    /// There is more, which is asked for when it is needed.
    Rests(AskId),
    Done,
}

/// Asks for all rows of a source for one list of parameters.
pub(super) struct Source<'p> {
    source: usize,
    requests: &'p [Expr],
    params: Params,
    goal: Goal<'p>,
    state: State,
    waiting: Waiting,
}

impl<'p> Source<'p> {
    pub(super) fn new(source: usize, requests: &'p [Expr], params: Params, goal: Goal<'p>) -> Self {
        let (state, waiting) = (State::Idle, Waiting::default());
        Self { source, requests, params, goal, state, waiting }
    }

    fn ask(&mut self, run: &mut Run<'_>) -> Result<(), SqlError> {
        let mut request = Row::with_capacity(self.requests.len());
        for expr in self.requests {
            request.push(run.eval(expr, &[], &self.params)?);
        }
        let first = self.goal.first_rows(run)?;
        self.state = State::Asked(run.ask(self.source, Vec::from([request]), first));
        Ok(())
    }

    /// Rows that have come, no more than are handed on at once.
    fn hand_on(&mut self, run: &mut Run<'_>) -> Poll {
        let mut chunk = Chunk::new(run);
        while !chunk.is_full()
            && let Some(row) = self.waiting.pop(run)
        {
            chunk.push(row);
        }
        chunk.or(Poll::Done)
    }
}

impl Operator for Source<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        if !self.waiting.is_empty() {
            return Ok(self.hand_on(run));
        }
        let id = match self.state {
            State::Done => return Ok(Poll::Done),
            State::Asked(id) => id,
            State::Rests(id) => {
                run.asks.push(Ask::More(id));
                self.state = State::Asked(id);
                return Ok(Poll::Pending);
            }
            State::Idle => {
                self.ask(run)?;
                return Ok(Poll::Pending);
            }
        };
        let Some(answer) = run.take(id) else { return Ok(Poll::Pending) };
        match (answer.more, &self.goal) {
            (false, _) => self.state = State::Done,
            // The next rows come while these are worked on.
            (true, Goal::All) => run.asks.push(Ask::More(id)),
            (true, _) if answer.rows.is_empty() => run.asks.push(Ask::More(id)),
            (true, _) => self.state = State::Rests(id),
        }
        if answer.rows.is_empty() {
            return Ok(if answer.more { Poll::Pending } else { Poll::Done });
        }
        let rows: Vec<Row> = answer.rows.into_iter().map(|(_, row)| row).collect();
        if rows.len() <= super::memory::CHUNK_ROWS {
            return Ok(Poll::Rows(rows));
        }
        self.waiting.fill(run, rows)?;
        Ok(self.hand_on(run))
    }

    fn close(&mut self, run: &mut Run<'_>) {
        if let State::Asked(id) | State::Rests(id) = self.state {
            run.forget(id);
        }
        self.state = State::Done;
        self.waiting.clear(run);
    }
}
