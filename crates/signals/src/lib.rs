//! Signals: the only way blocks talk to each other.
//!
//! A signal is one contiguous message: a [`Header`], a fixed body whose fields stand at fixed
//! positions (little-endian), and a payload of keys and rows. It is checked once, where bytes enter
//! the process ([`check`]), and read in place from then on. The lists inside payloads are in
//! [`list`]; the bodies are in one file per protocol.
//!
//! Protocols: `docs/protocols/`.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(target_endian = "big")]
compile_error!("signals are little-endian and read in place");

pub mod admit;
pub mod block_ref;
pub mod buffer;
pub mod commit;
pub mod control;
pub mod copy;
pub mod deadlock;
pub mod hello;
pub mod io;
pub mod lane;
pub mod list;
pub mod proof;
pub mod query;
pub mod restart;
pub mod table;

pub use admit::{Principal, admit};
pub use block_ref::{BlockKind, BlockRef};
pub use buffer::{Signal, SignalBuffer};
pub use lane::Lane;
pub use lats_base::NodeSet;
pub use table::{Malformed, Scope, SignalNumber, check};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The protocol version this release speaks. A link is refused when the versions differ by more
/// than one, and between nodes also with a version before 5, whose reports of waits are shorter.
pub const PROTOCOL_VERSION: u16 = 5;

/// What every signal starts with: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    /// The whole signal in bytes, this header included; a multiple of 8.
    pub length_bytes: u32,
    /// Which signal: a [`SignalNumber`].
    pub number: u16,
    /// The version of the body's layout.
    pub version: u8,
    /// Not used yet; zero.
    pub flags: u8,
    /// Who sent it; set by the executor.
    pub sender: BlockRef,
    /// Whom it is for.
    pub receiver: BlockRef,
    /// The life of the sending node; set by the executor. Blocks drop what a removed life sent.
    pub incarnation: u32,
    /// Bytes of payload after the body, without the padding.
    pub payload_bytes: u32,
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = core::mem::size_of::<Header>();

/// The fixed part of a signal.
pub trait Body: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {
    /// Its number.
    const NUMBER: SignalNumber;
}

/// Defines signal bodies and their numbers, sizes and scopes: see [`table`].
#[macro_export]
macro_rules! body {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, zerocopy::FromBytes, zerocopy::IntoBytes,
            zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        #[repr(C)]
        pub struct $name {
            $($(#[$fdoc])* pub $field: $ty,)*
        }
        impl $crate::Body for $name {
            const NUMBER: $crate::SignalNumber = $crate::SignalNumber::$name;
        }
    };
}
