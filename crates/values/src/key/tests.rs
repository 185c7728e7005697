//! Keys order as values do.

use super::*;
use crate::{sort_order, testing};
use lats_base::prng::Prng;
use std::cmp::Ordering;

fn key(column: &ColumnType, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key_value(column, value, &mut out);
    out
}

#[test]
fn keys_order_as_values_for_every_type() {
    let mut random = Prng::new(1);
    for column in testing::all_types() {
        for _ in 0..3_000 {
            let a = testing::value(&column, &mut random);
            let b = testing::value(&column, &mut random);
            let order = key(&column, &a).cmp(&key(&column, &b));
            assert_eq!(order, sort_order(&a, &b), "{} {a:?} {b:?}", column.sql_name());
        }
    }
}

#[test]
fn joined_keys_order_by_their_first_difference() {
    let mut random = Prng::new(2);
    let types = testing::all_types();
    for _ in 0..20_000 {
        let first = &types[random.below(types.len() as u64) as usize];
        let second = &types[random.below(types.len() as u64) as usize];
        let mut pair = || (testing::value(first, &mut random), testing::value(second, &mut random));
        let (a, b) = (pair(), pair());
        let joined = |v: &(Value, Value)| [key(first, &v.0), key(second, &v.1)].concat();
        let expected = sort_order(&a.0, &b.0).then(sort_order(&a.1, &b.1));
        assert_eq!(joined(&a).cmp(&joined(&b)), expected, "{a:?} {b:?}");
    }
}

#[test]
fn the_key_of_one_value_is_found_whatever_follows() {
    let mut random = Prng::new(4);
    for column in testing::all_types() {
        for _ in 0..500 {
            let one = key(&column, &testing::value(&column, &mut random));
            let other = key(&column, &testing::value(&column, &mut random));
            let both = [&one[..], &other, b"\x00\xff "].concat();
            assert_eq!(key_value_bytes(&column, &both), Some(one.len()), "{}", column.sql_name());
            assert_eq!(key_value_bytes(&column, &one[..one.len() - 1]), None);
        }
        // Bytes from who knows where end in an answer, too.
        let bytes: Vec<u8> = (0..40).map(|_| random.below(4) as u8).collect();
        let _ = key_value_bytes(&column, &bytes);
    }
}

#[test]
fn no_key_is_the_front_of_another() {
    let mut random = Prng::new(3);
    for column in testing::all_types() {
        for _ in 0..500 {
            let a = key(&column, &testing::value(&column, &mut random));
            let b = key(&column, &testing::value(&column, &mut random));
            assert!(a == b || !b.starts_with(&a), "{}", column.sql_name());
        }
    }
}

#[test]
fn the_next_prefix_is_above_everything_with_the_prefix() {
    for (prefix, expected) in [
        (&[1_u8, 2][..], Some(&[1_u8, 3][..])),
        (&[1, 255], Some(&[2])),
        (&[255, 255], None),
        (&[], None),
    ] {
        assert_eq!(next_prefix(prefix).as_deref(), expected);
    }
}

#[test]
fn a_value_of_another_type_is_encoded_as_it_would_be_stored() {
    let column = ColumnType::new(TypeKind::Int);
    assert_eq!(key(&column, &Value::text("12")), key(&column, &Value::Int(12)));
    assert_eq!(key(&column, &Value::UInt(12)).cmp(&key(&column, &Value::Int(12))), Ordering::Equal);
}
