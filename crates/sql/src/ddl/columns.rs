//! Definitions of columns, and the options of tables.

use crate::bind::{Binder, collation_named, data_type};
use crate::error;
use lats_catalog::{ColumnDef, DefaultValue};
use lats_values::{Collation, ColumnType, ConvertContext, EvalContext, SqlError, Value};
use sqlparser::ast::{
    self, ColumnOption, CommentDef, CreateTableOptions, FunctionArguments, SqlOption,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

/// What follows a table's definition.
#[derive(Debug, Default)]
pub(super) struct TableOptions {
    pub(super) collation: Collation,
    pub(super) comment: String,
    /// Where the sequence starts.
    pub(super) auto_increment: Option<u64>,
}

pub(super) fn table_options(options: &CreateTableOptions) -> Result<TableOptions, SqlError> {
    let mut found = TableOptions::default();
    let list = match options {
        CreateTableOptions::None => return Ok(found),
        CreateTableOptions::Plain(list) => list,
        _ => return Err(error::not_supported("these table options")),
    };
    for option in list {
        match option {
            SqlOption::Comment(CommentDef::WithEq(text) | CommentDef::WithoutEq(text)) => {
                found.comment.clone_from(text);
            }
            SqlOption::NamedParenthesizedList(list)
                if list.key.value.eq_ignore_ascii_case("ENGINE") && list.values.is_empty() => {}
            SqlOption::KeyValue { key, value } => key_value(&key.value, value, &mut found)?,
            other => return Err(error::not_supported(&format!("table option {other}"))),
        }
    }
    Ok(found)
}

fn key_value(key: &str, value: &ast::Expr, found: &mut TableOptions) -> Result<(), SqlError> {
    let word = match value {
        ast::Expr::Identifier(ident) => ident.value.clone(),
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) => {
                text.clone()
            }
            other => other.to_string(),
        },
        other => other.to_string(),
    };
    match key.to_ascii_uppercase().as_str() {
        "ENGINE" | "ROW_FORMAT" | "KEY_BLOCK_SIZE" | "STATS_PERSISTENT" | "MAX_ROWS"
        | "MIN_ROWS" | "AVG_ROW_LENGTH" | "CHECKSUM" | "PACK_KEYS" | "DELAY_KEY_WRITE"
        | "STATS_AUTO_RECALC" | "STATS_SAMPLE_PAGES" | "COMPRESSION" => Ok(()),
        "CHARSET" | "CHARACTER SET" | "DEFAULT CHARSET" | "DEFAULT CHARACTER SET" => {
            // A collation that was named before belongs to this character set.
            if found.collation == Collation::default() {
                found.collation = crate::bind::charset_collation(&word)?;
            }
            Ok(())
        }
        "COLLATE" | "DEFAULT COLLATE" => {
            found.collation = collation_named(&word)?;
            Ok(())
        }
        "COMMENT" => {
            found.comment = word;
            Ok(())
        }
        "AUTO_INCREMENT" => {
            let start = word.parse::<u64>().map_err(|_| error::syntax("near AUTO_INCREMENT"))?;
            found.auto_increment = Some(start);
            Ok(())
        }
        other => Err(error::not_supported(&format!("table option {other}"))),
    }
}

/// A column's definition, whether it is the primary key, and whether it is unique.
pub(super) fn column_def(
    column: &ast::ColumnDef,
    table_collation: Collation,
) -> Result<(ColumnDef, bool, bool), SqlError> {
    let name = &column.name.value;
    super::check_name(name, 1166, "column")?;
    let collation = column_collation(column, table_collation)?;
    let mut def = ColumnDef::new(name, data_type(&column.data_type, collation)?);
    let mut is_key = false;
    let mut is_unique = false;
    let mut default = None;
    let mut not_null = false;
    for option in &column.options {
        match &option.option {
            ColumnOption::Null => def.column_type.nullable = true,
            ColumnOption::NotNull => not_null = true,
            ColumnOption::Default(expr) => default = Some(expr),
            ColumnOption::PrimaryKey(key) if key.characteristics.is_none() => is_key = true,
            ColumnOption::Unique(unique) if unique.characteristics.is_none() => is_unique = true,
            ColumnOption::ForeignKey(_) => return Err(error::not_supported("FOREIGN KEY")),
            ColumnOption::Check(_) => return Err(error::not_supported("CHECK constraints")),
            ColumnOption::Generated { .. } => {
                return Err(error::not_supported("generated columns"));
            }
            ColumnOption::CharacterSet(_) | ColumnOption::Collation(_) => {}
            ColumnOption::Comment(_) => {}
            ColumnOption::OnUpdate(expr) => {
                check_now(expr, &def.column_type, &def.name)?;
                def.on_update_now = true;
            }
            ColumnOption::DialectSpecific(tokens) if is_auto_increment(tokens) => {
                if !def.column_type.kind.is_integer() {
                    let text = format!("Incorrect column specifier for column '{}'", def.name);
                    return Err(error::make(1063, "42000", &text));
                }
                def.auto_increment = true;
                not_null = true;
            }
            other => return Err(error::not_supported(&format!("column option {other}"))),
        }
    }
    if not_null || is_key {
        def.column_type.nullable = false;
    }
    if let Some(expr) = default {
        def.default = default_value(expr, &def)?;
    }
    Ok((def, is_key, is_unique))
}

