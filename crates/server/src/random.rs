//! Random numbers from the operating system: ids, seeds, login nonces.

use lats_runtime::random::bytes;

/// A random number.
pub(crate) fn number() -> u64 {
    u64::from_ne_bytes(bytes())
}

/// A login nonce.
pub(crate) fn nonce() -> [u8; 20] {
    bytes()
}
