//! Whether a client looks at what comes through its port: while it does, nobody has to wake it (THREAD-7).
//! Checked with loom: `cargo test -p lats-runtime --features loom attendance` (see docs/testing.md).

#[cfg(feature = "loom")]
use loom::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(not(feature = "loom"))]
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// The word of a client that it looks at what comes.
#[derive(Debug)]
pub(crate) struct Attendance(AtomicBool);

impl Attendance {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The client will look, and say when it has stopped.
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The client has stopped. What came before somebody knew that wakes nobody: it looks once more after this.
    pub(crate) fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
        // Pairs with the one in `must_wake`: either that one sees the store, or the client sees what was put in.
        fence(Ordering::SeqCst);
    }

    /// Something was put in: true if the client has to be woken for it.
    pub(crate) fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "loom")]
    #[test]
    fn attendance_leaves_nothing_lying() {
        use super::Attendance;
        use crate::ring::ring;
        use loom::{
            sync::{
                Arc,
                atomic::{AtomicBool, Ordering},
            },
            thread,
        };
        loom::model(|| {
            let (mut put, mut take) = ring(64);
            let (attendance, woken) =
                (Arc::new(Attendance::new()), Arc::new(AtomicBool::new(false)));
            let node = {
                let (attendance, woken) = (attendance.clone(), woken.clone());
                thread::spawn(move || {
                    assert!(put.push(&[1; 16]));
                    if attendance.must_wake() {
                        woken.store(true, Ordering::Relaxed);
                    }
                })
            };
            let mut taken = Vec::new();
            attendance.begin();
            take.pop_all(&mut taken);
            attendance.end();
            take.pop_all(&mut taken);
            node.join().unwrap();
            let told = woken.load(Ordering::Relaxed);
            assert!(told || taken.len() == 16, "an answer lies there, and its client sleeps");
        });
    }

    #[cfg(not(feature = "loom"))]
    #[test]
    fn who_looks_is_not_woken() {
        let attendance = super::Attendance::new();
        assert!(attendance.must_wake());
        attendance.begin();
        assert!(!attendance.must_wake());
        attendance.end();
        assert!(attendance.must_wake());
    }
}
