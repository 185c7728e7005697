//! Expressions over the columns of a row: their tree, and how they are computed.

mod arithmetic;
mod children;
pub(crate) mod comparator;
mod decimals;
mod list;
mod logic;
mod numbers;
mod print;
pub(crate) mod result;
#[cfg(test)]
pub(crate) mod tests;
mod width;
mod years;

pub(crate) use arithmetic::{integer_result, modulo, negate, negation_is_decimal};
pub use comparator::{Comparator, name_comparators};
pub use decimals::shown_decimals;
pub use list::InList;
pub(crate) use list::sort_lists;
pub(crate) use numbers::{to_decimal, to_double, to_integer, to_number};
pub use print::shown_expression;
pub use result::result_type;
pub use width::Look;
pub use years::{YearOperand, adapt_years, adapted_year};

use crate::{
    Collation, ColumnType, Function, RowLayout, SqlError, Value, convert, error::push_warning,
    functions,
};
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use lats_base::planted::{QueryBug, errs};
use serde::{Deserialize, Serialize};

/// An expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// A value.
    Literal(Value),
    /// A column of the row, counted from 0. Joined rows have more columns than a table may have;
    /// a program for data nodes has only numbers that fit into 16 bits.
    Column(u32),
    /// `-a`, `NOT a`, `~a`.
    Unary {
        /// Which.
        op: UnaryOp,
        /// Its operand.
        arg: Box<Expr>,
    },
    /// `a + b` and the like.
    Binary {
        /// Which.
        op: BinaryOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `a IS [NOT] NULL`.
    IsNull {
        /// Operand.
        arg: Box<Expr>,
        /// With NOT.
        negated: bool,
    },
    /// `a [NOT] BETWEEN low AND high`.
    Between {
        /// Operand.
        arg: Box<Expr>,
        /// Lower bound.
        low: Box<Expr>,
        /// Upper bound.
        high: Box<Expr>,
        /// With NOT.
        negated: bool,
    },
    /// `a [NOT] IN (…)`.
    In {
        /// Operand.
        arg: Box<Expr>,
        /// The list.
        list: InList,
        /// With NOT.
        negated: bool,
    },
    /// `a [NOT] LIKE pattern [ESCAPE '…']`.
    Like {
        /// Operand.
        arg: Box<Expr>,
        /// Pattern.
        pattern: Box<Expr>,
        /// `None`: the backslash, MySQL's default; `Some('\0')`: no escape at all.
        escape: Option<char>,
        /// With NOT.
        negated: bool,
    },
    /// `CASE …`.
    Case {
        /// What the branches are compared with; without it they are conditions.
        operand: Option<Box<Expr>>,
        /// WHEN and THEN.
        branches: Vec<(Expr, Expr)>,
        /// ELSE.
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(a AS type)`. BIGINT stands for SIGNED and UNSIGNED, LONGTEXT for CHAR without length,
    /// LONGBLOB for BINARY without length.
    Cast {
        /// Operand.
        arg: Box<Expr>,
        /// The type.
        to: ColumnType,
    },
    /// A built-in function.
    Call {
        /// Which.
        function: Function,
        /// Its arguments.
        args: Vec<Expr>,
    },
    /// `a COLLATE name`.
    Collate {
        /// Operand.
        arg: Box<Expr>,
        /// The collation.
        collation: Collation,
    },
    /// A comparison that says how it compares: what plans send to data nodes ([`name_comparators`]).
    Compare {
        /// Which: one that compares.
        op: BinaryOp,
        /// How.
        by: Comparator,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnaryOp {
    /// `-`.
    Minus,
    /// `NOT`.
    Not,
    /// `~`.
    BitNot,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BinaryOp {
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `DIV`.
    IntDivide,
    /// `%`.
    Modulo,
    /// `=`.
    Equal,
    /// `<=>`.
    NullSafeEqual,
    /// `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `AND`.
    And,
    /// `OR`.
    Or,
    /// `XOR`.
    Xor,
    /// `&`.
    BitAnd,
    /// `|`.
    BitOr,
    /// `^`.
    BitXor,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
}

/// Where an expression finds the values of columns.
pub trait ColumnSource {
    /// The value of a column; NULL when there is no such column.
    fn column(&self, index: u32) -> Value;
}

impl ColumnSource for [Value] {
    fn column(&self, index: u32) -> Value {
        self.get(index as usize).cloned().unwrap_or(Value::Null)
    }
}

impl ColumnSource for &[Value] {
    fn column(&self, index: u32) -> Value {
        (**self).column(index)
    }
}

impl ColumnSource for Vec<Value> {
    fn column(&self, index: u32) -> Value {
        self.as_slice().column(index)
    }
}

/// A stored row as a source of columns.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    /// How the row is stored.
    pub layout: &'a RowLayout,
    /// Its bytes.
    pub row: &'a [u8],
}

