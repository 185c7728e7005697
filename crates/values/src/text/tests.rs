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
        ("1e999", f64::MAX, Rest::TooLarge),
        ("-1e999x", -f64::MAX, Rest::TooLarge),
    ] {
        assert_eq!(double_prefix(text.as_bytes()), (value, rest), "{text:?}");
    }
    assert_eq!(integer_prefix(b" -12.5"), (-12, Rest::Garbage));
    assert_eq!(integer_prefix(&[b'9'; 100]).1, Rest::Nothing);
}

/// Number, width, what a MySQL server stores, and whether no digit was missing.
const WIDTHS: &[(f64, usize, &str, bool)] = &[
    (2e6, 6, "2e6", true),
    (2e-5, 6, "2e-5", true),
    (1.23456789e0, 6, "1.2346", true),
    (123456.789e0, 6, "123457", true),
    (1234567.89e0, 6, "1.23e6", true),
    (12345678e0, 6, "1.23e7", true),
    (0.000123456e0, 6, "1.2e-4", true),
    (-0.00012345e0, 6, "-1e-4", true),
    (1e100, 6, "1e100", true),
    (1.23456e-100, 6, "1e-100", false),
    (1234567e10, 6, "1.2e16", true),
    (999999.5e0, 6, "1e6", true),
    (9999999e0, 6, "1e7", true),
    (-123456e0, 6, "-1.2e5", true),
    (-1234567e0, 6, "-1.2e6", true),
    (0.00001234e0, 6, "1.2e-5", true),
    (99999.96e0, 6, "100000", true),
    (1.7976931348623157e308, 6, "2e308", true),
    (-1.2345e-10, 6, "-1e-10", false),
    (-1e-100, 6, "-1e-10", false),
    (1e-100, 6, "1e-100", true),
    (-0.001234e0, 6, "-0.001", true),
    (123456e0, 6, "123456", true),
    (1234560e0, 6, "1.23e6", true),
    (1200000e0, 6, "1.2e6", true),
    (9.99e-7, 6, "1e-6", true),
    (-99999.5e0, 6, "-1e5", true),
    (0.00005e0, 6, "5e-5", true),
    (9999995e0, 6, "1e7", true),
    (99999950e0, 6, "1e8", true),
    (0.2893052e5, 5, "28931", true),
    (-0.031826483e14, 3, "-3e", false),
    (0.90186e0, 6, "0.9019", true),
    (-99999.5e0, 5, "-1e5", true),
    (0.4691e0, 12, "0.4691", true),
    (-0.86991125246e-1, 10, "-0.0869911", true),
    (-123456e0, 12, "-123456", true),
    (9999999e0, 10, "9999999", true),
    (1.23456789e0, 5, "1.235", true),
    (99999950e0, 12, "99999950", true),
    (99999950e0, 3, "1e8", true),
    (1234560e0, 10, "1234560", true),
    (0.33419e-8, 10, "3.3419e-9", true),
    (1.23456789e0, 3, "1.2", true),
    (0.580660826e3, 10, "580.660826", true),
    (-0.86991125246e-1, 6, "-0.087", true),
    (-0.93579265584e-10, 6, "-9e-11", false),
    (1234567e10, 5, "1e16", true),
    (0.2893052e5, 8, "28930.52", true),
    (0.001234e0, 3, "0", true),
    (123456e0, 3, "1e5", false),
    (-99999.5e0, 3, "-1e", false),
    (-0.86991125246e-1, 12, "-0.086991125", true),
    (1.23456e-100, 3, "1e-", false),
    (-1234567e0, 10, "-1234567", true),
    (0.00009999e0, 6, "1e-4", true),
    (-0.354793205057912e12, 10, "-3.5479e11", true),
    (-0.294813e7, 12, "-2948130", true),
    (0.4081510549745e15, 6, "4.1e14", true),
    (-0.4790424501452e3, 10, "-479.04245", true),
    (0.47253835e-11, 6, "5e-12", true),
    (-0.97600756975e3, 8, "-976.008", true),
    (-0.0660224506e14, 6, "-7e12", true),
    (0.648974553137e-9, 6, "6e-10", true),
    (2e6, 12, "2000000", true),
    (-1234567e0, 8, "-1234567", true),
    (0.47253835e-11, 10, "4.7254e-12", true),
    (1e100, 5, "1e100", true),
    (-0.001234e0, 8, "-0.00123", true),
    (99999950e0, 5, "1e8", true),
    (0.03663157994e-6, 8, "3.663e-8", true),
    (0.209456e-7, 12, "2.09456e-8", true),
    (-0.480745186630039e-7, 12, "-4.807452e-8", true),
    (9999995e0, 8, "9999995", true),
    (1e100, 8, "1e100", true),
    (0.1e15, 12, "1e14", true),
    (0.30135910077e7, 12, "3013591.0077", true),
    (-99999.5e0, 10, "-99999.5", true),
    (-0.02900523e12, 3, "-3e", false),
    (-0.001234e0, 12, "-0.001234", true),
    (0.27567637655e-3, 6, "2.8e-4", true),
    (0.4691e0, 10, "0.4691", true),
    (-0.0660224506e14, 10, "-6.6022e12", true),
    (-0.644063e-1, 5, "-0.06", true),
    (-0.97e-6, 8, "-9.7e-7", true),
    (0.63086516e3, 12, "630.86516", true),
    (-0.00012345e0, 10, "-1.2345e-4", true),
];

#[test]
fn doubles_in_a_given_width() {
    for (number, width, stored, fits) in WIDTHS {
        let expected = (String::from(*stored), *fits);
        assert_eq!(double_in_width(*number, *width), expected, "{number} in {width}");
    }
    assert_eq!(double_in_width(0.0, 3), (String::from("0"), true));
}

#[test]
fn digits_behind_those_that_name_a_double_are_zeros() {
    for (value, decimals, wanted) in [
        (core::f64::consts::PI, 6, "3.141593"),
        (core::f64::consts::PI, 16, "3.1415926535897930"),
        (1.0 / 3.0, 20, "0.33333333333333330000"),
        (0.1, 15, "0.100000000000000"),
        (-2.5, 0, "-2"),
        (7.0, 0, "7"),
        (7.0, 2, "7.00"),
    ] {
        assert_eq!(format_double_fixed(value, decimals), wanted);
    }
}
