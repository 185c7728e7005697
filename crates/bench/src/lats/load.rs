//! The load: a thread that has each operation begin when it is due, whatever became of those before, and a thread with the client that
//! does them. What would be more than may be outstanding is not sent, and counts as an error.

use super::{
    figures::Event,
    ledger::Ledger,
    schedule::{Arrival, Schedule},
    table::{Access, Outcome},
};
use anyhow::Context;
use lats_base::{Duration, Instant, prng::Prng};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread::JoinHandle,
};

/// What became of an operation at last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done,
    /// It failed, and nothing was done.
    Refused,
    /// It failed, and may have been done.
    Unknown,
    /// Too many were outstanding when it was due.
    Unsent,
}

/// An operation that has ended. Times are those of the gauge's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) due: Instant,
    pub(super) sent: Instant,
    pub(super) ended: Instant,
    pub(super) updates: bool,
    pub(super) retries: u32,
    pub(super) end: End,
}

/// Temporary errors are met again and again for so long.
const PATIENCE: Duration = Duration::from_millis(10_000);
const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
/// The pacing thread looks so often whether it is to end.
const NAP: Duration = Duration::from_millis(5);
/// What is outstanding at the end is waited for so long.
const DRAIN: Duration = Duration::from_millis(20_000);
/// What is looked at of the time before an event.
const BEFORE: Duration = Duration::from_millis(1_000);
/// The first few errors are kept for a person.
const ERRORS_MAX: usize = 5;

/// What both threads share.
pub(super) struct Shared {
    pub(super) ledger: Ledger,
    pub(super) clock: fn() -> Instant,
    records: Mutex<Vec<Record>>,
    errors: Mutex<Vec<String>>,
    outstanding: AtomicU64,
    most_outstanding: u64,
    stops: AtomicBool,
    seed: u64,
}

/// A load that runs.
pub(super) struct Load {
    pub(super) begun: Instant,
    pub(super) shared: Arc<Shared>,
    pacer: JoinHandle<()>,
    end_client: tokio::sync::oneshot::Sender<()>,
    client: JoinHandle<()>,
}

/// How much, and how much at once.
pub(super) struct Terms {
    pub(super) schedule: Schedule,
    pub(super) rows: u64,
    pub(super) outstanding: u64,
    pub(super) seed: u64,
}

impl Load {
    /// Begins. `access` is made in the thread that uses it.
    pub(super) fn begin<F>(
        terms: Terms,
        clock: fn() -> Instant,
        access: impl FnOnce() -> F + Send + 'static,
    ) -> anyhow::Result<Self>
    where
        F: Future<Output = anyhow::Result<Access>>,
    {
        let shared = Arc::new(Shared {
            ledger: Ledger::new(terms.rows),
            clock,
            records: Mutex::default(),
            errors: Mutex::default(),
            outstanding: AtomicU64::new(0),
            most_outstanding: terms.outstanding,
            stops: AtomicBool::new(false),
            seed: terms.seed,
        });
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = tokio.handle().clone();
        let (end_client, ended) = tokio::sync::oneshot::channel();
        let (tell, ready) = std::sync::mpsc::channel();
        let serve = move || {
            tokio.block_on(async {
                let _ = tell.send(access().await);
                let _ = ended.await;
            });
        };
        let client = thread("lats-client", serve)?;
        let access = ready.recv().context("the client's thread has died")??;
        let begun = clock();
        let (schedule, of_pacer) = (terms.schedule, shared.clone());
        let pace = move || pace(schedule, begun, &handle, (&of_pacer, &access));
        let pacer = thread("lats-pacer", pace)?;
        Ok(Self { begun, shared, pacer, end_client, client })
    }

