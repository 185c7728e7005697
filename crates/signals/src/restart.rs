//! Signals with which a cluster comes up again from its disks. Protocol: docs/protocols/restart.md.

use crate::body;
use lats_base::{Epoch, Incarnation, NodeId};

body! {
    /// Control → LDM of the same node, before anything else: what is in your log? Payload: the epochs that were restored
    /// when the cluster was restarted, 8 bytes each.
    SurveyReq {
        /// The cluster that the files must belong to.
        cluster: u64,
    }
}
body! {
    /// LDM → control: this. Payload: the epochs that it can give back, each with how many commands the control state must know
    /// that it is restored with (`lats_files::redo::Survey::steps`).
    SurveyRep {
        /// Nothing in the log is of a later one.
        newest: Epoch,
        /// The newest epoch that was known to be durable in the whole cluster when the log was written.
        durable: Epoch,
        /// The data manager.
        instance: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// Control → LDM of the same node: load the rows as they were in this epoch. Payload: the view that will be the first one, the
    /// epochs that restarts have begun with, and the catalog, whatever other one an earlier attempt has brought.
    RestoreReq {
        /// Later changes are void.
        epoch: Epoch,
        /// The number of the restart; given back in the answer.
        restarts: u64,
    }
}
body! {
    /// Control → LDM of the same node, before the first catalog and view: this is the history of the cluster that it has come into. Payload:
    /// the epochs that restarts have begun with, 8 bytes each.
    RestoredOrd {
        /// 1: this life's rows come from other replicas, and nothing counts that an attempt to restart has brought.
        is_filled: u64,
    }
}
body! {
    /// LDM → control: they are loaded.
    RestoredRep {
        /// The data manager.
        instance: u32,
        /// The number of the restart.
        restarts: u32,
    }
}
body! {
    /// Control → control of other nodes, again and again while the cluster is not up: this is on my disk, or in my memory.
    /// Payload: a `Presence`.
    RestartRep {
        /// How many times the cluster had been restarted when the state was kept that is on the disk.
        restarts: u32,
        /// The newest restart that this node has promised to take part in.
        promised: u32,
        /// How many commands had been applied by then.
        commands: u64,
        /// How many commands the newest state knows of all states that this node has heard of.
        limit: u64,
        /// The newest epoch that all its data managers can give back together with that state.
        restorable: Epoch,
        /// Nothing on the disk is of a later one.
        newest: Epoch,
        /// The newest epoch that it knows to have been durable in the whole cluster.
        durable: Epoch,
        /// Whom it has promised to take part in a restart that has not begun: its life and node; 0: nobody.
        asked_by: Incarnation,
        /// See `asked_by`.
        asker: u32,
        /// Of a member that lives: the term of the newest entry of its consensus log, else 0.
        term: u64,
        /// The same: its index.
        index: u64,
    }
}
body! {
    /// Control of the node with the newest state → control of all that take part: promise to take part in no other restart, and
    /// load the rows. Payload: the state to begin with.
    RestartReq {
        /// The number of the restart.
        restarts: u32,
        /// How many times the group had been formed whose state that goes on with.
        based_on: u32,
    }
}
body! {
    /// Control → control that asks: promised and loaded.
    RestartConf {
        /// The number of the restart.
        restarts: u32,
        /// The life that has asked.
        asked_by: Incarnation,
    }
}
body! {
    /// Control → control of all that take part: all have promised and loaded; begin.
    RestartOrd {
        /// The number of the restart.
        restarts: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}

impl RestartRep {
    /// Whom it has promised to take part in a restart that has not begun.
    pub fn whom(&self) -> (NodeId, Incarnation) {
        (NodeId::new(self.asker as u16), self.asked_by)
    }
}
