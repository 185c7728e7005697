//! A gate to work that has an owner, and that others may do while the owner sleeps.
//!
//! Who has put something in asks to be let in. If nobody is inside it does the work itself, and no thread has to be
//! woken for it; if somebody is, that one will see what was put in before it has left for good. The owner goes first.
//! Checked with loom: `cargo test -p lats-runtime --features loom gate` (see docs/testing.md).

#[cfg(feature = "loom")]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering, fence},
};
#[cfg(not(feature = "loom"))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering, fence},
};

/// The gate, with what is behind it.
pub(crate) struct Gate<T> {
    inside: Mutex<T>,
    /// Something was put in since somebody has last begun to work.
    wanted: AtomicBool,
    /// The owner waits until the one inside has left.
    owner_waits: AtomicBool,
}

/// How often a helper begins again for what others have put in meanwhile: it has work of its own.
const HELPS_MAX: usize = 3;

impl<T> Gate<T> {
    pub(crate) fn new(inside: T) -> Self {
        Self {
            inside: Mutex::new(inside),
            wanted: AtomicBool::new(false),
            owner_waits: AtomicBool::new(false),
        }
    }

    /// Lets the owner in, as soon as nobody else is. It must look at all that was put in.
    pub(crate) fn enter(&self) -> MutexGuard<'_, T> {
        self.owner_waits.store(true, Ordering::SeqCst);
        // A panic inside ends the process.
        let inside = self.inside.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.owner_waits.store(false, Ordering::SeqCst);
        self.begin();
        inside
    }

    /// True if something was put in since the owner has entered: it must not sleep. Call it after leaving.
    pub(crate) fn is_wanted(&self) -> bool {
        // Pairs with the fence in `help`: either a helper gets in after us, or we see that it wanted to.
        fence(Ordering::SeqCst);
        self.wanted.load(Ordering::SeqCst)
    }

    /// Something was put in. `work` is done if nobody is inside; it says whether it leaves something to the owner.
    /// True if the owner must be woken.
    pub(crate) fn help(&self, mut work: impl FnMut(&mut T) -> bool) -> bool {
        self.wanted.swap(true, Ordering::SeqCst);
        let mut leaves_work = false;
        for _ in 0..HELPS_MAX {
            fence(Ordering::SeqCst);
            if self.owner_waits.load(Ordering::SeqCst) {
                return leaves_work;
            }
            let Ok(mut inside) = self.inside.try_lock() else { return leaves_work };
            self.begin();
            leaves_work |= work(&mut inside);
            drop(inside);
            if !self.is_wanted() {
                return leaves_work;
            }
        }
        true
    }

    /// What was put in until now will be seen. (A swap: it also acquires what the last one who wanted something wrote,
    /// and all before it.)
    fn begin(&self) {
        self.wanted.swap(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