impl ColumnSource for RowView<'_> {
    fn column(&self, index: u32) -> Value {
        u16::try_from(index).map_or(Value::Null, |index| self.layout.value(self.row, index))
    }
}

/// Says whether a statement is to end: what takes long by itself asks in between.
pub trait Ends: core::fmt::Debug + Send + Sync {
    /// The error that it ends with, if it is to end.
    fn error(&self) -> Option<SqlError>;

    /// The error if there is no memory for so many bytes more; asked before large values are kept.
    fn no_room(&self, bytes: usize) -> Option<SqlError> {
        let _ = bytes;
        None
    }
}

/// What computing needs beside the row, and the warnings that it leaves.
#[derive(Clone, Debug)]
pub struct EvalContext {
    /// Whether a warning about data is an error, as in a statement that changes rows.
    pub strict: bool,
    /// Warnings, at most 64.
    pub warnings: Vec<SqlError>,
    /// Who says that the statement is to end, if there is somebody.
    pub ends: Option<Arc<dyn Ends>>,
    /// What may still be done: nodes computed, text made, characters compared.
    pub(crate) work_left: u64,
    depth: usize,
    /// What is kept between rows; nothing in data nodes, which see each row alone.
    local: Option<Box<functions::Local>>,
    is_local: bool,
}

/// Values of fewer bytes are kept without asking whether there is memory.
const LARGE_BYTES: usize = 64 << 10;
/// Bytes of text that cost as much as one node.
const BYTES_PER_WORK: u64 = 16;

impl EvalContext {
    /// Without warnings yet, and without a limit of work.
    pub fn new(strict: bool) -> Self {
        Self { is_local: true, ..Self::within(strict, u64::MAX) }
    }

    /// For what may do no more than so much work (PROGRAM-3).
    pub fn within(strict: bool, work_left: u64) -> Self {
        let (warnings, ends, local, is_local) = (Vec::new(), None, None, false);
        Self { strict, warnings, ends, work_left, depth: 0, local, is_local }
    }

    /// The same, where somebody may end the statement.
    #[must_use]
    pub fn ended_by(self, ends: Arc<dyn Ends>) -> Self {
        Self { ends: Some(ends), ..self }
    }

    /// What is kept between the rows of a statement.
    pub(crate) fn local(&mut self) -> Result<&mut functions::Local, SqlError> {
        if !self.is_local {
            return Err(SqlError::not_supported("this function in data nodes"));
        }
        Ok(self.local.get_or_insert_default())
    }

    /// The variables that were assigned since this was last asked, with their values.
    pub fn take_assigned(&mut self) -> alloc::collections::BTreeMap<alloc::string::String, Value> {
        self.local.as_mut().map(|local| core::mem::take(&mut local.variables)).unwrap_or_default()
    }

    /// How much may still be done: the difference between two moments is what was done between them.
    pub fn work_left(&self) -> u64 {
        self.work_left
    }

    /// Counts work; an error if it is too much.
    pub(crate) fn charge(&mut self, work: u64) -> Result<(), SqlError> {
        self.work_left = self.work_left.checked_sub(work).ok_or_else(SqlError::too_much_work)?;
        Ok(())
    }

    /// A value that is kept, if there is memory for it: one variable of megabytes can be asked for in a thousand places.
    ///
    /// # Errors
    /// What whoever gives memory says.
    #[inline]
    pub fn kept(&self, value: Value) -> Result<Value, SqlError> {
        match &value {
            Value::Text(text, _) if text.len() >= LARGE_BYTES => self.has_room(text.len())?,
            Value::Bytes(bytes) if bytes.len() >= LARGE_BYTES => self.has_room(bytes.len())?,
            _ => {}
        }
        Ok(value)
    }

    #[cold]
    fn has_room(&self, bytes: usize) -> Result<(), SqlError> {
        let refusal = self.ends.as_ref().and_then(|ends| ends.no_room(bytes));
        refusal.map_or(Ok(()), Err)
    }

    /// Keeps a warning, or fails with it when strict.
    pub fn warn(&mut self, warning: SqlError) -> Result<(), SqlError> {
        if self.strict {
            return Err(warning);
        }
        self.note(warning);
        Ok(())
    }

    /// Keeps a warning that is never an error.
    pub fn note(&mut self, warning: SqlError) {
        push_warning(&mut self.warnings, warning);
    }

    /// The warning of a division by zero, and its result.
    pub(crate) fn division_by_zero(&mut self) -> Result<Value, SqlError> {
        self.warn(SqlError::division_by_zero())?;
        Ok(Value::Null)
    }
}

