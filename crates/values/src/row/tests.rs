//! Rows keep their values, and bytes from outside are refused or read safely.

use super::*;
use crate::{TypeKind, testing};
use lats_base::prng::Prng;

#[test]
fn rows_keep_values_of_every_type() {
    let types = testing::all_types();
    let layout = RowLayout::new(&types);
    let mut random = Prng::new(1);
    for _ in 0..500 {
        let values: Vec<Value> = types.iter().map(|t| testing::value(t, &mut random)).collect();
        let mut row = Vec::new();
        layout.encode(&values, &mut row).unwrap();
        layout.validate(&row).unwrap();
        for (found, expected) in layout.decode(&row).iter().zip(&values) {
            let same = matches!(
                (found, expected),
                (Value::Double(a), Value::Double(b)) if a.to_bits() == b.to_bits()
            );
            assert!(same || found == expected, "{found:?} {expected:?}");
        }
        assert_eq!(values[0].is_null(), layout.is_null(&row, 0));
    }
}

#[test]
fn a_part_of_a_row_is_what_its_values_would_be_stored_as() {
    let types = testing::all_types();
    let layout = RowLayout::new(&types);
    let mut random = Prng::new(5);
    for _ in 0..500 {
        let values: Vec<Value> = types.iter().map(|t| testing::value(t, &mut random)).collect();
        let (mut row, mut part, mut expected) =
            (Vec::new(), b"before".to_vec(), b"before".to_vec());
        layout.encode(&values, &mut row).unwrap();
        let mut columns: Vec<u16> = (0..types.len() as u16).collect();
        columns.sort_by_cached_key(|_| random.next_u64());
        columns.truncate(random.below(types.len() as u64 + 1) as usize);
        let kinds: Vec<ColumnType> =
            columns.iter().map(|c| types[usize::from(*c)].clone()).collect();
        let chosen: Vec<Value> = columns.iter().map(|c| layout.value(&row, *c)).collect();
        RowLayout::new(&kinds).encode(&chosen, &mut expected).unwrap();
        layout.project(&row, &columns, &mut part);
        assert_eq!(part, expected, "{columns:?}");
    }
}

#[test]
fn changed_bytes_never_panic_and_what_is_valid_reads_back_the_same() {
    let types = testing::all_types();
    let layout = RowLayout::new(&types);
    let mut random = Prng::new(2);
    let values: Vec<Value> = types.iter().map(|t| testing::value(t, &mut random)).collect();
    let mut good = Vec::new();
    layout.encode(&values, &mut good).unwrap();
    let mut valid = 0;
    for _ in 0..20_000 {
        let mut row = good.clone();
        for _ in 0..random.between(1, 3) {
            let at = random.below(row.len() as u64) as usize;
            row[at] = random.next_u64() as u8;
        }
        if random.chance(1, 10) {
            row.truncate(random.below(row.len() as u64) as usize);
        }
        let decoded = layout.decode(&row);
        if layout.validate(&row).is_ok() {
            valid += 1;
            let mut again = Vec::new();
            layout.encode(&decoded, &mut again).unwrap();
            assert_eq!(layout.validate(&again), Ok(()));
        }
    }
    assert!(valid > 100);
}

#[test]
fn validation_refuses() {
    let layout = RowLayout::new(&[
        ColumnType::new(TypeKind::Int).not_null(),
        ColumnType::new(TypeKind::VarChar { chars: 2 }),
    ]);
    let mut row = Vec::new();
    layout.encode(&[Value::Int(5), Value::text("ab")], &mut row).unwrap();
    assert_eq!(row, [1, 0, 5, 0, 0, 0, 2, 0, b'a', b'b']);
    assert_eq!(layout.validate(&row), Ok(()));
    for (why, at, byte) in [
        ("layout", 0, 2),
        ("NULL in NOT NULL", 1, 1),
        ("spare bits", 1, 4),
        ("end", 6, 3),
        ("not UTF-8", 8, 0xff),
    ] {
        let mut bad = row.clone();
        bad[at] = byte;
        assert_eq!(layout.validate(&bad), Err(RefCode::RowMalformed), "{why}");
    }
    let mut long = row.clone();
    long[6] = 3;
    long.push(b'c');
    assert_eq!(layout.validate(&long), Err(RefCode::RowMalformed));
}

#[test]
fn rows_that_are_too_large_are_refused() {
    let layout = RowLayout::new(&[ColumnType::new(TypeKind::LongText)]);
    for length in [limits::ROW_BYTES_MAX - 3, limits::ROW_BYTES_MAX, 70_000] {
        let mut out = Vec::from([9]);
        let text = Value::text(&"x".repeat(length));
        assert_eq!(layout.encode(&[text], &mut out).unwrap_err().errno, 1118);
        assert_eq!(out, [9]);
    }
}

