//! Scans over all fragments of a table: one stream per fragment, merged if order is asked for.

use super::{Client, answer_of, unexpected};
use crate::{
    api::{Scan, ScanRow, StoreError},
    core::{Answer, ScanHandle},
};
use lats_base::{ErrorClass, FragmentId, RefCode};
use std::{collections::VecDeque, time::Duration};
use tokio::sync::oneshot;

/// The rows of a scan, as a stream of batches.
pub struct ScanStream {
    client: Client,
    scan: Scan,
    transaction: Option<u64>,
    cursors: Vec<Cursor>,
    opened: bool,
    left: u64,
}

/// The scan of one fragment.
struct Cursor {
    handle: ScanHandle,
    rows: VecDeque<ScanRow>,
    pending: Option<oneshot::Receiver<Answer>>,
}

const OPEN_TRIES: u32 = 200;
const OPEN_PAUSE: Duration = Duration::from_millis(10);
/// Rows that an ordered scan hands out at once.
const MERGED_ROWS: usize = 1_024;

impl ScanStream {
    pub(super) fn new(client: Client, scan: Scan, transaction: Option<u64>) -> Self {
        let left = scan.limit.unwrap_or(u64::MAX);
        Self { client, scan, transaction, cursors: Vec::new(), opened: false, left }
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// A temporary error means: run the scan again from its start.
    pub async fn next(&mut self) -> Result<Option<Vec<ScanRow>>, StoreError> {
        if !self.opened {
            self.open().await?;
        }
        if self.left == 0 {
            self.close();
            return Ok(None);
        }
        let mut rows = if self.scan.ordered { self.merged().await? } else { self.any().await? };
        rows.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= rows.len() as u64;
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// Opens all fragments; tries again while the cluster is changing, for nothing was read yet.
    async fn open(&mut self) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_open().await {
                Ok(()) => {
                    self.opened = true;
                    return Ok(());
                }
                Err(error) => {
                    self.close();
                    let again = error.class() == ErrorClass::Temporary
                        && error.code != RefCode::SchemaVersionOld;
                    if !again || tries >= OPEN_TRIES {
                        return Err(error);
                    }
                    tokio::time::sleep(OPEN_PAUSE).await;
                }
            }
        }
    }

    async fn try_open(&mut self) -> Result<(), StoreError> {
        let table = self.scan.table;
        let mut count = self.client.with(|core| core.fragment_count(table));
        if count == 0 {
            self.client.fetch_catalog().await?;
            count = self.client.with(|core| core.fragment_count(table));
        }
        if count == 0 {
            return Err(RefCode::TableUnknown.into());
        }
        for fragment in 0..count {
            let cursor = self.open_fragment(FragmentId::new(fragment))?;
            self.cursors.push(cursor);
        }
        for cursor in &mut self.cursors {
            cursor.fill(&self.client).await?;
        }
        Ok(())
    }

    fn open_fragment(&self, fragment: FragmentId) -> Result<Cursor, RefCode> {
        let mut opened = Err(RefCode::NotServing);
        let mut handle = None;
        let receiver = self.client.request(|core| {
            opened = core.open_scan(&self.scan, fragment, self.transaction);
            // A number that is never given stands for "nothing was sent".
            opened.map_or(u64::MAX, |(h, ticket)| {
                handle = Some(h);
                ticket
            })
        });
        let handle = handle.ok_or(opened.err().unwrap_or(RefCode::NotServing))?;
        Ok(Cursor { handle, rows: VecDeque::new(), pending: Some(receiver) })
    }

    /// The next batch of whichever fragment has one, in turn.
    async fn any(&mut self) -> Result<Vec<ScanRow>, StoreError> {
        while let Some(cursor) = self.cursors.last_mut() {
            if cursor.rows.is_empty() {
                cursor.fill(&self.client).await?;
            }
            if cursor.rows.is_empty() {
                self.cursors.pop();
                continue;
            }
            return Ok(cursor.rows.drain(..).collect());
        }
        Ok(Vec::new())
    }

    /// The next rows in index order.
    async fn merged(&mut self) -> Result<Vec<ScanRow>, StoreError> {
        let mut out = Vec::new();
        while out.len() < MERGED_ROWS {
            for cursor in &mut self.cursors {
                if cursor.rows.is_empty() {
                    cursor.fill(&self.client).await?;
                }
            }
            self.cursors.retain(|c| !c.rows.is_empty());
            let reverse = self.scan.reverse;
            let heads = self.cursors.iter().enumerate();
            let first = heads.filter_map(|(at, c)| Some((at, &c.rows.front()?.index_key)));
            let at = if reverse {
                first.max_by(|a, b| a.1.cmp(b.1))
            } else {
                first.min_by(|a, b| a.1.cmp(b.1))
            };
            let Some((at, _)) = at else { break };
            out.extend(self.cursors[at].rows.pop_front());
        }
        Ok(out)
    }

    fn close(&mut self) {
        for cursor in self.cursors.drain(..) {
            if cursor.pending.is_some() || !cursor.rows.is_empty() {
                self.client.with(|core| core.close_scan(cursor.handle));
            }
        }
    }
}

impl Cursor {
    /// Waits for rows if some are to come, and asks for the batch after them.
    async fn fill(&mut self, client: &Client) -> Result<(), StoreError> {
        while self.rows.is_empty() {
            let Some(pending) = self.pending.take() else { return Ok(()) };
            match answer_of(pending).await {
                Answer::Batch { rows, done } => {
                    self.rows.extend(rows);
                    if !done {
                        let handle = self.handle;
                        self.pending = Some(client.request(|core| core.next_batch(handle)));
                    }
                }
                other => return Err(unexpected(other)),
            }
        }
        Ok(())
    }
}

impl Drop for ScanStream {
    fn drop(&mut self) {
        self.close();
    }
}
