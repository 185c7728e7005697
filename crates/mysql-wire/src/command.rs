//! What a client asks for once it has logged in.

use crate::bytes::{Reader, text};
use crate::capabilities::Capabilities;
use crate::error::WireError;
use crate::execute::{CursorFlags, ExecuteRequest};
use crate::handshake::attributes;

#[cfg(test)]
mod tests;

/// One request, borrowing from its packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Command<'a> {
    /// Close the connection; no reply.
    Quit,
    /// Use another database.
    InitDb(&'a str),
    /// Run statements. The bytes are in the client's character set, usually UTF-8, but a string
    /// marked `_binary` may hold any byte.
    Query(&'a [u8]),
    /// List a table's columns; ended by `result_end`.
    FieldList {
        /// The table's name.
        table: &'a str,
        /// A LIKE pattern that the columns' names match; empty means all.
        wildcard: &'a str,
    },
    /// One line about the server's state.
    Statistics,
    /// Is the server alive?
    Ping,
    /// Log in as another user, with a fresh session.
    ChangeUser(ChangeUser<'a>),
    /// A fresh session of the same user.
    ResetConnection,
    /// 0: allow several statements in a query; 1: do not. Answered by `result_end`.
    SetOption(u16),
    /// Prepare a statement, in the client's character set.
    StmtPrepare(&'a [u8]),
    /// Execute a prepared statement.
    StmtExecute(ExecuteRequest<'a>),
    /// A piece of a parameter's value; no reply.
    StmtSendLongData {
        /// The statement.
        statement_id: u32,
        /// The parameter, from 0.
        parameter: u16,
        /// The piece.
        data: &'a [u8],
    },
    /// Forget a prepared statement; no reply.
    StmtClose(u32),
    /// Close a statement's cursor and forget its long data.
    StmtReset(u32),
    /// Send rows of an open cursor.
    StmtFetch {
        /// The statement whose cursor is meant.
        statement_id: u32,
        /// Rows to send at most.
        rows: u32,
    },
    /// Kill the connection with this id.
    ProcessKill(u32),
    /// Write debugging information to the server's log. Answered by `result_end`.
    Debug,
    /// A command that the server does not serve, by its number.
    Unknown(u8),
}

/// COM_CHANGE_USER: another login on the same connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// The account's name.
    pub user: &'a str,
    /// The plugin's answer to the greeting's nonce.
    pub auth_response: &'a [u8],
    /// The database to use, if one was named.
    pub database: Option<&'a str>,
    /// The collation that the client wants, if it says.
    pub collation_id: Option<u16>,
    /// The authentication plugin that the client names, if it names plugins.
    pub plugin: Option<&'a str>,
    /// Connection attributes; at most 64.
    pub attributes: Vec<(String, String)>,
}

impl<'a> Command<'a> {
    /// Parses a packet's payload. `capabilities` are those agreed in the handshake.
    pub fn parse(payload: &'a [u8], capabilities: Capabilities) -> Result<Self, WireError> {
        let mut reader = Reader::new(payload);
        let code = reader.u8().map_err(|_| WireError::Malformed("empty command"))?;
        Ok(match code {
            1 => Self::Quit,
            2 => Self::InitDb(text(reader.nul_bytes_or_rest())?),
            3 => Self::Query(reader.rest()),
            4 => Self::FieldList {
                table: text(reader.nul_bytes_or_rest())?,
                wildcard: text(reader.nul_bytes_or_rest())?,
            },
            9 => Self::Statistics,
            12 => Self::ProcessKill(reader.u32()?),
            13 => Self::Debug,
            14 => Self::Ping,
            17 => Self::ChangeUser(ChangeUser::parse(&mut reader, capabilities)?),
            27 => Self::SetOption(reader.u16()?),
            31 => Self::ResetConnection,
            22..=28 => Self::parse_statement(code, &mut reader)?,
            other => Self::Unknown(other),
        })
    }

    fn parse_statement(code: u8, reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(match code {
            22 => Self::StmtPrepare(reader.rest()),
            23 => Self::StmtExecute(parse_execute(reader)?),
            24 => Self::StmtSendLongData {
                statement_id: reader.u32()?,
                parameter: reader.u16()?,
                data: reader.rest(),
            },
            25 => Self::StmtClose(reader.u32()?),
            26 => Self::StmtReset(reader.u32()?),
            28 => Self::StmtFetch { statement_id: reader.u32()?, rows: reader.u32()? },
            other => Self::Unknown(other),
        })
    }
}

fn parse_execute<'a>(reader: &mut Reader<'a>) -> Result<ExecuteRequest<'a>, WireError> {
    let statement_id = reader.u32()?;
    let cursor = CursorFlags(reader.u8()?);
    // The iteration count is 1 in every version of the protocol and means nothing.
    reader.u32()?;
    Ok(ExecuteRequest { statement_id, cursor, bindings: reader.rest() })
}

impl<'a> ChangeUser<'a> {
    fn parse(reader: &mut Reader<'a>, capabilities: Capabilities) -> Result<Self, WireError> {
        let user = text(reader.nul_bytes()?)?;
        let auth_response = if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let length = reader.u8()?;
            reader.take(usize::from(length))?
        } else {
            reader.nul_bytes()?
        };
        let database = text(reader.nul_bytes_or_rest())?;
        let collation_id = if reader.is_empty() { None } else { Some(reader.u16()?) };
        let plugin = if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            Some(text(reader.nul_bytes_or_rest())?)
        } else {
            None
        };
        Ok(Self {
            user,
            auth_response,
            database: (!database.is_empty()).then_some(database),
            collation_id,
            plugin,
            attributes: attributes(reader, capabilities)?,
        })
    }
}
