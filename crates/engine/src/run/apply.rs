//! The right side for each row of the left one: several instances run at once, so that what they ask for travels together.

use super::hash_join::{finish_row, pair};
use super::memory::{CacheId, Chunk, ENTRY_BYTES, Held, Waiting};
use super::once::Once;
use super::{Goal, Node, Operator, Params, Poll, Row, Run, build, more_than_one_row, row_bytes};
use crate::ir::JoinKind;
use crate::physical::{ApplyOutput, EqualPair, Op};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use lats_base::map::Map;
use lats_base::planted::{QueryBug, errs};
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
    pub(super) right_goal: Goal<'p>,
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
        // Whether there is a row at all is known with the first one.
        let exists = on.is_none()
            && matches!(
                output,
                ApplyOutput::Mark | ApplyOutput::Join(JoinKind::Semi | JoinKind::Anti)
            );
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
            right_goal: if exists { Goal::First } else { Goal::All },
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
    /// The parameters, while an instance before it runs for the same: this one waits for what that finds.
    twin: Option<Params>,
    /// It has, or had, operators of its own.
    is_begun: bool,
    /// Rows of the right side that were not looked at yet.
    rows: Waiting,
    found: Found,
    /// Memory that the row and what was found take.
    held: Held,
}

/// What an instance has found.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// Rows of the right side, for joins; the next one first.
    pub(super) rows: VecDeque<Row>,
    /// The condition held for a row.
    pub(super) holds: bool,
    /// It was unknown for a row.
    pub(super) is_unknown: bool,
    /// The values of the one row.
    pub(super) values: Option<Row>,
}

impl Instance<'_> {
    /// One that needs no operators.
    fn through(left: Row, found: Found, held: Held) -> Self {
        let rows = Waiting::default();
        Self { left, node: None, key: None, twin: None, is_begun: false, rows, found, held }
    }
}

impl Found {
    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let values = self.values.as_ref().map_or(0, |values| row_bytes(values));
        size_of::<Self>() + values + self.rows.iter().map(|row| row_bytes(row)).sum::<usize>()
    }
}

/// The operator while it runs.
pub(super) struct Apply<'p> {
    left: Node<'p>,
    left_is_done: bool,
    spec: Spec<'p>,
    params: Params,
    goal: Goal<'p>,
    waiting: Waiting,
    running: VecDeque<Instance<'p>>,
    /// The parameters that some of them run for, each with operators of its own or with what these have found.
    asked: Map<Vec<u8>, ()>,
    /// How many of them wait for what another one finds.
    twins: usize,
    /// How many of them have operators of their own, or had some.
    begun: usize,
    /// Instances that run at once.
    at_once: Option<usize>,
    /// The results by parameters, while there is room; rows of joins are not kept.
    known: Option<CacheId>,
    /// The right side, if it is the same for all rows.
    once: Once<'p>,
}

/// Instances that run at once at most.
const INSTANCES_MAX: usize = 64;
/// Rows of the left side at a time, with those that wait for what another one's instance gives.
const ROWS_MAX: usize = 1_024;

