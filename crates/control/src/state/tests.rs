//! What commands do to views.

use super::{Command, ControlState, Founding};
use lats_base::{FragmentId, Incarnation, NodeId, Nonce, RefCode, ViewNumber, limits};
use lats_catalog::{AfterStop, Change, ChangeErrorKind, ClusterConfig, Member, Roles};

fn member(node: u16, life: u32, data: bool) -> Member {
    Member {
        node: NodeId::new(node),
        incarnation: Incarnation::new(life),
        roles: Roles { data, sql: data },
        ..Member::default()
    }
}

fn two_and_a_witness() -> ControlState {
    ControlState::found(&Founding {
        config: ClusterConfig { replicas: 2, ldm_instances: 1, ..ClusterConfig::default() },
        members: vec![member(1, 1, true), member(2, 1, true), member(3, 1, false)],
        number: 1,
    })
}

fn primaries(state: &ControlState) -> Vec<u16> {
    (0..2).map(|f| state.view.primary(FragmentId::new(f)).map_or(0, |n| n.get())).collect()
}

#[test]
fn the_survivor_is_promoted_and_the_lost_node_comes_back_by_syncing() {
    let mut state = two_and_a_witness();
    assert_eq!(primaries(&state), [1, 2]);
    let life = Incarnation::new(1);
    state.apply(&Command::Remove { node: NodeId::new(1), incarnation: life, certified: true });
    assert_eq!(primaries(&state), [2, 2]);
    assert_eq!(state.view.number.get(), 2);
    // The same news again changes nothing.
    state.apply(&Command::Remove { node: NodeId::new(1), incarnation: life, certified: true });
    assert_eq!(state.view.number.get(), 2);

    state.apply(&Command::Join { member: member(1, 2, true), nonce: Nonce::default() });
    assert!(!state.view.is_in_sync(NodeId::new(1)));
    let synced = Command::Synced {
        node: NodeId::new(1),
        incarnation: Incarnation::new(2),
        catalog_version: state.catalog.version,
    };
    state.apply(&synced);
    assert!(state.view.is_in_sync(NodeId::new(1)));
    state.apply(&Command::Remove { node: NodeId::new(2), incarnation: life, certified: true });
    assert_eq!(primaries(&state), [1, 1]);
}

#[test]
fn a_syncing_replica_is_never_promoted() {
    let mut state = two_and_a_witness();
    let life = Incarnation::new(1);
    state.apply(&Command::Remove { node: NodeId::new(1), incarnation: life, certified: true });
    state.apply(&Command::Join { member: member(1, 2, true), nonce: Nonce::default() });
    state.apply(&Command::Remove { node: NodeId::new(2), incarnation: life, certified: true });
    assert_eq!(primaries(&state), [0, 0]);
}

#[test]
fn the_last_full_replica_is_not_removed_for_silence() {
    let mut state = two_and_a_witness();
    let remove = |node, certified| Command::Remove {
        node: NodeId::new(node),
        incarnation: Incarnation::new(1),
        certified,
    };
    state.apply(&remove(1, false));
    let view = state.view.number;
    assert!(state.keeps(&remove(2, false)) && !state.keeps(&remove(2, true)));
    state.apply(&remove(2, false));
    assert_eq!((primaries(&state), state.view.number), (vec![2, 2], view));
    assert!(!state.keeps(&remove(3, false)), "a witness has no rows");
    let declared = Command::DeclareDead {
        node: NodeId::new(2),
        incarnation: Incarnation::new(1),
        give_up_rows: true,
    };
    state.apply(&declared);
    state.apply(&remove(2, false));
    assert_eq!(primaries(&state), [0, 0], "a person has given up its rows");
}

#[test]
fn a_new_life_removes_the_old_one() {
    let mut state = two_and_a_witness();
    state.apply(&Command::Join { member: member(2, 5, true), nonce: Nonce::default() });
    assert_eq!(primaries(&state), [1, 1]);
    assert!(!state.view.is_in_sync(NodeId::new(2)));
    // An older life does not come back.
    state.apply(&Command::Join { member: member(2, 4, true), nonce: Nonce::default() });
    assert!(state.view.is_alive(NodeId::new(2), Incarnation::new(5)));
}

