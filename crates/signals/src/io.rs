//! Signals of file work: blocks ask, whoever has the files answers. Protocol: docs/protocols/durability.md.

use crate::body;
use lats_base::{Duration, Epoch, ViewNumber};
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
    /// What is in it: [`FILE_REDO`] or [`FILE_CONTROL`].
    pub kind: u16,
    /// Whose it is: a data manager's instance; 0 for control.
    pub instance: u16,
    /// Which one of these.
    pub number: u32,
}

/// A segment of a redo log.
pub const FILE_REDO: u16 = 1;
/// The control state, as it was after some command.
pub const FILE_CONTROL: u16 = 2;
/// The answer comes when these bytes, and all that the sender has written before, will survive a loss of power.
pub const WRITE_SYNC: u32 = 1;
/// After this write the log does not have all rows yet (GONE-5).
pub const WRITE_ANEW: u32 = 2;

/// The bytes were not written: there is no room.
pub const IO_FULL: u32 = 1;
/// The device failed. What was written since the last answer to a [`WRITE_SYNC`] may be lost, whatever is done now.
pub const IO_FAILED: u32 = 2;
/// There is no such file.
pub const IO_MISSING: u32 = 3;
/// The node's directory is gone, or another one has its name: nothing that was written before can be found again (GONE-1).
pub const IO_GONE: u32 = 4;
/// After [`IO_FULL`] so long is waited for room.
pub const ROOM_RETRY: Duration = Duration::from_millis(50);

body! {
    /// Block → io of the same node: write into a file, which begins to exist with that; payload: the bytes.
    IoWriteReq {
        /// Given back in the answer.
        request: u64,
        /// Which file.
        file: FileName,
        /// Where in it.
        offset: u64,
        /// [`WRITE_SYNC`], [`WRITE_ANEW`].
        flags: u32,
        /// So much waits for being written, this included, in KiB.
        waiting_kib: u32,
    }
}
body! {
    /// Block → io of the same node: read from a file. What is read will survive a loss of power, whoever has written it.
    IoReadReq {
        /// Given back in the answer.
        request: u64,
        /// Which file.
        file: FileName,
        /// From where in it.
        offset: u64,
        /// So many bytes, or what there is.
        bytes: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// Block → io of the same node: which files are there?
    IoListReq {
        /// Given back in the answer.
        request: u64,
        /// Of this kind,
        kind: u16,
        /// and of this instance.
        instance: u16,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// Block → io of the same node: the file is not needed any more. That it is gone may not survive a loss of power.
    IoRemoveReq {
        /// Given back in the answer.
        request: u64,
        /// Which file.
        file: FileName,
    }
}
body! {
    /// Io → block: written, or removed.
    IoConf {
        /// The request.
        request: u64,
    }
}
body! {
    /// Io → block: read; payload: the bytes, fewer than asked for where the file ends.
    IoReadConf {
        /// The request.
        request: u64,
        /// The length of the file.
        file_bytes: u64,
    }
}
body! {
    /// Io → block: the files; payload: their numbers in ascending order, 4 bytes each.
    IoListConf {
        /// The request.
        request: u64,
    }
}
body! {
    /// Io → block: not done.
    IoRef {
        /// The request.
        request: u64,
        /// [`IO_FULL`], [`IO_FAILED`], [`IO_MISSING`] or [`IO_GONE`].
        code: u32,
        /// Not used yet; zero.
        reserved: u32,
    }
}
body! {
    /// LDM → data managers of the same number at the other replicas: the disk does not keep up with the redo log (REDO-4).
    LogBehindRep {
        /// [`KEEPS_UP`], [`BEHIND`] or [`BEHIND_FULL`].
        behind: u64,
    }
}
/// In [`LogBehindRep`]: the disk keeps up.
pub const KEEPS_UP: u64 = 0;
/// In [`LogBehindRep`]: it does not.
pub const BEHIND: u64 = 1;
/// In [`LogBehindRep`]: it does not, for it is full.
pub const BEHIND_FULL: u64 = 2;
body! {
    /// Io → control and data managers of the same node: the node's directory is gone, or is there again (GONE-1).
    DirectoryRep {
        /// 1: it is gone, and with it all that was written; 0: there is one again, with nothing in it.
        gone: u64,
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
