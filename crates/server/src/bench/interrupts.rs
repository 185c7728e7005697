//! The signals that end the gauge. Its clusters and namespaces are taken down first, whenever the signal comes.

use anyhow::Context;
use lats_bench::lats::{self, Wish};
use std::{io::Write, os::unix::process::CommandExt, process::Command};
use tokio::signal::unix::{SignalKind, signal};

/// Listens from now on; until this process ends, no such signal ends it.
///
/// # Errors
/// It cannot be listened.
pub(super) fn hear() -> anyhow::Result<Wish> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let within = tokio.enter();
    let (mut int, mut term) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hup = signal(SignalKind::hangup())?;
    drop(within);
    let (tell, wish) = lats::wish();
    let listen = move || {
        tokio.block_on(async {
            loop {
                let name = tokio::select! {
                    _ = int.recv() => "SIGINT",
                    _ = term.recv() => "SIGTERM",
                    _ = hup.recv() => "SIGHUP",
                };
                let is_new = tell.send_if_modified(|told| {
                    let is_new = told.is_none();
                    told.get_or_insert(name);
                    is_new
                });
                if is_new {
                    // Nobody may be reading any more.
                    let _ = writeln!(std::io::stderr(), "latsdb: {name}: all is taken down");
                }
            }
        });
    };
    let thread = std::thread::Builder::new().name("lats-signals".into()).spawn(listen);
    thread.context("cannot start the thread that hears signals")?;
    Ok(wish)
}

/// A command that a terminal's signals do not reach: what is begun is brought to an end, and what takes things down is not broken off.
pub(super) fn apart(mut command: Command) -> Command {
    command.process_group(0);
    command
}
