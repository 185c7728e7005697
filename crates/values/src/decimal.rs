//! Exact decimal numbers with MySQL's scales and roundings.
//!
//! A quotient is computed to more digits than it shows, as MySQL does (`1/3*3` is `1.0000`), so a
//! value has two scales: the digits it holds and the digits it shows.

mod digits;
mod parse;
#[cfg(test)]
mod tests;

pub use digits::Digits;

use alloc::{string::String, vec::Vec};
use core::cmp::Ordering;
use lats_base::planted::{QueryBug, errs};
use serde::{Deserialize, Serialize};

/// Most digits of a column.
pub const PRECISION_MAX: u8 = 65;
/// Most digits after the point of a column, and of what is computed; constants show more.
pub const SCALE_MAX: u8 = 30;
/// Digits that a division adds to the shown scale of its dividend.
pub const DIVISION_SCALE: u8 = 4;
/// Digits of an intermediate result: nine groups of nine, as in MySQL.
const DIGITS_MAX: usize = 81;
/// Digits of a group.
const GROUP: usize = 9;
/// Most digits after the point that a product holds.
const PRODUCT_SCALE_MAX: u8 = 31;

/// Why a computation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// The whole part needs more than 81 digits.
    Overflow,
    /// The divisor is zero.
    DivisionByZero,
}

/// An exact decimal number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Decimal {
    digits: Digits,
    scale: u8,
    shown: u8,
}

/// A decimal in a program: checked when it is read, because programs come from outside.
#[derive(Serialize, Deserialize)]
struct Wire {
    mantissa: Vec<u8>,
    scale: u8,
    shown: u8,
}

impl From<Decimal> for Wire {
    fn from(value: Decimal) -> Self {
        Self { mantissa: value.digits.to_bytes(), scale: value.scale, shown: value.shown }
    }
}

impl TryFrom<Wire> for Decimal {
    type Error = &'static str;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        if wire.mantissa.len() > 36 || usize::from(wire.scale) > DIGITS_MAX {
            return Err("decimal too long");
        }
        let digits = Digits::from_bytes(&wire.mantissa);
        if digits.count() > DIGITS_MAX || wire.shown > wire.scale {
            return Err("decimal out of range");
        }
        Ok(Self { digits, scale: wire.scale, shown: wire.shown })
    }
}

impl Decimal {
    /// `mantissa / 10^scale`. A scale above 30 is rounded to 30.
    pub fn new(mantissa: i128, scale: u8) -> Self {
        Self::from_digits(Digits::Small(mantissa), scale)
    }

    fn from_digits(digits: Digits, scale: u8) -> Self {
        let value = Self { digits, scale, shown: scale.min(SCALE_MAX) };
        if scale > SCALE_MAX { value.round(SCALE_MAX) } else { value }
    }

    /// Zero without decimals.
    pub fn zero() -> Self {
        Self::new(0, 0)
    }

    /// The largest number of a column; the smallest is its negation.
    pub fn max_of(precision: u8, scale: u8) -> Self {
        let digits = Digits::power_of_ten(usize::from(precision)).sub(&Digits::Small(1));
        Self { digits, scale, shown: scale.min(SCALE_MAX) }
    }

