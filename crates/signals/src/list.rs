//! Lists inside payloads: a fixed head per item, its byte strings behind it, padded to 8 bytes.

use alloc::vec::Vec;
use lats_base::{FragmentId, IndexId, RowId, TableId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The fixed part of a list's item, which knows how long its byte strings are.
pub trait Item: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {
    /// Bytes of each of its strings, in order.
    fn strings(&self) -> [usize; 3];
}

macro_rules! item {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* }, $($s:ident),*) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable,
            KnownLayout,
        )]
        #[repr(C)]
        pub struct $name {
            $($(#[$fdoc])* pub $field: $ty,)*
        }
        impl Item for $name {
            #[inline]
            fn strings(&self) -> [usize; 3] {
                let given = [$(self.$s as usize),*];
                core::array::from_fn(|at| given.get(at).copied().unwrap_or_default())
            }
        }
    };
}

item!(
    /// An operation on one row: key, row image, program.
    Operation {
        /// The table.
        table: TableId,
        /// The version of its definition that the sender knows.
        schema_version: u32,
        /// The fragment that the key is in; filled in by the coordinator.
        fragment: FragmentId,
        /// What to do: an [`OperationKind`] as number.
        kind: u16,
        /// Bytes of the encoded key.
        key_bytes: u32,
        /// Bytes of the row image; 0 unless insert or write.
        row_bytes: u32,
        /// Bytes of the program; 0 for none.
        program_bytes: u32,
        /// Its place among the client's request's operations.
        index: u32,
        /// LOCK_…: what to do about a row that another transaction has locked; 0: wait.
        flags: u32,
    },
    key_bytes, row_bytes, program_bytes
);

item!(
    /// A row's new image, from its primary to the other replicas.
    Change {
        /// The table.
        table: TableId,
        /// The row's fragment.
        fragment: FragmentId,
        /// 1 if the row is gone with this change, else 0.
        deleted: u16,
        /// The row's id, given by the primary.
        row_id: RowId,
        /// The change's number in its fragment: grows with each.
        version: u64,
        /// The number of the row's change before this one, at the primary; 0 if there was no row, and in copies.
        over: u64,
        /// The epoch of a copied row's last change; 0 while the change is tentative.
        epoch: u64,
        /// Bytes of the encoded key.
        key_bytes: u32,
        /// Bytes of the row image.
        row_bytes: u32,
    },
    key_bytes, row_bytes
);

item!(
    /// A change that a transaction made before a replica came, which is to have it, too.
    OpenChange {
        /// The table.
        table: TableId,
        /// The row's fragment.
        fragment: FragmentId,
        /// 1 if the row is gone with this change, else 0.
        deleted: u16,
        /// The row's id, given by the primary.
        row_id: RowId,
        /// The change's number in its fragment.
        version: u64,
        /// The statement that made it.
        statement: u32,
        /// Bytes of the encoded key.
        key_bytes: u32,
        /// Bytes of the row image.
        row_bytes: u32,
        /// Not used yet; zero.
        reserved: u32,
    },
    key_bytes, row_bytes
);

item!(
    /// The result of one operation: the projected row, or an error's text.
    Outcome {
        /// Its place among the request's operations.
        index: u32,
        /// An [`OutcomeKind`] as number.
        kind: u32,
        /// OUTCOME_…
        flags: u32,
        /// Bytes of the row image.
        row_bytes: u32,
    },
    row_bytes
);

/// A row image follows (it may be empty).
pub const OUTCOME_HAS_ROW: u32 = 1;
/// Its batch has waited for a lock, of this operation's row or of an earlier one's (LOCK-7).
pub const OUTCOME_WAITED: u32 = 2;

item!(
    /// A row that a scan found: index key and primary key, if they were asked for, and projected row.
    FoundRow {
        /// Bytes of its key in the scanned index.
        index_key_bytes: u32,
        /// Bytes of its primary key.
        primary_key_bytes: u32,
        /// Bytes of the projected row image.
        row_bytes: u32,
        /// The number of the range that it was found in.
        range: u32,
    },
    index_key_bytes, primary_key_bytes, row_bytes
);

