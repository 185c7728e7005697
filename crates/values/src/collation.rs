//! Comparing text, and keys whose bytes order as the text does.
//!
//! `utf8mb4_0900_ai_ci` is the Unicode Collation Algorithm at primary strength with the root
//! weights. Another version of the weights gives other keys, so the library's version is pinned and
//! a test keeps some keys as they are: nodes that exchange keys must run the same weights.

mod general;
#[cfg(test)]
mod tests;

use crate::Collation;
use alloc::{string::String, vec::Vec};
use core::cmp::Ordering;
use icu_collator::{
    CollatorBorrowed,
    options::{CollatorOptions, Strength},
};

const fn root() -> CollatorBorrowed<'static> {
    let mut options = CollatorOptions::default();
    options.strength = Some(Strength::Primary);
    CollatorBorrowed::new_root(options)
}

static ROOT: CollatorBorrowed<'static> = root();

/// The root weight of each ASCII character: its one or two bytes, the second being 0 if there is one
/// only; 0 where it has none. The collator gives just these bytes for texts that are all ASCII (a test
/// says so), and this gives them sooner.
static ASCII_WEIGHTS: [u16; 128] = ascii_weights();

const fn ascii_weights() -> [u16; 128] {
    /// Characters whose weights have the same first byte, with their second bytes.
    const MARKS: &[(u16, &[(u8, u16)])] = &[
        (0x03, &[(b'\t', 0x04), (b'\n', 0x06), (0x0b, 0x08), (0x0c, 0x0a), (b'\r', 0x0c)]),
        (0x04, &[(b' ', 0)]),
        (0x05, &[(b'_', 0x0a), (b'-', 0x0e)]),
        (0x06, &[(b',', 0)]),
        (0x07, &[(b';', 0x2a), (b':', 0x36), (b'!', 0x5a), (b'?', 0x68)]),
        (0x08, &[(b'.', 0)]),
        (0x09, &[(b'\'', 0x70), (b'"', 0x76), (b'(', 0x7c), (b')', 0x7e), (b'[', 0x80)]),
        (0x09, &[(b']', 0x82), (b'{', 0x84), (b'}', 0x86)]),
        (0x0a, &[(b'@', 0x80), (b'*', 0x82), (b'/', 0x8c), (b'\\', 0x8e), (b'&', 0x92)]),
        (0x0a, &[(b'#', 0x98), (b'%', 0x9a)]),
        (0x0c, &[(b'`', 0x04), (b'^', 0x0a), (b'+', 0x7d), (b'<', 0x87), (b'=', 0x89)]),
        (0x0c, &[(b'>', 0x8b), (b'|', 0x8f), (b'~', 0x93)]),
        (0x0d, &[(b'$', 0xaf)]),
    ];
    let mut weights = [0; 128];
    let mut group = 0;
    while group < MARKS.len() {
        let (first, marks) = MARKS[group];
        let mut mark = 0;
        while mark < marks.len() {
            weights[marks[mark].0 as usize] = first << 8 | marks[mark].1;
            mark += 1;
        }
        group += 1;
    }
    let mut digit = 0;
    while digit < 10 {
        weights[b'0' as usize + digit] = (0x12 + 2 * digit as u16) << 8;
        digit += 1;
    }
    let mut letter = 0;
    while letter < 26 {
        let weight = (0x2b + 2 * letter as u16) << 8;
        weights[b'a' as usize + letter] = weight;
        weights[b'A' as usize + letter] = weight;
        letter += 1;
    }
    weights
}

fn ascii_weights_of(text: &str) -> impl Iterator<Item = u16> {
    text.bytes().map(|b| ASCII_WEIGHTS.get(usize::from(b)).copied().unwrap_or(0)).filter(|w| *w > 0)
}

/// Compares two texts.
pub fn compare(collation: Collation, a: &str, b: &str) -> Ordering {
    match collation {
        Collation::Binary => a.cmp(b),
        Collation::Utf8mb4Bin => padded(a.bytes(), b.bytes(), b' '),
        Collation::Utf8mb4GeneralCi => {
            padded(a.chars().map(general::weight), b.chars().map(general::weight), 0x20)
        }
        Collation::Utf8mb4_0900AiCi if a.is_ascii() && b.is_ascii() => {
            ascii_weights_of(a).cmp(ascii_weights_of(b))
        }
        Collation::Utf8mb4_0900AiCi => ROOT.compare(a, b),
    }
}

/// Compares as if the shorter side went on with spaces.
fn padded<T: Ord + Copy>(
    mut a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
    space: T,
) -> Ordering {
    loop {
        let (x, y) = (a.next(), b.next());
        if x.is_none() && y.is_none() {
            return Ordering::Equal;
        }
        match x.unwrap_or(space).cmp(&y.unwrap_or(space)) {
            Ordering::Equal => {}
            order => return order,
        }
    }
}

/// Whether two characters are the same to LIKE.
pub fn chars_equal(collation: Collation, a: char, b: char) -> bool {
    if a == b {
        return true;
    }
    match collation {
        Collation::Binary | Collation::Utf8mb4Bin => false,
        Collation::Utf8mb4GeneralCi => general::weight(a) == general::weight(b),
        Collation::Utf8mb4_0900AiCi if a.is_ascii() && b.is_ascii() => a.eq_ignore_ascii_case(&b),
        Collation::Utf8mb4_0900AiCi => {
            let (mut x, mut y) = ([0; 4], [0; 4]);
            ROOT.compare(a.encode_utf8(&mut x), b.encode_utf8(&mut y)) == Ordering::Equal
        }
    }
}