    /// Ends it, when all that is outstanding has ended, too; gives what has been done, and the first errors.
    pub(super) fn end(self) -> anyhow::Result<(Arc<Shared>, Vec<Record>, Vec<String>)> {
        self.shared.stops.store(true, SeqCst);
        let died = |_| anyhow::anyhow!("a thread of the load has died");
        self.pacer.join().map_err(died)?;
        let until = (self.shared.clock)().plus(DRAIN);
        while self.shared.outstanding.load(SeqCst) > 0 && (self.shared.clock)() < until {
            pause(NAP);
        }
        let _ = self.end_client.send(());
        self.client.join().map_err(died)?;
        let records = std::mem::take(&mut *self.shared.records());
        let errors = self.shared.errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok((self.shared, records, errors))
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.context("cannot start a thread of the load")
}

#[expect(clippy::disallowed_methods, reason = "arrivals are due at times that no event tells")]
fn pause(span: Duration) {
    std::thread::sleep(std::time::Duration::from_nanos(span.as_nanos()));
}

/// Has each operation begin when it is due.
fn pace(
    schedule: Schedule,
    begun: Instant,
    handle: &tokio::runtime::Handle,
    (shared, access): (&Arc<Shared>, &Access),
) {
    for arrival in schedule {
        let due = begun.plus(Duration::from_nanos(arrival.due_ns));
        while let now = (shared.clock)()
            && now < due
        {
            if shared.stops.load(SeqCst) {
                return;
            }
            pause(due.since(now).min(NAP));
        }
        if shared.stops.load(SeqCst) {
            return;
        }
        if shared.outstanding.load(SeqCst) >= shared.most_outstanding {
            shared.note_unsent(due, arrival.updates);
            continue;
        }
        shared.outstanding.fetch_add(1, SeqCst);
        handle.spawn(operate(shared.clone(), access.clone(), arrival, due));
    }
}

async fn operate(shared: Arc<Shared>, access: Access, arrival: Arrival, due: Instant) {
    let sent = (shared.clock)();
    let (ledger, row) = (&shared.ledger, arrival.row);
    let floor = ledger.floor(row);
    if arrival.updates {
        ledger.begin(row);
    }
    let mut random = Prng::new(shared.seed ^ arrival.due_ns);
    let mut retries = 0;
    let end = loop {
        let outcome = match arrival.updates {
            true => access.update(row, &mut random).await,
            false => access.read(row).await,
        };
        match outcome {
            Outcome::Done(shown) => {
                match arrival.updates {
                    true => ledger.acknowledge(row),
                    false => ledger.note_read(row, floor, Some(shown)),
                }
                break End::Done;
            }
            Outcome::NoRow => {
                match arrival.updates {
                    true => ledger.note_missing(),
                    false => ledger.note_read(row, floor, None),
                }
                break End::Refused;
            }
            Outcome::Temporary if (shared.clock)().since(due) < PATIENCE => {
                retries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Outcome::Temporary => break shared.fail(&arrival, "temporary errors, for ten seconds"),
            Outcome::Refused(why) => break shared.fail(&arrival, &why),
            Outcome::Unknown(why) => {
                shared.note_error(&why);
                break End::Unknown;
            }
        }
    };
    let (ended, updates) = ((shared.clock)(), arrival.updates);
    shared.records().push(Record { due, sent, ended, updates, retries, end });
    shared.outstanding.fetch_sub(1, SeqCst);
}

impl Shared {
    fn records(&self) -> std::sync::MutexGuard<'_, Vec<Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies of what figures of an event need: what has ended since then, and in as long a time before.
    pub(super) fn of(&self, event: &Event) -> Vec<Record> {
        let before = event.until.since(event.at).max(BEFORE);
        let from = Instant::from_nanos(event.at.as_nanos().saturating_sub(before.as_nanos()));
        let records = self.records();
        records.iter().rev().take_while(|r| r.ended >= from).copied().collect()
    }

    fn note_unsent(&self, due: Instant, updates: bool) {
        let (sent, ended, retries, end) = (due, due, 0, End::Unsent);
        self.records().push(Record { due, sent, ended, updates, retries, end });
        let most = self.most_outstanding;
        self.note_error(&format!("not sent: {most} operations were outstanding (--outstanding)"));
    }

    fn fail(&self, arrival: &Arrival, why: &str) -> End {
        if arrival.updates {
            self.ledger.refuse(arrival.row);
        }
        self.note_error(why);
        End::Refused
    }

    fn note_error(&self, why: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.len() < ERRORS_MAX && !errors.iter().any(|known| known == why) {
            errors.push(why.to_string());
        }
    }
}
