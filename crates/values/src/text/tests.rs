//! Numbers as text and back.

use super::*;

#[test]
fn doubles_as_mysql_shows_them() {
    for (value, expected) in [
        (0.0, "0"),
        (0.1, "0.1"),
        (1e14, "100000000000000"),
        (1e15, "1e15"),
        (123_456_789_012_345.0, "123456789012345"),
        (1_234_567_890_123_456.0, "1.234567890123456e15"),
        (1e-15, "0.000000000000001"),
        (1e-16, "1e-16"),
        (-1.5e20, "-1.5e20"),
        (1.0 / 3.0, "0.3333333333333333"),
        (f64::MAX, "1.7976931348623157e308"),
    ] {
        assert_eq!(format_double(value), expected);
    }
    for (value, expected) in [
        (2.718_281_7_f32 + 0.5, "3.21828"),
        (16_777_216.0, "16777200"),
        (1e20, "1e20"),
        (0.1, "0.1"),
    ] {
        assert_eq!(format_float(value), expected);
    }
}

#[test]
fn numbers_at_the_front_of_text() {
    for (text, value, rest) in [
        ("12", 12.0, Rest::Nothing),
        (" -1.5e2 ", -150.0, Rest::Nothing),
        (".5", 0.5, Rest::Nothing),
        ("5.", 5.0, Rest::Nothing),
        ("1e", 1.0, Rest::Garbage),
        ("10abc", 10.0, Rest::Garbage),
        ("abc", 0.0, Rest::NoNumber),
        ("", 0.0, Rest::NoNumber),
        (".", 0.0, Rest::NoNumber),
        ("inf", 0.0, Rest::NoNumber),
        ("1e999", f64::MAX, Rest::Nothing),
    ] {
        assert_eq!(double_prefix(text.as_bytes()), (value, rest), "{text:?}");
    }
    assert_eq!(integer_prefix(b" -12.5"), (-12, Rest::Garbage));
    assert_eq!(integer_prefix(&[b'9'; 100]).1, Rest::Nothing);
}
