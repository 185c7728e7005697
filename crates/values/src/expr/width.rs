//! How many characters whole numbers of expressions have at most, as MySQL tells clients.

use super::{BinaryOp, UnaryOp, result_type};
use crate::{ColumnType, Expr, Function, TypeKind, Value};

/// How values of a result's column are shown, beside what its type says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// It is computed, and no column of a table.
    pub is_expression: bool,
    /// The characters of a whole number at most.
    pub width: Option<u32>,
    /// The digits behind the point of a double, where they are fixed.
    pub decimals: Option<u8>,
    /// The type of a table's column for it, where that is another one.
    pub declared: Option<TypeKind>,
}

impl Look {
    /// That of an expression over columns with these types and looks.
    pub fn of(expr: &Expr, columns: &[ColumnType], known: &dyn Fn(u32) -> Option<Self>) -> Self {
        let width = integer_width(expr, columns, &|number| known(number)?.width);
        let shown = |number| known(number).and_then(|look| look.decimals);
        Self {
            is_expression: true,
            width,
            decimals: super::decimals::known_decimals(expr, columns, &shown),
            declared: declared(expr, &result_type(expr, columns), width),
        }
    }
}

impl Look {
    /// The type that DESCRIBE shows of a view's column, where that is another one: of numbers as wide as an INT it is a BIGINT.
    pub fn declared_in_view(&self) -> Option<TypeKind> {
        self.declared.filter(|_| self.width.is_none_or(|width| width < INT_WIDTH))
    }
}

/// The type of a column for whole numbers of functions and operators: INT where they fit.
fn declared(expr: &Expr, of: &ColumnType, width: Option<u32>) -> Option<TypeKind> {
    use Function as F;
    let is_small = matches!(of.kind, TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt);
    match expr {
        Expr::Column(_) | Expr::Call { function: F::IfNull, .. } => None,
        Expr::Case { .. }
        | Expr::Call {
            function: F::If | F::Coalesce | F::NullIf | F::Greatest | F::Least, ..
        } => is_small.then_some(TypeKind::Int),
        _ => (of.kind.is_integer() && width? <= INT_WIDTH).then_some(TypeKind::Int),
    }
}

/// The width of an INT.
const INT_WIDTH: u32 = 11;
/// The width of a BIGINT of a function.
const BIGINT: u32 = 21;
/// Deepest tree that is looked at.
const DEPTH_MAX: usize = 640;

/// The width of a whole number, with its sign; none for other types. `known` gives the widths of columns that are expressions.
pub fn integer_width(
    expr: &Expr,
    columns: &[ColumnType],
    known: &dyn Fn(u32) -> Option<u32>,
) -> Option<u32> {
    Widths { columns, known }.of(expr, DEPTH_MAX)
}

struct Widths<'c> {
    columns: &'c [ColumnType],
    known: &'c dyn Fn(u32) -> Option<u32>,
}

