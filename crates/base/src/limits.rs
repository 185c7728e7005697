//! Every limit, in one place, with its reason. Units are in the names.

/// Buckets that rows are hashed into; fragments own whole buckets, so that growing a cluster moves
/// whole buckets. A multiple of 2, 3, 4, 5, 6 and 8, so that they divide evenly.
pub const BUCKET_COUNT: u32 = 3_840;
/// Largest row, in bytes of the stored format.
pub const ROW_BYTES_MAX: usize = 30_000;
/// Largest encoded key, in bytes.
pub const KEY_BYTES_MAX: usize = 3_072;
/// Columns in a table.
pub const COLUMNS_MAX: usize = 512;
/// Members of an ENUM type.
pub const TYPE_MEMBERS_MAX: usize = 65_535;
/// Columns in a key or index.
pub const KEY_COLUMNS_MAX: usize = 16;
/// Secondary indexes of a table.
pub const INDEXES_MAX: usize = 64;
/// Tables in a cluster.
pub const TABLES_MAX: usize = 20_000;
/// Encoded bytes of all definitions together: they travel in one signal.
pub const CATALOG_BYTES_MAX: usize = SIGNAL_BYTES_MAX - (1 << 20);
/// Encoded bytes of a change of the catalog, such as a table's definition: some of them fit into one signal of
/// the consensus group.
pub const CHANGE_BYTES_MAX: usize = 256 << 10;
/// Changes of the catalog that a node admits at once. The cluster remembers as many for each node (CHANGE-3).
pub const CHANGES_PER_NODE_MAX: usize = 1_024;
/// Characters of a name, as in MySQL.
pub const NAME_CHARS_MAX: usize = 64;
/// Characters of a table's comment, as in MySQL.
pub const COMMENT_CHARS_MAX: usize = 2_048;
/// Replicas of a node group.
pub const REPLICAS_MAX: usize = 4;
/// Data nodes and witnesses in a cluster.
pub const NODES_MAX: usize = 64;
/// Operations that one request may carry.
pub const OPERATIONS_PER_REQUEST_MAX: usize = 4_096;
/// Largest signal, fixed part and sections together. Bounds every receive buffer.
pub const SIGNAL_BYTES_MAX: usize = 4 << 20;
/// Row images, or results, of one batch of operations together: they travel in one signal.
pub const BATCH_BYTES_MAX: usize = SIGNAL_BYTES_MAX - (64 << 10);
/// Row operations that one transaction may hold: some 40 bytes each at every participant, beside the
/// rows. When a node dies its heirs look at all of them before they serve.
pub const OPERATIONS_PER_TRANSACTION_MAX: usize = 1 << 20;
/// Rows of a batch, of a transaction's end, of an index's building, or of a dropped table that a data manager
/// deals with before it gives way to other work: tens of microseconds.
pub const SLICE_ROWS: usize = 256;
/// Transactions that one coordinator runs at once.
pub const TRANSACTIONS_PER_COORDINATOR_MAX: usize = 65_536;
/// How far a client's epoch may be ahead of a coordinator's and count: hours. More is nonsense, and
/// must not bring the cluster's epochs to their end.
pub const EPOCH_LEAD_MAX: u64 = 1 << 20;
/// Client connections of one node.
pub const CLIENTS_PER_NODE_MAX: usize = 4_096;
/// Bytes a scan sends before it waits for more credit.
pub const SCAN_BATCH_BYTES: usize = 256 << 10;
/// Bytes of a redo log that are read at once when a node starts.
pub const LOG_READ_BYTES: u32 = 256 << 10;
/// Rows a scan looks at before it gives way to other work: tens of microseconds.
pub const SCAN_SLICE_ROWS: usize = 128;
/// Encoded bytes of a filter, projection or update program.
pub const PROGRAM_BYTES_MAX: usize = 1 << 20;
/// Bytes of changes of unique indexes that one request may bring about: they travel in one signal.
pub const INDEX_CHANGE_BYTES_MAX: usize = 2 << 20;
/// Depth of an expression tree inside a program.
pub const PROGRAM_DEPTH_MAX: usize = 128;
/// Work that the programs of one request, or of one scanned row, may do: an expression's node, 16
/// bytes of text made, or a character compared each count as one. Tens of milliseconds at worst.
pub const PROGRAM_WORK_MAX: u64 = 16 << 20;
/// Work after which a scan gives way to others.
pub const SCAN_SLICE_WORK: u64 = 1 << 18;
