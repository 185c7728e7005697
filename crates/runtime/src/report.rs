//! The crash report: what a node says when it stops because its own state is impossible.
//!
//! The sockets are shut before anything else, so that the peers take over at once; then the report
//! is written and the process ends.

use rustix::{fd::OwnedFd, net::Shutdown};
use std::{
    cell::Cell,
    sync::{Arc, Mutex, Once, Weak},
};

/// Held weakly: a connection that was given up must be closed at once, or the other side would wait for
/// whoever reads no more.
static SOCKETS: Mutex<Vec<Weak<OwnedFd>>> = Mutex::new(Vec::new());
static INSTALL: Once = Once::new();

/// The exit status of a node that has met an impossible state.
pub const STATUS_CRASHED: i32 = 70;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread does the node's work: a panic is the node's.
pub(crate) struct Inside(());

impl Inside {
    pub(crate) fn the_node() -> Self {
        INSIDE.set(true);
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Notes a socket that must be shut when the node crashes.
pub(crate) fn watch(socket: &Arc<OwnedFd>) {
    if let Ok(mut sockets) = SOCKETS.lock() {
        sockets.retain(|s| s.strong_count() > 0);
        sockets.push(Arc::downgrade(socket));
    }
}

/// A panic in a thread of the node ends the process; one in a SQL session does not.
pub(crate) fn install() {
    INSTALL.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let thread = std::thread::current();
            let own = thread.name().is_some_and(|n| n.starts_with("lats-exec"));
            let fatal = own || INSIDE.get();
            if fatal {
                shut_sockets();
            }
            usual(info);
            if fatal {
                report(info);
                std::process::exit(STATUS_CRASHED);
            }
        }));
    });
}

fn shut_sockets() {
    // Never wait here: the panicking thread may hold the lock itself.
    if let Ok(sockets) = SOCKETS.try_lock() {
        for socket in sockets.iter().filter_map(Weak::upgrade) {
            let _ = rustix::net::shutdown(&*socket, Shutdown::Both);
        }
    }
}

fn report(info: &std::panic::PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(
        place,
        backtrace = %std::backtrace::Backtrace::force_capture(),
        "this node has met a state that must not be and has stopped; its peers go on. Please \
         report the lines above"
    );
}
