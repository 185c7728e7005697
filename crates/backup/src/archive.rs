//! Archives: redo logs, states of control, and when epochs ended, kept as long as people want to restore rows as of any moment.
//! Protocol: `docs/protocols/archive.md`. Formats: `docs/formats/archive.md`.

mod changes;
mod copy;
mod log_reader;
mod survey;
#[cfg(test)]
mod tests;

pub(crate) use changes::{Changes, Passes};
pub use copy::{Archiver, Copied, LogFile};
pub use survey::{Archive, Moment, Until, in_words, times_in};

use lats_base::{Epoch, NodeId, hash};
use lats_catalog::Catalog;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What an archive needs to know of a control state.
#[derive(Clone, Debug)]
pub struct Kept {
    /// How many commands it knows.
    pub commands: u64,
    /// What restarts of the cluster have begun with.
    pub restored: Vec<Epoch>,
    /// The nodes of each group.
    pub groups: Vec<Vec<NodeId>>,
    /// Data managers of each node.
    pub instances: u16,
    /// The definitions.
    pub catalog: Catalog,
}

/// How far a state goes: restarts of the cluster, commands.
type Known = (u64, u64);

impl Kept {
    fn known(&self) -> Known {
        (self.restored.len() as u64, self.commands)
    }
}

/// Reads the content of a control file; none: another version has written it.
pub type Decode = fn(&[u8]) -> Option<Kept>;

/// By then this epoch, and all before it, had ended, and so many commands were known after so many restarts of the cluster: 40
/// bytes of a file of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Ended {
    /// ms since 1970, by the clock of the node that has written it.
    at_ms: u64,
    epoch: Epoch,
    commands: u64,
    restarts: u64,
    /// Of all before it.
    checksum: u64,
}

impl Ended {
    fn new(at_ms: u64, epoch: Epoch, (restarts, commands): (u64, u64)) -> Self {
        let mut ended = Self { at_ms, epoch, commands, restarts, checksum: 0 };
        ended.checksum = ended.sum();
        ended
    }

    fn sum(&self) -> u64 {
        hash::partition_hash(&self.as_bytes()[..size_of::<Self>() - size_of::<u64>()])
    }
}

/// What files are called. A log that goes on ends with `.open`.
const LOG_PREFIX: &str = "redo-";
const STATE_PREFIX: &str = "control-";
const TIMES_PREFIX: &str = "times-";
const OPEN: &str = "open";
