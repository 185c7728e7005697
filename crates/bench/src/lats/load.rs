//! The load: a thread that has each operation begin when it is due, whatever became of those before, and a thread with the client that
//! does them. What would be more than may be outstanding is not sent, and counts as an error. What has not come back when the load ends, and
//! some time after, is open: it has a record, too.

use super::{
    figures::{BEFORE, Event},
    ledger::Ledger,
    schedule::{Arrival, Schedule},
    table::{Access, Outcome},
    wish::Wish,
};
use anyhow::Context;
use lats_base::{Duration, Instant, prng::Prng};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
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
    /// It has not come back; its record ends when somebody looked at it last.
    Open,
}

/// What became of an operation. Times are those of the gauge's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) due: Instant,
    pub(super) sent: Instant,
    pub(super) ended: Instant,
    pub(super) updates: bool,
    pub(super) retries: u32,
    pub(super) end: End,
}

/// An operation that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) due: Instant,
    /// None if the client's thread has not come to it.
    sent: Option<Instant>,
    pub(super) updates: bool,
    pub(super) row: u64,
    pub(super) retries: u32,
}

impl Open {
    #[cfg(test)]
    pub(super) fn planned(due: Instant, updates: bool, row: u64) -> Self {
        Self { due, sent: None, updates, row, retries: 0 }
    }

    fn record(&self, ended: Instant, end: End) -> Record {
        let Self { due, sent, updates, retries, .. } = *self;
        Record { due, sent: sent.unwrap_or(ended), ended, updates, retries, end }
    }
}

/// Temporary errors are met again and again for so long.
const PATIENCE: Duration = Duration::from_millis(10_000);
const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
/// The pacing thread looks so often whether it is to end.
const NAP: Duration = Duration::from_millis(5);
/// What is outstanding at the end is waited for so long.
pub(super) const DRAIN: Duration = Duration::from_millis(20_000);
/// What has not come back for so long is mentioned before the end.
const LONG: Duration = Duration::from_millis(1_000);
/// What the client's thread has left over when it ends must not hold it up.
const LEFTOVERS: std::time::Duration = std::time::Duration::from_secs(1);
/// The first few errors are kept for a person.
const ERRORS_MAX: usize = 5;

/// What both threads share.
pub(super) struct Shared {
    pub(super) ledger: Ledger,
    pub(super) clock: fn() -> Instant,
    book: Mutex<Book>,
    errors: Mutex<Vec<String>>,
    most_outstanding: u64,
    stops: AtomicBool,
    seed: u64,
}

/// Each operation is in one of these.
#[derive(Default)]
struct Book {
    /// Those that have ended, in the order in which they were noted.
    records: Vec<Record>,
    open: BTreeMap<u64, Open>,
}

/// What a load leaves behind.
pub(super) struct Ended {
    pub(super) shared: Arc<Shared>,
    /// Also of what is open.
    pub(super) records: Vec<Record>,
    /// What has not come back, as it was due, and when that was seen.
    pub(super) open: Vec<Open>,
    pub(super) seen_at: Instant,
    /// The first errors.
    pub(super) errors: Vec<String>,
}

/// A load that runs.
pub(super) struct Load {
    pub(super) begun: Instant,
    pub(super) shared: Arc<Shared>,
    drain: Duration,
    pacer: JoinHandle<()>,
    end_client: tokio::sync::oneshot::Sender<()>,
    client: JoinHandle<()>,
}

/// How much, and how much at once.
pub(super) struct Terms {
    pub(super) schedule: Schedule,
    pub(super) rows: u64,
    pub(super) outstanding: u64,
    /// What is outstanding at the end is waited for so long.
    pub(super) drain: Duration,
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
            book: Mutex::default(),
            errors: Mutex::default(),
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
            // With it goes whatever hangs.
            tokio.shutdown_timeout(LEFTOVERS);
        };
        let client = thread("lats-client", serve)?;
        let access = ready.recv().context("the client's thread has died")??;
        let begun = clock();
        let (schedule, of_pacer) = (terms.schedule, shared.clone());
        let pace = move || pace(schedule, begun, &handle, (&of_pacer, &access));
        let pacer = thread("lats-pacer", pace)?;
        let drain = terms.drain;
        Ok(Self { begun, shared, drain, pacer, end_client, client })
    }

    /// Ends it, when all that is outstanding has ended, too, or has had its time.
    pub(super) fn end(self, wish: &Wish) -> anyhow::Result<Ended> {
        let shared = self.shared;
        shared.stops.store(true, SeqCst);
        let died = |_| anyhow::anyhow!("a thread of the load has died");
        self.pacer.join().map_err(died)?;
        let until = (shared.clock)().plus(self.drain);
        while !(shared.book().open.is_empty() || (shared.clock)() >= until || wish.is_told()) {
            pause(NAP);
        }
        let _ = self.end_client.send(());
        self.client.join().map_err(died)?;
        let Book { mut records, open } = std::mem::take(&mut *shared.book());
        let seen_at = (shared.clock)();
        let open: Vec<Open> = open.into_values().collect();
        records.extend(open.iter().map(|open| open.record(seen_at, End::Open)));
        let errors = shared.errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Ended { shared, records, open, seen_at, errors })
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
    for (number, arrival) in (0..).zip(schedule) {
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
        if shared.opens(number, &arrival, due) {
            handle.spawn(operate(shared.clone(), access.clone(), (number, arrival), due));
        }
    }
}