#[test]
fn keys_come_from_rows() {
    let types = [ColumnType::new(TypeKind::Int), ColumnType::new(TypeKind::VarChar { chars: 5 })];
    let layout = RowLayout::new(&types);
    let values = [Value::Int(5), Value::text("ab")];
    let (mut row, mut key, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    layout.encode(&values, &mut row).unwrap();
    layout.key_of(&row, &[1, 0], &mut key);
    key::encode_key_value(&types[1], &values[1], &mut expected);
    key::encode_key_value(&types[0], &values[0], &mut expected);
    assert_eq!(key, expected);
}

#[test]
fn keys_of_stored_values_are_those_of_the_values() {
    let types = testing::all_types();
    let layout = RowLayout::new(&types);
    let mut random = Prng::new(6);
    for _ in 0..500 {
        let values: Vec<Value> = types.iter().map(|t| testing::value(t, &mut random)).collect();
        let mut row = Vec::new();
        layout.encode(&values, &mut row).unwrap();
        for (column, (kind, value)) in types.iter().zip(&values).enumerate() {
            let (mut key, mut expected) = (Vec::new(), Vec::new());
            layout.key_of(&row, &[column as u16], &mut key);
            key::encode_key_value(kind, value, &mut expected);
            assert_eq!(key, expected, "{kind:?} {value:?}");
        }
    }
}

#[test]
fn setting_columns_of_a_row_is_like_storing_all_of_it() {
    let types = testing::all_types();
    let layout = RowLayout::new(&types);
    let mut random = Prng::new(7);
    for _ in 0..500 {
        let draw = |random: &mut Prng| -> Vec<Value> {
            types.iter().map(|t| testing::value(t, random)).collect()
        };
        let (mut values, newer) = (draw(&mut random), draw(&mut random));
        let (mut row, mut over, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        layout.encode(&values, &mut row).unwrap();
        let set: Vec<Option<Value>> =
            newer.iter().map(|v| random.chance(1, 3).then(|| v.clone())).collect();
        for (value, new) in values.iter_mut().zip(&set) {
            if let Some(new) = new {
                *value = new.clone();
            }
        }
        let new = |column| set.get(usize::from(column)).and_then(Option::as_ref);
        layout.encode_over(&row, new, &mut over).unwrap();
        layout.encode(&values, &mut expected).unwrap();
        assert_eq!(over, expected);
    }
}

#[test]
fn a_column_that_is_set_where_it_stands_is_like_storing_all_of_the_row() {
    let types = testing::all_types();
    let layout = RowLayout::new(&types);
    let mut random = Prng::new(8);
    let mut in_place = alloc::vec![0; types.len()];
    for _ in 0..500 {
        let values: Vec<Value> = types.iter().map(|t| testing::value(t, &mut random)).collect();
        let mut row = Vec::new();
        layout.encode(&values, &mut row).unwrap();
        for (at, kind) in types.iter().enumerate() {
            let new = testing::value(kind, &mut random);
            let (mut set, mut expected) = (row.clone(), Vec::new());
            let may = layout.overwrite(&mut set, at as u16, &new);
            let only = |column| (usize::from(column) == at).then_some(&new);
            layout.encode_over(&row, only, &mut expected).unwrap();
            assert_eq!(set, if may { expected } else { row.clone() }, "{kind:?} {new:?}");
            in_place[at] += usize::from(may);
        }
        assert!(!layout.overwrite(&mut row.clone(), types.len() as u16, &values[0]));
    }
    assert!(in_place.iter().all(|count| *count > 0), "{in_place:?}");
}

#[test]
fn the_example_of_the_document_is_right() {
    let document = include_str!("../../../../docs/formats/rows.md");
    let hex = |bytes: &[u8]| {
        let digits: Vec<_> = bytes.iter().map(|b| alloc::format!("{b:02x}")).collect();
        alloc::format!("`{}`", digits.join(" "))
    };
    let name =
        ColumnType::new(TypeKind::VarChar { chars: 10 }).collated(crate::Collation::Utf8mb4Bin);
    let columns = [
        ColumnType::new(TypeKind::Int).unsigned().not_null(),
        name.clone(),
        ColumnType::new(TypeKind::SmallInt),
    ];
    let values = [Value::UInt(1_000), Value::Text("Ab".into(), name.collation), Value::Null];
    let mut row = Vec::new();
    RowLayout::new(&columns).encode(&values, &mut row).unwrap();
    assert!(document.contains(&hex(&row)), "{}", hex(&row));
    for column in 0..3 {
        let mut key = Vec::new();
        RowLayout::new(&columns).key_of(&row, &[column], &mut key);
        assert!(document.contains(&hex(&key)), "{}", hex(&key));
    }
}
