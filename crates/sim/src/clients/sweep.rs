//! Scans of all fragments of a table at once.

use super::SimClient;
use lats_base::{Epoch, FragmentId, RefCode};
use lats_client::{
    api::Scan,
    core::{ClientCore, ScanHandle, Ticket},
};

/// Scans of a table's fragments: those that are not at their end.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweep(Vec<ScanHandle>);

impl Sweep {
    /// True if all fragments have been read.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The place of the scan that an answer is for.
    pub(super) fn position(&self, ticket: Ticket) -> Option<usize> {
        self.0.iter().position(|handle| handle.ticket() == ticket)
    }
}

impl SimClient {
    /// Opens the scans; none if one of them cannot be opened.
    pub(super) fn start_sweep(&mut self, scan: &Scan, epoch: Option<Epoch>) -> Option<Sweep> {
        self.open_all(scan, |core, fragment| core.open_scan(scan, fragment, None, epoch))
    }

    /// The same for scans that say what the index is like.
    pub(super) fn start_samples(&mut self, scan: &Scan) -> Option<Sweep> {
        self.open_all(scan, |core, fragment| core.open_sample(scan, fragment))
    }

    fn open_all(
        &mut self,
        scan: &Scan,
        open: impl Fn(&mut ClientCore, FragmentId) -> Result<(ScanHandle, Ticket), RefCode>,
    ) -> Option<Sweep> {
        let mut sweep = Sweep::default();
        for fragment in 0..self.core.fragment_count(scan.table) {
            match open(&mut self.core, FragmentId::new(fragment)) {
                Ok((handle, _)) => sweep.0.push(handle),
                Err(_) => {
                    self.close_sweep(sweep);
                    return None;
                }
            }
        }
        Some(sweep)
    }

    /// A fragment has sent a batch: asks for its next one.
    pub(super) fn sweep_on(&mut self, sweep: &mut Sweep, at: usize, done: bool) {
        match done {
            true => drop(sweep.0.swap_remove(at)),
            false => drop(self.core.next_batch(sweep.0[at])),
        }
    }

    /// A fragment has failed: there is no use in the others.
    pub(super) fn give_up_sweep(&mut self, mut sweep: Sweep, at: usize) {
        sweep.0.swap_remove(at);
        self.close_sweep(sweep);
    }

    fn close_sweep(&mut self, sweep: Sweep) {
        sweep.0.into_iter().for_each(|handle| self.core.close_scan(handle));
    }
}
