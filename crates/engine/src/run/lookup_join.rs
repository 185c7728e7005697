//! Joins with rows that are asked for with values of the left side: all rows of a batch ask at once.

use super::hash_join::{self, HashJoin, finish_row, pair};
use super::memory::{CHUNK_ROWS, Chunk, Held, Waiting};
use super::rows::ValueRows;
use super::{Ask, AskId, Goal, Node, Operator, Params, Poll, Row, Run, build, row_bytes};
use crate::ir::JoinKind;
use crate::physical::Beyond;
use alloc::{boxed::Box, vec::Vec};
use lats_base::planted::{QueryBug, errs};
use lats_values::{Expr, SqlError};

/// What is joined how.
pub(super) struct Spec<'p> {
    pub(super) kind: JoinKind,
    pub(super) source: usize,
    pub(super) requests: &'p [Expr],
    /// Requests at once.
    pub(super) most: usize,
    /// The rest of the condition.
    pub(super) residual: Option<&'p Expr>,
    pub(super) right_width: usize,
    pub(super) goal: Goal<'p>,
    /// What is done if more rows ask than was thought.
    pub(super) beyond: Option<&'p Beyond>,
}

/// A row of the left side, and the rows that have come for it.
struct Asking {
    left: Row,
    rights: Vec<Row>,
    found: bool,
}

/// The join while it runs.
pub(super) struct LookupJoin<'p> {
    left: Node<'p>,
    spec: Spec<'p>,
    params: Params,
    /// Rows of the left side that have not asked yet.
    waiting: Waiting,
    /// Requests that are made, while the batch is not full, and their bytes.
    requests: Vec<Row>,
    request_bytes: usize,
    /// Rows of the left side that ask together.
    batch: Vec<Asking>,
    /// What they have asked.
    asked: Option<AskId>,
    /// Those whose rows have come, the next one last.
    ready: Vec<Asking>,
    held: Held,
    /// Rows of the left side that ask at once.
    at_once: Option<usize>,
    left_is_done: bool,
    /// How many have asked.
    count: u64,
    /// The join of all further rows, once there were too many.
    rest: Option<HashJoin<'p>>,
}

/// Bytes of requests that go together.
const BATCH_BYTES: usize = 256 << 10;

impl<'p> LookupJoin<'p> {
    pub(super) fn new(left: Node<'p>, spec: Spec<'p>, params: Params) -> Self {
        Self {
            left,
            spec,
            params,
            waiting: Waiting::default(),
            requests: Vec::new(),
            request_bytes: 0,
            batch: Vec::new(),
            asked: None,
            ready: Vec::new(),
            held: Held::default(),
            at_once: None,
            left_is_done: false,
            count: 0,
            rest: None,
        }
    }

    /// How many rows ask at once: few, if few rows may be enough.
    fn at_once(&mut self, run: &mut Run<'_>) -> Result<usize, SqlError> {
        let at_once = match self.at_once {
            _ if run.one_by_one => 1,
            Some(at_once) => at_once,
            None => self.spec.goal.first_rows(run)?.map_or(CHUNK_ROWS, |first| first as usize),
        }
        .min(self.spec.most);
        self.at_once = Some(at_once);
        Ok(at_once)
    }

    fn is_full(&self, at_once: usize) -> bool {
        self.batch.len() >= at_once || self.request_bytes >= BATCH_BYTES
    }

