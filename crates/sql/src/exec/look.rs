//! Looking again after a wait (LOCK-7): a statement finds rows without locks, so what it has not locked may have changed
//! while it waited for what it has. Protocol: `docs/protocols/locks.md`.

use crate::error;
use crate::session::Share;
use lats_base::{IndexId, RefCode};
use lats_client::api::{PRIMARY_INDEX, RowOp, RowOutcome, RowResult};
use lats_values::SqlError;
use std::collections::BTreeSet;

use crate::error::Failure;

/// A statement whose looks all had to wait for somebody gives up.
pub(super) const LOOKS_MAX: u32 = 16;
/// Keys are kept in so many bytes without asking for memory.
const FREE_BYTES: usize = 16 << 10;

/// What a statement has tried to lock.
pub(super) struct Looks {
    /// The primary keys of this look, each behind its length and whether its row was locked: most statements look once only.
    asked: Vec<u8>,
    /// Where the keys begin whose results have not come.
    unheard: usize,
    /// The rows that were locked in earlier looks.
    locked: BTreeSet<Vec<u8>>,
    locked_bytes: usize,
    missing: Vec<Vec<u8>>,
    /// What this look has found by an index.
    found: Found,
    waited: bool,
    /// The statement wants so many rows and no more: another row takes the place of one that is gone.
    is_limited: bool,
    count: u32,
    share: Share,
}

/// Rows that a scan of a secondary index has found: it finds a row once for each version that has an entry in its ranges, and once more
/// if the row comes to another place meanwhile.
pub(super) struct Found {
    keys: BTreeSet<Vec<u8>>,
    bytes: usize,
    share: Share,
}

impl Found {
    pub(super) fn new(share: Share) -> Self {
        Self { keys: BTreeSet::new(), bytes: 0, share }
    }

    /// True for rows that were not found before.
    ///
    /// # Errors
    /// The node's memory for statements is full.
    pub(super) fn is_new(&mut self, key: &[u8]) -> Result<bool, SqlError> {
        if self.keys.contains(key) {
            return Ok(false);
        }
        self.bytes += key.len() + 64;
        self.share.cover(self.bytes)?;
        self.keys.insert(key.to_vec());
        Ok(true)
    }

    /// Another scan begins.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.bytes = 0;
    }
}

impl Looks {
    pub(super) fn new(share: Share) -> Self {
        Self {
            asked: Vec::new(),
            unheard: 0,
            locked: BTreeSet::new(),
            locked_bytes: 0,
            missing: Vec::new(),
            found: Found::new(share.beside()),
            waited: false,
            is_limited: false,
            count: 0,
            share,
        }
    }

    /// The statement wants so many rows and no more.
    pub(super) fn limit(&mut self) {
        self.is_limited = true;
    }

    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// True until the statement looks again.
    pub(super) fn is_first(&self) -> bool {
        self.count == 0
    }

    /// True for rows that no earlier look has locked, and that this one has not found yet.
    ///
    /// # Errors
    /// The node's memory for statements is full.
    pub(super) fn is_new(&mut self, key: &[u8], index: IndexId) -> Result<bool, SqlError> {
        Ok(!self.locked.contains(key) && (index == PRIMARY_INDEX || self.found.is_new(key)?))
    }

    /// These operations are sent.
    pub(super) fn ask(&mut self, operations: &[RowOp]) {
        for operation in operations {
            self.asked.extend_from_slice(&(operation.key.len() as u32).to_le_bytes());
            self.asked.push(0);
            self.asked.extend_from_slice(&operation.key);
        }
    }

    /// The results of the operations that were sent last.
    pub(super) fn hear(&mut self, results: &[RowResult]) -> Result<(), SqlError> {
        for result in results {
            let Some((flag, next)) = entry_at(&self.asked, self.unheard) else { break };
            let is_locked = !matches!(result.outcome, RowOutcome::Missing | RowOutcome::Skipped);
            self.asked[flag] = u8::from(is_locked);
            self.unheard = next;
            let is_gone = self.is_limited && result.outcome == RowOutcome::Missing;
            self.waited |= result.waited || is_gone;
        }
        match self.asked.len() + self.locked_bytes {
            bytes if bytes > FREE_BYTES => self.share.cover(bytes),
            _ => Ok(()),
        }
    }

    /// The look is over: true if a lock was waited for, or a row is gone that LIMIT has counted, so that another one must follow.
    ///
    /// # Errors
    /// 1205 if that goes on for too long.
    pub(super) fn again(&mut self) -> Result<bool, SqlError> {
        if !std::mem::take(&mut self.waited) {
            return Ok(false);
        }
        self.count += 1;
        if self.count >= LOOKS_MAX {
            return Err(error::looked_too_often(LOOKS_MAX));
        }
        let asked = std::mem::take(&mut self.asked);
        self.unheard = 0;
        self.missing.clear();
        self.found.clear();
        let mut at = 0;
        while let Some((flag, next)) = entry_at(&asked, at) {
            let key = asked[flag + 1..next].to_vec();
            at = next;
            if asked[flag] == 0 {
                self.missing.push(key);
            } else {
                self.locked_bytes += key.len() + 64;
                self.locked.insert(key);
            }
        }
        self.share.cover(self.locked_bytes)?;
        Ok(true)
    }

    /// The keys of the look before that had no row.
    pub(super) fn take_missing(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.missing)
    }
}

/// Where the flag of the key that begins here is, and where the next one begins.
fn entry_at(asked: &[u8], at: usize) -> Option<(usize, usize)> {
    let length = asked.get(at..)?.first_chunk::<4>()?;
    let flag = at + 4;
    Some((flag, flag + 1 + u32::from_le_bytes(*length) as usize))
}

/// True if a request was not to wait, and would have had to.
pub(super) fn is_not_free<T>(result: &Result<T, Failure>) -> bool {
    matches!(result, Err(Failure::Store(error)) if error.code == RefCode::LockNotFree)
}