/// Node 1 was lost and is back in sync; node 2 is primary of everything.
fn one_sided() -> ControlState {
    let mut state = two_and_a_witness();
    state.apply(&Command::Remove {
        node: NodeId::new(1),
        incarnation: Incarnation::new(1),
        certified: true,
    });
    state.apply(&Command::Join { member: member(1, 2, true), nonce: Nonce::default() });
    let catalog_version = state.catalog.version;
    let (node, incarnation) = (NodeId::new(1), Incarnation::new(2));
    state.apply(&Command::Synced { node, incarnation, catalog_version });
    assert_eq!(primaries(&state), [2, 2]);
    state
}

fn begin(state: &mut ControlState) -> ViewNumber {
    let next = state.view.balanced_primaries(&state.view.groups[0]);
    let view = state.view.number;
    state.apply(&Command::BeginHandOver { view, group: 0, next });
    state.view.number
}

#[test]
fn primaries_go_back_when_all_are_ready() {
    let mut state = one_sided();
    let view = begin(&mut state);
    assert!(state.view.hands_over());
    assert_eq!(primaries(&state), [2, 2], "nobody is primary before the former one has let go");
    assert_eq!(state.view.next_primary(FragmentId::new(0)), Some(NodeId::new(1)));
    assert_eq!(state.view.next_primary(FragmentId::new(1)), None);
    state.apply(&Command::EndHandOver { view });
    assert_eq!(primaries(&state), [1, 2]);
    assert!(!state.view.hands_over());
    // Whoever says so again says nothing.
    let number = state.view.number;
    state.apply(&Command::EndHandOver { view });
    state.apply(&Command::CancelHandOver { view });
    assert_eq!(state.view.number, number);
}

#[test]
fn a_hand_over_ends_with_its_view() {
    let mut state = one_sided();
    let view = begin(&mut state);
    state.apply(&Command::CancelHandOver { view });
    assert_eq!((primaries(&state), state.view.hands_over()), (vec![2, 2], false));
    let view = begin(&mut state);
    state.apply(&Command::Remove {
        node: NodeId::new(3),
        incarnation: Incarnation::new(1),
        certified: true,
    });
    assert!(!state.view.hands_over());
    state.apply(&Command::EndHandOver { view });
    assert_eq!(primaries(&state), [2, 2]);
}

#[test]
fn nothing_is_handed_to_a_replica_that_is_being_filled() {
    let mut state = two_and_a_witness();
    state.apply(&Command::Remove {
        node: NodeId::new(1),
        incarnation: Incarnation::new(1),
        certified: true,
    });
    state.apply(&Command::Join { member: member(1, 2, true), nonce: Nonce::default() });
    let (view, next) = (state.view.number, vec![NodeId::new(1), NodeId::new(2)]);
    state.apply(&Command::BeginHandOver { view, group: 0, next });
    assert!(!state.view.hands_over());
}

#[test]
fn the_last_replica_does_not_stop() {
    let mut state = two_and_a_witness();
    let stop = |node: u16| Command::Stop {
        node: NodeId::new(node),
        incarnation: Incarnation::new(1),
        then: AfterStop::StayDown,
    };
    state.apply(&stop(2));
    assert!(state.view.is_stopping(NodeId::new(2)));
    assert_eq!(state.view.balanced_primaries(&state.view.groups[0]), [NodeId::new(1); 2]);
    state.apply(&stop(1));
    assert!(!state.view.is_stopping(NodeId::new(1)));
    state.apply(&stop(3));
    assert!(state.view.is_stopping(NodeId::new(3)), "a witness holds no data");
}