    /// Adds to the batch; true if it is time to pause.
    fn gather(&mut self, run: &mut Run<'_>, at_once: usize) -> Result<bool, SqlError> {
        while !self.is_full(at_once)
            && let Some(left) = self.waiting.pop(run)
        {
            let mut request = Row::with_capacity(self.spec.requests.len());
            for expr in self.spec.requests {
                request.push(run.eval(expr, &left, &self.params)?);
            }
            self.request_bytes += row_bytes(&request);
            self.held.grow(run, row_bytes(&left) + row_bytes(&request))?;
            self.requests.push(request);
            self.batch.push(Asking { left, rights: Vec::new(), found: false });
            if run.spend(1) && !self.waiting.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes on with the left side until a batch may ask; what a pause or the end is, or none when it may.
    fn fill(&mut self, run: &mut Run<'_>) -> Result<Option<Poll>, SqlError> {
        let at_once = self.at_once(run)?;
        loop {
            if self.gather(run, at_once)? {
                return Ok(Some(Poll::Yield));
            }
            let has_some = !self.batch.is_empty();
            // Where few rows may be enough, no more are waited for.
            let is_enough = self.is_full(at_once) || at_once < CHUNK_ROWS || self.left_is_done;
            if has_some && is_enough {
                return Ok(None);
            }
            if self.left_is_done {
                return Ok(Some(Poll::Done));
            }
            match self.left.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                Poll::Done => self.left_is_done = true,
                // What the left side waits for travels with what is asked for here.
                Poll::Pending if has_some => return Ok(None),
                other => return Ok(Some(other)),
            }
        }
    }

    fn ask(&mut self, run: &mut Run<'_>) {
        let requests = core::mem::take(&mut self.requests);
        self.request_bytes = 0;
        self.count += requests.len() as u64;
        self.at_once = self.at_once.map(super::memory::more_at_once);
        self.asked = Some(run.ask(self.spec.source, requests, None));
    }

    /// Goes on with the right side in a table if more rows have asked than was thought, and more are to come.
    fn turn(&mut self, run: &mut Run<'_>) {
        let Some(beyond) = self.spec.beyond else { return };
        let is_due = self.count > beyond.asked && self.batch.is_empty() && run.switches;
        if !is_due || self.left_is_done || !matches!(self.spec.goal, Goal::All) {
            return;
        }
        if let Some(profile) = &mut run.profile {
            profile.note_switch(beyond);
        }
        let node = core::mem::replace(&mut self.left, Box::new(ValueRows::none()));
        let left: Node<'p> = Box::new(Rest { waiting: core::mem::take(&mut self.waiting), node });
        let right = build(run, &beyond.right, &self.params, &Goal::All);
        let spec = hash_join::Spec {
            kind: self.spec.kind,
            pairs: &beyond.pairs,
            residual: beyond.residual.as_ref(),
            right_width: self.spec.right_width,
        };
        let params = Params::clone(&self.params);
        self.rest = Some(HashJoin::new((left, right), spec, params));
    }

    /// Takes what has come; false if there is more to come.
    fn take(&mut self, run: &mut Run<'_>, id: AskId) -> Result<bool, SqlError> {
        let Some(answer) = run.take(id) else { return Ok(false) };
        run.spend(answer.rows.len());
        for (at, row) in answer.rows {
            if let Some(asking) = self.batch.get_mut(at as usize)
                && (asking.rights.is_empty() || !errs(QueryBug::LookupTakesOne))
            {
                self.held.grow(run, row_bytes(&row))?;
                asking.rights.push(row);
            }
        }
        if answer.more {
            run.asks.push(Ask::More(id));
            return Ok(false);
        }
        self.asked = None;
        self.ready = core::mem::take(&mut self.batch);
        self.ready.reverse();
        self.ready.iter_mut().for_each(|asking| asking.rights.reverse());
        Ok(true)
    }

    /// Hands on pairs; true if it is time to do so.
    fn pairs(&mut self, run: &mut Run<'_>, out: &mut Chunk) -> Result<bool, SqlError> {
        let keeps_pairs = matches!(self.spec.kind, JoinKind::Inner | JoinKind::Left);
        while let Some(mut asking) = self.ready.pop() {
            while (keeps_pairs || !asking.found)
                && let Some(right) = asking.rights.pop()
            {
                asking.found |= keeps_pairs && errs(QueryBug::LookupFindsTooEarly);
                if !self.passes(run, &asking.left, &right)? {
                    if run.spend(1) {
                        self.ready.push(asking);
                        return Ok(!out.is_empty());
                    }
                    continue;
                }
                asking.found = true;
                if !keeps_pairs {
                    break;
                }
                if asking.rights.is_empty() {
                    // The last pair takes the row itself.
                    let mut row = core::mem::take(&mut asking.left);
                    row.extend(right);
                    out.push(row);
                } else {
                    out.push(pair(&asking.left, &right));
                    if run.spend(1) || out.is_full() {
                        self.ready.push(asking);
                        return Ok(true);
                    }
                }
            }
            finish_row(self.spec.kind, asking.found, asking.left, self.spec.right_width, out);
            if run.spend(1) || out.is_full() {
                break;
            }
        }
        if self.ready.is_empty() {
            self.held.free(run);
        }
        Ok(!out.is_empty())
    }

    /// True if the rest of the condition holds for a pair.
    fn passes(&self, run: &mut Run<'_>, left: &Row, right: &Row) -> Result<bool, SqlError> {
        match self.spec.residual {
            Some(_)
                if self.spec.kind == JoinKind::Anti
                    && errs(QueryBug::LookupForgetsAntiResidual) =>
            {
                Ok(true)
            }
            Some(residual) => run.is_true(residual, (left, right), &self.params),
            None => Ok(true),
        }
    }
}

impl Operator for LookupJoin<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        loop {
            if let Some(rest) = &mut self.rest {
                return rest.next(run);
            }
            if !self.ready.is_empty() {
                let mut out = Chunk::new(run);
                if self.pairs(run, &mut out)? || run.is_tired() {
                    return Ok(out.or(Poll::Yield));
                }
            }
            if let Some(id) = self.asked {
                if !self.take(run, id)? {
                    return Ok(Poll::Pending);
                }
                continue;
            }
            self.turn(run);
            if self.rest.is_some() {
                continue;
            }
            if let Some(pause) = self.fill(run)? {
                return Ok(pause);
            }
            self.ask(run);
            return Ok(Poll::Pending);
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left.close(run);
        if let Some(mut rest) = self.rest.take() {
            rest.close(run);
        }
        self.waiting.clear(run);
        if let Some(id) = self.asked.take() {
            run.forget(id);
        }
        (self.requests, self.batch, self.ready) = (Vec::new(), Vec::new(), Vec::new());
        self.left_is_done = true;
        self.held.free(run);
    }
}

/// Rows that have come already, and those that are still to come.
struct Rest<'p> {
    waiting: Waiting,
    node: Node<'p>,
}

impl Operator for Rest<'_> {
    fn next(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let mut rows = Vec::new();
        while let Some(row) = self.waiting.pop(run) {
            rows.push(row);
        }
        match rows.is_empty() {
            true => self.node.next(run),
            false => Ok(Poll::Rows(rows)),
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.waiting.clear(run);
        self.node.close(run);
    }
}
