//! Calls of functions: aggregates, those that take their value from the session, and the rest.

use super::{AggregateCall, Binder};
use crate::error;
use crate::expr::External;
use lats_values::{AggregateKind, ColumnType, Expr, Function, SqlError, TypeKind, Value};
use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart,
};

enum Argument<'a> {
    Star,
    Expr(&'a ast::Expr),
}

impl Binder<'_> {
    pub(super) fn function(&mut self, function: &ast::Function) -> Result<Expr, SqlError> {
        let name = match function.name.0.as_slice() {
            [ObjectNamePart::Identifier(ident)] => ident.value.to_ascii_uppercase(),
            _ => return Err(error::not_supported(&format!("function {}", function.name))),
        };
        if function.over.is_some() {
            return Err(error::not_supported("window functions"));
        }
        if function.filter.is_some()
            || function.null_treatment.is_some()
            || !function.within_group.is_empty()
            || function.uses_odbc_syntax
            || !matches!(function.parameters, FunctionArguments::None)
        {
            return Err(error::not_supported(&format!("this form of {name}")));
        }
        let (arguments, distinct) = arguments(&name, &function.args)?;
        if let Some(kind) = aggregate_kind(&name) {
            return self.aggregate_call(&name, kind, &arguments, distinct);
        }
        if distinct {
            return Err(error::syntax(&format!("DISTINCT in {name}")));
        }
        let mut plain = Vec::with_capacity(arguments.len());
        for argument in &arguments {
            match argument {
                Argument::Expr(expr) => plain.push(*expr),
                Argument::Star => return Err(error::syntax(&format!("* in {name}"))),
            }
        }
        if let Some(found) = self.session_function(&name, &plain)? {
            return Ok(found);
        }
        self.value_function(&name, &plain)
    }

    fn aggregate_call(
        &mut self,
        name: &str,
        kind: AggregateKind,
        arguments: &[Argument<'_>],
        distinct: bool,
    ) -> Result<Expr, SqlError> {
        let call = match (kind, arguments) {
            (AggregateKind::Count, [Argument::Star]) if !distinct => {
                AggregateCall { kind: AggregateKind::CountStar, distinct, arg: None }
            }
            (_, [Argument::Expr(expr)]) => {
                // An aggregate within an aggregate is refused.
                let allowed = std::mem::replace(&mut self.aggregates_allowed, false);
                let arg = self.bind(expr);
                self.aggregates_allowed = allowed;
                AggregateCall { kind, distinct, arg: Some(arg?) }
            }
            (AggregateKind::Count, [_, _, ..]) if distinct => {
                return Err(error::not_supported("COUNT(DISTINCT a, b)"));
            }
            _ => return Err(error::syntax(&format!("arguments of {name}"))),
        };
        self.aggregate(call)
    }

    /// Functions whose value is the same for the whole statement.
    fn session_function(
        &mut self,
        name: &str,
        args: &[&ast::Expr],
    ) -> Result<Option<Expr>, SqlError> {
        let external = match (name, args) {
            ("NOW" | "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" | "UTC_TIMESTAMP", _) => {
                External::Now(precision(name, args)?)
            }
            ("SYSDATE", []) => External::Now(0),
            ("CURDATE" | "CURRENT_DATE" | "UTC_DATE", []) => External::CurrentDate,
            ("CURTIME" | "CURRENT_TIME" | "UTC_TIME", _) => {
                External::CurrentTime(precision(name, args)?)
            }
            ("UNIX_TIMESTAMP", []) => External::UnixTime,
            ("LAST_INSERT_ID", []) => External::LastInsertId,
            ("LAST_INSERT_ID", _) => return Err(error::not_supported("LAST_INSERT_ID(expr)")),
            ("ROW_COUNT", []) => External::RowCount,
            ("CONNECTION_ID", []) => External::ConnectionId,
            ("DATABASE" | "SCHEMA", []) => External::Database,
            ("USER" | "CURRENT_USER" | "SESSION_USER" | "SYSTEM_USER", []) => External::User,
            ("VERSION", []) => {
                External::SystemVariable { global: true, name: "version".to_owned() }
            }
            ("VALUES", [column]) => return self.values_call(column).map(Some),
            ("FOUND_ROWS" | "RAND" | "UUID" | "SLEEP" | "UUID_SHORT" | "GET_LOCK", _) => {
                return Err(error::not_supported(&format!("function {name}")));
            }
            _ => return Ok(None),
        };
        Ok(Some(self.external(external)))
    }

    fn values_call(&mut self, column: &ast::Expr) -> Result<Expr, SqlError> {
        let name = match column {
            ast::Expr::Identifier(ident) => &ident.value,
            ast::Expr::CompoundIdentifier(parts) => match parts.last() {
                Some(ident) => &ident.value,
                None => return Err(error::syntax("near VALUES")),
            },
            _ => return Err(error::syntax("near VALUES")),
        };
        if self.values_base.is_none() {
            return Err(error::not_supported("VALUES() outside ON DUPLICATE KEY UPDATE"));
        }
        self.values_column(name).ok_or_else(|| error::unknown_column(name, self.clause))
    }

    /// A function that computes from its arguments alone.
    pub(super) fn value_function(
        &mut self,
        name: &str,
        args: &[&ast::Expr],
    ) -> Result<Expr, SqlError> {
        match (name, args) {
            ("DATE_ADD" | "ADDDATE", [date, ast::Expr::Interval(interval)]) => {
                return self.add_interval(date, interval, false);
            }
            ("DATE_SUB" | "SUBDATE", [date, ast::Expr::Interval(interval)]) => {
                return self.add_interval(date, interval, true);
            }
            _ => {}
        }
        let Some(function) = Function::from_name(name) else {
            return Err(unknown(name));
        };
        let args: Result<Vec<Expr>, SqlError> = args.iter().map(|a| self.bind(a)).collect();
        self.call(function, name, args?)
    }

    /// A call, once its argument count has been checked.
    pub(super) fn call(
        &mut self,
        function: Function,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<Expr, SqlError> {
        let (fewest, most) = function.arity();
        if !(fewest..=most).contains(&args.len()) {
            return Err(error::wrong_argument_count(name));
        }
        Ok(self.as_one_type(Expr::Call { function, args }))
    }

    /// IF, IFNULL, COALESCE and CASE with a text among their results give texts only: what is compared with
    /// them is compared with texts, whichever result it is.
    pub(super) fn as_one_type(&self, expr: Expr) -> Expr {
        let types = self.table.map_or(&[][..], |t| &t.types);
        let of = |e: &Expr| lats_values::result_type(e, types);
        let chooses = match &expr {
            Expr::Call { function, .. } => {
                matches!(function, Function::If | Function::IfNull | Function::Coalesce)
            }
            other => matches!(other, Expr::Case { .. }),
        };
        if !chooses || !of(&expr).kind.is_text() {
            return expr;
        }
        // NULL and parameters have no type yet; bytes stay what they are.
        let as_text = |e: Expr| match of(&e).kind {
            kind if kind.is_text() || kind.is_bytes() => e,
            _ => Expr::Cast { arg: Box::new(e), to: ColumnType::new(TypeKind::LongText) },
        };
        match expr {
            Expr::Call { function: Function::If, args } => {
                let results = args.into_iter().zip(0..);
                let args = results.map(|(e, at)| if at == 0 { e } else { as_text(e) }).collect();
                Expr::Call { function: Function::If, args }
            }
            Expr::Call { function, args } => {
                Expr::Call { function, args: args.into_iter().map(as_text).collect() }
            }
            Expr::Case { operand, branches, otherwise } => Expr::Case {
                operand,
                branches: branches.into_iter().map(|(when, then)| (when, as_text(then))).collect(),
                otherwise: otherwise.map(|e| Box::new(as_text(*e))),
            },
            other => other,
        }
    }
}

fn arguments<'a>(
    name: &str,
    args: &'a FunctionArguments,
) -> Result<(Vec<Argument<'a>>, bool), SqlError> {
    let list = match args {
        FunctionArguments::None => return Ok((Vec::new(), false)),
        FunctionArguments::Subquery(_) => return Err(error::not_supported("subqueries")),
        FunctionArguments::List(list) => list,
    };
    if !list.clauses.is_empty() {
        return Err(error::not_supported(&format!("clauses in {name}")));
    }
    let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    let mut found = Vec::with_capacity(list.args.len());
    for arg in &list.args {
        found.push(match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Argument::Expr(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => Argument::Star,
            _ => return Err(error::not_supported(&format!("arguments of {name}"))),
        });
    }
    Ok((found, distinct))
}

