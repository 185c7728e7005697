//! Archives: redo logs, states of control, and when epochs ended, kept as long as people want to restore rows as of any moment.
//! Protocol: `docs/protocols/archive.md`. Formats: `docs/formats/archive.md`.

mod changes;
mod copy;
mod log_reader;
mod survey;
#[cfg(test)]
mod tests;
mod times;
mod upkeep;

pub(crate) use changes::{Changes, Passes};
pub use copy::{Archiver, Copied, LogFile};
pub use survey::{Archive, Moment, Until};
pub use times::{Doubt, times_in};
pub use upkeep::{Share, clusters};

use lats_base::{Epoch, NodeId};
use lats_catalog::Catalog;
use lats_values::DateTime;

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

/// A time in words.
pub fn in_words(at_ms: u64) -> String {
    let micros = i64::try_from(at_ms).unwrap_or(i64::MAX).saturating_mul(1_000);
    let time = DateTime::from_unix_micros(micros, 3);
    time.map_or_else(|| format!("{at_ms} ms after 1970"), |time| time.to_string())
}

/// What files are called. A log that goes on ends with `.open`.
const LOG_PREFIX: &str = "redo-";
const STATE_PREFIX: &str = "control-";
const TIMES_PREFIX: &str = "times-";
const OPEN: &str = "open";
