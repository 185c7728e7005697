//! Passwords: the challenge, what is stored of a password, and the exchange that checks it.
//!
//! The greeting names `mysql_native_password`, because every client has it built in: MariaDB's
//! library loads `caching_sha2_password` from a file that may be missing, and without TLS that
//! plugin cannot go beyond its fast path. A client that names another plugin is switched to
//! `caching_sha2_password` if it named that, else to `mysql_native_password`.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::writer::PacketWriter;

#[cfg(test)]
mod tests;

/// Tells a client of `caching_sha2_password` that its scramble was right.
const FAST_AUTH_OK: [u8; 2] = [0x01, 0x03];

/// The challenge of one connection: 20 bytes that no other connection gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; 20]);

impl Nonce {
    /// Makes a nonce of 20 random bytes. They are changed a little: clients read the nonce as a
    /// NUL-terminated ASCII string.
    pub fn from_random(random: [u8; 20]) -> Self {
        Self(random.map(|byte| match byte & 0x7F {
            0 | b'$' => 1,
            other => other,
        }))
    }

    /// The bytes as they are sent, none of them NUL.
    pub fn bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

/// The authentication plugins that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthPlugin {
    /// `mysql_native_password`: SHA-1.
    NativePassword,
    /// `caching_sha2_password`: SHA-256, its fast path only.
    CachingSha2Password,
}

impl AuthPlugin {
    /// The plugin that the greeting names.
    pub const GREETING: Self = Self::NativePassword;

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::NativePassword => "mysql_native_password",
            Self::CachingSha2Password => "caching_sha2_password",
        }
    }

    /// The plugin of this name, if the server speaks it.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::NativePassword, Self::CachingSha2Password]
            .into_iter()
            .find(|plugin| plugin.name().eq_ignore_ascii_case(name))
    }
}

/// What the server keeps of a password: hashes of hashes, one for each plugin. They do not tell
/// the password, but whoever reads them and listens to a login can log in: keep them secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StoredPassword {
    /// SHA1(SHA1(password)).
    pub native: [u8; 20],
    /// SHA256(SHA256(password)).
    pub sha2: [u8; 32],
}

impl core::fmt::Debug for StoredPassword {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // Hashes must not reach logs.
        f.write_str("StoredPassword(..)")
    }
}

impl StoredPassword {
    /// The hashes of a password, which should not be empty.
    pub fn from_password(password: &[u8]) -> Self {
        Self {
            native: Sha1::digest(Sha1::digest(password)).into(),
            sha2: Sha256::digest(Sha256::digest(password)).into(),
        }
    }

    /// Whether `response` is the scramble of this password with `nonce`.
    pub fn verify(&self, plugin: AuthPlugin, nonce: &Nonce, response: &[u8]) -> bool {
        match plugin {
            AuthPlugin::NativePassword => self.verify_native(nonce, response),
            AuthPlugin::CachingSha2Password => self.verify_sha2(nonce, response),
        }
    }

    /// The client sends SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))).
    fn verify_native(&self, nonce: &Nonce, response: &[u8]) -> bool {
        let Ok(mut candidate) = <[u8; 20]>::try_from(response) else { return false };
        let mask = Sha1::new().chain_update(nonce.0).chain_update(self.native).finalize();
        xor(&mut candidate, &mask);
        same(&Sha1::digest(candidate), &self.native)
    }

    /// The client sends SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce).
    fn verify_sha2(&self, nonce: &Nonce, response: &[u8]) -> bool {
        let Ok(mut candidate) = <[u8; 32]>::try_from(response) else { return false };
        let mask = Sha256::new().chain_update(self.sha2).chain_update(nonce.0).finalize();
        xor(&mut candidate, &mask);
        same(&Sha256::digest(candidate), &self.sha2)
    }
}

fn xor(target: &mut [u8], mask: &[u8]) {
    for (byte, mask) in target.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

/// Equality that takes the same time wherever the first difference is.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// How an account proves itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountPassword {
    /// Its password is empty.
    Empty,
    /// It has a password.
    Hashed(StoredPassword),
}

