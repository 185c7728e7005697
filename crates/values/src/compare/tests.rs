//! Group keys, and orders that hold for all values of a type.

use super::*;
use crate::testing;
use lats_base::prng::Prng;

#[test]
fn group_keys_are_equal_where_the_order_says_equal() {
    let mut random = Prng::new(1);
    for column in testing::all_types() {
        for _ in 0..2_000 {
            let a = testing::value(&column, &mut random);
            let b = testing::value(&column, &mut random);
            let (mut x, mut y) = (Vec::new(), Vec::new());
            group_key(&[a.clone(), Value::Int(1)], &mut x);
            group_key(&[b.clone(), Value::Int(1)], &mut y);
            assert_eq!(x == y, sort_order(&a, &b).is_eq(), "{a:?} {b:?}");
        }
    }
}

#[test]
fn sort_order_is_total() {
    let mut random = Prng::new(2);
    for column in testing::all_types() {
        for _ in 0..2_000 {
            let [a, b, c] = [(); 3].map(|()| testing::value(&column, &mut random));
            assert_eq!(sort_order(&a, &b), sort_order(&b, &a).reverse());
            if sort_order(&a, &b).is_le() && sort_order(&b, &c).is_le() {
                assert!(sort_order(&a, &c).is_le(), "{a:?} {b:?} {c:?}");
            }
        }
    }
}

#[test]
fn any_two_values_compare_without_panic() {
    let mut random = Prng::new(3);
    let types = testing::all_types();
    for _ in 0..50_000 {
        let mut any = || {
            let column = &types[random.below(types.len() as u64) as usize];
            testing::value(column, &mut random)
        };
        let (a, b) = (any(), any());
        if let (Ok(x), Ok(y)) = (compare(&a, &b), compare(&b, &a)) {
            assert_eq!(x, y.map(Ordering::reverse), "{a:?} {b:?}");
        }
    }
}