/// How many bytes at the beginning are a key that [`append_key`] has written; none if there is no such
/// key.
pub fn key_bytes(collation: Collation, key: &[u8]) -> Option<usize> {
    match collation {
        Collation::Utf8mb4Bin => padded_bytes(key, b" "),
        Collation::Utf8mb4GeneralCi => padded_bytes(key, &[0, 0x20]),
        Collation::Binary | Collation::Utf8mb4_0900AiCi => escaped_bytes(key),
    }
}

/// Up to the end of what [`append_escaped`] has written.
fn escaped_bytes(key: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match (key.get(at)?, key.get(at + 1)) {
            (0, Some(0)) => return Some(at + 2),
            (0, Some(0xff)) => at += 2,
            (0, _) => return None,
            _ => at += 1,
        }
    }
}

/// Up to the end of what [`append_padded`] has written, with units like this space.
fn padded_bytes(key: &[u8], space: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let unit = key.get(at..at + space.len())?;
        at += space.len();
        if unit == space {
            match *key.get(at)? {
                END => return Some(at + 1),
                // The mark, and the length of the run.
                BELOW | ABOVE => at += 1 + size_of::<u32>(),
                _ => return None,
            }
        }
    }
}

/// Appends a key: equal for equal texts, ordered by bytes as the texts are, and ended, so that
/// another key may follow.
pub fn append_key(collation: Collation, text: &str, out: &mut Vec<u8>) {
    match collation {
        Collation::Binary => append_escaped(text.as_bytes(), out),
        Collation::Utf8mb4Bin => append_padded(text.bytes(), b' ', &mut |b, out| out.push(b), out),
        Collation::Utf8mb4GeneralCi => append_padded(
            text.chars().map(general::weight),
            0x20,
            &mut |w, out| out.extend_from_slice(&w.to_be_bytes()),
            out,
        ),
        Collation::Utf8mb4_0900AiCi if text.is_ascii() => append_ascii(text, out),
        Collation::Utf8mb4_0900AiCi => {
            let mut weights = Vec::with_capacity(text.len() + 8);
            // A vector takes everything: the error type has no values.
            let Ok(()) = ROOT.write_sort_key_to(text, &mut weights);
            append_escaped(&weights, out);
        }
    }
}

/// Appends the key of an ASCII text: the bytes that the collator gives. None of them is 0.
fn append_ascii(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + 2 * text.len() + 2, 0);
    let slots = out.get_mut(start..).unwrap_or_default();
    let mut end = 0;
    // Without branches: a byte that is not there is written over by what comes next.
    for byte in text.bytes() {
        let (bytes, count) = ASCII_KEYS[usize::from(byte & 0x7f)];
        if let Some(slot) = slots.get_mut(end..end + 2) {
            slot.copy_from_slice(&bytes);
        }
        end += usize::from(count);
    }
    if let Some(last) = slots.get_mut(end..end + 2) {
        last.fill(0);
    }
    out.truncate(start + end + 2);
}

/// The bytes of each character's weight that are not 0, and how many they are.
static ASCII_KEYS: [([u8; 2], u8); 128] = ascii_keys();

const fn ascii_keys() -> [([u8; 2], u8); 128] {
    let mut keys = [([0; 2], 0); 128];
    let mut at = 0;
    while at < keys.len() {
        let [high, low] = ASCII_WEIGHTS[at].to_be_bytes();
        keys[at] = match (high, low) {
            (0, 0) => ([0, 0], 0),
            (0, only) | (only, 0) => ([only, 0], 1),
            both => ([both.0, both.1], 2),
        };
        at += 1;
    }
    keys
}

/// Appends bytes so that shorter ones sort first whatever follows: 0 becomes 0 255, the end 0 0.
pub fn append_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// What stands behind a run of spaces: something below a space, the end, something above.
const BELOW: u8 = 1;
const END: u8 = 2;
const ABOVE: u8 = 3;

/// Appends units of a text whose trailing spaces do not count. The end reads as endless spaces, so
/// each run of spaces says first how it ends, and only then how long it is.
fn append_padded<T: Ord + Copy>(
    units: impl Iterator<Item = T>,
    space: T,
    put: &mut impl FnMut(T, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let mut run = 0_u32;
    for unit in units {
        if unit == space {
            run = run.saturating_add(1);
            continue;
        }
        if run > 0 {
            put(space, out);
            // The longer run is the smaller text when something above a space ends it.
            let (mark, length) = if unit < space { (BELOW, run) } else { (ABOVE, !run) };
            out.push(mark);
            out.extend_from_slice(&length.to_be_bytes());
            run = 0;
        }
        put(unit, out);
    }
    put(space, out);
    out.push(END);
}

/// The text in lower case, as LOWER gives it.
pub fn lower(text: &str) -> String {
    text.chars().map(general::lower_char).collect()
}

/// The text in upper case, as UPPER gives it.
pub fn upper(text: &str) -> String {
    text.chars().map(general::upper_char).collect()
}
