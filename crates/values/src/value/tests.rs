//! Texts and truths of values.

use super::*;

#[test]
fn texts_and_truths() {
    for (value, text, truth) in [
        (Value::Int(-5), "-5", true),
        (Value::UInt(0), "0", false),
        (Value::Double(0.5), "0.5", true),
        (Value::Decimal(Decimal::new(0, 2)), "0.00", false),
        (Value::text("0abc"), "0abc", false),
        (Value::text("0.5x"), "0.5x", true),
        (Value::Bytes(Vec::from(*b"1")), "1", true),
        (Value::Date(Date { year: 2024, month: 1, day: 2 }), "2024-01-02", true),
        (Value::Time(Time::from_micros(-1_500_000, 1)), "-00:00:01.5", true),
    ] {
        assert_eq!(value.to_text(), Some(Vec::from(text.as_bytes())));
        assert_eq!(value.truth(), Some(truth), "{text}");
    }
    assert_eq!(Value::Null.to_text(), None);
    assert_eq!(Value::Null.truth(), None);
}
