//! Named fault points and planted bugs: armed by the simulator, never by production.

/// Places in the protocols where a simulated node can be made to fail or to err.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fault {
    /// The node stops after the primary has executed a batch, before it answers.
    CrashAfterPrepare,
    /// The node stops when a primary has sent row images to one backup, before it sends them to the next.
    CrashBetweenImages,
    /// The node stops when a backup has stored row images, before it answers.
    CrashAfterReplicate,
    /// The coordinator stops when all is prepared, before it has told anyone to commit.
    CrashBeforeDecide,
    /// The coordinator stops when the backups are told to commit, before the primaries are.
    CrashAfterDecide,
    /// The coordinator stops when every backup holds row images that carry the decision, before
    /// the primary is told.
    CrashAfterCarry,
    /// The coordinator stops when the primaries have committed, before the client is answered.
    CrashBeforeAnswer,
    /// The coordinator stops when the client is answered, before the backups hear that the
    /// transaction is complete.
    CrashAfterAnswer,
    /// The coordinator stops when it has told one participant that transactions are complete, before it tells
    /// the next.
    CrashBetweenCompletions,
    /// The node stops in the middle of copying a fragment to a syncing replica.
    CrashInCopy,
    /// The primary stops when it has let go of what it hands over, before it has said so.
    CrashInHandOver,
    /// The next primary stops when it is ready, before it has said so.
    CrashWhenReady,
    /// The leader stops when all are ready, before it says that the hand-over has ended.
    CrashAtHandOverEnd,
    /// A node that is told to stop does not wait for its transactions.
    LeaveLate,
    /// A batch of copied rows waits for longer before it is taken.
    TakeLate,
    /// Planted bug: a backup forgets one row image of a batch but confirms it.
    BugForgetTentativeRow,
    /// Planted bug: a backup answers reads from its committed image although a tentative one is
    /// there.
    BugReadStaleBackup,
    /// Planted bug: a replica that has forgotten an outcome says that the transaction never was, however old it is.
    BugForgetAge,
    /// Planted bug: the cluster forgets a change of definitions as soon as its client was answered, though the answer may be lost.
    BugForgetAnswered,
    /// Planted bug: a coordinator answers the client before the backups have confirmed.
    BugAnswerEarly,
    /// Planted bug: take-over aborts what one replica has decided.
    BugAbortDecided,
    /// Planted bug: every primary of a transaction lets its row images carry the decision, although
    /// others may still refuse.
    BugCarryInParts,
    /// Planted bug: a backup holds and confirms row images, but not the decision that they carry.
    BugDropCarriedDecision,
    /// Planted bug: take-over commits what one replica has all images of, though another lacks some.
    BugCommitPartlyHeld,
    /// Planted bug: a replica does not tell of carried transactions that have ended at it.
    BugForgetEnded,
    /// Planted bug: row images carry the decision although another data manager has executed a part, too.
    BugCarryPastOthers,
    /// Planted bug: a replica takes what a later change stands on for lost.
    BugLosePassedPart,
    /// Planted bug: a coordinator reports the current epoch as done.
    BugEpochDoneEarly,
    /// Planted bug: a coordinator reports an epoch as done in which a transaction is decided, but
    /// not visible yet.
    BugEpochUncounted,
    /// Planted bug: a version that a snapshot may need is forgotten when a newer one is committed.
    BugForgetOlderVersion,
    /// Planted bug: a node serves although its lease has run out.
    BugIgnoreLease,
    /// Planted bug: a lease that held before the rows were read is not looked at again before the answers leave.
    BugCheckBeforeRead,
    /// Planted bug: a refused request's changes stay although its transaction lives on.
    BugKeepRefusedStatement,
    /// Planted bug: a read with a shared lock takes none.
    BugShareWithoutLock,
    /// Planted bug: a participant confirms a transaction's end after the first slice of it.
    BugConfirmFirstSlice,
    /// Planted bug: an index is scanned before it is built.
    BugScanUnbuiltIndex,
    /// A data manager's owner is at work whenever somebody would read beside it.
    OwnerIsBusy,
    /// Planted bug: what another thread has begun of a scan does not reach the owner.
    BugForgetBegunScan,
    /// Planted bug: a data manager seals an epoch of which it has not logged everything.
    BugSealEarly,
    /// Planted bug: a leader has complete epochs sealed with its next tick only (EPOCH-8).
    BugSealLate,
    /// Planted bug: a node that is told to end does so as soon as it is quiet, whatever disks have (CLOSE-3).
    BugCloseEarly,
    /// Planted bug: a data manager takes what was written for durable.
    BugForgetSync,
    /// Planted bug: a data manager does not hear that another one's log is behind.
    BugIgnoreBacklog,
    /// Planted bug: a log is trimmed before the checkpoint that makes up for it is durable everywhere.
    BugTrimEarly,
    /// Planted bug: a restarted data manager loads what the restart, or an earlier one, has made void.
    BugForgetRestarts,
    /// Planted bug: the cluster restarts although a node is missing that may know of newer durable epochs.
    BugRestartWithoutAll,
    /// Planted bug: the cluster restarts with rows of an epoch that its control state knows too little of.
    BugRestartBeyondState,
    /// Planted bug: the cluster restarts with what a damaged log has left.
    BugTrustDamagedLog,
    /// Planted bug: a commit that a restart has made void counts as durable.
    BugConfirmVoid,
    /// Planted bug: a node reports epochs as durable while its disk does not know the view.
    BugReportWithoutState,
    /// Planted bug: a node that is no member yet says what is durable.
    BugTellBeforeJoining,
    /// Planted bug: the only replica of a node group keeps serving while all others wait for it to take part in a restart.
    BugKeepAlone,
    /// Planted bug: a survivor forms the group anew without asking what the disks of the others know.
    BugReformWithoutAll,
    /// Planted bug: a survivor that has not heard yet that the group was formed anew is told that it is over.
    BugSendPromisedAway,
    /// Planted bug: a survivor that has asked to form the group anew never gives in, though others have promised to somebody else.
    BugNeverGivesIn,
    /// Planted bug: a promise to take part in a group that can never be formed holds, as whoever has asked for it is dead.
    BugBoundToTheDead,
    /// Planted bug: a read does not say what it has to wait for.
    BugShowUndurable,
    /// Planted bug: a view without a silent node is in use before it is on disk.
    BugUnfencedView,
    /// Planted bug: a replica that is being filled does not log that rows are gone which its log has.
    BugForgetGoneRows,
    /// Planted bug: it logs that they are gone as of an epoch in which they may have been there.
    BugGoneTooEarly,
    /// Planted bug: a fragment counts as copied while a batch of its rows is still to be taken.
    BugEndBeforeTaken,
    /// Planted bug: a coordinator does not look for deadlocks.
    BugBlindToDeadlocks,
    /// Planted bug: a coordinator takes a wait for a deadlock.
    BugHastyVictim,
    /// Planted bug: a coordinator forgets a change of a unique index.
    BugForgetIndexChange,
    /// Planted bug: a unique index shows its change as soon as the transaction commits.
    BugShowIndexEarly,
    /// Planted bug: whoever fills a unique index does not see rows that are not committed yet.
    BugBuildWithoutPending,
    /// Planted bug: a primary that is handed over does not wait for what holds rows there.
    BugHandOverEarly,
    /// Planted bug: a primary does not send a syncing replica what open transactions have changed.
    BugForgetOpenChange,
    /// Planted bug: a new leader does not wait for the end of what earlier ones have granted.
    BugForgetEarlierLeases,
    /// Planted bug: a coordinator commits a transaction without what it did in a node group that is lost.
    BugCommitWithoutLost,
    /// Planted bug: a coordinator waits for silent nodes (SILENT-2).
    BugWaitForTheSilent,
    /// Planted bug: a silent node is never told that a transaction was rolled back without it (SILENT-2).
    BugForgetTheSilent,
    /// Planted bug: a leader takes it for a proof of life that nobody has complained yet (VIEW-5).
    BugAnsweredBySilence,
    /// Planted bug: a coordinator tells a client that its request was interrupted, although it is decided (STATEMENT-3).
    BugInterruptDecided,
    /// Planted bug: a node whose directory is gone ends, whoever else has its rows (GONE-3).
    BugLeaveTheLast,
    /// Planted bug: a log that was begun anew without its directory counts as durable before it has all rows (GONE-5).
    BugClaimUnwritten,
    /// Planted bug: a scan that goes on at the primary counts its ranges anew (READ-5).
    BugCountRangesAnew,
    /// Planted bug: a scan for the first row of each range ends with the first one of all (READ-8).
    BugFirstEndsScan,
    /// Planted bug: what control says to other nodes waits behind rows (THREAD-5).
    BugHeartbeatsBehindData,
}

/// Which faults are armed in a node, and how often each fires.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    armed: alloc::vec::Vec<(Fault, u64)>,
}

impl Faults {
    /// Arms a fault: it fires once in `once_in` visits, on average.
    pub fn arm(&mut self, fault: Fault, once_in: u64) {
        self.armed.push((fault, once_in));
    }

    /// True if nothing is armed, as in production.
    pub fn is_empty(&self) -> bool {
        self.armed.is_empty()
    }

    /// True if the fault is armed: for shells that err in a block's place.
    pub fn is_armed(&self, fault: Fault) -> bool {
        self.rate(fault).is_some()
    }

    /// How often the fault fires (once in …), if it is armed.
    pub(crate) fn rate(&self, fault: Fault) -> Option<u64> {
        self.armed.iter().find(|(f, _)| *f == fault).map(|(_, rate)| *rate)
    }
}