impl<'p> Apply<'p> {
    pub(super) fn new(left: Node<'p>, spec: Spec<'p>, (params, goal): (Params, Goal<'p>)) -> Self {
        Self {
            left,
            left_is_done: false,
            spec,
            params,
            goal,
            waiting: Waiting::default(),
            running: VecDeque::new(),
            asked: Map::default(),
            twins: 0,
            begun: 0,
            at_once: None,
            known: None,
            once: Once::default(),
        }
    }

    fn begin(&mut self, run: &mut Run<'_>, left: Row) -> Result<(), SqlError> {
        let mut held = Held::default();
        if !self.spec.is_needed(run, &left, &self.params) {
            held.grow(run, row_bytes(&left))?;
            self.running.push_back(Instance::through(left, Found::default(), held));
            return Ok(());
        }
        let mut given = Vec::with_capacity(self.spec.given.len());
        for expr in self.spec.given {
            given.push(run.eval(expr, &left, &self.params)?);
        }
        held.grow(run, row_bytes(&left) + row_bytes(&given))?;
        // A condition sees the left row, so that its results are of this row alone.
        let keeps = self.spec.keeps
            && !matches!(self.spec.output, ApplyOutput::Join(_))
            && self.spec.on.is_none();
        let given = Params::from(given);
        let mut instance = Instance::through(left, Found::default(), held);
        if keeps {
            let known = *self.known.get_or_insert_with(|| run.memory.new_cache());
            let mut bytes = Vec::new();
            match errs(QueryBug::ApplyCacheByCollation) {
                true => lats_values::group_key(&given, &mut bytes),
                false => given.iter().for_each(|value| append_exact(value, &mut bytes)),
            }
            if let Some(found) = run.memory.known(known, &bytes) {
                instance.found = found.clone();
                self.running.push_back(instance);
                return Ok(());
            }
            instance.held.grow(run, bytes.len())?;
            if self.asked.contains_key(&bytes) {
                (instance.twin, instance.key) = (Some(given), Some(bytes));
                self.twins += 1;
                self.running.push_back(instance);
                return Ok(());
            }
            instance.held.grow(run, asked_bytes(&bytes))?;
            self.asked.insert(bytes.clone(), ());
            instance.key = Some(bytes);
        }
        self.start(run, &mut instance, &given);
        self.running.push_back(instance);
        Ok(())
    }

    fn start(&mut self, run: &Run<'_>, instance: &mut Instance<'p>, given: &Params) {
        instance.node = Some(build(run, self.spec.right, given, &self.spec.right_goal));
        instance.is_begun = true;
        self.begun += 1;
    }

    /// An instance that has waited is at the front: it takes what the one before it has found, or runs if that was not kept.
    fn wake(&mut self, run: &mut Run<'_>, instance: &mut Instance<'p>) -> Result<(), SqlError> {
        let Some(given) = instance.twin.take() else { return Ok(()) };
        self.twins -= 1;
        let (Some(known), Some(key)) = (self.known, &instance.key) else { return Ok(()) };
        if let Some(found) = run.memory.known(known, key) {
            instance.found = found.clone();
            instance.key = None;
            return Ok(());
        }
        instance.held.grow(run, asked_bytes(key))?;
        self.asked.insert(key.clone(), ());
        self.start(run, instance, &given);
        Ok(())
    }

    /// Keeps what an instance has found for rows with the same parameters. If there is no room for it, the next of them that waits
    /// takes it, and hands it on in its turn.
    fn settle(
        &mut self,
        run: &mut Run<'_>,
        instance: &mut Instance<'p>,
        behind: &mut VecDeque<Instance<'p>>,
    ) {
        let (Some(known), Some(key)) = (self.known, instance.key.take()) else { return };
        run.memory.keep(known, &key, &instance.found);
        if self.twins > 0 && run.memory.known(known, &key).is_none() {
            let is_twin = |other: &&mut Instance<'p>| {
                other.twin.is_some() && other.key.as_ref() == Some(&key)
            };
            let bytes = instance.found.bytes() + asked_bytes(&key);
            // Where there is no memory for it, it is found once more.
            if let Some(next) = behind.iter_mut().find(is_twin)
                && next.held.grow(run, bytes).is_ok()
            {
                next.found = instance.found.clone();
                next.twin = None;
                self.twins -= 1;
                return;
            }
        }
        self.asked.remove(&key);
    }

    /// Begins with rows of the left side, as many as may be under way.
    fn begin_some(&mut self, run: &mut Run<'_>, at_once: usize) -> Result<(), SqlError> {
        let rows_max = if at_once < INSTANCES_MAX { at_once } else { ROWS_MAX };
        while self.begun < at_once
            && self.running.len() < rows_max
            && let Some(left) = self.waiting.pop(run)
        {
            self.begin(run, left)?;
            if run.spend(1) {
                break;
            }
        }
        Ok(())
    }

