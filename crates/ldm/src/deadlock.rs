//! Tells coordinators whom their transactions wait for, so that they find deadlocks
//! (DEADLOCK-1, DEADLOCK-2; `docs/protocols/deadlock.md`).

use crate::{Ldm, Table, lock::Lock, prepare::Run, row::Row};
use alloc::{format, string::String, vec::Vec};
use core::fmt::Write;
use lats_base::{Duration, TransactionId};
use lats_kernel::Ctx;
use lats_signals::deadlock::{Blocker, LockWaitRep};
use zerocopy::IntoBytes;

/// A wait is reported when it has lasted so long: most are over before.
pub(crate) const REPORT_AFTER: Duration = Duration::from_millis(5);
/// And then again and again.
const REPORT_AGAIN: Duration = Duration::from_millis(15);
/// Blockers in one report; further reports name others.
const BLOCKERS_MAX: usize = 64;
/// Bytes of a key that has no row yet, in a row's name.
const KEY_SHOWN_BYTES_MAX: usize = 32;

impl Ldm {
    /// DEADLOCK-1: reports the waits whose time has come.
    pub(crate) fn report_waits(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        while let Some((due, id)) = self.reports.first().copied() {
            if due > now {
                break;
            }
            self.reports.pop_first();
            self.report_wait(id, ctx);
            let waiting = self.transactions.get_mut(&id).and_then(|t| t.waiting.as_mut());
            let Some(waiting) = waiting else { continue };
            waiting.reports += 1;
            waiting.next_report = now.plus(REPORT_AGAIN);
            self.reports.insert((waiting.next_report, id));
            ctx.after(REPORT_AGAIN, crate::TIMER_REPORTS);
        }
    }

    fn report_wait(&self, id: TransactionId, ctx: &mut Ctx<'_>) {
        let Some(transaction) = self.transactions.get(&id) else { return };
        let Some(waiting) = &transaction.waiting else { return };
        let Some((table, row)) = self.awaited(id) else { return };
        let Some(lock) = row.lock() else { return };
        let mut blockers = self.blockers_of(id, lock);
        if blockers.len() > BLOCKERS_MAX {
            let turn = waiting.reports * BLOCKERS_MAX % blockers.len();
            blockers.rotate_left(turn);
            blockers.truncate(BLOCKERS_MAX);
        }
        let name = name_of(table, row);
        let body = LockWaitRep {
            transaction: id,
            batch: waiting.run.batch(),
            blocker_count: blockers.len() as u32,
            row_bytes: name.len() as u32,
            reserved: 0,
        };
        ctx.send_with(transaction.coordinator, &body, &[blockers.as_bytes(), name.as_bytes()]);
    }

    /// The row that a transaction waits for.
    fn awaited(&self, id: TransactionId) -> Option<(&Table, &Row)> {
        let (table, fragment, row) = self.transactions.get(&id)?.waiting.as_ref()?.row;
        let row = self.fragment(table, fragment)?.row(row)?;
        Some((self.tables.get(&table)?, row))
    }

    /// DEADLOCK-2: holders, and who is ahead in the queue if it may wait elsewhere too.
    fn blockers_of(&self, id: TransactionId, lock: &Lock) -> Vec<Blocker> {
        let waits_elsewhere = |ahead: TransactionId| {
            let waiting = self.transactions.get(&ahead).and_then(|t| t.waiting.as_ref());
            waiting.map(|w| &w.run).filter(|run| run.is_part_of_many()).map(Run::batch)
        };
        let blockers = lock.blockers(id, waits_elsewhere).into_iter();
        let blocker = |(transaction, ahead_batch)| {
            let coordinator = self.transactions.get(&transaction)?.coordinator;
            Some(Blocker { transaction, coordinator, ahead_batch, reserved: 0 })
        };
        blockers.filter_map(blocker).collect()
    }

    /// Who waits here, and for whom, for checkers.
    pub fn lock_waits(&self) -> Vec<(TransactionId, Vec<TransactionId>)> {
        let waiting = self.transactions.iter().filter(|(_, t)| t.waiting.is_some());
        waiting
            .filter_map(|(id, _)| {
                let lock = self.awaited(id)?.1.lock()?;
                let blockers = lock.blockers(id, |_| Some(1)).into_iter();
                Some((id, blockers.map(|(blocker, _)| blocker).collect()))
            })
            .collect()
    }
}

/// What a row is called in an error's text: its table and primary key.
fn name_of(table: &Table, row: &Row) -> String {
    let mut name = format!("`{}`.`{}` (", table.def.database, table.def.name);
    let newest = row.pending().iter().rev().find_map(|v| v.image.as_deref());
    let Some(image) = newest.or(row.committed.as_ref().map(|i| &*i.bytes)) else {
        for byte in row.key.iter().take(KEY_SHOWN_BYTES_MAX) {
            // Writing to a string does not fail.
            let _ = write!(name, "{byte:02x}");
        }
        name.push(')');
        return name;
    };
    for (at, column) in table.def.primary_key.iter().enumerate() {
        let value = table.layout.value(image, *column).to_display();
        let value: String = value.chars().take(KEY_SHOWN_BYTES_MAX).collect();
        let _ = write!(name, "{}{value}", if at == 0 { "" } else { ", " });
    }
    name.push(')');
    name
}
