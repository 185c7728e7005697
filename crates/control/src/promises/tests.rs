//! What survivors have promised (REFORM-3, REFORM-7).

use super::{Attempt, Life, Restart};
use crate::{
    restart::{Presence, Present},
    state::ControlState,
};
use lats_base::{Epoch, Incarnation, NodeId};
use lats_catalog::{Member, Roles, View};
use lats_signals::restart::RestartRep;
use std::collections::{BTreeMap, BTreeSet};

const ME: NodeId = NodeId::new(2);

fn life(node: u16) -> Life {
    (NodeId::new(node), Incarnation::new(1))
}

fn member(node: u16) -> Member {
    let roles = Roles { data: true, sql: true };
    Member {
        node: NodeId::new(node),
        incarnation: life(node).1,
        roles,
        alive: true,
        ..Member::default()
    }
}

/// A proposal that goes on with the group that was formed so many times.
fn attempt((restarts, based_on): (usize, u32), asked_by: u16, members: &[u16]) -> Attempt {
    let mut state = ControlState::default();
    state.restored.resize(restarts, Epoch::default());
    state.view.members = members.iter().map(|n| member(*n)).collect();
    Attempt {
        state: Box::new(state),
        based_on,
        views: Vec::new(),
        asked_by: life(asked_by),
        loaded: BTreeSet::new(),
        to_load: 0,
        ready: BTreeSet::new(),
    }
}

/// What a node says: how often its group was formed, the newest number that it has promised, and to whom.
fn says(node: u16, restarts: u32, promised: u32, asker: u16) -> (NodeId, Present) {
    let asked_by = Incarnation::new(u32::from(asker > 0));
    let has = RestartRep {
        restarts,
        promised,
        commands: 0,
        limit: 0,
        restorable: Epoch::default(),
        newest: Epoch::default(),
        durable: Epoch::default(),
        asked_by,
        asker: u32::from(asker),
        term: 0,
        index: 0,
    };
    let said = Presence { member: member(node), lives: true, ..Presence::default() };
    (NodeId::new(node), Present { has, said })
}

fn may_begin(restart: &Restart, restarts: u64, sender: u16) -> bool {
    restart.may_begin(restarts, ME, life(sender))
}

#[test]
fn a_promise_to_somebody_else_holds_though_a_later_one_takes_its_place() {
    let mut restart = Restart::is_over();
    assert!(!restart.has_promises());
    restart.promise(attempt((1, 0), 1, &[1, 2]), ME);
    restart.promise(attempt((2, 0), 2, &[1, 2]), ME);
    assert!(may_begin(&restart, 1, 1) && may_begin(&restart, 2, 1) && !may_begin(&restart, 3, 1));
    // What it has asked for itself cannot come about any more.
    restart.attempt = None;
    assert!(restart.has_promises() && !may_begin(&restart, 2, 1));
    let kept = restart.take_promise(1);
    assert_eq!(kept.map(|a| a.asked_by.0), Some(NodeId::new(1)));
    assert!(!restart.has_promises(), "there is one group");
}

#[test]
fn what_it_has_asked_for_itself_is_formed_by_nobody_else() {
    let mut restart = Restart::is_over();
    restart.promise(attempt((1, 0), 2, &[1, 2, 3]), ME);
    restart.promise(attempt((2, 0), 3, &[1, 2, 3]), ME);
    assert!(!may_begin(&restart, 1, 1) && may_begin(&restart, 2, 1));
    for number in 3..40 {
        restart.promise(attempt((number, 2), 3, &[1, 2, 3]), ME);
    }
    let three = NodeId::new(3);
    // The second one may be formed, for the newer ones go on with it. Who asks anew has dropped what it had asked for before.
    assert_eq!(restart.describe_promises(), [(2, three), (39, three)]);
    for number in 40..60_u16 {
        restart.promise(attempt((usize::from(number), 2), number, &[1, 2, 3]), ME);
    }
    let kept: Vec<u32> = restart.describe_promises().iter().map(|p| p.0).collect();
    assert_eq!(kept, (51..60).collect::<Vec<u32>>(), "so many are remembered at most");
    assert!(restart.take_promise(70).is_none());
}