    /// Steps an instance until it is through or waits.
    fn step(&self, run: &mut Run<'_>, at: &mut Instance<'p>) -> Result<Stepped, SqlError> {
        while let Some(node) = &mut at.node {
            let mut is_enough = false;
            while !is_enough && let Some(row) = at.rows.pop(run) {
                is_enough = self.take(run, (&at.left, row), &mut at.found, &mut at.held)?;
                if run.spend(1) && !is_enough {
                    return Ok(Stepped::Yields);
                }
            }
            if is_enough {
                at.rows.clear(run);
                node.close(run);
                at.node = None;
                break;
            }
            match node.next(run)? {
                Poll::Rows(rows) => at.rows.fill(run, rows)?,
                Poll::Pending => return Ok(Stepped::Waits),
                Poll::Yield => return Ok(Stepped::Yields),
                Poll::Done => {
                    node.close(run);
                    at.node = None;
                }
            }
        }
        Ok(Stepped::Through)
    }

    /// Takes a row of the right side; true if no more are needed.
    fn take(
        &self,
        run: &mut Run<'_>,
        (left, row): (&Row, Row),
        found: &mut Found,
        held: &mut Held,
    ) -> Result<bool, SqlError> {
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
            (ApplyOutput::Join(_), _) => {
                held.grow(run, row_bytes(&row))?;
                found.holds = true;
                found.rows.push_back(row);
            }
            (ApplyOutput::Single, _) => {
                if found.values.is_some() && !errs(QueryBug::SecondRowOverwrites) {
                    return Err(more_than_one_row());
                }
                let values = self.spec.values_of(&row);
                held.grow(run, row_bytes(&values))?;
                found.values = Some(values);
            }
        }
        Ok(false)
    }

    /// Hands on what an instance that is through gives; false if there is more of it.
    fn finish(&self, run: &mut Run<'_>, instance: &mut Instance<'p>, out: &mut Chunk) -> bool {
        let (left, found) = (&mut instance.left, &mut instance.found);
        match self.spec.output {
            ApplyOutput::Mark => {
                let mut left = core::mem::take(left);
                left.push(match (found.holds, found.is_unknown) {
                    (true, _) => Value::Int(1),
                    (false, true) if !errs(QueryBug::MarkIsNeverUnknown) => Value::Null,
                    (false, true) => Value::Int(0),
                    (false, false) => Value::Int(0),
                });
                out.push(left);
            }
            ApplyOutput::Single => {
                let mut left = core::mem::take(left);
                let nulls = || self.spec.slots.iter().map(|_| Value::Null).collect();
                left.extend(found.values.take().unwrap_or_else(nulls));
                out.push(left);
            }
            ApplyOutput::Join(kind) => {
                while let Some(right) = found.rows.pop_front() {
                    out.push(pair(left, &right));
                    if (run.spend(1) || out.is_full()) && !found.rows.is_empty() {
                        return false;
                    }
                }
                let left = core::mem::take(left);
                finish_row(kind, found.holds, left, self.spec.right_width, out);
            }
        }
        instance.held.free(run);
        true
    }

    /// Rows of the left side beside what the one run of the right side gives for them.
    fn with_once(&mut self, run: &mut Run<'_>) -> Result<Poll, SqlError> {
        let (right, goal) = (self.spec.right, &self.spec.right_goal);
        let node = |run: &Run<'_>| build(run, right, &Params::from([]), goal);
        let mut out = Chunk::new(run);
        while !out.is_full()
            && let Some(left) = self.waiting.last()
        {
            let mut found = Found::default();
            if self.spec.is_needed(run, left, &self.params) {
                if let Some(pause) = self.once.build(run, &self.spec, node, &self.params)? {
                    return Ok(out.or(pause));
                }
                match self.once.find(run, &self.spec, left, &self.params)? {
                    Some(known) => found = known,
                    None => break,
                }
            }
            let Some(left) = self.waiting.pop(run) else { break };
            let mut instance = Instance::through(left, found, Held::default());
            self.finish(run, &mut instance, &mut out);
            if run.spend(1) {
                break;
            }
        }
        Ok(out.or(Poll::Yield))
    }

    /// Steps the instances; hands on the rows of those at the front that are through. None if the next ones can begin.
    fn step_all(&mut self, run: &mut Run<'_>) -> Result<Option<Poll>, SqlError> {
        let mut running = core::mem::take(&mut self.running);
        let mut pause = Poll::Pending;
        for instance in &mut running {
            let stepped = self.step(run, instance)?;
            if stepped == Stepped::Yields || run.is_tired() {
                pause = Poll::Yield;
                break;
            }
        }
        let mut out = Chunk::new(run);
        while let Some(mut instance) = running.pop_front() {
            if instance.twin.is_some() {
                self.wake(run, &mut instance)?;
                // It may have operators now, which have asked for nothing yet.
                pause = Poll::Yield;
            }
            if instance.node.is_some() {
                running.push_front(instance);
                break;
            }
            self.settle(run, &mut instance, &mut running);
            match self.finish(run, &mut instance, &mut out) {
                true => self.begun -= usize::from(instance.is_begun),
                false => running.push_front(instance),
            }
            if run.spend(1) || out.is_full() {
                pause = Poll::Yield;
                break;
            }
        }
        if running.front().is_none_or(|instance| instance.node.is_none()) {
            pause = Poll::Yield;
        }
        self.running = running;
        let goes_on = self.running.is_empty() && out.is_empty() && !run.is_tired();
        Ok((!goes_on).then(|| out.or(pause)))
    }

    /// How many instances run at once: few, if few rows may be enough.
    fn at_once(&mut self, run: &mut Run<'_>) -> Result<usize, SqlError> {
        let at_once = match self.at_once {
            _ if run.one_by_one => 1,
            Some(at_once) => super::memory::more_at_once(at_once),
            None => self.goal.first_rows(run)?.map_or(INSTANCES_MAX, |first| first as usize),
        };
        self.at_once = Some(at_once);
        Ok(at_once.min(INSTANCES_MAX))
    }
}

