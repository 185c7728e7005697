//! Whole numbers of any length: 128 bits on the fast path, a big number beyond.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::cmp::Ordering;
use lats_base::planted::{QueryBug, errs};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

/// A whole number. `Big` only holds what does not fit `Small`, so equal numbers have one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Digits {
    /// Fits 128 bits.
    Small(i128),
    /// Does not.
    Big(BigInt),
}

const SMALL_POWER_MAX: usize = 38;

fn small_power(exponent: usize) -> Option<i128> {
    let exponent = u32::try_from(exponent).ok()?;
    10_i128.checked_pow(exponent)
}

impl Digits {
    fn big(&self) -> BigInt {
        match self {
            Self::Small(value) => BigInt::from(*value),
            Self::Big(value) => value.clone(),
        }
    }

    fn from_big(value: BigInt) -> Self {
        match value.to_i128() {
            Some(small) => Self::Small(small),
            None => Self::Big(value),
        }
    }

    pub(super) fn power_of_ten(exponent: usize) -> Self {
        match small_power(exponent) {
            Some(power) => Self::Small(power),
            None => Self::Big(BigInt::from(10_u8).pow(exponent.min(400) as u32)),
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        *self == Self::Small(0)
    }

    pub(super) fn is_negative(&self) -> bool {
        match self {
            Self::Small(value) => *value < 0,
            Self::Big(value) => value.is_negative(),
        }
    }

    pub(super) fn neg(&self) -> Self {
        match self {
            Self::Small(value) => match value.checked_neg() {
                Some(negated) => Self::Small(negated),
                None => Self::from_big(-BigInt::from(*value)),
            },
            Self::Big(value) => Self::from_big(-value),
        }
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other)
            && let Some(sum) = a.checked_add(*b)
        {
            return Self::Small(sum);
        }
        Self::from_big(self.big() + other.big())
    }

    pub(super) fn sub(&self, other: &Self) -> Self {
        self.add(&other.neg())
    }

    pub(super) fn mul(&self, other: &Self) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other)
            && let Some(product) = a.checked_mul(*b)
        {
            return Self::Small(product);
        }
        Self::from_big(self.big() * other.big())
    }

    /// The quotient towards zero; zero when the divisor is zero, which callers rule out.
    pub(super) fn div(&self, other: &Self) -> Self {
        if other.is_zero() {
            return Self::Small(0);
        }
        if let (Self::Small(a), Self::Small(b)) = (self, other)
            && let Some(quotient) = a.checked_div(*b)
        {
            return Self::Small(quotient);
        }
        Self::from_big(self.big() / other.big())
    }

    /// The remainder with the sign of the dividend; zero when the divisor is zero.
    pub(super) fn rem(&self, other: &Self) -> Self {
        if other.is_zero() {
            return Self::Small(0);
        }
        if let (Self::Small(a), Self::Small(b)) = (self, other)
            && let Some(remainder) = a.checked_rem(*b)
        {
            return Self::Small(remainder);
        }
        Self::from_big(self.big() % other.big())
    }

    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Small(a), Self::Small(b)) => a.cmp(b),
            _ => self.big().cmp(&other.big()),
        }
    }

    /// Times ten to the `places`.
    pub(super) fn scaled_up(&self, places: usize) -> Self {
        if places == 0 || self.is_zero() {
            return self.clone();
        }
        self.mul(&Self::power_of_ten(places))
    }

    /// Divided by ten to the `places`: half away from zero, or towards zero.
    pub(super) fn scaled_down(&self, places: usize, round: bool) -> Self {
        if places == 0 {
            return self.clone();
        }
        let power = Self::power_of_ten(places);
        let quotient = self.div(&power);
        if !round {
            return quotient;
        }
        let rest = self.rem(&power);
        let rest = if rest.is_negative() { rest.neg() } else { rest };
        let twice = rest.add(&rest).cmp(&power);
        let goes_up = || twice == Ordering::Equal && self.is_negative();
        if twice == Ordering::Less || (errs(QueryBug::NegativeRoundsUp) && goes_up()) {
            return quotient;
        }
        quotient.add(&Self::Small(if self.is_negative() { -1 } else { 1 }))
    }

    /// Drops up to `most` zeros at the end; says how many.
    pub(super) fn without_trailing_zeros(&self, most: usize) -> (Self, usize) {
        if self.is_zero() {
            return (self.clone(), most);
        }
        let (mut value, mut dropped) = (self.clone(), 0);
        let ten = Self::Small(10);
        while dropped < most && value.rem(&ten).is_zero() {
            value = value.div(&ten);
            dropped += 1;
        }
        (value, dropped)
    }

    /// How many decimal digits it has; zero has none.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Small(0) => 0,
            Self::Small(value) => value.unsigned_abs().ilog10() as usize + 1,
            Self::Big(value) => value.magnitude().to_string().len(),
        }
    }

    /// Decimal text with a point before the last `scale` digits.
    pub(super) fn text_at(&self, scale: usize) -> String {
        let magnitude = match self {
            Self::Small(value) => value.unsigned_abs().to_string(),
            Self::Big(value) => value.magnitude().to_string(),
        };
        let mut text = String::with_capacity(magnitude.len().max(scale + 1) + 2);
        if self.is_negative() {
            text.push('-');
        }
        let whole = magnitude.len().saturating_sub(scale);
        let (before, after) = magnitude.split_at(whole);
        text.push_str(if before.is_empty() { "0" } else { before });
        if scale > 0 {
            text.push('.');
            text.extend(core::iter::repeat_n('0', scale - after.len()));
            text.push_str(after);
        }
        text
    }

    /// Decimal digits without sign, point or anything else.
    pub(super) fn parse(digits: &str) -> Option<Self> {
        if digits.len() <= SMALL_POWER_MAX {
            return digits.parse().ok().map(Self::Small);
        }
        digits.parse::<BigInt>().ok().map(Self::from_big)
    }

    /// Shortest two's complement, big-endian.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.big().to_signed_bytes_be()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        if bytes.len() <= 16 {
            let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
            let mut all = [if negative { 0xff } else { 0 }; 16];
            if let Some(tail) = all.get_mut(16 - bytes.len()..) {
                tail.copy_from_slice(bytes);
            }
            return Self::Small(i128::from_be_bytes(all));
        }
        Self::from_big(BigInt::from_signed_bytes_be(bytes))
    }

    /// Two's complement, big-endian, of exactly `width` bytes; larger numbers lose their front.
    pub(super) fn to_width(&self, width: usize) -> Vec<u8> {
        if let Self::Small(value) = self
            && width <= 16
        {
            return value.to_be_bytes().get(16 - width..).map(<[u8]>::to_vec).unwrap_or_default();
        }
        let bytes = self.to_bytes();
        let fill = if self.is_negative() { 0xff } else { 0 };
        let mut out = alloc::vec![fill; width.saturating_sub(bytes.len())];
        out.extend_from_slice(bytes.get(bytes.len().saturating_sub(width)..).unwrap_or(&bytes));
        out
    }
}

impl Default for Digits {
    fn default() -> Self {
        Self::from_big(BigInt::zero())
    }
}
