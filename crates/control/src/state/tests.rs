//! What commands do to views.

use super::{Command, ControlState, Founding};
use lats_base::{FragmentId, Incarnation, NodeId};
use lats_catalog::{ClusterConfig, Member, Roles};

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
    state.apply(&Command::Remove { node: NodeId::new(1), incarnation: life });
    assert_eq!(primaries(&state), [2, 2]);
    assert_eq!(state.view.number.get(), 2);
    // The same news again changes nothing.
    state.apply(&Command::Remove { node: NodeId::new(1), incarnation: life });
    assert_eq!(state.view.number.get(), 2);

    state.apply(&Command::Join(member(1, 2, true)));
    assert!(!state.view.is_in_sync(NodeId::new(1)));
    let synced = Command::Synced {
        node: NodeId::new(1),
        incarnation: Incarnation::new(2),
        catalog_version: state.catalog.version,
    };
    state.apply(&synced);
    assert!(state.view.is_in_sync(NodeId::new(1)));
    state.apply(&Command::Remove { node: NodeId::new(2), incarnation: life });
    assert_eq!(primaries(&state), [1, 1]);
}

#[test]
fn a_syncing_replica_is_never_promoted() {
    let mut state = two_and_a_witness();
    let life = Incarnation::new(1);
    state.apply(&Command::Remove { node: NodeId::new(1), incarnation: life });
    state.apply(&Command::Join(member(1, 2, true)));
    state.apply(&Command::Remove { node: NodeId::new(2), incarnation: life });
    assert_eq!(primaries(&state), [0, 0]);
}

#[test]
fn a_new_life_removes_the_old_one() {
    let mut state = two_and_a_witness();
    state.apply(&Command::Join(member(2, 5, true)));
    assert_eq!(primaries(&state), [1, 1]);
    assert!(!state.view.is_in_sync(NodeId::new(2)));
    // An older life does not come back.
    state.apply(&Command::Join(member(2, 4, true)));
    assert!(state.view.is_alive(NodeId::new(2), Incarnation::new(5)));
}