/// Deepest tree that is computed. Parsers stop far earlier; long chains of AND, OR, + and the like
/// are walked in a loop and do not count.
const DEPTH_MAX: usize = 640;

/// Computes an expression.
pub fn eval(expr: &Expr, row: &dyn ColumnSource, ctx: &mut EvalContext) -> Result<Value, SqlError> {
    if ctx.depth >= DEPTH_MAX {
        return Err(SqlError::not_supported("expressions nested that deep"));
    }
    ctx.charge(1)?;
    ctx.depth += 1;
    let result = eval_node(expr, row, ctx);
    ctx.depth -= 1;
    if let Ok(Value::Text(text, _)) = &result {
        ctx.charge(text.len() as u64 / BYTES_PER_WORK)?;
    } else if let Ok(Value::Bytes(bytes)) = &result {
        ctx.charge(bytes.len() as u64 / BYTES_PER_WORK)?;
    } else {
        return result;
    }
    ctx.kept(result?)
}

fn eval_node(
    expr: &Expr,
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    match expr {
        Expr::Literal(value) => Ok(value.clone()),
        Expr::Column(index) => Ok(row.column(*index)),
        Expr::Unary { op, arg } => unary(*op, arg, row, ctx),
        Expr::Binary { op, left, right } => binary(*op, left, right, row, ctx),
        Expr::IsNull { arg, negated } => {
            Ok(Value::bool(eval(arg, row, ctx)?.is_null() != *negated))
        }
        Expr::Between { arg, low, high, negated } => {
            logic::between(arg, low, high, row, ctx).map(|truth| logic::value_of(truth, *negated))
        }
        Expr::In { arg, list, negated } => {
            logic::in_list(arg, list, row, ctx).map(|truth| logic::value_of(truth, *negated))
        }
        Expr::Like { arg, pattern, escape, negated } => {
            logic::like(arg, pattern, *escape, row, ctx)
                .map(|truth| logic::value_of(truth, *negated))
        }
        Expr::Case { operand, branches, otherwise } => {
            case(operand.as_deref(), branches, otherwise.as_deref(), row, ctx)
        }
        Expr::Cast { arg, to } => {
            let value = eval(arg, row, ctx)?;
            let as_shown = to.kind.is_text() || to.kind.is_bytes();
            convert::cast(if as_shown { shown(value, arg) } else { value }, to, ctx)
        }
        Expr::Call { function, args } => call(*function, args, row, ctx),
        Expr::Collate { arg, collation } => collate(eval(arg, row, ctx)?, *collation),
        Expr::Compare { op, by, left, right } => compare(*op, *by, (left, right), row, ctx),
    }
}

/// A comparison that says how it compares. What would be compared with NULL is not computed.
fn compare(
    op: BinaryOp,
    by: Comparator,
    (left, right): (&Expr, &Expr),
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    let value = eval(left, row, ctx)?;
    if value.is_null() && op != BinaryOp::NullSafeEqual {
        return Ok(Value::Null);
    }
    let other = eval(right, row, ctx)?;
    if !value.is_null()
        && !other.is_null()
        && let Some(order) = by.order(&value, &other)
    {
        return Ok(Value::bool(logic::is_true_for(op, order?)));
    }
    logic::comparison(op, (&value, left), (&other, right), ctx)
}

fn unary(
    op: UnaryOp,
    arg: &Expr,
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    let value = eval(arg, row, ctx)?;
    if value.is_null() {
        return Ok(Value::Null);
    }
    let value = moment_of(value, arg);
    match op {
        UnaryOp::Minus => negate(&value, arg, ctx),
        UnaryOp::Not => Ok(logic::value_of(logic::truth(&value, ctx)?, true)),
        UnaryOp::BitNot => Ok(Value::UInt(!(to_integer(&value, ctx)? as u64))),
    }
}

fn binary(
    op: BinaryOp,
    left: &Expr,
    right: &Expr,
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    use BinaryOp::{And, Or, Xor};
    if matches!(op, And | Or) {
        return logic::chain(op, left, right, row, ctx).map(|truth| logic::value_of(truth, false));
    }
    let (first, rest) = arithmetic::spine(op, left);
    let mut value = eval(first, row, ctx)?;
    let computes = op != Xor && !op.is_comparison();
    if computes || !rest.is_empty() {
        value = moment_of(value, first);
    }
    for (op, operand, so_far) in rest {
        let other = moment_of(eval(operand, row, ctx)?, operand);
        value = arithmetic::compute(op, &value, &other, (so_far, operand), ctx)?;
    }
    // What would be compared with NULL is not computed.
    let skips = op == Xor || (op.is_comparison() && op != BinaryOp::NullSafeEqual);
    if skips && value.is_null() {
        return Ok(Value::Null);
    }
    let other = eval(right, row, ctx)?;
    if op == Xor {
        return logic::xor(&value, &other, ctx);
    }
    if op.is_comparison() {
        return logic::comparison(op, (&value, left), (&other, right), ctx);
    }
    arithmetic::compute(op, &value, &moment_of(other, right), (left, right), ctx)
}

