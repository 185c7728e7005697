//! Proofs that both ends of a connection know the cluster's secret: `docs/protocols/greeting.md`.
//!
//! Each end sends an [`Opening`]: its greeting and a random challenge. Then each end sends a proof, a MAC over both openings.
//! The method is challenge and response with HMAC-SHA-256 (RFC 2104); it is the third of ISO/IEC 9798-4 (mutual, three passes),
//! with the acceptance as one pass more.

use crate::hello::{HELLO_BYTES, Hello, HelloKind};
use alloc::string::String;
use core::fmt::Write;
use hmac::{Hmac, Mac};
use sha2::Sha256;

type HmacSha256 = Hmac<Sha256>;

/// Bytes of the cluster's secret, of a challenge and of a proof.
const BYTES: usize = 32;
/// Bytes of a proof.
pub const PROOF_BYTES: usize = BYTES;
/// Bytes of an opening: the greeting and the challenge.
pub const OPENING_BYTES: usize = HELLO_BYTES + BYTES;

/// What all nodes of a cluster know, and nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; BYTES]);

/// The text is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSecret;

impl core::fmt::Display for NoSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a cluster's secret is 64 hexadecimal digits")
    }
}

impl core::error::Error for NoSecret {}

/// A secret is never shown, not even in logs.
impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl core::str::FromStr for Secret {
    type Err = NoSecret;

    /// Reads what [`Secret::text`] has written; blanks around it do not matter.
    fn from_str(text: &str) -> Result<Self, NoSecret> {
        let digits = text.trim_ascii().as_bytes();
        let mut bytes = [0; BYTES];
        if digits.len() != 2 * BYTES {
            return Err(NoSecret);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            for digit in pair {
                let value = char::from(*digit).to_digit(16).ok_or(NoSecret)?;
                *byte = (*byte << 4) | value as u8;
            }
        }
        Ok(Self(bytes))
    }
}

impl Secret {
    /// The secret with these bytes, which must be random.
    pub fn new(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// It as a file has it: 64 hexadecimal digits.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(2 * BYTES);
        for byte in self.0 {
            // Writing into a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// GREET-3: a key of its own for each scope, so that one can be handed out without the others.
    fn key(&self, kind: HelloKind) -> [u8; BYTES] {
        let scope: &[u8] = match kind {
            HelloKind::Node => b"node",
            HelloKind::Client => b"client",
            HelloKind::Admin => b"admin",
        };
        mac(&self.0, &[b"latsdb scope ", scope])
    }
}

fn mac(key: &[u8; BYTES], parts: &[&[u8]]) -> [u8; BYTES] {
    started(key, parts).finalize().into_bytes().into()
}

fn started(key: &[u8; BYTES], parts: &[&[u8]]) -> HmacSha256 {
    // HMAC fills a short key with zeros up to a block.
    let mut block = [0; 64];
    block[..BYTES].copy_from_slice(key);
    let mut mac = <HmacSha256 as Mac>::new(&block.into());
    parts.iter().for_each(|part| mac.update(part));
    mac
}

/// What each end says first: 80 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Who it is.
    pub hello: Hello,
    /// Random bytes that were never used before.
    pub challenge: [u8; BYTES],
}

impl Opening {
    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; OPENING_BYTES] {
        let mut bytes = [0; OPENING_BYTES];
        let (hello, challenge) = bytes.split_at_mut(HELLO_BYTES);
        hello.copy_from_slice(self.hello.to_bytes());
        challenge.copy_from_slice(&self.challenge);
        bytes
    }

    /// Reads an opening; none if these bytes are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (hello, challenge) = bytes.split_at_checked(HELLO_BYTES)?;
        Some(Self { hello: Hello::read(hello)?, challenge: challenge.try_into().ok()? })
    }
}

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Who has opened the connection.
    Opener,
    /// Who has accepted it.
    Acceptor,
}

/// What both ends have said; the proofs are about this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Openings {
    /// Of who has opened the connection. Its kind decides the scope.
    pub opener: Opening,
    /// Of who has accepted it.
    pub acceptor: Opening,
}

impl Openings {
    fn started(&self, secret: &Secret, end: End) -> HmacSha256 {
        // Hello::read and Hello::new make no others.
        let kind = self.opener.hello.kind().unwrap_or(HelloKind::Client);
        // GREET-2: a proof names its end, so that nobody can send one back to where it came from.
        let end: &[u8] = match end {
            End::Opener => b"opener",
            End::Acceptor => b"acceptor",
        };
        let parts: [&[u8]; 3] = [end, &self.opener.to_bytes(), &self.acceptor.to_bytes()];
        started(&secret.key(kind), &parts)
    }

