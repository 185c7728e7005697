//! The first two packets of a connection: the server's greeting and the client's response.

use crate::auth::{AuthPlugin, Nonce};
use crate::bytes::{Reader, text};
use crate::capabilities::{Capabilities, StatusFlags};
use crate::error::WireError;

#[cfg(test)]
mod tests;

/// What the server calls itself. Clients derive from its beginning what the server can do.
pub const SERVER_VERSION: &str = "8.4.0-LatsDB";
/// utf8mb4_0900_ai_ci, the collation of a session unless the client asks for another one.
pub const DEFAULT_COLLATION_ID: u8 = 255;
/// Connection attributes that are kept of one client.
const ATTRIBUTES_MAX: usize = 64;

/// The first packet (protocol version 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// What the client sees as CONNECTION_ID().
    pub connection_id: u32,
    /// The challenge that passwords are scrambled with.
    pub nonce: Nonce,
}

impl Greeting {
    /// Its payload.
    pub fn payload(&self) -> Vec<u8> {
        let [caps_0, caps_1, caps_2, caps_3] = Capabilities::SERVER.bits().to_le_bytes();
        let (nonce_start, nonce_end) = self.nonce.bytes().split_at(8);
        let mut out = Vec::with_capacity(96);
        out.push(10);
        out.extend_from_slice(SERVER_VERSION.as_bytes());
        out.push(0);
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        out.extend_from_slice(nonce_start);
        out.extend_from_slice(&[0, caps_0, caps_1, DEFAULT_COLLATION_ID]);
        out.extend_from_slice(&StatusFlags::AUTOCOMMIT.bits().to_le_bytes());
        // 21: the nonce and its final NUL. Ten reserved bytes follow.
        out.extend_from_slice(&[caps_2, caps_3, 21]);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(nonce_end);
        out.push(0);
        out.extend_from_slice(AuthPlugin::GREETING.name().as_bytes());
        out.push(0);
        out
    }
}

/// What the client answers to the greeting (HandshakeResponse41).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeResponse {
    /// What both sides can do: the client's bits that the server offered.
    pub capabilities: Capabilities,
    /// The largest packet that the client takes, in bytes.
    pub max_packet_bytes: u32,
    /// The collation that the client wants, as MySQL numbers them.
    pub collation_id: u8,
    /// The account's name.
    pub user: String,
    /// The plugin's answer to the nonce.
    pub auth_response: Vec<u8>,
    /// The database to use, if one was named.
    pub database: Option<String>,
    /// The authentication plugin that made `auth_response`, if the client names plugins.
    pub plugin: Option<String>,
    /// Connection attributes, in the order in which they came; at most 64.
    pub attributes: Vec<(String, String)>,
}

impl HandshakeResponse {
    /// Parses the payload. Refuses clients older than MySQL 4.1 and requests for TLS.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let low = Capabilities(u32::from(Reader::new(payload).u16()?));
        if !low.contains(Capabilities::PROTOCOL_41) {
            return Err(WireError::ClientTooOld);
        }
        let wanted = Capabilities(reader.u32()?);
        if wanted.contains(Capabilities::SSL) {
            return Err(WireError::TlsNotOffered);
        }
        if !wanted.contains(Capabilities::SECURE_CONNECTION) {
            // Its scramble would be the one of MySQL 3.23, which anyone can undo.
            return Err(WireError::ClientTooOld);
        }
        let capabilities = wanted & Capabilities::SERVER;
        let max_packet_bytes = reader.u32()?;
        let collation_id = reader.u8()?;
        reader.take(23)?;
        let user = text(reader.nul_bytes()?)?.to_owned();
        let auth_response = auth_response(&mut reader, capabilities)?.to_vec();
        let database = optional_name(&mut reader, capabilities, Capabilities::CONNECT_WITH_DB)?;
        let plugin = optional_name(&mut reader, capabilities, Capabilities::PLUGIN_AUTH)?;
        let attributes = attributes(&mut reader, capabilities)?;
        Ok(Self {
            capabilities,
            max_packet_bytes,
            collation_id,
            user,
            auth_response,
            database,
            plugin,
            attributes,
        })
    }
}

fn auth_response<'a>(
    reader: &mut Reader<'a>,
    capabilities: Capabilities,
) -> Result<&'a [u8], WireError> {
    if capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC) {
        reader.lenenc_bytes()
    } else if capabilities.contains(Capabilities::SECURE_CONNECTION) {
        let length = reader.u8()?;
        reader.take(usize::from(length))
    } else {
        reader.nul_bytes()
    }
}

/// A NUL-terminated name that is there only with `needed`; empty means none.
fn optional_name(
    reader: &mut Reader<'_>,
    capabilities: Capabilities,
    needed: Capabilities,
) -> Result<Option<String>, WireError> {
    if !capabilities.contains(needed) {
        return Ok(None);
    }
    let name = text(reader.nul_bytes_or_rest())?;
    Ok((!name.is_empty()).then(|| name.to_owned()))
}

/// Connection attributes: pairs of length-encoded strings behind their total length.
pub(crate) fn attributes(
    reader: &mut Reader<'_>,
    capabilities: Capabilities,
) -> Result<Vec<(String, String)>, WireError> {
    let mut found = Vec::new();
    // Clients that have none may leave the length out.
    if !capabilities.contains(Capabilities::CONNECT_ATTRS) || reader.is_empty() {
        return Ok(found);
    }
    let mut pairs = Reader::new(reader.lenenc_bytes()?);
    while !pairs.is_empty() {
        let name = String::from_utf8_lossy(pairs.lenenc_bytes()?).into_owned();
        let value = String::from_utf8_lossy(pairs.lenenc_bytes()?).into_owned();
        if found.len() < ATTRIBUTES_MAX {
            found.push((name, value));
        }
    }
    Ok(found)
}
