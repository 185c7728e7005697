//! Signals of control: consensus, views, leases, catalog. Protocol: docs/protocols/membership.md.
//!
//! Records of variable shape (view, map, catalog, changes) travel as payloads in the catalog
//! crate's versioned encoding.

use crate::{NodeSet, body};
use lats_base::{Epoch, Nonce, ViewNumber};

body! {
    /// Control → control: a message of the consensus library; payload: its encoding.
    RaftOrd {
        /// The sender's consensus id: node and life.
        from: u64,
        /// The receiver's consensus id.
        to: u64,
        /// How many times the group was formed anew before this one (REFORM-3).
        restarts: u64,
    }
}
body! {
    /// Control → leader: renew my lease; also the heartbeat.
    LeaseReq {
        /// The sender's clock when it asked, in ns.
        asked_at: u64,
        /// The view it has installed.
        view: ViewNumber,
        /// Its epoch.
        epoch: Epoch,
        /// The catalog version it has installed.
        catalog_version: u64,
        /// From the newest `LeaseConf` of this leader, else 0: proves that the sender followed it
        /// then.
        leader_clock: u64,
        /// The sender's term: what it says of leaders holds in this one only.
        term: u64,
        /// For how long the sender has not heard any leader of an earlier term, in ns (LEASE-6).
        silence_ns: u64,
        /// The data nodes that have answered the sender's heartbeats lately (VIEW-5).
        heard: NodeSet,
        /// How late the sender's threads are, in ms (LATE-1).
        late_ms: u64,
    }
}
body! {
    /// Control of a leader that has lost its majority → control of everybody: find another one.
    LeaderLeftOrd {
        /// The term in which it led.
        term: u64,
    }
}
body! {
    /// Leader → control: the lease is renewed, counted from `asked_at`.
    LeaseConf {
        /// As in the request.
        asked_at: u64,
        /// The lease in ms.
        lease_ms: u64,
        /// The leader's epoch.
        epoch: Epoch,
        /// The leader's clock, in ns.
        leader_clock: u64,
        /// The leader's term.
        term: u64,
        /// The catalog version that every serving node has installed.
        catalog_everywhere: u64,
    }
}
body! {
    /// Control of a data node → control of every other: packets pass between us.
    HeartbeatOrd {
        /// The sender's clock, in ns.
        clock: u64,
        /// The newest clock of the receiver that the sender has heard; 0 for none.
        echo: u64,
        /// How late the sender's threads are, in ms (LATE-1).
        late_ms: u64,
        /// The newest clock of the receiver that has come by the lane of rows; 0 for none.
        rows_echo: u64,
    }
}
body! {
    /// Control of a data node → control of every other, by the lane of rows: it passes what is sent (LATE-5).
    LaneProbeOrd {
        /// The sender's clock, in ns.
        clock: u64,
    }
}
body! {
    /// Thread of a node → the other end of a connection: how much has come by this lane since the link began (LINK-3). No block hears of it.
    ReceivedOrd {
        /// Bytes of whole signals.
        bytes: u64,
    }
}
body! {
    /// Shell → control: how long the thread of this node that is most behind has not come on (LATE-1).
    LateRep {
        /// In ms; 0: all are on time.
        late_ms: u64,
        /// The number of the thread.
        thread: u64,
    }
}
body! {
    /// Control → leader: a peer seems dead, or signals between us were lost.
    SuspectRep {
        /// The peer.
        node: u64,
        /// The life of it that is meant.
        incarnation: u64,
        /// `GONE`, `LOST`, or 0: nothing comes from it.
        what: u64,
    }
}
/// In [`SuspectRep`]: its end is certified (DEATH-1).
pub const GONE: u64 = 1;
/// In [`SuspectRep`]: a link to it was lost, and signals with it.
pub const LOST: u64 = 2;
body! {
    /// A new process → any control block: take me in; payload: an `Applicant`.
    JoinReq {
        /// Its life, so that the answer to a former life is not taken for ours.
        token: u64,
    }
}
body! {
    /// Control → the new process: you are in; payload: the join answer.
    JoinConf {
        /// As in the request.
        token: u64,
    }
}
body! {
    /// Control → a process: it is not a member, and this life of it cannot become one any more.
    JoinRef {
        /// As in the request.
        token: u64,
        /// A `RefCode`.
        code: u64,
        /// The newest life of the node that is known.
        known: u64,
    }
}
body! {
    /// Guardian → control of every node: a process has ended (DEATH-1).
    CertificateOrd {
        /// The node.
        node: u64,
        /// The life.
        incarnation: u64,
        /// The process.
        nonce: Nonce,
    }
}
body! {
    /// Control → control of a survivor: this process was never a member, and ends (REFORM-1).
    NeverJoinedRep {
        /// The process.
        nonce: Nonce,
    }
}
body! {
    /// Control → shell: a later life of this node is known than this one; the next process begins above that.
    LifeKnownOrd {
        /// The newest.
        known: u64,
    }
}
body! {
    /// Control → leader: this view and catalog are installed in all my blocks.
    InstalledRep {
        /// The view.
        view: ViewNumber,
        /// The catalog's version.
        catalog_version: u64,
    }
}
body! {
    /// LDM of the primary → LDM of the next: it holds nothing of what it hands over, and takes
    /// nothing more (HANDOVER-2).
    DrainedRep {
        /// The view that began the hand-over.
        view: ViewNumber,
    }
}
body! {
    /// LDM of the next primary → control → leader: it can become primary (HANDOVER-4).
    TakeOverReadyRep {
        /// The view that began the hand-over.
        view: ViewNumber,
    }
}
body! {
    /// Leader → control: every serving node has installed these.
    EverywhereRep {
        /// The view.
        view: ViewNumber,
        /// The catalog's version.
        catalog_version: u64,
    }
}
body! {
    /// Client → control: where is what?
    MapReq {
        /// Given back in the answer.
        request: u64,
        /// The view the client knows; an answer comes only when there is a newer one (0: at once).
        known_view: ViewNumber,
    }
}
body! {
    /// Control → client: the map; payload: the cluster map. Also sent unasked when it changes.
    MapConf {
        /// The request, or 0.
        request: u64,
        /// The view.
        view: ViewNumber,
        /// The catalog's version.
        catalog_version: u64,
    }
}
body! {
    /// Client → control: the catalog?
    CatalogReq {
        /// Given back in the answer.
        request: u64,
        /// The version that the client has; 0: none.
        known: u64,
    }
}
body! {
    /// Control → client: payload: what leads from the client's version of the catalog to the newest one (`CatalogUpdate`).
    CatalogConf {
        /// The request.
        request: u64,
        /// Its version.
        catalog_version: u64,
    }
}
body! {
    /// Client → control: change the catalog; payload: the change.
    ChangeReq {
        /// Given back in the answer. Chosen at random, so that a repeated request is recognised.
        request: u64,
    }
}
body! {
    /// Client → control: it has read the answer, and has asked nobody else: the change need not be remembered for it (CHANGE-2).
    ChangeHeardOrd {
        /// The request.
        request: u64,
    }
}
body! {
    /// Control → client: the change is made, and every serving node has it.
    ChangeConf {
        /// The request.
        request: u64,
        /// The catalog's version.
        catalog_version: u64,
    }
}
body! {
    /// Control → client: the change is refused; payload: a change error, or nothing.
    ChangeRef {
        /// The request.
        request: u64,
        /// A `RefCode`.
        code: u64,
    }
}
body! {
    /// Client → control: the cluster's state, for a person.
    StatusReq {
        /// Given back in the answer.
        request: u64,
    }
}
body! {
    /// Control → client: payload: the status record.
    StatusConf {
        /// The request.
        request: u64,
    }
}
body! {
    /// Client → shell: what the node's threads have done, for a person.
    FiguresReq {
        /// Given back in the answer.
        request: u64,
    }
}
body! {
    /// Shell → client: payload: figures of each thread.
    FiguresConf {
        /// The request.
        request: u64,
    }
}
/// The SQL sessions of a node are listed.
pub const SESSIONS_LIST: u32 = 0;
/// What a session runs is to end.
pub const SESSIONS_KILL_QUERY: u32 = 1;
/// A session is to end, and what it runs.
pub const SESSIONS_KILL: u32 = 2;
/// The number of the statement that a session runs, or has run last.
pub const SESSIONS_STATEMENT: u32 = 3;
body! {
    /// Client → shell: ends what a MySQL client's session runs, or lists the sessions of the node.
    SessionsReq {
        /// Given back in the answer.
        request: u64,
        /// The session's number (CONNECTION_ID()); 0 if they are listed.
        session: u32,
        /// SESSIONS_…
        what: u32,
        /// For SESSIONS_KILL_QUERY: the number of the statement that is meant; otherwise 0.
        statement: u64,
    }
}
body! {
    /// Shell → client: payload: the list, or the number of the statement in 8 bytes, little-endian, if one of them was asked for.
    SessionsConf {
        /// The request.
        request: u64,
        /// 1 if there is such a session.
        found: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// Control → blocks of the same node: install this view; payload: the view.
    ViewOrd {
        /// The view.
        view: ViewNumber,
    }
}
body! {
    /// Control → blocks of the same node: install this catalog; payload: what leads to it from the last one (`CatalogUpdate`).
    CatalogOrd {
        /// Its version.
        catalog_version: u64,
    }
}
body! {
    /// Block → control of the same node: installed.
    InstallConf {
        /// The view installed last.
        view: ViewNumber,
        /// The catalog installed last.
        catalog_version: u64,
    }
}
body! {
    /// Control → blocks of the same node: you may serve until then, and this is who cannot be asked.
    LeaseOrd {
        /// On this node's clock, in ns; `u64::MAX` without end, 0 not at all.
        valid_until: u64,
        /// The largest epoch known.
        epoch: Epoch,
        /// The newest epoch known to be complete.
        complete: Epoch,
        /// Data nodes of the view that have been silent for long (SILENT-1).
        silent: NodeSet,
        /// What is committed up to this epoch is to be made durable (DURABLE-2).
        seal: Epoch,
        /// None of it depends on a later command of the control group than the one with this number (RESTART-6).
        commands: u64,
        /// The newest epoch that is durable everywhere.
        durable: Epoch,
        /// 0; or this node ends: `CLOSE_BEGUN` or `CLOSE_ALL` (CLOSE-2).
        closing: u64,
    }
}
/// In [`LeaseOrd`]: coordinators begin no transaction any more.
pub const CLOSE_BEGUN: u64 = 1;
/// In [`LeaseOrd`]: they roll back what is not decided, and data managers take nothing new from anybody.
pub const CLOSE_ALL: u64 = 2;
body! {
    /// Leader → control of every member: the epoch moves on.
    EpochOrd {
        /// The current epoch.
        epoch: Epoch,
        /// The newest complete one.
        complete: Epoch,
        /// What is committed up to this epoch is to be made durable (DURABLE-2).
        seal: Epoch,
        /// None of it depends on a later command of the control group than the one with this number (RESTART-6).
        commands: u64,
        /// The newest durable one.
        durable: Epoch,
    }
}
body! {
    /// Client → control: which epoch is it?
    EpochReq {
        /// Given back in the answer.
        request: u64,
        /// Answer when this epoch is durable; 0: at once.
        durable: Epoch,
        /// How many times the cluster had been restarted when something was committed in it (DURABLE-7).
        restarts: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// Control → client: the epochs, as this node knows them.
    EpochConf {
        /// The request.
        request: u64,
        /// The current epoch.
        current: Epoch,
        /// The newest complete one.
        complete: Epoch,
        /// The newest durable one; 0 if the cluster keeps nothing on disk.
        durable: Epoch,
        /// How many times the cluster has been restarted.
        restarts: u32,
        /// 1: a restart has made void what was committed in the epoch that was asked for (DURABLE-7).
        is_void: u32,
    }
}
body! {
    /// TC → LDM of the same node: from now on decide in this epoch or a later one.
    EpochBarrierReq {
        /// The epoch.
        epoch: Epoch,
    }
}
body! {
    /// LDM → TC: it does. What it decided before it has told before.
    EpochBarrierConf {
        /// Its epoch.
        epoch: Epoch,
    }
}
body! {
    /// TC → control of the same node, and control → leader: no transaction that is coordinated here
    /// can still commit in this epoch or an earlier one.
    EpochDoneRep {
        /// The epoch.
        done: Epoch,
        /// In this view all transactions of dead coordinators have been inherited.
        view: ViewNumber,
    }
}
body! {
    /// Control → leader: somebody waits for this epoch to be durable.
    EpochWantedRep {
        /// The epoch.
        epoch: Epoch,
    }
}
body! {
    /// TC → control of the same node, and control → leader: this epoch is used; the next ones should follow soon.
    EpochUsedRep {
        /// The epoch.
        epoch: Epoch,
    }
}
body! {
    /// Shell → control: a link to a peer is up.
    LinkUpRep {
        /// The peer.
        node: u64,
        /// Its life.
        incarnation: u64,
        /// Its process.
        nonce: Nonce,
    }
}
body! {
    /// Shell → all blocks: a link to a peer has ended (LINK-4). Comes before anything that a later link to the
    /// same peer brings. Control also hears that a connection of a link has ended, by which nothing is lost.
    LinkDownRep {
        /// The peer.
        node: u64,
        /// The life that the link was to.
        incarnation: u64,
        /// 1: signals may be lost; 0: only a connection has ended, and the link goes on with the next one.
        lost: u64,
    }
}
body! {
    /// Shell → blocks: a client's connection is gone.
    ClientGoneRep {
        /// The connection's slot.
        slot: u64,
    }
}
body! {
    /// Control → shell: something that a person should know; payload: the text.
    NoteOrd {
        /// 1: it is a warning.
        loud: u64,
    }
}
body! {
    /// Control → shell: close the links to this life of a peer.
    CloseLinkOrd {
        /// The peer.
        node: u64,
        /// The life that was removed.
        incarnation: u64,
    }
}
body! {
    /// Control → shell: these are the cluster's nodes; payload: the view, and the nonces of lives. Keep links to them.
    AddressesOrd {
        /// The view.
        view: ViewNumber,
    }
}
/// In [`StopNodeReq`]: the node is to be started again when it has stopped.
pub const RESTART: u64 = 1;

body! {
    /// Client → control: this life of a node is to stop (STOP-1). The view answers.
    StopNodeReq {
        /// The node.
        node: u64,
        /// The life.
        incarnation: u64,
        /// What then: `RESTART`, or 0.
        then: u64,
    }
}
body! {
    /// Client → control, and from there to the leader: a person knows that this life of a node is over, though
    /// nobody can see it (SILENT-4). The view answers.
    DeclareDeadReq {
        /// The node.
        node: u64,
        /// The life.
        incarnation: u64,
        /// 1: also if no full replica of its rows is left then; else 0.
        give_up_rows: u64,
    }
}
body! {
    /// SQL sessions → control of their own node, which is to stop: they are gone (STOP-3).
    LeaveOrd {
        /// Zero.
        reserved: u64,
    }
}
body! {
    /// TC or LDM → control of its own node, which is to stop or to end: it has no transactions, or scans, and takes
    /// none (STOP-2, STOP-3, CLOSE-2).
    QuietRep {
        /// The view in which that is so.
        view: ViewNumber,
        /// Nothing was decided here in a later epoch.
        epoch: Epoch,
        /// What it was told in [`LeaseOrd`].
        closing: u64,
    }
}
body! {
    /// Shell → control: a person wants this process to end (CLOSE-1).
    CloseOrd {
        /// Zero.
        reserved: u64,
    }
}
body! {
    /// Control → control of every member, with each tick: this node is told to end (CLOSE-1).
    CloseRep {
        /// How far it is: `CLOSE_STAGE_…`.
        stage: u64,
    }
}
/// In [`CloseRep`]: it is told to end.
pub const CLOSE_STAGE_TOLD: u64 = 1;
/// In [`CloseRep`]: its coordinators have nothing to do any more.
pub const CLOSE_STAGE_QUIET: u64 = 2;
/// In [`CloseRep`]: all that it has acknowledged is durable.
pub const CLOSE_STAGE_DURABLE: u64 = 3;
body! {
    /// Control → leader: this node has nothing left to do (STOP-3).
    LeaveRep {
        /// Its life.
        incarnation: u64,
        /// 1 if it has waited for its transactions long enough.
        late: u64,
    }
}
body! {
    /// Control → shell: end the process; payload: why.
    StopOrd {
        /// The exit status, `STATUS_…`.
        status: u64,
    }
}

/// The exit status of a process that has ended as a person wanted, and lost nothing.
pub const STATUS_ENDED: u64 = 0;
/// The exit status of a process that was removed: another one should be started.
pub const STATUS_REMOVED: u64 = 3;
/// The exit status of a process that was told to stop, and is not to be started again.
pub const STATUS_STOPPED: u64 = 5;
/// The exit status of a process whose disk has failed (DURABLE-4).
pub const STATUS_DISK_FAILED: u64 = 6;
/// The exit status of a process whose files are not those that it should have (RESTART-5).
pub const STATUS_WRONG_FILES: u64 = 7;
/// The exit status of a process that was told to end, and ends although not all that it has acknowledged is known to be durable
/// (CLOSE-5).
pub const STATUS_NOT_DURABLE: u64 = 8;
body! {
    /// LDM to itself: go on with what a catalog left to do, building indexes and taking dropped
    /// tables down.
    CatalogResumeOrd {
        /// Zero.
        reserved: u64,
    }
}
