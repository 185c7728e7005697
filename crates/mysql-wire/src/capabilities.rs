//! The capability bits of the handshake and the status bits of OK and EOF packets.

use core::ops::{BitAnd, BitOr};

macro_rules! bit_set {
    ($type:ident, $int:ty) => {
        impl $type {
            /// Whether every bit of `other` is set here.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// These bits, with those of `other` set or cleared.
            #[must_use]
            pub const fn with(self, other: Self, on: bool) -> Self {
                if on { Self(self.0 | other.0) } else { Self(self.0 & !other.0) }
            }

            /// The bits as they are sent.
            pub const fn bits(self) -> $int {
                self.0
            }
        }

        impl BitOr for $type {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitAnd for $type {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }
    };
}
pub(crate) use bit_set;

/// What both sides of a connection can do (`CLIENT_*` in MySQL's documentation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u32);

bit_set!(Capabilities, u32);

impl Capabilities {
    /// Nothing is known of the client yet.
    pub const NONE: Self = Self(0);
    /// Of a server: it is MySQL, not MariaDB, whose clients look for more bits otherwise.
    pub const LONG_PASSWORD: Self = Self(1);
    /// Affected rows count the rows that were found, not those that changed.
    pub const FOUND_ROWS: Self = Self(1 << 1);
    /// Column flags have two bytes.
    pub const LONG_FLAG: Self = Self(1 << 2);
    /// The handshake response may name a database.
    pub const CONNECT_WITH_DB: Self = Self(1 << 3);
    /// Spaces may stand between a function's name and its parenthesis.
    pub const IGNORE_SPACE: Self = Self(1 << 8);
    /// The protocol of MySQL 4.1 and newer.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    /// Of a client: the time-out of interactive connections applies.
    pub const INTERACTIVE: Self = Self(1 << 10);
    /// TLS; never offered.
    pub const SSL: Self = Self(1 << 11);
    /// OK and EOF packets carry status flags.
    pub const TRANSACTIONS: Self = Self(1 << 13);
    /// The 20-byte challenge of MySQL 4.1.
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    /// One query may hold several statements.
    pub const MULTI_STATEMENTS: Self = Self(1 << 16);
    /// One query may yield several results.
    pub const MULTI_RESULTS: Self = Self(1 << 17);
    /// One prepared statement may yield several results.
    pub const PS_MULTI_RESULTS: Self = Self(1 << 18);
    /// Authentication plugins are named.
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    /// The handshake response carries connection attributes.
    pub const CONNECT_ATTRS: Self = Self(1 << 20);
    /// Authentication data has a length-encoded length.
    pub const PLUGIN_AUTH_LENENC: Self = Self(1 << 21);
    /// OK packets stand in for EOF packets.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);

    /// What the server offers.
    pub const SERVER: Self = Self(
        Self::LONG_PASSWORD.0
            | Self::FOUND_ROWS.0
            | Self::LONG_FLAG.0
            | Self::CONNECT_WITH_DB.0
            | Self::IGNORE_SPACE.0
            | Self::PROTOCOL_41.0
            | Self::INTERACTIVE.0
            | Self::TRANSACTIONS.0
            | Self::SECURE_CONNECTION.0
            | Self::MULTI_STATEMENTS.0
            | Self::MULTI_RESULTS.0
            | Self::PS_MULTI_RESULTS.0
            | Self::PLUGIN_AUTH.0
            | Self::CONNECT_ATTRS.0
            | Self::PLUGIN_AUTH_LENENC.0
            | Self::DEPRECATE_EOF.0,
    );
}

/// The state of a session, sent with OK and EOF packets (`SERVER_STATUS_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusFlags(pub u16);

bit_set!(StatusFlags, u16);

impl StatusFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// A transaction is open.
    pub const IN_TRANS: Self = Self(1);
    /// Every statement outside a transaction commits by itself.
    pub const AUTOCOMMIT: Self = Self(1 << 1);
    /// Another result follows.
    pub const MORE_RESULTS: Self = Self(1 << 3);
    /// The statement's rows wait at the server to be fetched.
    pub const CURSOR_EXISTS: Self = Self(1 << 6);
    /// The cursor has no more rows.
    pub const LAST_ROW_SENT: Self = Self(1 << 7);
    /// A database was dropped.
    pub const DB_DROPPED: Self = Self(1 << 8);
    /// Backslashes do not escape.
    pub const NO_BACKSLASH_ESCAPES: Self = Self(1 << 9);
    /// The open transaction is read-only.
    pub const IN_TRANS_READONLY: Self = Self(1 << 13);
}
