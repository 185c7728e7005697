//! SIGTERM and SIGINT to a node: it ends when it has nothing to lose (`docs/protocols/close.md`).

use crate::sql_threads::Ending;
use lats_base::{Duration, Instant};
use lats_runtime::{Closer, clock};
use lats_signals::control::STATUS_NOT_DURABLE;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};

/// The node has ended by itself before this, or it never will.
const END_MAX: std::time::Duration = std::time::Duration::from_secs(20);
/// What comes so soon after the first signal is the same wish: systemd and a terminal send signals to all processes of a group.
const SAME_WISH: Duration = Duration::from_millis(1_000);
/// The exit status of a process that a second signal has ended.
pub(crate) const STATUS_IMPATIENT: i32 = 9;

/// The signals that end this process, heard from one moment on.
pub(crate) struct Wishes {
    tokio: Runtime,
    term: Signal,
    int: Signal,
    /// From `latsdb start`, which may say what a person has said already.
    supervisor: Signal,
}

impl Wishes {
    /// Listens. A wish that comes before there is a node is kept for it.
    pub(crate) fn hear() -> anyhow::Result<Self> {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let within = tokio.enter();
        let (term, int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let supervisor = signal(SignalKind::user_defined1())?;
        drop(within);
        Ok(Self { tokio, term, int, supervisor })
    }

    /// From now on there is a node that can be told.
    pub(crate) fn pass_on(self, closer: Closer, ending: Option<Ending>) -> anyhow::Result<()> {
        let Self { tokio, term, int, supervisor } = self;
        let named = std::thread::Builder::new().name("lats-signals".to_string());
        named.spawn(move || {
            tokio.block_on(end((term, int), supervisor, &closer, ending.as_ref()));
        })?;
        Ok(())
    }
}

async fn end(
    mut signals: (Signal, Signal),
    mut supervisor: Signal,
    closer: &Closer,
    ending: Option<&Ending>,
) {
    let name = tokio::select! {
        name = next(&mut signals) => name,
        _ = supervisor.recv() => "latsdb start",
    };
    let told_at = clock::now();
    tracing::info!(
        "{name}: this node ends when it has nothing to lose; a second SIGTERM or SIGINT ends it at once"
    );
    ending.inspect(|sql| sql.begin());
    closer.close();
    let status = tokio::select! {
        () = insists(&mut signals, told_at) => {
            tracing::warn!("a second signal ends this node at once; what it has acknowledged last may not be on disk");
            STATUS_IMPATIENT
        }
        () = tokio::time::sleep(END_MAX) => {
            tracing::warn!("this node has not ended {END_MAX:?} after it was told to; what it has acknowledged last may not be on disk");
            STATUS_NOT_DURABLE as i32
        }
    };
    std::process::exit(status);
}

/// The name of the next signal.
async fn next((term, int): &mut (Signal, Signal)) -> &'static str {
    tokio::select! {
        _ = term.recv() => "SIGTERM",
        _ = int.recv() => "SIGINT",
    }
}

/// Waits until somebody does not want to wait.
async fn insists(signals: &mut (Signal, Signal), told_at: Instant) {
    loop {
        next(signals).await;
        if clock::now().since(told_at) >= SAME_WISH {
            return;
        }
    }
}
