//! Signals of file work: blocks ask, whoever has the files answers. Protocol: docs/protocols/durability.md.

use crate::body;
use lats_base::{Epoch, ViewNumber};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A file of a node.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
pub struct FileName {
    /// What is in it: [`FILE_REDO`].
    pub kind: u16,
    /// Whose it is: a data manager's instance.
    pub instance: u16,
    /// Which one of these.
    pub number: u32,
}

/// A segment of a redo log.
pub const FILE_REDO: u16 = 1;
/// The answer comes when these bytes, and all that the sender has written before, will survive a loss of power.
pub const WRITE_SYNC: u32 = 1;

/// The bytes were not written: there is no room.
pub const IO_FULL: u32 = 1;
/// The device failed. What was written since the last answer to a [`WRITE_SYNC`] may be lost, whatever is done now.
pub const IO_FAILED: u32 = 2;

body! {
    /// Block → io of the same node: write into a file, which begins to exist with that; payload: the bytes.
    IoWriteReq {
        /// Given back in the answer.
        request: u64,
        /// Which file.
        file: FileName,
        /// Where in it.
        offset: u64,
        /// [`WRITE_SYNC`].
        flags: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// Io → block: done.
    IoWriteConf {
        /// The request.
        request: u64,
    }
}
body! {
    /// Io → block: not done.
    IoWriteRef {
        /// The request.
        request: u64,
        /// [`IO_FULL`] or [`IO_FAILED`].
        code: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// LDM → control of the same node, when it changes, and control → leader, with every tick: the disk does not keep up with
    /// the redo log.
    LogBehindRep {
        /// 1: it does not; 0: it does again.
        behind: u64,
    }
}
body! {
    /// LDM → control of the same node, and control → leader: what is committed here up to this epoch survives a loss of power.
    EpochDurableRep {
        /// The epoch.
        durable: Epoch,
        /// The view in which this is said: the data manager has got all that it is to have as a replica of it.
        view: ViewNumber,
    }
}