    /// The shortest decimal that names this double; `None` when it is not finite or too large.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let exact = Self::parse(&alloc::format!("{value:e}"))?;
        Some(if exact.scale > SCALE_MAX { exact.round(SCALE_MAX) } else { exact })
    }

    /// Digits after the point that are shown.
    pub fn shown_scale(&self) -> u8 {
        self.shown
    }

    /// Digits before the point, at least one.
    pub fn whole_digits(&self) -> usize {
        self.digits.count().saturating_sub(usize::from(self.scale)).max(1)
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_zero()
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.digits.is_negative()
    }

    /// The number with the opposite sign.
    #[must_use]
    pub fn neg(&self) -> Self {
        Self { digits: self.digits.neg(), ..*self }
    }

    /// The number without its sign.
    #[must_use]
    pub fn abs(&self) -> Self {
        if self.is_negative() { self.neg() } else { self.clone() }
    }

    fn digits_at(&self, scale: u8) -> Digits {
        self.digits.scaled_up(usize::from(scale.saturating_sub(self.scale)))
    }

    fn checked(digits: Digits, scale: u8, shown: u8) -> Result<Self, DecimalError> {
        let value = Self { digits, scale, shown };
        let (whole, scale) = (value.whole_digits(), usize::from(scale));
        if whole > DIGITS_MAX {
            return Err(DecimalError::Overflow);
        }
        let room = GROUP * (DIGITS_MAX / GROUP - whole.div_ceil(GROUP));
        if scale <= room { Ok(value) } else { Ok(value.truncated_to_group(room)) }
    }

    /// Drops held digits that have no room, and shows no more than are held.
    fn truncated_to_group(self, room: usize) -> Self {
        let drop = usize::from(self.scale).saturating_sub(room);
        let scale = self.scale - drop as u8;
        let digits = self.digits.scaled_down(drop, false);
        Self { digits, scale, shown: self.shown.min(scale) }
    }

    /// The sum.
    pub fn add(&self, other: &Self) -> Result<Self, DecimalError> {
        let scale = self.scale.max(other.scale);
        let digits = self.digits_at(scale).add(&other.digits_at(scale));
        Self::checked(digits, scale, self.shown.max(other.shown))
    }

    /// The difference.
    pub fn sub(&self, other: &Self) -> Result<Self, DecimalError> {
        self.add(&other.neg())
    }

    /// The product.
    pub fn mul(&self, other: &Self) -> Result<Self, DecimalError> {
        let full = self.scale.saturating_add(other.scale);
        let scale = full.min(PRODUCT_SCALE_MAX.max(self.scale).max(other.scale));
        let shown = self.shown.saturating_add(other.shown).min(SCALE_MAX).min(scale);
        let digits = self.digits.mul(&other.digits).scaled_down(usize::from(full - scale), false);
        Self::checked(digits, scale, shown)
    }

    /// The quotient: shows four digits more than the dividend, and holds whole groups of nine.
    pub fn div(&self, other: &Self) -> Result<Self, DecimalError> {
        self.div_scaled(other, DIVISION_SCALE)
    }

    fn div_scaled(&self, other: &Self, more: u8) -> Result<Self, DecimalError> {
        if other.is_zero() {
            return Err(DecimalError::DivisionByZero);
        }
        let groups = |scale: u8| usize::from(scale).div_ceil(GROUP) * GROUP;
        let (left, right) = (groups(self.scale), groups(other.scale));
        let spare = left - usize::from(self.scale) + right - usize::from(other.scale);
        let held = (left + right + usize::from(more).saturating_sub(spare)).div_ceil(GROUP) * GROUP;
        let held = held.min(DIGITS_MAX - GROUP);
        // self / other · 10^held, on the two mantissas.
        let up = (held + usize::from(other.scale)).saturating_sub(usize::from(self.scale));
        let down = usize::from(self.scale).saturating_sub(held + usize::from(other.scale));
        let quotient = self.digits.scaled_up(up).div(&other.digits).scaled_down(down, false);
        let shown = self.shown.saturating_add(more).min(SCALE_MAX);
        if errs(QueryBug::QuotientsCutAsShown) {
            let quotient = Self { digits: quotient, scale: held as u8, shown };
            return Ok(quotient.round(shown));
        }
        Self::checked(quotient, held as u8, shown.min(held as u8))
    }

    /// The quotient without its fraction.
    pub fn div_whole(&self, other: &Self) -> Result<Self, DecimalError> {
        if other.is_zero() {
            return Err(DecimalError::DivisionByZero);
        }
        let scale = self.scale.max(other.scale);
        Self::checked(self.digits_at(scale).div(&other.digits_at(scale)), 0, 0)
    }

    /// The remainder, with the sign of the dividend.
    pub fn rem(&self, other: &Self) -> Result<Self, DecimalError> {
        if other.is_zero() {
            return Err(DecimalError::DivisionByZero);
        }
        let scale = self.scale.max(other.scale);
        let digits = self.digits_at(scale).rem(&other.digits_at(scale));
        Self::checked(digits, scale, self.shown.max(other.shown))
    }

    /// Rounds half away from zero to this many digits after the point, or extends to as many.
    #[must_use]
    pub fn round(&self, scale: u8) -> Self {
        self.rescaled(scale, true)
    }

    /// Cuts off after this many digits after the point, or extends to as many.
    #[must_use]
    pub fn truncate(&self, scale: u8) -> Self {
        self.rescaled(scale, false)
    }

    fn rescaled(&self, scale: u8, round: bool) -> Self {
        self.at_scale(scale.min(SCALE_MAX), round)
    }

    fn at_scale(&self, scale: u8, round: bool) -> Self {
        let digits = if scale >= self.scale {
            self.digits_at(scale)
        } else {
            self.digits.scaled_down(usize::from(self.scale - scale), round)
        };
        Self { digits, scale, shown: scale }
    }

    /// Rounds or cuts at a place before (negative) or after the point, as ROUND and TRUNCATE do.
    #[must_use]
    pub fn at_place(&self, place: i64, round: bool) -> Self {
        if let Ok(scale) = u8::try_from(place) {
            return self.rescaled(scale, round);
        }
        if place > 0 {
            return self.rescaled(SCALE_MAX, round);
        }
        let zeros = place.unsigned_abs().min(100) as usize;
        let digits = self.digits.scaled_down(usize::from(self.scale) + zeros, round);
        Self { digits: digits.scaled_up(zeros), scale: 0, shown: 0 }
    }

    /// The largest whole number that is not above it.
    #[must_use]
    pub fn floor(&self) -> Self {
        let whole = self.truncate(0);
        if self.is_negative() && whole.order(self) != Ordering::Equal {
            return Self { digits: whole.digits.sub(&Digits::Small(1)), ..whole };
        }
        whole
    }

    /// The smallest whole number that is not below it.
    #[must_use]
    pub fn ceil(&self) -> Self {
        self.neg().floor().neg()
    }

    /// The nearest whole number, half away from zero; `None` when it does not fit.
    pub fn to_i128(&self) -> Option<i128> {
        match self.round(0).digits {
            Digits::Small(value) => Some(value),
            Digits::Big(_) => None,
        }
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        self.held_text().parse().unwrap_or(0.0)
    }

    /// Which is larger, by value: 1.0 and 1.00 are equal.
    pub fn order(&self, other: &Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        self.digits_at(scale).cmp(&other.digits_at(scale))
    }

    /// The same number with the fewest digits after the point: equal numbers become the same.
    #[must_use]
    pub fn canonical(&self) -> Self {
        let (digits, dropped) = self.digits.without_trailing_zeros(usize::from(self.scale));
        let scale = self.scale - dropped as u8;
        Self { digits, scale, shown: scale.min(SCALE_MAX) }
    }

    /// Whether it fits `DECIMAL(precision, scale)` after rounding.
    pub fn fits(&self, precision: u8, scale: u8) -> bool {
        self.round(scale).digits.count() <= usize::from(precision)
    }

    /// The number as it is shown.
    pub fn to_text(&self) -> String {
        let shown = self.at_scale(self.shown, true);
        shown.digits.text_at(usize::from(shown.scale))
    }

    fn held_text(&self) -> String {
        self.digits.text_at(usize::from(self.scale))
    }

    /// Two's complement, big-endian, of the mantissa at `scale`, in `width` bytes.
    pub(crate) fn to_signed_be(&self, scale: u8, width: usize) -> Vec<u8> {
        self.round(scale).digits.to_width(width)
    }

    /// The reverse of [`Self::to_signed_be`].
    pub(crate) fn from_signed_be(bytes: &[u8], scale: u8) -> Self {
        Self::from_digits(Digits::from_bytes(bytes), scale)
    }

    /// Bytes that are the same for equal numbers.
    pub(crate) fn canonical_bytes(&self) -> Vec<u8> {
        let value = self.canonical();
        let mut out = alloc::vec![value.scale];
        out.extend(value.digits.to_bytes());
        out
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::new(i128::from(value), 0)
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Self {
        Self::new(i128::from(value), 0)
    }
}

impl core::fmt::Display for Decimal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.to_text())
    }
}
