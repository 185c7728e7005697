//! Definitions of columns.

use super::options::wrong_collation;
use crate::bind::{collation_named, data_type, literal};
use crate::error;
use crate::syntax::name;
use lats_catalog::{ColumnDef, DefaultValue};
use lats_mysql_syntax::tree::{self, Charset, ColumnAttribute, Expr, ExprId, TypeName};
use lats_mysql_syntax::{Keyword, Tree};
use lats_values::{Collation, ColumnType, ConvertContext, SqlError, TypeKind, Value};

/// A column as it was written.
pub(super) struct Column {
    pub(super) def: ColumnDef,
    /// PRIMARY KEY.
    pub(super) is_key: bool,
    /// UNIQUE.
    pub(super) is_unique: bool,
    /// NULL.
    pub(super) is_null: bool,
}

pub(super) fn column_def(
    tree: &Tree,
    written: &tree::ColumnDef,
    table_collation: Collation,
) -> Result<Column, SqlError> {
    let name = name(tree, written.name)?;
    super::check_name(name, 1166, "column")?;
    if written.generated.is_some() {
        return Err(error::not_supported("generated columns"));
    }
    let def = ColumnDef::new(name, column_type(tree, written, table_collation)?);
    let mut column = Column { def, is_key: false, is_unique: false, is_null: false };
    if written.data_type.name == TypeName::Serial {
        number_it(&mut column)?;
        column.is_unique = true;
    }
    let mut default = None;
    for attribute in &written.attributes {
        match attribute {
            ColumnAttribute::Default { has_parentheses: true, .. } => {
                return Err(error::not_supported("expressions as default values"));
            }
            ColumnAttribute::Default { value, .. } => default = Some(*value),
            other => attribute_of(tree, &mut column, other)?,
        }
    }
    if column.is_key {
        column.def.column_type.nullable = false;
    }
    if let Some(id) = default {
        column.def.default = default_value(tree, id, &column.def)?;
    }
    Ok(column)
}

/// What an attribute other than DEFAULT makes of the column.
fn attribute_of(
    tree: &Tree,
    column: &mut Column,
    attribute: &ColumnAttribute,
) -> Result<(), SqlError> {
    use ColumnAttribute as A;
    let refused = match attribute {
        A::Null | A::NotNull => {
            column.is_null = *attribute == A::Null;
            column.def.column_type.nullable = column.is_null;
            return Ok(());
        }
        A::AutoIncrement => return number_it(column),
        A::SerialDefaultValue => {
            column.is_unique = true;
            return number_it(column);
        }
        A::OnUpdate(value) => {
            if !is_now_for(tree, *value, &column.def.column_type) {
                let text = format!("Invalid ON UPDATE clause for '{}' column", column.def.name);
                return Err(error::make(1294, "HY000", &text));
            }
            column.def.on_update_now = true;
            return Ok(());
        }
        A::PrimaryKey => {
            column.is_key = true;
            return Ok(());
        }
        A::Unique => {
            column.is_unique = true;
            return Ok(());
        }
        // What the type's part of the definition looks at, and what is about storage.
        A::Collate(_) | A::Comment(_) | A::ColumnFormat(_) | A::Visible => return Ok(()),
        A::Storage(word) if *word != Keyword::DISK => return Ok(()),
        // There is no secondary engine.
        A::NotSecondary => return Ok(()),
        A::Storage(_) => "STORAGE DISK",
        A::Srid(_) => "SRID",
        A::Invisible => "invisible columns",
        A::EngineAttribute(_) | A::SecondaryEngineAttribute(_) => "ENGINE_ATTRIBUTE",
        A::Check(_) => "CHECK constraints",
        A::References(_) => "FOREIGN KEY",
        A::Default { .. } => "expressions as default values",
    };
    Err(error::not_supported(refused))
}

/// AUTO_INCREMENT.
fn number_it(column: &mut Column) -> Result<(), SqlError> {
    if !column.def.column_type.kind.is_integer() {
        let text = format!("Incorrect column specifier for column '{}'", column.def.name);
        return Err(error::make(1063, "42000", &text));
    }
    column.def.auto_increment = true;
    column.def.column_type.nullable = false;
    Ok(())
}