/// SILENT-4: another replica may have died since the person has looked.
#[test]
fn a_declared_death_costs_no_rows_without_consent() {
    let mut state = two_and_a_witness();
    let declare = |node: u16, give_up_rows| Command::DeclareDead {
        node: NodeId::new(node),
        incarnation: Incarnation::new(1),
        give_up_rows,
    };
    let (one, two) = (NodeId::new(1), NodeId::new(2));
    state.apply(&declare(2, false));
    assert!(state.view.is_declared_dead(two), "node 1 has all its rows");
    state.apply(&declare(1, false));
    assert!(!state.view.is_declared_dead(one), "node 2 is as good as gone");
    let mut state = two_and_a_witness();
    state.apply(&Command::Remove { node: two, incarnation: Incarnation::new(1), certified: true });
    state.apply(&declare(1, false));
    assert!(!state.view.is_declared_dead(one));
    state.apply(&declare(1, true));
    assert!(state.view.is_declared_dead(one));
}

#[test]
fn replicas_of_a_group_are_in_different_locations() {
    let groups = |replicas: u16, locations: &[&str]| {
        let place = |(node, location): (u16, &&str)| Member {
            location: (*location).to_string(),
            ..member(node, 1, true)
        };
        let members = (1u16..).zip(locations).map(place).collect();
        let founding = Founding {
            config: ClusterConfig { replicas, ..Default::default() },
            members,
            number: 1,
        };
        let number = |nodes: &Vec<NodeId>| nodes.iter().map(|n| n.get()).collect::<Vec<_>>();
        founding.groups().iter().map(number).collect::<Vec<_>>()
    };
    assert_eq!(groups(2, &["", "", "", ""]), [[1, 2], [3, 4]]);
    assert_eq!(groups(2, &["a", "a", "b", "b"]), [[1, 3], [2, 4]]);
    assert_eq!(groups(2, &["a", "b", "a", "b"]), [[1, 2], [3, 4]]);
    // The crowded one is in every group.
    assert_eq!(groups(2, &["b", "c", "a", "a"]), [[3, 1], [2, 4]]);
    assert_eq!(groups(3, &["a", "a", "b", "b", "c", "c"]), [[1, 3, 5], [2, 4, 6]]);
    assert_eq!(groups(2, &["a", "a", "a", "b"]), [[1, 4], [2, 3]]);
}

#[test]
fn a_node_that_was_to_stop_stays_when_it_is_the_last() {
    let mut state = two_and_a_witness();
    let (node, incarnation) = (NodeId::new(1), Incarnation::new(1));
    state.apply(&Command::Stop { node, incarnation, then: AfterStop::StayDown });
    assert!(state.view.is_stopping(node));
    state.apply(&Command::Remove { node: NodeId::new(2), incarnation, certified: true });
    assert!(!state.view.is_stopping(node));
    assert_eq!(primaries(&state), [1, 1]);
}

fn stop(node: u16, life: u32) -> Command {
    let (node, incarnation) = (NodeId::new(node), Incarnation::new(life));
    Command::Stop { node, incarnation, then: AfterStop::Restart }
}

#[test]
fn a_node_that_was_to_stop_stays_when_the_other_one_comes_back_empty() {
    let mut state = two_and_a_witness();
    state.apply(&stop(1, 1));
    // A newer life of node 2: the rows of the older one are gone.
    state.apply(&Command::Join { member: member(2, 2, true), nonce: Nonce::default() });
    assert!(!state.view.is_stopping(NodeId::new(1)));
    assert_eq!(primaries(&state), [1, 1]);
}

#[test]
fn a_node_that_is_to_stop_does_not_become_primary_again() {
    let mut state = ControlState::found(&Founding {
        config: ClusterConfig { replicas: 3, ldm_instances: 1, ..ClusterConfig::default() },
        members: vec![member(1, 1, true), member(2, 1, true), member(3, 1, true)],
        number: 1,
    });
    state.apply(&stop(2, 1));
    state.apply(&Command::Remove {
        node: NodeId::new(1),
        incarnation: Incarnation::new(1),
        certified: true,
    });
    assert!(state.view.is_stopping(NodeId::new(2)));
    // What it is primary of it hands over; nothing is added.
    assert_eq!(state.view.groups[0].primaries, [NodeId::new(3), NodeId::new(2), NodeId::new(3)]);
}

