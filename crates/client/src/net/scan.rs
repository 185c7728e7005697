//! Scans over all fragments of a table: one stream per fragment, merged if order is asked for.

use super::{Client, Pending, unexpected};
use crate::{
    api::{AsOf, Scan, StoreError},
    batch::ScanBatch,
    core::{Answer, ScanHandle},
    prune,
};
use lats_base::{Epoch, ErrorClass, FragmentId, RefCode};
use std::time::Duration;

/// The rows of a scan, as a stream of batches.
pub struct ScanStream {
    client: Client,
    scan: Scan,
    transaction: Option<u64>,
    cursors: Vec<Cursor>,
    opened: bool,
    left: u64,
    /// Rows are handed out when they are on disk (READ-7).
    to_disk: bool,
}

/// The scan of one fragment.
struct Cursor {
    handle: ScanHandle,
    rows: ScanBatch,
    /// The first of them that was not handed out.
    at: usize,
    pending: Option<Pending>,
    /// There is more that was not asked for yet.
    rests: bool,
}

const OPEN_TRIES: u32 = 200;
const OPEN_PAUSE: Duration = Duration::from_millis(10);
/// Rows that an ordered scan hands out at once.
const MERGED_ROWS: usize = 1_024;

impl ScanStream {
    pub(super) fn new(client: Client, scan: Scan, transaction: Option<u64>, to_disk: bool) -> Self {
        let left = scan.limit.unwrap_or(u64::MAX);
        Self { client, scan, transaction, cursors: Vec::new(), opened: false, left, to_disk }
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// A temporary error means: run the scan again from its start.
    pub async fn next(&mut self) -> Result<Option<ScanBatch>, StoreError> {
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
        if self.to_disk {
            self.client.reads_durable().await?;
        }
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
                        && !matches!(error.code, RefCode::SchemaVersionOld | RefCode::NodeSilent)
                        && !self.is_too_old(error.code);
                    if !again || tries >= OPEN_TRIES || self.client.cut_off().is_some() {
                        return Err(error);
                    }
                    tokio::time::sleep(OPEN_PAUSE).await;
                }
            }
        }
    }

    /// True if the snapshot that was asked for does not become readable by waiting. (The newest
    /// complete epoch does: older versions are kept from the first refusal on.)
    fn is_too_old(&self, code: RefCode) -> bool {
        code == RefCode::SnapshotTooOld && self.scan.as_of != AsOf::Complete
    }

    async fn snapshot(&self) -> Result<Option<Epoch>, StoreError> {
        match self.scan.as_of {
            AsOf::Newest => Ok(None),
            AsOf::Epoch(epoch) => Ok(Some(epoch)),
            AsOf::Complete => self.client.complete_epoch().await.map(Some),
        }
    }

    async fn try_open(&mut self) -> Result<(), StoreError> {
        let table = self.scan.table;
        if !self.client.catalog().tables.contains_key(&table) {
            self.client.fetch_catalog().await?;
        }
        let catalog = self.client.catalog();
        let def = catalog.tables.get(&table).ok_or(RefCode::TableUnknown)?;
        let as_of = self.snapshot().await?;
        for (fragment, only) in prune::parts(def, &self.scan) {
            let cursor = self.open_fragment((fragment, only.as_deref()), as_of)?;
            self.cursors.push(cursor);
        }
        for cursor in &mut self.cursors {
            cursor.fill(&self.client, self.scan.few).await?;
        }
        Ok(())
    }

    fn open_fragment(
        &self,
        part: (FragmentId, Option<&[u32]>),
        as_of: Option<Epoch>,
    ) -> Result<Cursor, RefCode> {
        let mut opened = Err(RefCode::NotServing);
        let mut handle = None;
        let pending = self.client.request(|core| {
            opened = core.open_part(&self.scan, part, (self.transaction, as_of), 0);
            // A number that is never given stands for "nothing was sent".
            opened.map_or(u64::MAX, |(h, ticket)| {
                handle = Some(h);
                ticket
            })
        });
        let handle = handle.ok_or(opened.err().unwrap_or(RefCode::NotServing))?;
        let (rows, pending) = (ScanBatch::default(), Some(pending));
        Ok(Cursor { handle, rows, at: 0, pending, rests: false })
    }

    /// The next batch of whichever fragment has one, in turn.
    async fn any(&mut self) -> Result<ScanBatch, StoreError> {
        while let Some(cursor) = self.cursors.last_mut() {
            cursor.fill(&self.client, self.scan.few).await?;
            if cursor.is_empty() {
                self.cursors.pop();
                continue;
            }
            let batch = cursor.take();
            // Nobody waits for a fragment until its data node forgets the scan.
            self.cursors.rotate_right(1);
            return Ok(batch);
        }
        Ok(ScanBatch::default())
    }

    /// The next rows in index order.
    async fn merged(&mut self) -> Result<ScanBatch, StoreError> {
        if self.cursors.len() == 1 {
            // One is in order by itself.
            return self.any().await;
        }
        let mut out = ScanBatch::default();
        let reverse = self.scan.reverse;
        while out.len() < MERGED_ROWS {
            for cursor in &mut self.cursors {
                cursor.fill(&self.client, self.scan.few).await?;
            }
            self.cursors.retain(|c| !c.is_empty());
            // As long as every fragment has rows, the first of all is among their heads.
            while out.len() < MERGED_ROWS && self.cursors.iter().all(|c| !c.is_empty()) {
                let heads = self.cursors.iter().enumerate();
                let heads = heads.filter_map(|(at, c)| Some((at, c.rows.get(c.at)?.index_key)));
                let first = heads.reduce(|a, b| if (b.1 < a.1) != reverse { b } else { a });
                let Some((first, _)) = first else { return Ok(out) };
                self.cursors[first].hand_out(&mut out);
            }
        }
        Ok(out)
    }

    fn close(&mut self) {
        for cursor in self.cursors.drain(..) {
            if cursor.pending.is_some() || cursor.rests || !cursor.is_empty() {
                self.client.with(|core| core.close_scan(cursor.handle));
            }
        }
    }
}

impl Cursor {
    fn is_empty(&self) -> bool {
        self.at == self.rows.len()
    }

    /// The next row goes on.
    fn hand_out(&mut self, out: &mut ScanBatch) {
        if let Some(row) = self.rows.get(self.at) {
            out.push(row);
            self.at += 1;
        }
    }

    /// The rows that are there.
    fn take(&mut self) -> ScanBatch {
        let at = std::mem::take(&mut self.at);
        let rows = std::mem::take(&mut self.rows);
        if at == 0 {
            return rows;
        }
        let mut rest = ScanBatch::default();
        rows.iter().skip(at).for_each(|row| rest.push(row));
        rest
    }

    fn ask(&mut self, client: &Client) {
        let handle = self.handle;
        self.pending = Some(client.request(|core| core.next_batch(handle)));
    }

    /// Waits for rows if some are to come, and asks for the batch after them; where few may be enough, not before these are gone.
    async fn fill(&mut self, client: &Client, few: bool) -> Result<(), StoreError> {
        while self.is_empty() {
            if std::mem::take(&mut self.rests) {
                self.ask(client);
            }
            // If nobody waits for it any more the scan is still to be closed.
            let Some(pending) = self.pending.as_mut() else { return Ok(()) };
            let answer = client.answer_of(pending).await;
            self.pending = None;
            match answer {
                Answer::Batch { rows, done } => {
                    (self.rows, self.at) = (rows, 0);
                    match (done, few) {
                        (true, _) => {}
                        (false, true) => self.rests = true,
                        (false, false) => self.ask(client),
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
