//! The one taxonomy of refusals. Numbers are sent and stored: never reuse one.

/// What a caller can do about a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Nothing happened; the same transaction may succeed if it is run again.
    Temporary,
    /// The same request will be refused again.
    Permanent,
    /// The data contradicts a constraint (a key exists, a row is missing).
    Constraint,
    /// It is not known whether the transaction took effect.
    UnknownOutcome,
}

macro_rules! codes {
    ($($name:ident = $number:literal, $class:ident, $text:literal;)+) => {
        /// Why something was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum RefCode {
            $(#[doc = $text] $name = $number,)+
        }

        impl RefCode {
            /// The code with this number; unknown numbers (from a newer version) become
            /// [`RefCode::Unrecognised`].
            pub fn from_number(number: u16) -> Self {
                match number {
                    $($number => Self::$name,)+
                    _ => Self::Unrecognised,
                }
            }

            /// What the caller can do about it.
            pub fn class(self) -> ErrorClass {
                match self {
                    $(Self::$name => ErrorClass::$class,)+
                }
            }

            /// What happened and what to do, in one sentence.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

codes! {
    Unrecognised = 1, Permanent, "the other side refused for a reason that this version does not know; upgrade this side";
    NotServing = 10, Temporary, "this node is not serving now (starting, or cut off from the control group); retry, or use another node";
    StaleView = 11, Temporary, "the cluster changed while the request was under way; retry";
    AskPrimary = 15, Temporary, "a change of the row is under way, and only its primary knows how it stands; ask there";
    NodeFailed = 12, Temporary, "a data node failed while it worked on the transaction; retry the transaction";
    NodeGroupLost = 13, Permanent, "all nodes with the row's data have died: its node group is lost, and `latsdb status` shows which; rows of other groups are served";
    NodeSilent = 14, Temporary, "the only node that has the row does not answer (its machine, or the way to it, may be down); retry later, and see `latsdb status`";
    ShuttingDown = 75, Temporary, "the server is shutting down, and takes no new transactions; use another node, or retry when it is back";
    LockTimeout = 20, Temporary, "waited too long for a row lock; retry the statement";
    LockQueueFull = 21, Temporary, "too many transactions wait for the same row; retry the transaction";
    TransactionLimit = 22, Temporary, "the coordinator runs as many transactions as it may; retry later";
    OperationLimit = 23, Permanent, "the transaction holds as many row operations as it may; split it";
    Overloaded = 24, Temporary, "the node has more work queued than it accepts; retry later";
    MemoryFull = 25, Temporary, "the node's data memory is used up; delete rows or raise --memory-mib";
    TransactionAborted = 26, Temporary, "the transaction was aborted before; begin it again";
    TransactionUnknown = 27, Temporary, "no such transaction at this coordinator; begin it again";
    CoordinatorFailed = 28, Temporary, "the transaction's coordinator failed and the transaction was rolled back; retry it";
    OutcomeUnknown = 29, UnknownOutcome, "nobody who can be reached knows whether the transaction has committed; look whether it took effect before you run it again";
    ResultsLost = 38, UnknownOutcome, "the transaction is committed, but its answer was lost with a node: how many rows it has changed is not known; do not run it again";
    LockNotFree = 30, Temporary, "another transaction has locked the row, and the request said not to wait for it";
    NotOnDisk = 35, UnknownOutcome, "the transaction is committed in all replicas, but it is not known to be on their disks yet (see `latsdb status`: epoch.durable)";
    NothingKept = 36, UnknownOutcome, "the transaction is committed in all replicas, but this cluster keeps nothing on disk (--ephemeral); SET durability = 'replicated'";
    MadeVoid = 37, Temporary, "all replicas died before the transaction was on their disks, and the cluster was restarted without it: it has not taken effect; run it again";
    ReadNotOnDisk = 44, Temporary, "what was read is not on all disks yet (`latsdb status`: epoch.durable); retry, or SET durability = 'replicated'";
    Deadlock = 31, Temporary, "the transaction waited in a circle with others for row locks, and was chosen to give way; run it again";
    BatchTooLarge = 33, Permanent, "the rows of one request are larger together than a message may be (4 MiB); ask for fewer at once";
    KeyExists = 40, Constraint, "a row with this key exists already";
    RowMissing = 41, Constraint, "no row has this key";
    TableUnknown = 50, Permanent, "no such table; reread the catalog";
    TableDropped = 34, Temporary, "a table of the transaction was dropped or truncated before it committed; begin it again";
    SchemaVersionOld = 51, Temporary, "the table's definition changed; reread the catalog and retry";
    IndexUnknown = 52, Permanent, "no such index; reread the catalog";
    RowMalformed = 53, Permanent, "the row image does not fit the table's definition";
    ProgramMalformed = 54, Permanent, "the filter or update program is not valid for the table";
    RequestMalformed = 55, Permanent, "the request is not valid";
    RowTooLarge = 56, Permanent, "the row is larger than a row may be (30000 bytes)";
    KeyTooLarge = 57, Permanent, "the key is larger than a key may be (3072 bytes)";
    ProgramFailed = 58, Permanent, "computing a value failed; the message says why";
    ScanUnknown = 59, Temporary, "the scan is not open any more; run it again";
    VersionUnsupported = 60, Permanent, "the two sides speak no common protocol version; upgrade the older one";
    WrongCluster = 61, Permanent, "the node belongs to another cluster";
    SecretWrong = 67, Permanent, "the two sides do not have the same secret; name the cluster's with --secret-file (`secret` in the directory of `latsdb start`)";
    NotAMember = 68, Permanent, "the cluster has no such node, or the node cannot have such a life";
    CatalogConflict = 62, Permanent, "the catalog refuses the change; the message says why";
    SnapshotTooOld = 64, Temporary, "versions as old as this epoch are not kept (any more); take a newer epoch";
    EpochNotComplete = 65, Temporary, "the epoch is not complete yet; retry";
    CatalogLimit = 63, Permanent, "the catalog is full";
    RequestTooLarge = 69, Permanent, "the keys, rows, conditions and values of one request are larger together than a message may be (4 MiB); use shorter lists and values, or several requests";
    DiskFull = 79, Temporary, "the disk of a node is full, and changes wait: make room (`latsdb status` names the disk and its free bytes), then retry";
    Interrupted = 66, Permanent, "the client has interrupted the request, which is taken back";
}

impl RefCode {
    /// True if a transaction cannot live on after such a refusal: something of it is lost, or its
    /// client errs. After any other refusal only the statement is taken back (STATEMENT-1).
    pub fn ends_transaction(self) -> bool {
        matches!(
            self,
            Self::Unrecognised
                | Self::NotServing
                | Self::NodeFailed
                | Self::ShuttingDown
                | Self::NodeSilent
                | Self::Deadlock
                | Self::TransactionAborted
                | Self::TransactionUnknown
                | Self::CoordinatorFailed
                | Self::OutcomeUnknown
                | Self::ResultsLost
                | Self::TableDropped
                | Self::RequestMalformed
        )
    }

    /// Its number on the wire.
    pub fn number(self) -> u16 {
        self as u16
    }
}

impl core::error::Error for RefCode {}

impl core::fmt::Display for RefCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} (LDB-{})", self.text(), self.number())
    }
}
