//! Identifiers, each a type of its own.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $repr:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes,
            IntoBytes, Immutable, KnownLayout, serde::Serialize, serde::Deserialize,
        )]
        #[repr(transparent)]
        pub struct $name($repr);

        impl $name {
            /// The id with this number.
            pub const fn new(number: $repr) -> Self {
                Self(number)
            }
            /// Its number.
            pub const fn get(self) -> $repr {
                self.0
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(
    /// A node of the cluster: data, SQL or witness. 0 means "none".
    NodeId,
    u16
);
id!(
    /// One life of a node's process: larger than that of every earlier life of the node.
    Incarnation,
    u32
);
id!(
    /// A view: who may serve what. Grows by one with each change.
    ViewNumber,
    u64
);
id!(
    /// The replicas that hold the same fragments.
    NodeGroupId,
    u16
);
id!(
    /// A table, also the hidden ones.
    TableId,
    u32
);
id!(
    /// A secondary index within its table.
    IndexId,
    u16
);
id!(
    /// A fragment (partition) of a table: 0..fragment count.
    FragmentId,
    u16
);
id!(
    /// A row's place in its fragment: given by the primary, equal on all replicas.
    RowId,
    u64
);
id!(
    /// A global commit epoch.
    Epoch,
    u64
);
id!(
    /// A client of the native protocol; chosen at random by the client when it starts.
    ClientId,
    u64
);

/// Tells processes apart that have the same node and number of a life: 128 random bits, drawn before the process says anything.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    serde::Serialize,
    serde::Deserialize,
)]
#[repr(transparent)]
pub struct Nonce([u64; 2]);

impl Nonce {
    /// The nonce with these bits.
    pub const fn new(halves: [u64; 2]) -> Self {
        Self(halves)
    }

    /// Its bits.
    pub const fn halves(self) -> [u64; 2] {
        self.0
    }

    /// That of the process which founds a cluster as this node; the number of the founding is random.
    pub const fn of_founder(founding: u64, node: NodeId) -> Self {
        Self([founding, node.get() as u64])
    }
}

impl core::fmt::Display for Nonce {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [high, low] = self.0;
        write!(f, "{high:016x}{low:016x}")
    }
}

/// A transaction: which client, and its how-manieth.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
pub struct TransactionId {
    /// The client that began it.
    pub client: ClientId,
    /// 1, 2, 3, … per client. 0 means "no transaction".
    pub sequence: u64,
}

impl TransactionId {
    /// Stands for "outside any transaction".
    pub const NONE: Self = Self { client: ClientId::new(0), sequence: 0 };

    /// True for [`Self::NONE`].
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Spreads transactions over coordinators in take-over.
    pub fn hash(self) -> u64 {
        (self.client.get() ^ self.sequence.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> 32
    }
}
