//! A transaction of the asynchronous client.

use super::{Client, ScanStream, unexpected};
use crate::{
    api::{Committed, RowOp, RowOpKind, RowOutcome, RowResult, Scan, StoreError},
    core::{Answer, ClientCore, Then, Ticket},
};
use lats_base::RefCode;
use lats_values::Program;
use std::time::Duration;

/// A request that was to end and is not answered is told so again.
const INTERRUPT_AGAIN: Duration = Duration::from_millis(50);

/// A transaction in progress. Dropping it rolls it back.
pub struct Transaction {
    client: Client,
    sequence: u64,
    /// It is committed, rolled back or refused.
    ended: bool,
}

impl Transaction {
    pub(super) fn new(client: Client, sequence: u64) -> Self {
        Self { client, sequence, ended: false }
    }

    /// Runs operations, and commits with them if asked. One result per operation; none at all if
    /// the commit came about but its answer was lost with its coordinator.
    ///
    /// # Errors
    /// After an error nothing of what was asked for is done. The transaction lives on while
    /// [`Self::is_open`] says so: the refusals that end it are told by
    /// [`RefCode::ends_transaction`], and any refusal of a commit does.
    pub async fn execute(
        &mut self,
        operations: &[RowOp],
        commit: bool,
    ) -> Result<(Vec<RowResult>, Option<Committed>), StoreError> {
        self.execute_until(operations, commit, std::future::pending()).await
    }

    /// The same; when `stop` is there, the coordinator is told to refuse what still waits.
    ///
    /// # Errors
    /// As [`Self::execute`]; [`RefCode::Interrupted`] if it was refused for that.
    pub async fn execute_until(
        &mut self,
        operations: &[RowOp],
        commit: bool,
        stop: impl Future<Output = ()>,
    ) -> Result<(Vec<RowResult>, Option<Committed>), StoreError> {
        let then = if commit { Then::Commit } else { Then::GoOn };
        self.step_until(operations, then, stop).await
    }

    async fn step(
        &mut self,
        operations: &[RowOp],
        then: Then,
    ) -> Result<(Vec<RowResult>, Option<Committed>), StoreError> {
        self.step_until(operations, then, std::future::pending()).await
    }

    async fn step_until(
        &mut self,
        operations: &[RowOp],
        then: Then,
        stop: impl Future<Output = ()>,
    ) -> Result<(Vec<RowResult>, Option<Committed>), StoreError> {
        if self.ended {
            return Err(RefCode::TransactionAborted.into());
        }
        let sequence = self.sequence;
        // A request that is dropped half-way must not be followed by a rollback of its own:
        // `ended` is set for as long as an answer is awaited.
        self.ended = true;
        let mut ticket = 0;
        let mut pending = self.client.request(|core| {
            ticket = core.step(sequence, operations, then);
            ticket
        });
        let answer = self.client.answer_of(&mut pending);
        tokio::pin!(answer);
        let answered = tokio::select! {
            biased;
            answered = &mut answer => answered,
            () = stop => self.interrupted(ticket, answer.as_mut()).await,
        };
        match answered {
            Answer::Rows { results, committed } => {
                self.ended = matches!(then, Then::Commit | Then::RollBack);
                match committed {
                    Some(receipt) if results.len() < operations.len() => {
                        Ok((results_of_lost(operations, receipt)?, committed))
                    }
                    _ => Ok((results, committed)),
                }
            }
            other => {
                self.ended = !self.client.with(|core| core.is_open(sequence));
                Err(unexpected(other))
            }
        }
    }

    /// Has the coordinator end the request, again and again: it may hold requests back before it looks at them.
    async fn interrupted(
        &self,
        ticket: Ticket,
        mut answer: impl Future<Output = Answer> + Unpin,
    ) -> Answer {
        loop {
            self.client.with(|core| core.interrupt(ticket));
            if let Ok(answered) = tokio::time::timeout(INTERRUPT_AGAIN, &mut answer).await {
                return answered;
            }
        }
    }

    /// Its commit is answered when it is on the disks of all replicas, or (false) when it is in their memory, whatever the cluster's
    /// default is. If disks take very long the commit is refused with [`RefCode::NotOnDisk`], if nothing is kept there with
    /// [`RefCode::NothingKept`], and if all replicas have died meanwhile and it was lost with them with [`RefCode::MadeVoid`]; in
    /// the first two cases it is committed all the same.
    pub fn commit_to_disk(&mut self, to_disk: bool) {
        let sequence = self.sequence;
        self.client.with(|core| core.commit_to_disk(sequence, to_disk));
    }

