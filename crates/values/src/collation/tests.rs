//! One order for comparisons and keys, whatever way it is computed.

use super::*;
use crate::testing;
use lats_base::prng::Prng;
use std::vec::Vec;

fn key(collation: Collation, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    append_key(collation, text, &mut out);
    out
}

#[test]
fn keys_order_as_comparisons() {
    let mut random = Prng::new(1);
    for collation in Collation::ALL {
        for _ in 0..50_000 {
            let (a, b) = (testing::text(&mut random), testing::text(&mut random));
            let order = key(collation, &a).cmp(&key(collation, &b));
            assert_eq!(order, compare(collation, &a, &b), "{collation:?} {a:?} {b:?}");
        }
    }
}

#[test]
fn the_short_way_for_ascii_gives_what_the_collator_gives() {
    let mut random = Prng::new(2);
    let ascii = |random: &mut Prng| -> String {
        (0..random.below(6)).map(|_| char::from(random.below(128) as u8)).collect()
    };
    for a in 0..128_u8 {
        for b in 0..128_u8 {
            let (a, b) = (String::from(char::from(a)), String::from(char::from(b)));
            assert_eq!(compare(Collation::Utf8mb4_0900AiCi, &a, &b), ROOT.compare(&a, &b));
        }
    }
    for _ in 0..100_000 {
        let (a, b) = (ascii(&mut random), ascii(&mut random));
        let order = compare(Collation::Utf8mb4_0900AiCi, &a, &b);
        assert_eq!(order, ROOT.compare(&a, &b), "{a:?} {b:?}");
        let keys = key(Collation::Utf8mb4_0900AiCi, &a).cmp(&key(Collation::Utf8mb4_0900AiCi, &b));
        assert_eq!(order, keys, "{a:?} {b:?}");
    }
}

#[test]
fn keys_of_ascii_are_the_collators() {
    let collated = |text: &str| {
        let (mut weights, mut out) = (Vec::new(), Vec::new());
        let Ok(()) = ROOT.write_sort_key_to(text, &mut weights);
        append_escaped(&weights, &mut out);
        out
    };
    let check = |text: &str| {
        assert_eq!(key(Collation::Utf8mb4_0900AiCi, text), collated(text), "{text:?}");
    };
    for a in 0..128_u8 {
        for b in 0..128_u8 {
            check(&[char::from(a), char::from(b)].iter().collect::<String>());
        }
    }
    let mut random = Prng::new(4);
    for _ in 0..50_000 {
        let length = random.below(40);
        check(&(0..length).map(|_| char::from(random.below(128) as u8)).collect::<String>());
    }
}

#[test]
fn any_characters_are_ordered_alike_by_key_and_comparison() {
    let mut random = Prng::new(3);
    let mut any = || -> String {
        (0..random.below(4))
            .map(|_| char::from_u32(random.below(0x11_0000) as u32).unwrap_or('x'))
            .collect()
    };
    for _ in 0..50_000 {
        let (a, b) = (any(), any());
        for collation in Collation::ALL {
            let order = key(collation, &a).cmp(&key(collation, &b));
            assert_eq!(order, compare(collation, &a, &b), "{collation:?} {a:?} {b:?}");
        }
    }
}

#[test]
fn equalities() {
    use Collation::*;
    for (collation, a, b, expected) in [
        (Utf8mb4_0900AiCi, "a", "A", true),
        (Utf8mb4_0900AiCi, "é", "E", true),
        (Utf8mb4_0900AiCi, "ß", "SS", true),
        (Utf8mb4_0900AiCi, "a", "a ", false),
        (Utf8mb4_0900AiCi, "a\0", "a", true),
        (Utf8mb4_0900AiCi, "æ", "ae", true),
        (Utf8mb4GeneralCi, "a", "A  ", true),
        (Utf8mb4GeneralCi, "é", "E", true),
        (Utf8mb4GeneralCi, "ß", "s", true),
        (Utf8mb4GeneralCi, "ß", "ss", false),
        (Utf8mb4GeneralCi, "ё", "Е", true),
        (Utf8mb4GeneralCi, "й", "И", false),
        (Utf8mb4GeneralCi, "😀", "😁", true),
        (Utf8mb4Bin, "a", "a ", true),
        (Utf8mb4Bin, "a", "A", false),
        (Binary, "a", "a ", false),
    ] {
        assert_eq!(compare(collation, a, b).is_eq(), expected, "{collation:?} {a:?} {b:?}");
    }
}

#[test]
fn weights_stay_what_they_are() {
    // Replicas compare each other's keys: a change here is a change of the stored format.
    assert_eq!(crate::text::hex(&key(Collation::Utf8mb4_0900AiCi, "Ab ä")), GOLDEN);
}

const GOLDEN: &str = "2B2D042B0000";
