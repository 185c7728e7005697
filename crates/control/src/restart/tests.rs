//! What survivors have promised (REFORM-3).

use super::{Attempt, Restart};
use crate::state::ControlState;
use lats_base::{Epoch, Incarnation, NodeId};
use std::collections::BTreeSet;

fn attempt(restarts: usize, asked_by: u16) -> Attempt {
    let mut state = ControlState::default();
    state.restored.resize(restarts, Epoch::default());
    Attempt {
        state: Box::new(state),
        views: Vec::new(),
        asked_by: (NodeId::new(asked_by), Incarnation::new(1)),
        loaded: BTreeSet::new(),
        to_load: 0,
        ready: BTreeSet::new(),
    }
}

#[test]
fn a_promise_to_somebody_else_holds_though_a_later_one_takes_its_place() {
    let me = NodeId::new(2);
    let mut restart = Restart::is_over();
    assert!(!restart.has_promises());
    restart.promise(attempt(1, 1), me);
    restart.promise(attempt(2, 2), me);
    assert!(restart.has_promised(1) && restart.has_promised(2) && !restart.has_promised(3));
    // What it has asked for itself cannot come about any more.
    restart.attempt = None;
    assert!(restart.has_promises() && !restart.has_promised(2));
    let kept = restart.take_promise(1);
    assert_eq!(kept.map(|a| a.asked_by.0), Some(NodeId::new(1)));
    assert!(!restart.has_promises(), "there is one group");
}

#[test]
fn what_it_has_asked_for_itself_is_formed_by_nobody_else() {
    let me = NodeId::new(2);
    let mut restart = Restart::is_over();
    restart.promise(attempt(1, 2), me);
    restart.promise(attempt(2, 3), me);
    assert!(!restart.has_promised(1) && restart.has_promised(2));
    for number in 3..40 {
        restart.promise(attempt(number, 3), me);
    }
    assert!(!restart.has_promised(2), "so many are remembered at most");
    assert!(restart.has_promised(38) && restart.has_promised(39));
    assert!(restart.take_promise(40).is_none());
}
