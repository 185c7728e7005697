//! The kernel: what a block is, what it sees, and the executor that runs blocks.
//!
//! The same executor runs under both shells, the runtime and the simulator; neither holds a
//! protocol decision.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod ctx;
pub mod executor;
pub mod fault;

pub use ctx::{Ctx, Outbox, TimerToken};
pub use executor::{Budget, Executor, Progress};
pub use fault::{Fault, Faults};

use alloc::string::String;
use lats_signals::{Signal, buffer::Upcoming};

/// A deterministic state machine. It owns its state, and only its own handlers change it. (Threads may read a data manager's rows beside
/// its owner: `node/src/shared.rs`.)
///
/// The same state, signals, times and seed give the same signals, byte for byte.
pub trait Block: Send {
    /// Reacts to one signal, and runs to completion: never waits, and hands long work back to
    /// itself by a signal.
    fn handle(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>);

    /// A timer set with [`Ctx::after`] is due.
    fn on_timer(&mut self, token: TimerToken, ctx: &mut Ctx<'_>);

    /// Called when the executor has run out of signals: the moment to flush lazy batches.
    fn on_idle(&mut self, ctx: &mut Ctx<'_>);

    /// A signal that it has sent is still here, and a lease that it rests on has ended ([`Ctx::rests_on_lease`]): true if the
    /// block has sent another one in its place.
    fn withdraw(&mut self, _signal: &Signal<'_>, _ctx: &mut Ctx<'_>) -> bool {
        false
    }

    /// Signals that will be handled soon, some of them by others: the moment to fetch the memory that they will need,
    /// all of it at once. It changes nothing.
    fn look_ahead(&self, _upcoming: Upcoming<'_>) {}

    /// What is not as it must be when the cluster is at rest: locks, transactions, waiting
    /// requests. Used by checkers.
    fn leaks(&self) -> Option<String>;

    /// For checkers that look inside a block.
    fn as_any(&self) -> &dyn core::any::Any;
}
