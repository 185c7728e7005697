//! Reading decimals from text.

use super::{DIGITS_MAX, Decimal, Digits, GROUP, SCALE_MAX};
use alloc::string::String;

impl Decimal {
    /// The number that a whole text is, with as many digits after the point as there is room for;
    /// `None` when it is no number or too large.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let scanned = scan(text)?;
        if scanned.length != text.len() {
            return None;
        }
        scanned.value()
    }

    /// The number that a text begins with and the bytes that it takes up, leading spaces included.
    /// `None`: the text begins with no number, or with one that is too large (then its sign).
    pub fn parse_prefix(text: &str) -> Option<(Result<Self, Sign>, usize)> {
        let start = text.len() - text.trim_start_matches(|c: char| c.is_ascii_whitespace()).len();
        let scanned = scan(text.get(start..)?)?;
        let value = scanned.value().ok_or(Sign { negative: scanned.negative });
        Some((value, start + scanned.length))
    }
}

/// The sign of a number that is too large to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Below zero.
    pub negative: bool,
}

/// The parts of a number at the start of a text.
struct Scanned<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
    length: usize,
}

fn digits_of(text: &str) -> &str {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

fn scan(text: &str) -> Option<Scanned<'_>> {
    let negative = text.starts_with('-');
    let mut at = usize::from(negative || text.starts_with('+'));
    let whole = digits_of(text.get(at..)?);
    at += whole.len();
    let mut fraction = "";
    if text.get(at..)?.starts_with('.') {
        fraction = digits_of(text.get(at + 1..)?);
        if !whole.is_empty() || !fraction.is_empty() {
            at += 1 + fraction.len();
        }
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (exponent, more) = scan_exponent(text.get(at..)?);
    Some(Scanned { negative, whole, fraction, exponent, length: at + more })
}

/// The exponent at the start of a text and its length; nothing when no digit follows the `e`.
fn scan_exponent(text: &str) -> (i64, usize) {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return (0, 0) };
    let negative = rest.starts_with('-');
    let sign = usize::from(negative || rest.starts_with('+'));
    let digits = rest.get(sign..).map_or("", digits_of);
    if digits.is_empty() {
        return (0, 0);
    }
    // More than nine digits is far beyond any number that is held.
    let value: i64 = digits.parse().unwrap_or(999_999_999).min(999_999_999);
    (if negative { -value } else { value }, 1 + sign + digits.len())
}

impl Scanned<'_> {
    fn value(&self) -> Option<Decimal> {
        let mut digits = String::with_capacity(self.whole.len() + self.fraction.len());
        digits.push_str(self.whole);
        digits.push_str(self.fraction);
        let mut scale = i64::try_from(self.fraction.len()).ok()? - self.exponent;
        let leading = digits.bytes().take_while(|b| *b == b'0').count();
        let mut digits = digits.get(leading..)?;
        // Digits far behind the last one that is kept change nothing but cost time.
        let keep = DIGITS_MAX + usize::from(SCALE_MAX) + 2;
        if digits.len() > keep {
            scale -= i64::try_from(digits.len() - keep).ok()?;
            digits = digits.get(..keep)?;
        }
        if digits.is_empty() {
            let scale = scale.clamp(0, (DIGITS_MAX - GROUP) as i64) as u8;
            return Some(Decimal { digits: Digits::Small(0), scale, shown: scale });
        }
        if i64::try_from(digits.len()).ok()? - scale > DIGITS_MAX as i64 {
            return None;
        }
        let value = Digits::parse(digits)?;
        let value = if self.negative { value.neg() } else { value };
        if scale < 0 {
            let zeros = usize::try_from(-scale).ok()?;
            return Some(Decimal::from_digits(value.scaled_up(zeros), 0));
        }
        // Groups of nine digits: those before the point, of which there is at least one, come first.
        let whole = usize::try_from(digits.len() as i64 - scale).unwrap_or(0).max(1);
        let room = GROUP * (DIGITS_MAX / GROUP - whole.div_ceil(GROUP));
        let drop = usize::try_from(scale).ok()?.saturating_sub(room);
        let digits = if drop > keep { Digits::Small(0) } else { value.scaled_down(drop, false) };
        let scale = u8::try_from(usize::try_from(scale).ok()? - drop).ok()?;
        Some(Decimal { digits, scale, shown: scale })
    }
}