fn aggregate_kind(name: &str) -> Option<AggregateKind> {
    Some(match name {
        "COUNT" => AggregateKind::Count,
        "SUM" => AggregateKind::Sum,
        "MIN" => AggregateKind::Min,
        "MAX" => AggregateKind::Max,
        "AVG" => AggregateKind::Avg,
        _ => return None,
    })
}

fn precision(name: &str, args: &[&ast::Expr]) -> Result<u8, SqlError> {
    match args {
        [] => Ok(0),
        [ast::Expr::Value(value)] => match super::literal(&value.value)? {
            Value::Int(digits @ 0..=6) => Ok(u8::try_from(digits).unwrap_or(6)),
            _ => Err(error::make(
                1426,
                "42000",
                &format!("Too-big precision specified for '{name}'. Maximum is 6."),
            )),
        },
        _ => Err(error::wrong_argument_count(name)),
    }
}

/// MySQL's functions that we do not have yet; ascending.
const NOT_YET: &[&str] = &[
    "ADDDATE",
    "ADDTIME",
    "AES_DECRYPT",
    "AES_ENCRYPT",
    "ANY_VALUE",
    "BENCHMARK",
    "BIN_TO_UUID",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "CHARSET",
    "COERCIBILITY",
    "COLLATION",
    "COMPRESS",
    "CONVERT_TZ",
    "CUME_DIST",
    "DEFAULT",
    "DENSE_RANK",
    "EXPORT_SET",
    "EXTRACTVALUE",
    "FIRST_VALUE",
    "FORMAT_BYTES",
    "FROM_BASE64",
    "GET_FORMAT",
    "GROUPING",
    "GROUP_CONCAT",
    "INET6_ATON",
    "INET6_NTOA",
    "INET_ATON",
    "INET_NTOA",
    "INTERVAL",
    "IS_FREE_LOCK",
    "IS_IPV4",
    "IS_IPV6",
    "IS_USED_LOCK",
    "IS_UUID",
    "JSON_ARRAY",
    "JSON_ARRAYAGG",
    "JSON_CONTAINS",
    "JSON_EXTRACT",
    "JSON_KEYS",
    "JSON_LENGTH",
    "JSON_MERGE",
    "JSON_OBJECT",
    "JSON_OBJECTAGG",
    "JSON_QUOTE",
    "JSON_REMOVE",
    "JSON_REPLACE",
    "JSON_SEARCH",
    "JSON_SET",
    "JSON_TYPE",
    "JSON_UNQUOTE",
    "JSON_VALID",
    "JSON_VALUE",
    "LAG",
    "LAST_VALUE",
    "LEAD",
    "LOAD_FILE",
    "MAKETIME",
    "MAKE_SET",
    "MATCH",
    "MD5",
    "NAME_CONST",
    "NTH_VALUE",
    "NTILE",
    "PERCENT_RANK",
    "PERIOD_ADD",
    "PERIOD_DIFF",
    "RANDOM_BYTES",
    "RANK",
    "REGEXP_INSTR",
    "REGEXP_LIKE",
    "REGEXP_REPLACE",
    "REGEXP_SUBSTR",
    "RELEASE_ALL_LOCKS",
    "RELEASE_LOCK",
    "ROW_NUMBER",
    "SHA",
    "SHA1",
    "SHA2",
    "SOUNDEX",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "STR_TO_DATE",
    "ST_ASTEXT",
    "ST_GEOMFROMTEXT",
    "SUBDATE",
    "SUBTIME",
    "TIMESTAMPADD",
    "TIMESTAMPDIFF",
    "TIME_FORMAT",
    "TO_BASE64",
    "TO_SECONDS",
    "UNCOMPRESS",
    "UNCOMPRESSED_LENGTH",
    "UPDATEXML",
    "UUID_TO_BIN",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
    "WEEKOFYEAR",
    "WEIGHT_STRING",
];

/// 1235 for what MySQL has and we do not, 1305 for what nobody has.
fn unknown(name: &str) -> SqlError {
    if NOT_YET.binary_search(&name).is_ok() {
        return error::not_supported(&format!("function {name}"));
    }
    error::unknown_function(&name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_in_order() {
        assert!(super::NOT_YET.is_sorted());
    }
}