#[test]
fn a_late_message_of_a_node_that_the_newer_group_does_without_begins_no_older_one() {
    let mut restart = Restart::is_over();
    restart.promise(attempt((1, 0), 1, &[1, 2, 3]), ME);
    restart.promise(attempt((2, 0), 3, &[2, 3]), ME);
    assert!(!may_begin(&restart, 1, 1), "node 1 may be dead, and the newer group formed");
    assert!(
        may_begin(&restart, 1, 3),
        "who takes part in the older one has not promised the newer one"
    );
    restart.promise(attempt((3, 1), 4, &[2, 3, 4]), ME);
    assert!(!may_begin(&restart, 1, 3), "the newer one goes on with the older one");
    assert!(may_begin(&restart, 3, 3));
}

#[test]
fn a_promise_is_void_when_the_one_that_asked_says_so() {
    let is_void = |said: (NodeId, Present)| {
        let mut restart = Restart::is_over();
        restart.promise(attempt((2, 0), 3, &[1, 2, 3]), ME);
        restart.drop_void_promises(&BTreeMap::from([said]), true);
        !restart.has_promises()
    };
    assert!(!is_void(says(3, 0, 1, 0)), "said before it asked");
    assert!(!is_void(says(3, 0, 2, 3)), "it still asks");
    assert!(!is_void(says(3, 2, 2, 0)), "it has begun");
    assert!(!is_void(says(1, 0, 3, 1)), "somebody else");
    assert!(is_void(says(3, 0, 2, 0)), "it has dropped it");
    assert!(is_void(says(3, 0, 3, 3)), "it asks for something else");
    assert!(is_void(says(3, 0, 4, 1)), "it has promised to somebody else");
    let mut restart = Restart::is_over();
    restart.promise(attempt((1, 0), 1, &[1, 2, 3]), ME);
    restart.promise(attempt((2, 0), 3, &[1, 2, 3]), ME);
    restart.drop_void_promises(&BTreeMap::from([says(3, 0, 2, 0)]), true);
    assert_eq!(restart.describe_promises(), [(1, NodeId::new(1))], "the one before counts again");
}

#[test]
fn a_promise_is_void_when_one_that_is_needed_goes_on_without_the_asker() {
    let is_void = |members: &[u16], restarts: u32, promised: u32, alive: bool| {
        let mut restart = Restart::is_over();
        restart.promise(attempt((2, 0), 3, members), ME);
        let (node, mut said) = says(1, restarts, promised, 0);
        let asker = Member { alive, ..member(3) };
        said.said.views.push(View { members: vec![member(1), asker], ..View::default() });
        restart.drop_void_promises(&BTreeMap::from([(node, said)]), true);
        !restart.has_promises()
    };
    assert!(is_void(&[1, 2, 3], 0, 1, false), "it never promises to one that is over");
    assert!(!is_void(&[1, 2, 3], 0, 1, true), "the asker lives, and may ask again");
    assert!(!is_void(&[1, 2, 3], 0, 2, false), "it has promised: the group may be formed");
    assert!(!is_void(&[1, 2, 3], 2, 2, false), "it is in that group");
    assert!(!is_void(&[2, 3], 0, 1, false), "nobody needs it for that");
}

#[test]
fn a_proposal_is_lost_with_one_that_cannot_promise_to_any_more() {
    let own = attempt((2, 1), 2, &[1, 2]);
    let is_lost = |said: &[(NodeId, Present)]| own.is_lost(ME, &said.iter().cloned().collect());
    assert!(is_lost(&[]), "node 1 is gone");
    assert!(!is_lost(&[says(1, 1, 1, 0)]), "it has not heard of it");
    assert!(!is_lost(&[says(1, 1, 2, 2)]), "it has promised");
    assert!(is_lost(&[says(1, 1, 2, 1)]), "it has asked for another one of that number");
    assert!(is_lost(&[says(1, 1, 3, 2)]), "it does not confirm that number any more");
    assert!(is_lost(&[says(1, 2, 2, 0)]), "it is in a newer group");
    let (node, mut other) = says(1, 1, 2, 2);
    other.said.member.incarnation = Incarnation::new(2);
    assert!(is_lost(&[(node, other)]), "another life");
}
