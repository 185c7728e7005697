//! Random bytes from the operating system: ids, seeds, login nonces.

/// Random bytes.
fn fill(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // Only a signal can interrupt it; then it is asked again.
        if let Ok(count) = rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()) {
            filled += count;
        }
    }
}

/// A random number.
pub(crate) fn number() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}

/// A login nonce.
pub(crate) fn nonce() -> [u8; 20] {
    let mut bytes = [0; 20];
    fill(&mut bytes);
    bytes
}