async fn operate(
    shared: Arc<Shared>,
    access: Access,
    (number, arrival): (u64, Arrival),
    due: Instant,
) {
    shared.note(number, |open, now| open.sent = Some(now));
    let (ledger, row) = (&shared.ledger, arrival.row);
    let floor = ledger.floor(row);
    if arrival.updates {
        ledger.begin(row);
    }
    let mut random = Prng::new(shared.seed ^ arrival.due_ns);
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
                shared.note(number, |open, _| open.retries += 1);
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
    shared.close(number, end);
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies of what figures of an event need: what has ended since then, and in as long a time before; and what hangs.
    pub(super) fn of(&self, event: &Event) -> Vec<Record> {
        let before = event.until.since(event.at).max(BEFORE);
        let from = Instant::from_nanos(event.at.as_nanos().saturating_sub(before.as_nanos()));
        let book = self.book();
        let now = (self.clock)();
        let hangs = book.open.values().filter(|open| now.since(open.due) >= LONG);
        let ended = book.records.iter().rev().take_while(|r| r.ended >= from).copied();
        ended.chain(hangs.map(|open| open.record(now, End::Open))).collect()
    }

    /// An operation is due; false if too many others are outstanding.
    fn opens(&self, number: u64, arrival: &Arrival, due: Instant) -> bool {
        let Arrival { updates, row, .. } = *arrival;
        let open = Open { due, sent: None, updates, row, retries: 0 };
        let mut book = self.book();
        let may_open = (book.open.len() as u64) < self.most_outstanding;
        if may_open {
            book.open.insert(number, open);
        } else {
            let now = (self.clock)();
            book.records.push(open.record(now, End::Unsent));
            drop(book);
            let most = self.most_outstanding;
            self.note_error(&format!(
                "not sent: {most} operations were outstanding (--outstanding)"
            ));
        }
        may_open
    }

    fn note(&self, number: u64, change: impl FnOnce(&mut Open, Instant)) {
        let now = (self.clock)();
        if let Some(open) = self.book().open.get_mut(&number) {
            change(open, now);
        }
    }

    fn close(&self, number: u64, end: End) {
        let mut book = self.book();
        // Within the lock, so that records are noted in this order.
        let now = (self.clock)();
        if let Some(open) = book.open.remove(&number) {
            book.records.push(open.record(now, end));
        }
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

#[cfg(test)]
mod tests {
    use super::{
        super::{Workload, table::Outcome, wish::wish},
        *,
    };
    use std::sync::OnceLock;

    fn clock() -> Instant {
        static BEGUN: OnceLock<tokio::time::Instant> = OnceLock::new();
        let begun = BEGUN.get_or_init(tokio::time::Instant::now);
        Instant::from_nanos(begun.elapsed().as_nanos() as u64)
    }

    /// A load whose operations all hang that touch row 0.
    fn load(outstanding: u64) -> Load {
        let schedule = Schedule::new(Workload::Lookups, 4, 1_000, 1);
        let drain = Duration::from_millis(200);
        let terms = Terms { schedule, rows: 4, outstanding, drain, seed: 1 };
        Load::begin(terms, clock, async || {
            Ok(Access::Planned(|row, _| (row > 0).then_some(Outcome::Done(0))))
        })
        .unwrap()
    }

    #[test]
    fn what_never_comes_back_is_open_and_the_load_ends_all_the_same() {
        let load = load(10_000);
        pause(Duration::from_millis(300));
        let (_tell, wish) = wish();
        let Ended { shared, records, open, seen_at, errors } = load.end(&wish).unwrap();
        let count = |end: End| records.iter().filter(|r| r.end == end).count();
        assert!(count(End::Done) > 0 && !open.is_empty(), "{records:?}");
        assert_eq!(count(End::Open), open.len());
        assert_eq!(count(End::Done) + open.len(), records.len());
        assert!(open.iter().all(|open| open.row == 0 && open.sent.is_some()));
        let least = Duration::from_millis(200);
        let aged = records.iter().filter(|r| r.end == End::Open);
        assert!(aged.into_iter().all(|r| r.ended == seen_at && r.ended.since(r.due) >= least));
        assert!(errors.is_empty() && shared.book().open.is_empty());
    }

    #[test]
    fn hanging_operations_leave_no_room_for_others_and_a_wish_ends_the_wait() {
        let load = load(3);
        pause(Duration::from_millis(200));
        let (tell, wish) = wish();
        tell.send(Some("SIGINT")).unwrap();
        let ended = load.end(&wish).unwrap();
        let unsent = ended.records.iter().filter(|r| r.end == End::Unsent).count();
        assert!(ended.open.len() == 3 && unsent > 0, "{} open", ended.open.len());
        assert!(ended.errors[0].contains("--outstanding"), "{:?}", ended.errors);
    }

    #[test]
    fn what_has_hung_for_long_shows_before_the_end() {
        use super::super::figures::{Figures, tests::event as planned};
        let load = load(10_000);
        let at = clock();
        pause(Duration::from_millis(1_200));
        let event = Event { at, until: clock(), ..planned(0, 0) };
        let some = super::super::timeline::Timeline::new(load.shared.of(&event));
        let figures = Figures::of(&event, load.begun, &some);
        assert!(figures.open > 0 && figures.oldest_open_ms >= 1_000.0, "{figures:?}");
        load.end(&wish().1).unwrap();
    }
}