impl Widths<'_> {
    fn of(&self, expr: &Expr, depth: usize) -> Option<u32> {
        let below = depth.checked_sub(1)?;
        let whole = result_type(expr, self.columns);
        if !whole.kind.is_integer() {
            return None;
        }
        let of = |expr: &Expr| self.of(expr, below);
        let most = |list: &mut dyn Iterator<Item = &Expr>| {
            list.filter(|expr| !matches!(expr, Expr::Literal(Value::Null))).filter_map(of).max()
        };
        Some(match expr {
            // What may not fit into an INT is wider than one.
            Expr::Literal(Value::Int(value)) => match digits(value.unsigned_abs()) {
                10 => INT_WIDTH + 1,
                digits => digits + 1,
            },
            Expr::Literal(Value::UInt(value)) => digits(*value),
            Expr::Column(number) => (self.known)(*number).unwrap_or_else(|| of_type(&whole)),
            Expr::Unary { op: UnaryOp::Minus, arg } => match **arg {
                Expr::Literal(_) => of(arg)?,
                _ => self.precision(arg, below) + 1,
            },
            Expr::Unary { op: UnaryOp::BitNot, .. } | Expr::Cast { .. } => BIGINT,
            Expr::Unary { .. }
            | Expr::IsNull { .. }
            | Expr::Between { .. }
            | Expr::In { .. }
            | Expr::Like { .. } => 1,
            Expr::Binary { op, left, right } => self.binary(*op, (left, right), &whole, below),
            Expr::Case { branches, otherwise, .. } => {
                let results = branches.iter().map(|(_, then)| then);
                most(&mut results.chain(otherwise.as_deref()))?
            }
            Expr::Call { function, args } => match function {
                Function::If => most(&mut args.iter().skip(1))?,
                Function::IfNull | Function::Coalesce | Function::Greatest | Function::Least => {
                    most(&mut args.iter())?
                }
                Function::NullIf | Function::Abs => of(args.first()?)?,
                Function::Mod => {
                    let [a, b] = args.as_slice() else { return Some(BIGINT) };
                    self.binary(BinaryOp::Modulo, (a, b), &whole, below)
                }
                other => of_function(*other),
            },
            _ => of_type(&whole),
        })
    }

    /// Digits of a number without its sign and what is behind its point.
    fn precision(&self, expr: &Expr, depth: usize) -> u32 {
        let whole = result_type(expr, self.columns);
        match (expr, self.of(expr, depth)) {
            (Expr::Column(number), _) if (self.known)(*number).is_none() => digits_of(&whole),
            (_, Some(width)) if whole.unsigned => width,
            (_, Some(width)) => width.saturating_sub(1),
            (_, None) => digits_of(&whole),
        }
    }

    fn binary(
        &self,
        op: BinaryOp,
        (left, right): (&Expr, &Expr),
        whole: &ColumnType,
        depth: usize,
    ) -> u32 {
        use BinaryOp as B;
        let (a, b) = (self.precision(left, depth), self.precision(right, depth));
        let sign = u32::from(!whole.unsigned);
        match op {
            B::Add | B::Subtract => (a.max(b) + 1 + sign).min(BIGINT),
            B::Multiply => a + b + sign,
            B::Modulo => a.max(b) + 1,
            B::IntDivide => {
                let scale = match result_type(right, self.columns).kind {
                    TypeKind::Decimal { scale, .. } => u32::from(scale),
                    _ => 0,
                };
                (a + scale).min(BIGINT) + sign
            }
            B::BitAnd | B::BitOr | B::BitXor | B::ShiftLeft | B::ShiftRight => BIGINT,
            _ => 1,
        }
    }
}

fn digits(value: u64) -> u32 {
    value.checked_ilog10().unwrap_or(0) + 1
}

/// The width of a column.
fn of_type(of: &ColumnType) -> u32 {
    let unsigned = u32::from(of.unsigned);
    match of.kind {
        TypeKind::TinyInt => 4 - unsigned,
        TypeKind::SmallInt => 6 - unsigned,
        TypeKind::MediumInt => 9 - unsigned,
        TypeKind::Int => 11 - unsigned,
        _ => 20,
    }
}

fn digits_of(of: &ColumnType) -> u32 {
    match of.kind {
        TypeKind::TinyInt => 3,
        TypeKind::SmallInt => 5,
        TypeKind::MediumInt => 8,
        TypeKind::Int => 10,
        TypeKind::Year => 4,
        TypeKind::Date => 8,
        TypeKind::Time { .. } => 7,
        TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => 14,
        TypeKind::Decimal { precision, scale } => u32::from(precision.saturating_sub(scale)),
        TypeKind::Float => 12,
        TypeKind::Double => 21,
        _ => 20 - u32::from(!of.unsigned),
    }
}

fn of_function(function: Function) -> u32 {
    use Function as F;
    match function {
        F::IsNull | F::IsUuid | F::IsIpv4 | F::IsIpv6 | F::RegexpLike => 1,
        F::IsIpv4Compat | F::IsIpv4Mapped => 1,
        F::Strcmp | F::Quarter | F::Weekday | F::DayOfWeek | F::Interval => 2,
        F::Month | F::Day | F::Minute | F::Second | F::Week | F::WeekOfYear => 3,
        F::Ascii | F::Hour | F::DayOfYear => 4,
        F::YearWeek => 7,
        F::ToDays => 8,
        F::DateDiff => 9,
        F::Crc32 | F::Coercibility | F::TimeToSec => 10,
        F::Length | F::CharLength | F::BitLength | F::UncompressedLength => 11,
        F::Instr | F::Locate | F::Field | F::FindInSet => 11,
        F::Extract { unit } => of_unit(unit.name()),
        _ => BIGINT,
    }
}

/// The width of EXTRACT's number.
fn of_unit(unit: &str) -> u32 {
    match unit {
        "YEAR" => 5,
        "YEAR_MONTH" => 7,
        "QUARTER" => 2,
        "MONTH" | "WEEK" | "DAY" | "HOUR" | "MINUTE" | "SECOND" => 3,
        "MICROSECOND" => 7,
        "DAY_HOUR" | "HOUR_MINUTE" => 9,
        _ => 11,
    }
}