/// How far an exchange has come. Replies are in the writer already, except the final OK packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthOutcome {
    /// Send what was written, and give the client's next packet to [`Authentication::on_answer`].
    Continue,
    /// The password is right. The caller sends OK, or ERR if it refuses for another reason.
    Accepted,
    /// The client was refused with an ERR packet: send it and close the connection.
    Refused,
}

/// Who wants to log in, and with what; from a handshake response or a COM_CHANGE_USER.
#[derive(Clone, Copy, Debug)]
pub struct AuthenticationRequest<'a> {
    /// The account's name.
    pub user: &'a str,
    /// The client's host, for the message to a client that is refused.
    pub host: &'a str,
    /// The plugin that the client named; `None` if it names none.
    pub plugin: Option<&'a str>,
    /// The plugin's answer to the nonce of the greeting.
    pub response: &'a [u8],
    /// How the account proves itself; `None` if there is no such account.
    pub account: Option<AccountPassword>,
}

/// The exchange that checks a password: at most one switch to another plugin.
#[derive(Clone, Debug)]
pub struct Authentication {
    nonce: Nonce,
    user: String,
    host: String,
    account: Option<AccountPassword>,
    plugin: AuthPlugin,
    switched: bool,
}

impl Authentication {
    /// Starts the exchange, with the nonce of the connection's greeting.
    pub fn start(
        nonce: Nonce,
        request: &AuthenticationRequest<'_>,
        writer: &mut PacketWriter,
    ) -> (Self, AuthOutcome) {
        let plugin = request.plugin.map_or(Some(AuthPlugin::GREETING), AuthPlugin::from_name);
        let mut exchange = Self {
            nonce,
            user: request.user.to_owned(),
            host: request.host.to_owned(),
            account: request.account,
            plugin: plugin.unwrap_or(AuthPlugin::GREETING),
            switched: false,
        };
        // Even a plugin that the server speaks is asked for again if the greeting did not name it:
        // MySQL's and MariaDB's libraries send such a plugin's name without data and wait.
        let outcome = if plugin == Some(AuthPlugin::GREETING) {
            exchange.check(request.response, writer)
        } else {
            exchange.switched = true;
            writer.raw(&exchange.switch_request());
            AuthOutcome::Continue
        };
        (exchange, outcome)
    }

    /// The client's answer to the switch request.
    pub fn on_answer(&mut self, response: &[u8], writer: &mut PacketWriter) -> AuthOutcome {
        if !self.switched {
            return self.refuse(response, writer);
        }
        self.switched = false;
        self.check(response, writer)
    }

    fn switch_request(&self) -> Vec<u8> {
        let mut out = vec![0xFE];
        out.extend_from_slice(self.plugin.name().as_bytes());
        out.push(0);
        out.extend_from_slice(self.nonce.bytes());
        out.push(0);
        out
    }

    fn check(&self, response: &[u8], writer: &mut PacketWriter) -> AuthOutcome {
        match self.account {
            Some(AccountPassword::Empty) if says_empty(response) => AuthOutcome::Accepted,
            Some(AccountPassword::Hashed(stored))
                if stored.verify(self.plugin, &self.nonce, response) =>
            {
                if self.plugin == AuthPlugin::CachingSha2Password {
                    writer.raw(&FAST_AUTH_OK);
                }
                AuthOutcome::Accepted
            }
            _ => self.refuse(response, writer),
        }
    }

    /// An unknown user and a wrong password read the same, so that names cannot be tried out.
    fn refuse(&self, response: &[u8], writer: &mut PacketWriter) -> AuthOutcome {
        let using = if says_empty(response) { "NO" } else { "YES" };
        let message = format!(
            "Access denied for user '{}'@'{}' (using password: {using})",
            self.user, self.host
        );
        writer.err(1045, b"28000", &message);
        AuthOutcome::Refused
    }
}

/// Whether a response stands for the empty password: nothing, or one NUL from
/// `caching_sha2_password`.
fn says_empty(response: &[u8]) -> bool {
    matches!(response, [] | [0])
}