item!(
    /// A change of a unique index that comes with the change of a row: an entry's key and row in the
    /// index's hidden table (docs/protocols/unique-index.md).
    IndexChange {
        /// The hidden table.
        table: TableId,
        /// The index.
        index: IndexId,
        /// 1 if the entry is new, 0 if it goes away.
        inserts: u16,
        /// The place of the row's operation among the client's request's operations.
        operation: u32,
        /// Bytes of the entry's key.
        key_bytes: u32,
        /// Bytes of the entry's row.
        row_bytes: u32,
        /// The flags of the row's operation.
        flags: u32,
    },
    key_bytes, row_bytes
);

item!(
    /// A row that has a unique index's key, or is about to have it.
    Holder {
        /// The number of the entry's version.
        version: u64,
        /// Bytes of the row's primary key.
        primary_key_bytes: u32,
        /// Not used yet; zero.
        reserved: u32,
    },
    primary_key_bytes
);

item!(
    /// A range of keys.
    Range {
        /// Bytes of the first key; included. Empty: from the start.
        lower_bytes: u32,
        /// Bytes of the end; excluded.
        upper_bytes: u32,
        /// 1 if there is an end.
        has_upper: u32,
        /// Given back with what is found in it.
        number: u32,
    },
    lower_bytes, upper_bytes
);

/// A row that another transaction has locked: refuse the request.
pub const LOCK_NOWAIT: u32 = 1;
/// A row that another transaction has locked: leave it out.
pub const LOCK_SKIP: u32 = 2;

/// Above the flags: how long it may wait for the row, in ms; 0: as long as the cluster's
/// `lock_wait_ms`.
pub const LOCK_WAIT_SHIFT: u32 = 8;
/// The longest such wait, in ms: more than four hours.
pub const LOCK_WAIT_MS_MAX: u32 = u32::MAX >> LOCK_WAIT_SHIFT;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum OperationKind {
    /// Read without lock.
    Read = 1,
    /// Read with a shared lock.
    ReadShared = 2,
    /// Read with an exclusive lock.
    ReadExclusive = 3,
    /// Store a new row.
    Insert = 4,
    /// Run the program on the row.
    Update = 5,
    /// Store the row whether it exists or not.
    Write = 6,
    /// Delete the row; with a row image: if that is what it holds.
    Delete = 7,
    /// Enter the row into the unique indexes that are being built.
    Reindex = 8,
}

impl OperationKind {
    /// The kind with this number.
    pub fn from_number(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::Read,
            2 => Self::ReadShared,
            3 => Self::ReadExclusive,
            4 => Self::Insert,
            5 => Self::Update,
            6 => Self::Write,
            7 => Self::Delete,
            8 => Self::Reindex,
            _ => return None,
        })
    }

    /// True if it may change the row.
    pub fn writes(self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::Write | Self::Delete)
    }
}

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum OutcomeKind {
    /// It was done.
    Done = 0,
    /// The row has these values already.
    Unchanged = 1,
    /// There is no such row.
    Missing = 2,
    /// The filter is false for the row.
    NotMatched = 3,
    /// An insert found the key taken.
    Exists = 4,
    /// Another transaction has locked the row, and the operation was to leave such rows out.
    Skipped = 5,
    /// Another row has the same key in a unique index: the whole request was taken back. The row
    /// image is the index's id (2 bytes) and the entry's row in the hidden table.
    Duplicate = 6,
    /// It was done, and taken back because another operation of the request met `Duplicate`.
    Undone = 7,
}

impl OutcomeKind {
    /// The kind with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Done,
            1 => Self::Unchanged,
            2 => Self::Missing,
            3 => Self::NotMatched,
            4 => Self::Exists,
            5 => Self::Skipped,
            6 => Self::Duplicate,
            7 => Self::Undone,
            _ => return None,
        })
    }
}