    /// False once it is committed or rolled back, be it by an error.
    pub fn is_open(&self) -> bool {
        !self.ended
    }

    /// A scan that sees this transaction's own writes.
    pub fn scan(&mut self, scan: Scan) -> ScanStream {
        let own = self.is_started().then_some(self.sequence);
        let sequence = self.sequence;
        let to_disk = self.client.with(|core| core.waits_for_disks(sequence));
        ScanStream::new(self.client.clone(), scan, own, to_disk)
    }

    /// A mark to come back to.
    pub fn savepoint(&mut self) -> u32 {
        let sequence = self.sequence;
        self.client.with(|core| core.next_statement(sequence))
    }

    /// Takes back everything written since the mark.
    ///
    /// # Errors
    /// After an error the transaction is rolled back.
    pub async fn rollback_to(&mut self, savepoint: u32) -> Result<(), StoreError> {
        if !self.is_started() {
            return Ok(());
        }
        self.step(&[], Then::RollBackTo(savepoint)).await.map(|_| ())
    }

    /// Commits.
    ///
    /// # Errors
    /// After an error the transaction is rolled back, unless its outcome is unknown.
    pub async fn commit(mut self) -> Result<Committed, StoreError> {
        if !self.is_started() && !self.ended {
            return Ok(Committed::default());
        }
        let (_, committed) = self.step(&[], Then::Commit).await?;
        committed.ok_or_else(|| RefCode::Unrecognised.into())
    }

    /// Rolls back.
    pub async fn rollback(mut self) {
        if self.is_started() && !self.ended {
            // Refused or not: it is rolled back.
            let _ = self.step(&[], Then::RollBack).await;
        }
    }

    /// True once it holds operations.
    pub fn is_started(&self) -> bool {
        let sequence = self.sequence;
        self.client.with(|core: &mut ClientCore| core.is_started(sequence))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let sequence = self.sequence;
        if !self.ended && self.is_started() {
            // Nobody waits for the answer.
            drop(self.client.request(|core| core.step(sequence, &[], Then::RollBack)));
        } else if !self.ended {
            self.client.with(|core| core.forget(sequence));
        }
    }
}

/// The results of operations that are committed and whose answer was lost with the coordinator, as far as the number of changed
/// rows tells them; else none (OUTCOME-9).
fn results_of_lost(operations: &[RowOp], receipt: Committed) -> Result<Vec<RowResult>, StoreError> {
    let changes = match receipt.changes {
        // Nothing has happened: it is as if it had been rolled back.
        Some(0) => return Err(RefCode::CoordinatorFailed.into()),
        changes => changes.map(|n| n as usize),
    };
    let is_told = |op: &RowOp| {
        let kinds = [RowOpKind::Insert, RowOpKind::Update, RowOpKind::Write, RowOpKind::Delete];
        kinds.contains(&op.kind) && !Program::wants_row(&op.program)
    };
    if changes != Some(operations.len()) || !operations.iter().all(is_told) {
        return Ok(Vec::new());
    }
    let done = RowResult { outcome: RowOutcome::Done, row: None, waited: false };
    Ok(vec![done; operations.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LockWait;
    use lats_base::TableId;

    fn op(kind: RowOpKind, projection: Option<Vec<u16>>) -> RowOp {
        let program = Program { projection, ..Program::default() }.encode();
        let (key, row) = (vec![1], Vec::new());
        let (table, wait) = (TableId::new(1), LockWait::Wait);
        RowOp { table, schema_version: 1, kind, key, row, program: program.into(), wait }
    }

    #[test]
    fn lost_results_are_told_only_if_every_operation_has_changed_its_row() {
        let told = |operations: &[RowOp], changes| {
            let receipt = Committed { changes, ..Committed::default() };
            results_of_lost(operations, receipt).map(|results| results.len())
        };
        let (update, insert) = (op(RowOpKind::Update, None), op(RowOpKind::Insert, None));
        let reads = op(RowOpKind::Update, Some(vec![0]));
        let both = [update.clone(), insert];
        assert_eq!(told(&both, Some(2)), Ok(2));
        assert_eq!(told(&both, Some(1)), Ok(0), "one of them has done nothing");
        assert_eq!(told(&both, None), Ok(0), "nobody has counted");
        assert_eq!(told(&both, Some(0)), Err(RefCode::CoordinatorFailed.into()));
        assert_eq!(told(&[reads], Some(1)), Ok(0), "it wants to see the row");
        let locks = op(RowOpKind::Read(crate::api::LockMode::Exclusive), None);
        assert_eq!(told(&[update, locks], Some(2)), Ok(0), "a read changes nothing");
    }
}