/// As a number, the text that date arithmetic gives for a text is the moment that it says.
fn moment_of(value: Value, expr: &Expr) -> Value {
    let Value::Text(text, _) = &value else { return value };
    if !matches!(
        expr,
        Expr::Call { function: Function::DateAdd { .. } | Function::DateSub { .. }, .. }
    ) {
        return value;
    }
    match crate::temporal::parse_datetime(text) {
        Some(moment) if text.contains(':') => Value::DateTime(moment.value),
        Some(moment) => Value::Date(moment.value.date),
        None => value,
    }
}

fn case(
    operand: Option<&Expr>,
    branches: &[(Expr, Expr)],
    otherwise: Option<&Expr>,
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    let subject = operand.map(|expr| eval(expr, row, ctx).map(|v| (v, expr))).transpose()?;
    for (when, then) in branches {
        let value = eval(when, row, ctx)?;
        let chosen = match &subject {
            Some((subject, _))
                if subject.is_null() && value.is_null() && errs(QueryBug::CaseFindsNull) =>
            {
                Some(true)
            }
            Some((subject, expr)) => logic::equal((subject, expr), (&value, when), ctx)?,
            None => logic::truth(&value, ctx)?,
        };
        if chosen == Some(true) {
            return eval(then, row, ctx);
        }
    }
    otherwise.map_or(Ok(Value::Null), |expr| eval(expr, row, ctx))
}

fn call(
    function: Function,
    args: &[Expr],
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    match (function, args) {
        (Function::If, [condition, then, otherwise]) => {
            let condition = eval(condition, row, ctx)?;
            let chosen = logic::truth(&condition, ctx)? == Some(true);
            eval(if chosen { then } else { otherwise }, row, ctx)
        }
        (Function::IfNull | Function::Coalesce, [_, ..]) => {
            for arg in args {
                let value = eval(arg, row, ctx)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Value::Null)
        }
        (Function::NullIf, [a, b]) => {
            let x = eval(a, row, ctx)?;
            // Nobody needs the other one then.
            if x.is_null() {
                return Ok(x);
            }
            let y = eval(b, row, ctx)?;
            let same = logic::equal((&x, a), (&y, b), ctx)? == Some(true);
            Ok(if same { Value::Null } else { x })
        }
        (function, [subject, pattern, rest @ ..]) if function.is_regexp() => {
            let (text, like) = (eval(subject, row, ctx)?, eval(pattern, row, ctx)?);
            let collation = logic::collation_of((&text, subject), (&like, pattern));
            let mut values = Vec::from([text, like]);
            for arg in rest {
                values.push(eval(arg, row, ctx)?);
            }
            functions::regexp::call(function, &values, collation, ctx)
        }
        (Function::Coercibility, [arg]) => {
            let value = eval(arg, row, ctx)?;
            Ok(Value::Int(functions::coercibility(arg, &value)))
        }
        _ => {
            let mut values = Vec::with_capacity(args.len());
            let mut bytes = 0_usize;
            for arg in args {
                let mut value = eval(arg, row, ctx)?;
                if function.takes_texts() {
                    value = shown(value, arg);
                }
                if value.is_string() {
                    bytes = bytes.saturating_add(value.as_bytes().map_or(0, |b| b.len()));
                }
                if bytes > 4 * functions::RESULT_BYTES_MAX {
                    return Err(SqlError::result_too_long(&function.name().to_ascii_lowercase()));
                }
                values.push(value);
            }
            functions::call(function, &values, ctx)
        }
    }
}

/// The text of a double that is shown with fewer digits than it has; other values as they are.
fn shown(value: Value, of: &Expr) -> Value {
    if let Value::Double(number) = value
        && let Some(decimals) = shown_decimals(of, &[])
    {
        return Value::text(&crate::format_double_fixed(number, decimals));
    }
    value
}

fn collate(value: Value, collation: Collation) -> Result<Value, SqlError> {
    Ok(match value {
        Value::Text(text, _) if collation == Collation::Binary => Value::Bytes(text.into_bytes()),
        Value::Text(text, _) => Value::Text(text, collation),
        Value::Null | Value::Bytes(_) => value,
        other => Value::Text(other.to_display(), collation),
    })
}

/// Whether a row passes a condition: NULL does not.
pub fn is_true(
    expr: &Expr,
    row: &dyn ColumnSource,
    ctx: &mut EvalContext,
) -> Result<bool, SqlError> {
    let value = eval(expr, row, ctx)?;
    Ok(logic::truth(&value, ctx)? == Some(true))
}
