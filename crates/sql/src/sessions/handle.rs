//! The mark that ends a session's statement, which any thread may set (SESSION-2), and what others see of the session.

use super::{Doing, Listed};
use crate::error;
use crate::session::{Kind, NodeMemory};
use lats_base::RefCode;
use lats_client::api::StoreError;
use lats_values::SqlError;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Why a statement is to end; a stronger reason stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// KILL QUERY.
    Query = 1,
    /// `max_execution_time`.
    Time = 2,
    /// KILL: the session ends too.
    Connection = 3,
    /// `wait_timeout`: the client has asked nothing for so long, and its session ends.
    Idle = 4,
    /// The client is gone.
    Gone = 5,
}

/// Bytes of a statement that others see.
const STATEMENT_BYTES: usize = 600;

/// What a session is ended by, and seen as.
#[derive(Debug, Default)]
pub struct Handle {
    /// A [`Why`], or 0.
    mark: AtomicU8,
    waiting: Waiting,
    shown: Mutex<Shown>,
    /// Bytes that the client keeps here between its statements, and of packets.
    kept: AtomicUsize,
    memory: Option<Arc<NodeMemory>>,
}

/// Tasks that wait for a mark: the session's own one, as a rule. Who waits no longer stays, so that a statement that waits
/// often costs little; being woken for nothing does no harm.
#[derive(Debug, Default)]
struct Waiting(Mutex<Vec<Waker>>);

/// Tasks that wait for one session at most; if more do, all are woken and look again.
const WAITING_MAX: usize = 8;

impl Waiting {
    fn tasks(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, task: &Waker) {
        let mut tasks = self.tasks();
        if tasks.iter().any(|known| known.will_wake(task)) {
            return;
        }
        if tasks.len() >= WAITING_MAX {
            tasks.drain(..).for_each(Waker::wake);
        }
        tasks.push(task.clone());
    }

    fn wake(&self) {
        let tasks = std::mem::take(&mut *self.tasks());
        tasks.into_iter().for_each(Waker::wake);
    }
}

#[derive(Debug, Default)]
struct Shown {
    user: String,
    host: String,
    database: Option<String>,
    doing: Doing,
    since_micros: i64,
    /// How long it may rest, in seconds; 0: for ever.
    rest_max_seconds: u64,
    statement: Vec<u8>,
    /// Counts the statements, from the time at which the session began: so no two sessions that had one number one
    /// after the other count alike.
    number: u64,
}

impl lats_values::Ends for Handle {
    fn error(&self) -> Option<SqlError> {
        self.why().map(|_| Self::error(self))
    }

    fn no_room(&self, bytes: usize) -> Option<SqlError> {
        self.memory.as_ref()?.admit(Kind::Statements, bytes).err()
    }
}

impl Handle {
    pub(super) fn new(host: &str, since_micros: i64) -> Self {
        let number = since_micros.unsigned_abs();
        let shown = Shown { host: host.to_owned(), since_micros, number, ..Shown::default() };
        Self { shown: Mutex::new(shown), ..Self::default() }
    }

    /// For a client of a node that has this memory.
    pub(super) fn within(self, memory: Option<&Arc<NodeMemory>>) -> Self {
        Self { memory: memory.cloned(), ..self }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who the session is for, and its current database.
    pub fn describe(&self, user: &str, database: Option<&str>) {
        let mut shown = self.shown();
        user.clone_into(&mut shown.user);
        shown.database = database.map(str::to_owned);
    }

    /// Bytes that the client keeps.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// The client keeps so many bytes more.
    pub(crate) fn keep(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The client has given back so many bytes that it has kept.
    pub(crate) fn forget(&self, bytes: usize) {
        let before = self.kept.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "what was kept is given back once");
    }

    /// A statement begins: what was to end the one before is forgotten (SESSION-3).
    pub fn begin(&self, doing: Doing, statement: &[u8], now_micros: i64) {
        let mut shown = self.shown();
        shown.number = shown.number.wrapping_add(1);
        let bytes = statement.get(..STATEMENT_BYTES).unwrap_or(statement);
        shown.statement.clear();
        shown.statement.extend_from_slice(bytes);
        shown.doing = doing;
        shown.since_micros = now_micros;
        let fades = |mark: u8| (mark < Why::Connection as u8).then_some(0);
        // A mark that stays is no mistake.
        let _ = self.mark.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fades);
    }

    /// The statement is over.
    pub fn rest(&self, now_micros: i64) {
        let mut shown = self.shown();
        shown.doing = Doing::Rests;
        shown.since_micros = now_micros;
    }

    /// From now on the session ends when it has rested for so many seconds (`wait_timeout`); 0: never.
    pub fn limit_rest(&self, seconds: u64) {
        self.shown().rest_max_seconds = seconds;
    }

