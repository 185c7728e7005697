//! Random bytes from the operating system.

/// Fills `bytes` with random bytes that nobody can foresee.
pub fn fill(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // Only a signal can interrupt it; then it is asked again.
        if let Ok(count) = rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()) {
            filled += count;
        }
    }
}

/// So many random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}
