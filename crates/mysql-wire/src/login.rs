//! The login of one connection, from greeting to the verdict.

use crate::auth::{AccountPassword, AuthOutcome, Authentication, AuthenticationRequest, Nonce};
use crate::handshake::{Greeting, HandshakeResponse};
use crate::packet::Packet;
use crate::writer::PacketWriter;

#[cfg(test)]
mod tests;

/// How far a login has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginOutcome {
    /// Send what was written and wait for the client's next packet.
    Continue,
    /// The client has proved who it is. The caller checks the database it named, then sends OK
    /// (or ERR, and closes), and takes the decoder to the command phase.
    Accepted(Box<HandshakeResponse>),
    /// The client was refused with an ERR packet: send it and close the connection.
    Refused,
}

/// The login of one connection.
#[derive(Clone, Debug)]
pub struct Login {
    greeting: Greeting,
    host: String,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Greeted,
    Switching(Box<HandshakeResponse>, Box<Authentication>),
    Over,
}

impl Login {
    /// A login from `host`, with the nonce and the connection id that the greeting tells.
    pub fn new(connection_id: u32, nonce: Nonce, host: &str) -> Self {
        let greeting = Greeting { connection_id, nonce };
        Self { greeting, host: host.to_owned(), state: State::Greeted }
    }

    /// The connection's nonce, which COM_CHANGE_USER needs again.
    pub fn nonce(&self) -> Nonce {
        self.greeting.nonce
    }

    /// Writes the greeting.
    pub fn greet(&self, writer: &mut PacketWriter) {
        writer.raw(&self.greeting.payload());
    }

    /// Takes the client's next packet. `account` gives how the account of a name proves itself,
    /// or `None` if there is no such account. The writer learns the agreed capabilities.
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        account: impl FnOnce(&str) -> Option<AccountPassword>,
        writer: &mut PacketWriter,
    ) -> LoginOutcome {
        writer.start_reply(packet.sequence);
        match core::mem::replace(&mut self.state, State::Over) {
            State::Greeted => self.on_response(&packet.payload, account, writer),
            State::Switching(response, mut exchange) => {
                let outcome = exchange.on_answer(&packet.payload, writer);
                self.conclude(outcome, response, exchange)
            }
            State::Over => LoginOutcome::Refused,
        }
    }

    fn on_response(
        &mut self,
        payload: &[u8],
        account: impl FnOnce(&str) -> Option<AccountPassword>,
        writer: &mut PacketWriter,
    ) -> LoginOutcome {
        let response = match HandshakeResponse::parse(payload) {
            Ok(response) => response,
            Err(error) => {
                writer.wire_err(&error);
                return LoginOutcome::Refused;
            }
        };
        writer.set_capabilities(response.capabilities);
        let names_plugins = response.capabilities.contains(crate::Capabilities::PLUGIN_AUTH);
        let request = AuthenticationRequest {
            user: &response.user,
            host: &self.host,
            // A client that names plugins but leaves the name empty can still be switched.
            plugin: names_plugins.then(|| response.plugin.as_deref().unwrap_or_default()),
            response: &response.auth_response,
            account: account(&response.user),
        };
        let (exchange, outcome) = Authentication::start(self.greeting.nonce, &request, writer);
        self.conclude(outcome, Box::new(response), Box::new(exchange))
    }

    fn conclude(
        &mut self,
        outcome: AuthOutcome,
        response: Box<HandshakeResponse>,
        exchange: Box<Authentication>,
    ) -> LoginOutcome {
        match outcome {
            AuthOutcome::Continue => {
                self.state = State::Switching(response, exchange);
                LoginOutcome::Continue
            }
            AuthOutcome::Accepted => LoginOutcome::Accepted(response),
            AuthOutcome::Refused => LoginOutcome::Refused,
        }
    }
}