    /// Ends the session if it has rested for longer than it may.
    pub(super) fn end_if_idle(&self, now_micros: i64) {
        // No statement begins while this is held.
        let shown = self.shown();
        let rests_seconds =
            now_micros.saturating_sub(shown.since_micros).max(0).unsigned_abs() / 1_000_000;
        let is_limited = shown.rest_max_seconds > 0 && shown.doing == Doing::Rests;
        if is_limited && rests_seconds >= shown.rest_max_seconds {
            self.end(Why::Idle);
        }
    }

    /// The session's statement is to end.
    pub fn end(&self, why: Why) {
        self.mark.fetch_max(why as u8, Ordering::Relaxed);
        self.waiting.wake();
    }

    /// The number of the statement that runs, or was the last one.
    pub(crate) fn statement(&self) -> u64 {
        self.shown().number
    }

    /// This statement is to end; nothing if it is over (SESSION-3).
    pub(crate) fn end_statement(&self, number: u64) {
        // No statement begins while this is held.
        let shown = self.shown();
        if shown.number == number {
            self.end(Why::Query);
        }
    }

    /// Why the statement is to end; none if it is not.
    pub fn why(&self) -> Option<Why> {
        match self.mark.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Why::Query),
            2 => Some(Why::Time),
            3 => Some(Why::Connection),
            4 => Some(Why::Idle),
            _ => Some(Why::Gone),
        }
    }

    /// What the client of a statement that has ended so is told.
    pub(crate) fn error(&self) -> SqlError {
        match self.why() {
            Some(Why::Time) => error::out_of_time(),
            _ => error::interrupted(),
        }
    }

    /// # Errors
    /// [`RefCode::Interrupted`] if the statement is to end.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.why() {
            None => Ok(()),
            Some(_) => Err(RefCode::Interrupted.into()),
        }
    }

    /// Waits until the statement is to end, for this reason or a stronger one.
    pub fn ended(&self, reason: Why) -> impl Future<Output = ()> + Send + use<'_> {
        let is_marked = move || self.why().is_some_and(|why| why >= reason);
        poll_fn(move |context| {
            if is_marked() {
                return Poll::Ready(());
            }
            self.waiting.add(context.waker());
            // Whoever has set a mark before this is seen; whoever sets one later wakes this task.
            if is_marked() { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    /// Waits for something, unless the statement is to end.
    ///
    /// # Errors
    /// [`RefCode::Interrupted`] if it is.
    pub(crate) async fn unless_ended<R>(
        &self,
        what: impl Future<Output = R>,
    ) -> Result<R, StoreError> {
        self.check()?;
        tokio::select! {
            biased;
            result = what => Ok(result),
            () = self.ended(Why::Query) => Err(RefCode::Interrupted.into()),
        }
    }

    pub(super) fn listed(&self, id: u32, now_micros: i64) -> Listed {
        let shown = self.shown();
        let micros = now_micros.saturating_sub(shown.since_micros).max(0).unsigned_abs();
        let text = || {
            let mut text = String::from_utf8_lossy(&shown.statement).into_owned();
            // What is no UTF-8 has become longer.
            text.truncate(text.floor_char_boundary(STATEMENT_BYTES));
            text
        };
        Listed {
            id,
            user: shown.user.clone(),
            host: shown.host.clone(),
            database: shown.database.clone(),
            doing: shown.doing,
            seconds: micros / 1_000_000,
            statement: (shown.doing != Doing::Rests).then(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_mark_ends_all_that_wait_for_it() {
        let handle = Arc::new(Handle::default());
        let wait = |reason| {
            let handle = Arc::clone(&handle);
            tokio::spawn(async move { handle.ended(reason).await })
        };
        let queries: Vec<_> = (0..3 * WAITING_MAX).map(|_| wait(Why::Query)).collect();
        let connection = wait(Why::Connection);
        // All have looked, and wait.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(handle.waiting.tasks().len() <= WAITING_MAX);
        handle.end(Why::Query);
        for query in queries {
            query.await.unwrap();
        }
        assert!(!connection.is_finished());
        handle.end(Why::Connection);
        connection.await.unwrap();
        handle.ended(Why::Query).await;
    }

    #[tokio::test]
    async fn who_waits_again_and_again_is_kept_once() {
        let handle = Handle::default();
        for _ in 0..100 {
            let waits = handle.unless_ended(tokio::task::yield_now());
            assert!(waits.await.is_ok());
        }
        assert_eq!(handle.waiting.tasks().len(), 1);
        handle.end(Why::Query);
        assert!(handle.unless_ended(std::future::pending::<()>()).await.is_err());
    }
}
