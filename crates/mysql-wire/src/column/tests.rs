//! Types as MySQL 8.4 reports them.

use super::*;

fn wire(column: ColumnType) -> (u8, u32, u8, u16, u16) {
    let wire = WireType::of(&column);
    (wire.code, wire.length, wire.decimals, wire.charset, wire.flags.bits())
}

#[test]
fn types_look_as_from_mysql() {
    let new = ColumnType::new;
    assert_eq!(wire(new(TypeKind::TinyInt)), (1, 4, 0, 63, 0));
    assert_eq!(wire(new(TypeKind::SmallInt)), (2, 6, 0, 63, 0));
    assert_eq!(wire(new(TypeKind::MediumInt).unsigned()), (9, 8, 0, 63, 32));
    assert_eq!(wire(new(TypeKind::Int).not_null()), (3, 11, 0, 63, 1));
    assert_eq!(wire(new(TypeKind::Int).unsigned()), (3, 10, 0, 63, 32));
    assert_eq!(wire(new(TypeKind::BigInt).unsigned()), (8, 20, 0, 63, 32));
    assert_eq!(wire(new(TypeKind::Float)), (4, 12, 31, 63, 0));
    assert_eq!(wire(new(TypeKind::Double)), (5, 22, 31, 63, 0));
    let decimal = |precision, scale| new(TypeKind::Decimal { precision, scale });
    assert_eq!(wire(decimal(10, 2)), (246, 12, 2, 63, 0));
    assert_eq!(wire(decimal(10, 0)), (246, 11, 0, 63, 0));
    assert_eq!(wire(decimal(10, 2).unsigned()), (246, 11, 2, 63, 32));
    assert_eq!(wire(new(TypeKind::VarChar { chars: 20 })), (253, 80, 0, 255, 0));
    let general = new(TypeKind::Char { chars: 120 }).collated(Collation::Utf8mb4GeneralCi);
    assert_eq!(wire(general), (254, 480, 0, 45, 0));
    let bin = new(TypeKind::Char { chars: 1 }).collated(Collation::Utf8mb4Bin);
    assert_eq!(wire(bin), (254, 4, 0, 46, 128));
    assert_eq!(wire(new(TypeKind::Binary { bytes: 16 })), (254, 16, 0, 63, 128));
    assert_eq!(wire(new(TypeKind::Text)), (252, 262_140, 0, 255, 16));
    assert_eq!(wire(new(TypeKind::LongText)), (252, u32::MAX, 0, 255, 16));
    assert_eq!(wire(new(TypeKind::Blob)), (252, 65_535, 0, 63, 144));
    assert_eq!(wire(new(TypeKind::Date)), (10, 10, 0, 63, 128));
    assert_eq!(wire(new(TypeKind::Time { fsp: 0 })), (11, 10, 0, 63, 128));
    assert_eq!(wire(new(TypeKind::DateTime { fsp: 6 })), (12, 26, 6, 63, 128));
    assert_eq!(wire(new(TypeKind::Timestamp { fsp: 0 })), (7, 19, 0, 63, 128));
    assert_eq!(wire(new(TypeKind::Year)), (13, 4, 0, 63, 96));
}

#[test]
fn a_definition_has_the_documented_bytes() {
    // The definition of @@version_comment in the documentation, in our character set.
    let comment = ColumnType::new(TypeKind::VarChar { chars: 7 });
    let mut out = Vec::new();
    put_column(&mut out, &ColumnInfo::expression("@@version_comment", &comment));
    let mut expected = b"\x03def\0\0\0\x11@@version_comment\0\x0C".to_vec();
    expected.extend_from_slice(&[0xFF, 0, 0x1C, 0, 0, 0, 0xFD, 0, 0, 0, 0, 0]);
    assert_eq!(out, expected);
}

#[test]
fn flags_of_the_caller_join_those_of_the_type() {
    let column_type = ColumnType::new(TypeKind::Int).unsigned().not_null();
    let mut column = ColumnInfo::expression("id", &column_type);
    column.flags = ColumnFlags::PRIMARY_KEY | ColumnFlags::AUTO_INCREMENT | ColumnFlags::PART_KEY;
    let mut out = Vec::new();
    put_column(&mut out, &column);
    assert_eq!(out[out.len() - 5..], [0x23, 0x42, 0, 0, 0]);
}