/// What it takes that a key is asked for, beside the instance's own key.
fn asked_bytes(key: &[u8]) -> usize {
    key.len() + ENTRY_BYTES
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
                return self.with_once(run);
            }
            if self.running.is_empty() && !self.waiting.is_empty() {
                let at_once = self.at_once(run)?;
                self.begin_some(run, at_once)?;
            }
            if self.at_once.is_some_and(|at_once| at_once >= INSTANCES_MAX) && !run.is_tired() {
                self.begin_some(run, INSTANCES_MAX)?;
            }
            if !self.running.is_empty() {
                match self.step_all(run)? {
                    Some(polled) => return Ok(polled),
                    None => continue,
                }
            }
            if self.left_is_done {
                return Ok(Poll::Done);
            }
            match self.left.next(run)? {
                Poll::Rows(rows) => self.waiting.fill(run, rows)?,
                Poll::Done => self.left_is_done = true,
                other => return Ok(other),
            }
        }
    }

    fn close(&mut self, run: &mut Run<'_>) {
        self.left.close(run);
        self.waiting.clear(run);
        for mut instance in core::mem::take(&mut self.running) {
            if let Some(node) = &mut instance.node {
                node.close(run);
            }
            instance.rows.clear(run);
            instance.held.free(run);
        }
        (self.asked, self.twins, self.begun) = (Map::default(), 0, 0);
        if let Some(known) = self.known.take() {
            run.memory.drop_cache(known);
        }
        self.once.close(run);
        self.left_is_done = true;
    }
}