/// The type with its collation: that of COLLATE, of the character set, or of the table.
fn column_type(
    tree: &Tree,
    written: &tree::ColumnDef,
    table_collation: Collation,
) -> Result<ColumnType, SqlError> {
    if written.data_type.name == TypeName::Serial {
        return Ok(ColumnType::new(TypeKind::BigInt).unsigned());
    }
    let mut collation = None;
    for attribute in &written.attributes {
        if let ColumnAttribute::Collate(text) = attribute {
            collation = Some(collation_named(name(tree, *text)?)?);
        }
    }
    let mut found = data_type(tree, &written.data_type, collation.unwrap_or(table_collation))?;
    if let Some(collation) = collation.filter(|_| found.kind.is_text()) {
        let has_charset = written.data_type.charset != Charset::None;
        if has_charset && found.collation.charset() != collation.charset() {
            return Err(wrong_collation(collation.name(), found.collation.charset()));
        }
        found.collation = collation;
    }
    Ok(found)
}

/// True for CURRENT_TIMESTAMP, or a synonym, where a column of this type can have it: with as many digits of a second's fraction.
fn is_now_for(tree: &Tree, id: ExprId, column: &ColumnType) -> bool {
    let is_moment = matches!(column.kind, TypeKind::DateTime { .. } | TypeKind::Timestamp { .. });
    is_moment && now_digits(tree, id) == Some(u64::from(column.kind.fsp()))
}

/// The digits of a second's fraction, if this is CURRENT_TIMESTAMP.
fn now_digits(tree: &Tree, id: ExprId) -> Option<u64> {
    use Keyword as K;
    let Expr::Function { name, arguments, .. } = *tree.expr(id) else { return None };
    if !matches!(name, K::NOW | K::CURRENT_TIMESTAMP | K::LOCALTIME | K::LOCALTIMESTAMP) {
        return None;
    }
    match tree.list(arguments) {
        [] => Some(0),
        [digits] => match *tree.expr(*digits) {
            Expr::Number { digits, .. } => str::from_utf8(tree.text(digits)).ok()?.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn default_value(tree: &Tree, id: ExprId, def: &ColumnDef) -> Result<DefaultValue, SqlError> {
    let column = &def.column_type;
    let invalid =
        || error::make(1067, "42000", &format!("Invalid default value for '{}'", def.name));
    if now_digits(tree, id).is_some() {
        return if is_now_for(tree, id, column) { Ok(DefaultValue::Now) } else { Err(invalid()) };
    }
    let Some(value) = literal(tree, id)? else {
        return Err(error::not_supported("expressions as default values"));
    };
    if def.auto_increment {
        return Err(invalid());
    }
    if value.is_null() {
        return match column.nullable {
            true => Ok(DefaultValue::Literal(Value::Null)),
            false => Err(invalid()),
        };
    }
    if super::keys::is_blob(column.kind) {
        let text = format!(
            "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value",
            def.name
        );
        return Err(error::make(1101, "42000", &text));
    }
    let value = if column.kind.is_number() { digits_as_number(tree, id, value) } else { value };
    let mut context = ConvertContext::new(true, def.name.as_str(), 1);
    lats_values::convert_to_column(value, column, &mut context)
        .map(DefaultValue::Literal)
        .map_err(|_| invalid())
}

/// Hexadecimal and binary literals are numbers where a number is wanted.
fn digits_as_number(tree: &Tree, id: ExprId, value: Value) -> Value {
    let is_digits = matches!(tree.expr(id), Expr::Hex { .. } | Expr::Bits { .. });
    match value {
        Value::Bytes(bytes) if is_digits => {
            let significant = bytes.iter().skip_while(|byte| **byte == 0);
            // What is longer than eight bytes is as large as a number can be.
            let is_long = significant.clone().count() > 8;
            let number = significant.fold(0u64, |number, byte| number << 8 | u64::from(*byte));
            Value::UInt(if is_long { u64::MAX } else { number })
        }
        other => other,
    }
}