/// LOST-1 to LOST-3.
#[test]
fn a_lost_group_stays_lost_and_gets_no_new_definitions() {
    let mut state = two_and_a_witness();
    let remove = |node: u16, life: u32| Command::Remove {
        node: NodeId::new(node),
        incarnation: Incarnation::new(life),
        certified: true,
    };
    let create = |name: &str| Change::CreateDatabase { name: name.into(), if_not_exists: false };
    state.apply(&Command::Change { request: 1, change: create("one") });
    assert_eq!(state.change_result(1), Some(&Ok(state.catalog.version)));
    state.apply(&remove(1, 1));
    state.apply(&Command::Join { member: member(1, 2, true), nonce: Nonce::default() });
    assert_eq!(state.view.lost_groups().count(), 0);
    state.apply(&remove(2, 1));
    assert_eq!(state.view.lost_groups().map(|(id, _)| id.get()).collect::<Vec<_>>(), [0]);
    assert_eq!(state.view.route(FragmentId::new(0)), Err(RefCode::NodeGroupLost));
    // Node 1 was being filled, and has not every row.
    let (number, catalog_version) = (state.view.number, state.catalog.version);
    let (node, incarnation) = (NodeId::new(1), Incarnation::new(2));
    state.apply(&Command::Synced { node, incarnation, catalog_version });
    assert_eq!((state.view.number, state.view.is_in_sync(node)), (number, false));
    state.apply(&Command::Change { request: 2, change: create("two") });
    let refused = state.change_result(2).and_then(|r| r.as_ref().err());
    assert_eq!(refused.map(|e| e.kind), Some(ChangeErrorKind::NodeGroupLost));
    let drop = Change::DropDatabase { name: "one".into(), if_exists: false };
    state.apply(&Command::Change { request: 3, change: drop });
    assert!(state.change_result(3).is_some_and(Result::is_ok));
}

fn database(request: u64) -> Command {
    let name = format!("db{request}");
    Command::Change { request, change: Change::CreateDatabase { name, if_not_exists: false } }
}

/// CHANGE-1 to CHANGE-3.
#[test]
fn a_change_is_remembered_until_its_client_has_the_answer_however_many_others_come() {
    let mut state = two_and_a_witness();
    let drop = Change::DropDatabase { name: "db1".to_string(), if_exists: false };
    let drop = Command::Change { request: 2, change: drop };
    state.apply(&database(1));
    state.apply(&drop);
    let Command::Change { change, .. } = database(1) else { return };
    state.apply(&Command::Change { request: 3, change });
    // As many as one node admits, and more, whose clients have their answers.
    for request in 10..10 + 6 * limits::CHANGES_PER_NODE_MAX as u64 {
        state.apply(&database(request));
        state.apply(&Command::Change {
            request: request + (1 << 32),
            change: Change::DropDatabase { name: format!("db{request}"), if_exists: false },
        });
        let requests = vec![request, request + (1 << 32)];
        state.apply(&Command::ForgetChanges { requests });
    }
    // The client of the second one asks again: it must not meet the newer database.
    state.apply(&drop);
    assert!(state.catalog.has_database("db1"));
    assert_eq!(state.recent_changes.len(), 3);
    // When the client has its answer, the number means nothing any more.
    state.apply(&Command::ForgetChanges { requests: vec![2] });
    assert!(state.change_result(2).is_none());
    // Clients that are gone leave no more than this.
    for request in 10..10 + 6 * limits::CHANGES_PER_NODE_MAX as u64 {
        let name = format!("db{request}");
        let change = Change::DropDatabase { name, if_exists: true };
        state.apply(&Command::Change { request, change });
    }
    assert_eq!(state.recent_changes.len(), 5 * limits::CHANGES_PER_NODE_MAX);
}
