//! The MySQL client/server protocol, server side, as a codec without I/O.
//!
//! The shell around it reads bytes into a [`PacketDecoder`], drives a [`Login`] and then parses
//! [`Command`]s, and sends what a [`PacketWriter`] has gathered. Nothing here reads a socket, a
//! clock or a source of randomness, and no input makes it panic: bytes come from strangers.
//!
//! The order of use on one connection:
//! 1. [`Login::greet`], send; feed what arrives; [`Login::on_packet`] until it accepts or refuses.
//! 2. [`PacketDecoder::enter_command_phase`], and an OK packet.
//! 3. For each packet: [`PacketWriter::start_reply`], [`Command::parse`], answer, send.
#![forbid(unsafe_code)]

pub mod auth;
mod bytes;
pub mod capabilities;
pub mod column;
pub mod command;
pub mod error;
pub mod execute;
pub mod handshake;
pub mod login;
pub mod packet;
mod row;
mod temporal;
pub mod writer;

pub use auth::{
    AccountPassword, AuthOutcome, AuthPlugin, Authentication, AuthenticationRequest, Nonce,
    StoredPassword,
};
pub use capabilities::{Capabilities, StatusFlags};
pub use column::{ColumnFlags, ColumnInfo};
pub use command::{ChangeUser, Command};
pub use error::WireError;
pub use execute::{CursorFlags, ExecuteRequest, StatementParameters};
pub use handshake::{Greeting, HandshakeResponse, SERVER_VERSION};
pub use login::{Login, LoginOutcome};
pub use packet::{LOGIN_PACKET_BYTES_MAX, Packet, PacketDecoder};
pub use writer::{ColumnDefinitions, OkPacket, PacketWriter};
