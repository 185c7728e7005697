//! Limits of definitions, and what is told of changes.

mod changes;

use crate::{Catalog, Change, ChangeErrorKind, ColumnDef, TableDef};
use lats_base::{TableId, limits};
use lats_values::{ColumnType, TypeKind};
use std::{format, string::ToString, vec, vec::Vec};

fn with_database() -> Catalog {
    let mut catalog = Catalog::default();
    let database = Change::CreateDatabase { name: "test".to_string(), if_not_exists: true };
    catalog.apply(&database, 2).unwrap();
    catalog
}

fn table(name: &str, columns: usize, comment_chars: usize) -> Change {
    let column = |at: usize| {
        ColumnDef::new(&format!("{at:064}"), ColumnType::new(TypeKind::BigInt).not_null())
    };
    let table = TableDef {
        id: TableId::new(0),
        schema_version: 0,
        database: "test".to_string(),
        name: name.to_string(),
        columns: (0..columns).map(column).collect(),
        primary_key: vec![0],
        indexes: Vec::new(),
        fragment_count: 0,
        comment: "c".repeat(comment_chars),
        partition_key: Vec::new(),
        index_of: None,
    };
    Change::CreateTable { table, if_not_exists: false }
}

#[test]
fn names_and_comments_are_as_long_as_in_mysql() {
    let mut catalog = with_database();
    let long = "é".repeat(limits::NAME_CHARS_MAX);
    assert!(catalog.apply(&table(&long, 1, limits::COMMENT_CHARS_MAX), 2).is_ok());
    let refused = catalog.apply(&table(&format!("{long}e"), 1, 0), 2).unwrap_err();
    assert_eq!(refused.kind, ChangeErrorKind::NameTooLong);
    let refused = catalog.apply(&table("t", 1, limits::COMMENT_CHARS_MAX + 1), 2).unwrap_err();
    assert_eq!(refused.kind, ChangeErrorKind::CommentTooLong);
    let name = "d".repeat(limits::NAME_CHARS_MAX + 1);
    let refused = catalog.apply(&Change::CreateDatabase { name, if_not_exists: true }, 2);
    assert_eq!(refused.unwrap_err().kind, ChangeErrorKind::NameTooLong);
}

#[test]
fn definitions_that_do_not_fit_into_a_signal_are_refused() {
    let mut catalog = with_database();
    let change = |number| table(&format!("t{number}"), limits::COLUMNS_MAX, 0);
    let refused = (0..).find_map(|number| Some((number, catalog.apply(&change(number), 2).err()?)));
    let (count, refused) = refused.unwrap();
    assert_eq!(catalog.tables.len(), count);
    assert!(refused.message.contains("drop some tables"));
    let bytes = catalog.encode().len();
    assert!(bytes <= limits::CATALOG_BYTES_MAX && bytes > limits::CATALOG_BYTES_MAX - (64 << 10));
    let gone = Change::DropTable {
        database: "test".to_string(),
        name: "t0".to_string(),
        if_exists: false,
    };
    assert!(catalog.apply(&gone, 2).is_ok());
    assert!(catalog.apply(&table("again", limits::COLUMNS_MAX, 0), 2).is_ok());
}

#[test]
fn columns_have_types_that_there_are() {
    let mut catalog = with_database();
    let members = vec!["a".to_string()];
    let wrong = [
        (ColumnType::new(TypeKind::Enum).with_members(members.clone()), "enum"),
        (ColumnType::new(TypeKind::Set).with_members(members), "set"),
        (ColumnType::new(TypeKind::Bit { bits: 8 }), "bit"),
        (ColumnType::new(TypeKind::Json), "json"),
        (ColumnType::new(TypeKind::Decimal { precision: 66, scale: 0 }), "decimal"),
    ];
    for (column_type, name) in wrong {
        let mut change = table("t", 1, 0);
        if let Change::CreateTable { table, .. } = &mut change {
            table.columns.push(ColumnDef::new("x", column_type));
        }
        // It travels, and is refused by name.
        let read: Change = crate::decode(&crate::encode(&change)).unwrap();
        let refused = catalog.apply(&read, 2).unwrap_err();
        assert_eq!(refused.kind, ChangeErrorKind::NotSupported);
        assert!(refused.message.contains(name), "{}", refused.message);
    }
}