/// Appends an item and its strings, padded to 8 bytes.
pub fn push<I: Item>(out: &mut Vec<u8>, item: &I, strings: [&[u8]; 3]) {
    let lengths = item.strings();
    lats_base::require!((0..3).all(|i| lengths[i] == strings[i].len()));
    let total = core::mem::size_of::<I>() + lengths.iter().sum::<usize>();
    let end = (out.len() + total).next_multiple_of(8);
    out.reserve(end - out.len());
    out.extend_from_slice(item.as_bytes());
    strings.iter().filter(|s| !s.is_empty()).for_each(|s| out.extend_from_slice(s));
    if out.len() < end {
        out.extend_from_slice(&[0; 8][..end - out.len()]);
    }
}

/// Appends a range of keys, from `lower` (included) to `upper` (excluded), with its number.
pub fn push_range(out: &mut Vec<u8>, number: u32, lower: &[u8], upper: Option<&[u8]>) {
    let head = Range {
        lower_bytes: lower.len() as u32,
        upper_bytes: upper.map_or(0, <[u8]>::len) as u32,
        has_upper: u32::from(upper.is_some()),
        number,
    };
    push(out, &head, [lower, upper.unwrap_or_default(), &[]]);
}

/// Appends an item whose last string is written by `write`, straight into the list. `item` is told how
/// long it has become, and gives the head.
pub fn push_written<I: Item>(
    out: &mut Vec<u8>,
    strings: [&[u8]; 2],
    write: impl FnOnce(&mut Vec<u8>),
    item: impl FnOnce(usize) -> I,
) {
    let head = out.len();
    out.resize(head + core::mem::size_of::<I>(), 0);
    strings.iter().for_each(|s| out.extend_from_slice(s));
    let before = out.len();
    write(out);
    let written = out.len() - before;
    let item = item(written);
    lats_base::require!(item.strings() == [strings[0].len(), strings[1].len(), written]);
    if let Some(slot) = out.get_mut(head..head + core::mem::size_of::<I>()) {
        slot.copy_from_slice(item.as_bytes());
    }
    out.resize(out.len().next_multiple_of(8), 0);
}

/// Walks a list.
#[derive(Clone, Debug)]
pub struct Items<'a, I> {
    rest: &'a [u8],
    item: core::marker::PhantomData<I>,
}

/// The items of a payload that was checked at the door.
pub fn items<I: Item>(payload: &[u8]) -> Items<'_, I> {
    Items { rest: payload, item: core::marker::PhantomData }
}

impl<'a, I: Item> Iterator for Items<'a, I> {
    type Item = (I, [&'a [u8]; 3]);

    fn next(&mut self) -> Option<Self::Item> {
        let (item, strings, rest) = split(self.rest)?;
        self.rest = rest;
        Some((item, strings))
    }
}

impl<'a, I> Items<'a, I> {
    /// What has not been walked yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

type Split<'a, I> = (I, [&'a [u8]; 3], &'a [u8]);

#[inline]
fn split<I: Item>(bytes: &[u8]) -> Option<Split<'_, I>> {
    let (item, behind) = I::read_from_prefix(bytes).ok()?;
    let [first, second, third] = item.strings();
    let used = first.checked_add(second)?.checked_add(third)?;
    let padding = (core::mem::size_of::<I>() + used).wrapping_neg() % 8;
    let (all, rest) = behind.split_at_checked(used.checked_add(padding)?)?;
    let (one, all) = all.split_at_checked(first)?;
    let (two, all) = all.split_at_checked(second)?;
    Some((item, [one, two, all.get(..third)?], rest))
}

/// True if the payload holds exactly `first` items of one kind, and then `second` of another.
pub(crate) fn check_both<A: Item, B: Item>(payload: &[u8], first: u32, second: u32) -> bool {
    let mut walked = items::<A>(payload);
    let found = walked.by_ref().take(first as usize).count();
    found == first as usize && check::<B>(walked.rest, second)
}

/// True if the payload holds exactly `count` whole items.
pub(crate) fn check<I: Item>(payload: &[u8], count: u32) -> bool {
    let mut walked = items::<I>(payload);
    let found = walked.by_ref().count();
    found == count as usize && walked.rest.is_empty()
}
