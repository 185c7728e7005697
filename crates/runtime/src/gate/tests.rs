//! Nothing that was put in is left lying, whoever is inside or about to sleep.

#[cfg(feature = "loom")]
mod every_interleaving {
    use super::super::Gate;
    use loom::{
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicUsize, Ordering},
        },
        thread,
    };

    /// What helpers put in, as the one inside sees it: nothing but the gate orders these accesses.
    struct Model {
        gate: Gate<usize>,
        put_in: AtomicUsize,
        rung: AtomicBool,
    }

    impl Model {
        fn help(&self) {
            self.put_in.fetch_add(1, Ordering::Relaxed);
            let wake = self.gate.help(|seen| {
                *seen = self.put_in.load(Ordering::Relaxed);
                false
            });
            if wake {
                self.rung.store(true, Ordering::SeqCst);
            }
        }

        /// Until it may sleep.
        fn own(&self) {
            loop {
                let mut seen = self.gate.enter();
                *seen = self.put_in.load(Ordering::Relaxed);
                drop(seen);
                if !self.gate.is_wanted() {
                    break;
                }
            }
        }
    }

    fn nothing_is_left_lying(helpers: usize, owner: bool) {
        let mut limits = loom::model::Builder::new();
        limits.preemption_bound = Some(3);
        limits.check(move || {
            let model = Arc::new(Model {
                gate: Gate::new(0),
                put_in: AtomicUsize::new(0),
                rung: AtomicBool::new(false),
            });
            let threads: Vec<_> = (0..helpers)
                .map(|_| {
                    let model = model.clone();
                    thread::spawn(move || model.help())
                })
                .collect();
            if owner {
                model.own();
            }
            threads.into_iter().for_each(|t| t.join().unwrap());
            if !model.rung.load(Ordering::SeqCst) {
                assert_eq!(
                    *model.gate.enter(),
                    helpers,
                    "the owner sleeps, and something lies there"
                );
            }
        });
    }

    #[test]
    fn gate_with_two_helpers_while_the_owner_sleeps() {
        nothing_is_left_lying(2, false);
    }

    #[test]
    fn gate_with_two_helpers_and_the_owner() {
        nothing_is_left_lying(2, true);
    }
}

#[cfg(not(feature = "loom"))]
use super::Gate;

#[cfg(not(feature = "loom"))]
#[test]
fn a_helper_that_leaves_work_has_the_owner_woken() {
    let gate = Gate::new(0);
    assert!(!gate.help(|done| {
        *done += 1;
        false
    }));
    assert!(gate.help(|_| true));
    let inside = gate.enter();
    assert_eq!(*inside, 1);
    // Somebody is inside: what was put in is for that one to see, once it has left.
    assert!(!gate.help(|_| unreachable!("the owner is inside")));
    drop(inside);
    assert!(gate.is_wanted());
}

#[cfg(not(feature = "loom"))]
#[test]
fn a_helper_does_not_help_for_ever() {
    let gate = Gate::new(());
    // Somebody always puts something in meanwhile.
    assert!(gate.help(|()| {
        gate.help(|()| unreachable!("somebody is inside"));
        false
    }));
}
