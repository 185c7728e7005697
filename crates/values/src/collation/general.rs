//! Weights of `utf8mb4_general_ci`: one character, one weight, no expansions.

use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};

static DECOMPOSITION: CanonicalDecompositionBorrowed<'static> =
    CanonicalDecompositionBorrowed::new();

/// The upper case where it is one character, else the character itself.
pub(super) fn upper_char(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// The lower case where it is one character, else the character itself.
pub(super) fn lower_char(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Blocks in which letters count as their base letters: Latin, Greek, Cyrillic, Armenian.
fn has_bases(c: char) -> bool {
    matches!(c as u32, 0xc0..=0x5ff | 0x1e00..=0x1fff)
}

/// The weight: the upper-cased base letter; all characters beyond the basic plane are alike.
pub(super) fn weight(c: char) -> u16 {
    if c.is_ascii() {
        return u16::from(c.to_ascii_uppercase() as u8);
    }
    let weight = match c {
        'ß' => 'S',
        // Й is a letter of its own there.
        'й' | 'Й' => 'Й',
        _ => upper_char(base(upper_char(base(c)))),
    };
    u16::try_from(weight as u32).unwrap_or(0xfffd)
}

fn base(mut c: char) -> char {
    // No character has more than four marks, each taken off by one step.
    for _ in 0..4 {
        if !has_bases(c) {
            break;
        }
        c = match DECOMPOSITION.decompose(c) {
            Decomposed::Default => break,
            Decomposed::Singleton(one) | Decomposed::Expansion(one, _) => one,
        };
    }
    c
}