    /// The proof of one end.
    pub fn proof(&self, secret: &Secret, end: End) -> [u8; PROOF_BYTES] {
        self.started(secret, end).finalize().into_bytes().into()
    }

    /// True if these bytes are the proof of that end. The time does not tell how much of it is right.
    pub fn proves(&self, secret: &Secret, end: End, proof: &[u8]) -> bool {
        self.started(secret, end).verify_slice(proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::Nonce;

    fn secret(byte: u8) -> Secret {
        Secret::new([byte; BYTES])
    }

    fn openings(kind: Hello) -> Openings {
        Openings {
            opener: Opening { hello: kind, challenge: [1; BYTES] },
            acceptor: Opening {
                hello: Hello::node(1, (7, Nonce::default()), 99),
                challenge: [2; BYTES],
            },
        }
    }

    fn kinds() -> [Hello; 3] {
        [Hello::node(2, (5, Nonce::default()), 99), Hello::client(5, 99), Hello::admin(5, 99)]
    }

    #[test]
    fn each_end_believes_who_knows_the_secret() {
        for hello in kinds() {
            let said = openings(hello);
            for end in [End::Opener, End::Acceptor] {
                let proof = said.proof(&secret(3), end);
                assert!(said.proves(&secret(3), end, &proof));
                assert!(!said.proves(&secret(4), end, &proof), "another secret");
                assert!(!said.proves(&secret(3), end, &proof[..31]), "a part of it");
                assert!(!said.proves(&secret(3), end, &[]), "nothing");
            }
        }
    }

    #[test]
    fn a_proof_sent_back_proves_nothing() {
        let said = openings(Hello::node(2, (5, Nonce::default()), 99));
        let proof = said.proof(&secret(3), End::Opener);
        assert!(!said.proves(&secret(3), End::Acceptor, &proof));
        // The opening sent back, too: the acceptor seems to have opened.
        let back = Openings { opener: said.acceptor, acceptor: said.opener };
        assert!(!back.proves(&secret(3), End::Opener, &proof));
        assert!(!back.proves(&secret(3), End::Acceptor, &proof));
    }

    #[test]
    fn a_proof_is_about_every_bit_that_was_said() {
        let said = openings(Hello::node(2, (5, Nonce::default()), 99));
        let proof = said.proof(&secret(3), End::Opener);
        for bit in 0..8 * 2 * OPENING_BYTES {
            let mut bytes = [said.opener.to_bytes(), said.acceptor.to_bytes()].concat();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (opener, acceptor) = bytes.split_at(OPENING_BYTES);
            let (Some(opener), Some(acceptor)) = (Opening::read(opener), Opening::read(acceptor))
            else {
                continue;
            };
            let other = Openings { opener, acceptor };
            assert!(!other.proves(&secret(3), End::Opener, &proof), "bit {bit}");
        }
    }

    #[test]
    fn a_proof_of_one_scope_is_none_of_another() {
        let proofs = kinds().map(|hello| openings(hello).proof(&secret(3), End::Opener));
        for (at, hello) in kinds().into_iter().enumerate() {
            for (of, proof) in proofs.iter().enumerate() {
                assert_eq!(openings(hello).proves(&secret(3), End::Opener, proof), at == of);
            }
        }
        let [node, client, admin] =
            [HelloKind::Node, HelloKind::Client, HelloKind::Admin].map(|k| secret(3).key(k));
        assert!(node != client && client != admin && node != admin);
    }

    /// The way never changes; tests/native.py computes the same. (The greetings name the version of the protocol.)
    #[test]
    fn proofs_are_frozen() {
        let said = openings(Hello::node(2, (5, Nonce::default()), 99));
        let proof = said.proof(&secret(3), End::Opener);
        assert_eq!(
            Secret::new(proof).text(),
            "b5f307b8c8762ba2f20dbe606f3eddd5a1813b5be180b2b9f66ee79b686d2d33"
        );
    }

    #[test]
    fn secrets_are_read_as_they_are_written() {
        let secret = Secret::new(core::array::from_fn(|at| at as u8 * 7));
        let text = secret.text();
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse::<Secret>(), Ok(secret.clone()));
        assert_eq!(std::format!(" {text}\n").to_uppercase().parse::<Secret>(), Ok(secret.clone()));
        for bad in ["", "00", &text[1..], &std::format!("{text}0"), &text.replace('0', "x")] {
            assert_eq!(bad.parse::<Secret>(), Err(NoSecret), "{bad}");
        }
        assert_eq!(std::format!("{secret:?}"), "Secret(…)");
    }
}
