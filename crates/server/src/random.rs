//! Random numbers from the operating system: ids, seeds, login nonces.

use lats_runtime::random::bytes;

/// A random number.
///
/// # Errors
/// When the operating system gives none.
pub(crate) fn number() -> std::io::Result<u64> {
    bytes().map(u64::from_ne_bytes)
}

/// A login nonce.
///
/// # Errors
/// When the operating system gives none.
pub(crate) fn nonce() -> std::io::Result<[u8; 20]> {
    bytes()
}
