//! Random bytes from the operating system.

/// So many random bytes that nobody can foresee.
///
/// # Errors
/// When the operating system gives none.
pub fn bytes<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