fn column_collation(
    column: &ast::ColumnDef,
    table_collation: Collation,
) -> Result<Collation, SqlError> {
    let mut collation = table_collation;
    for option in &column.options {
        if let ColumnOption::CharacterSet(name) = &option.option {
            collation = crate::bind::charset_collation(&name.to_string())?;
        }
    }
    for option in &column.options {
        if let ColumnOption::Collation(name) = &option.option {
            collation = collation_named(&name.to_string())?;
        }
    }
    Ok(collation)
}

fn is_auto_increment(tokens: &[Token]) -> bool {
    matches!(tokens, [Token::Word(word)] if word.keyword == Keyword::AUTO_INCREMENT)
}

fn is_now(expr: &ast::Expr) -> bool {
    let ast::Expr::Function(function) = expr else { return false };
    let name = function.name.to_string().to_ascii_uppercase();
    let named =
        matches!(name.as_str(), "CURRENT_TIMESTAMP" | "NOW" | "LOCALTIME" | "LOCALTIMESTAMP");
    named && matches!(&function.args, FunctionArguments::None | FunctionArguments::List(_))
}

fn check_now(expr: &ast::Expr, column: &ColumnType, name: &str) -> Result<(), SqlError> {
    use lats_values::TypeKind as K;
    let fits = matches!(column.kind, K::DateTime { .. } | K::Timestamp { .. });
    if !is_now(expr) || !fits {
        let text = format!("Invalid ON UPDATE clause for '{name}' column");
        return Err(error::make(1294, "HY000", &text));
    }
    Ok(())
}

fn default_value(expr: &ast::Expr, def: &ColumnDef) -> Result<DefaultValue, SqlError> {
    use lats_values::TypeKind as K;
    let invalid =
        || error::make(1067, "42000", &format!("Invalid default value for '{}'", def.name));
    if is_now(expr) {
        let fits = matches!(def.column_type.kind, K::DateTime { .. } | K::Timestamp { .. });
        return if fits { Ok(DefaultValue::Now) } else { Err(invalid()) };
    }
    let literal =
        matches!(expr, ast::Expr::Value(_) | ast::Expr::UnaryOp { .. } | ast::Expr::TypedString(_));
    if !literal {
        return Err(error::not_supported("expressions as default values"));
    }
    if def.auto_increment {
        return Err(invalid());
    }
    let bound = Binder::new(None, "").bind_in("default value", expr)?;
    let none: &[Value] = &[];
    let source = crate::expr::ValuesSource { row: none, externals: none };
    let value = lats_values::eval(&bound, &source, &mut EvalContext::new(true))?;
    if value.is_null() {
        return match def.column_type.nullable {
            true => Ok(DefaultValue::Literal(Value::Null)),
            false => Err(invalid()),
        };
    }
    if matches!(
        def.column_type.kind,
        K::TinyText
            | K::Text
            | K::MediumText
            | K::LongText
            | K::TinyBlob
            | K::Blob
            | K::MediumBlob
            | K::LongBlob
    ) {
        let text = format!(
            "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value",
            def.name
        );
        return Err(error::make(1101, "42000", &text));
    }
    let mut context = ConvertContext::new(true, def.name.as_str(), 1);
    lats_values::convert_to_column(value, &def.column_type, &mut context)
        .map(DefaultValue::Literal)
        .map_err(|_| invalid())
}
