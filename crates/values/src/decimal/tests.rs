//! Decimals against 128-bit arithmetic, and their texts.

use super::*;
use lats_base::prng::Prng;
use std::{format, string::ToString, vec::Vec};

fn parse(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn texts() {
    for (text, expected) in [
        ("1", "1"),
        ("-0", "0"),
        ("-0.00", "0.00"),
        ("+1.50", "1.50"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1000"),
        ("1.5e-3", "0.0015"),
        (
            "12345678901234567890123456789012345678901234567890.5",
            "12345678901234567890123456789012345678901234567890.5",
        ),
        ("0.00000000000000000000000000000000000001", "0.00000000000000000000000000000000000001"),
        (" 7 ", "7"),
        ("1e-999999999999", &format!("0.{}", "0".repeat(72))),
    ] {
        assert_eq!(parse(text).to_text(), expected, "{text}");
    }
    for text in ["", "a", "1a", ".", "e5", "--1", "1e99", "1e999999999999"] {
        assert_eq!(Decimal::parse(text), None, "{text}");
    }
}

#[test]
fn agrees_with_integers() {
    let mut random = Prng::new(1);
    for _ in 0..20_000 {
        let mut number = || {
            let size = random.below(60);
            let value = i128::from(random.next_u64() >> (4 + size));
            (if random.chance(1, 2) { -value } else { value }, random.below(6) as u8)
        };
        let ((a, s), (b, t)) = (number(), number());
        let (x, y) = (Decimal::new(a, s), Decimal::new(b, t));
        let high = s.max(t);
        let up = |v: i128, scale: u8| v * 10_i128.pow(u32::from(high - scale));
        let (a2, b2) = (up(a, s), up(b, t));
        assert_eq!(x.add(&y).unwrap(), Decimal::new(a2 + b2, high));
        assert_eq!(x.sub(&y).unwrap(), Decimal::new(a2 - b2, high));
        assert_eq!(x.mul(&y).unwrap(), Decimal::new(a * b, s + t));
        assert_eq!(x.order(&y), a2.cmp(&b2));
        if b != 0 {
            assert_eq!(x.rem(&y).unwrap(), Decimal::new(a2 % b2, high));
            assert_eq!(x.div_whole(&y).unwrap(), Decimal::new(a2 / b2, 0));
            // The quotient is right to its last shown digit.
            let quotient = x.div(&y).unwrap();
            let error = quotient.round(s + 4).mul(&y).unwrap().sub(&x).unwrap().abs();
            let bound = y.abs().mul(&Decimal::new(1, s + 4)).unwrap();
            assert!(error.order(&bound).is_le(), "{x} / {y} = {quotient}");
        }
        assert_eq!(parse(&x.to_text()), x);
        assert_eq!(x.canonical_bytes() == y.canonical_bytes(), x.order(&y).is_eq());
    }
}

#[test]
fn large_numbers_agree_with_small_ones_times_a_power() {
    let mut random = Prng::new(2);
    let factor = parse("1e40");
    for _ in 0..2_000 {
        let a = Decimal::from(random.next_u64() as i64);
        let b = Decimal::from(random.next_u64() as i64);
        let big = |v: &Decimal| v.mul(&factor).unwrap();
        assert_eq!(big(&a).add(&big(&b)).unwrap(), big(&a.add(&b).unwrap()));
        assert_eq!(big(&a).order(&big(&b)), a.order(&b));
        assert_eq!(big(&a).div_whole(&factor).unwrap(), a);
    }
}

#[test]
fn rounds_half_away_from_zero() {
    for (text, scale, rounded, cut) in [
        ("2.5", 0, "3", "2"),
        ("-2.5", 0, "-3", "-2"),
        ("2.45", 1, "2.5", "2.4"),
        ("-0.4", 0, "0", "0"),
        ("1", 2, "1.00", "1.00"),
    ] {
        assert_eq!(parse(text).round(scale).to_text(), rounded);
        assert_eq!(parse(text).truncate(scale).to_text(), cut);
    }
}

#[test]
fn overflow_and_limits() {
    let max = Decimal::max_of(65, 0);
    assert_eq!(max.mul(&max), Err(DecimalError::Overflow));
    assert_eq!(max.div(&Decimal::zero()), Err(DecimalError::DivisionByZero));
    assert!(max.fits(65, 0) && !max.add(&Decimal::from(1_i64)).unwrap().fits(65, 0));
    assert_eq!(Decimal::max_of(5, 2).to_text(), "999.99");
}

#[test]
fn fixed_width_bytes_keep_the_number() {
    let mut random = Prng::new(3);
    for precision in 1..=65_u8 {
        let width = crate::types::decimal_width(precision);
        for value in [Decimal::max_of(precision, 0), Decimal::max_of(precision, 0).neg()] {
            assert_eq!(Decimal::from_signed_be(&value.to_signed_be(0, width), 0), value);
        }
        let digits: Vec<u8> = (0..precision).map(|_| b'0' + random.below(10) as u8).collect();
        let value = parse(&format!("-{}", core::str::from_utf8(&digits).unwrap()));
        assert_eq!(Decimal::from_signed_be(&value.to_signed_be(0, width), 0), value);
    }
}

#[test]
fn doubles() {
    assert_eq!(Decimal::from_f64(0.1).unwrap().to_string(), "0.1");
    assert_eq!(Decimal::from_f64(f64::NAN), None);
    assert_eq!(Decimal::from_f64(1e300), None);
    assert!((parse("123.456").to_f64() - 123.456).abs() < f64::EPSILON);
}
