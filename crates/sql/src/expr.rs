//! Bound expressions: how columns, aggregates and values from outside are numbered in them, and
//! walks over them.

use lats_engine::ir::walk;
use lats_values::{ColumnSource, ColumnType, Expr, RowLayout, TypeKind, Value};

/// `Expr::Column` numbers from here on are results of aggregate functions.
pub const AGGREGATE_BASE: u32 = 1 << 30;
/// `Expr::Column` numbers from here on are values from outside the row, see [`External`].
pub const EXTERNAL_BASE: u32 = lats_engine::ir::EXTERNAL_BASE;

/// A value that a statement takes from outside its rows: the same for the whole statement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum External {
    /// The `?` with this position.
    Parameter(u16),
    /// The same where it is compared with a YEAR: 99 is 1999.
    YearParameter(u16),
    /// When the statement began, with this many digits of a second's fraction.
    Now(u8),
    /// The day of [`External::Now`].
    CurrentDate,
    /// The time of day of [`External::Now`].
    CurrentTime(u8),
    /// Seconds since 1970.
    UnixTime,
    /// LAST_INSERT_ID().
    LastInsertId,
    /// ROW_COUNT().
    RowCount,
    /// FOUND_ROWS().
    FoundRows,
    /// CONNECTION_ID().
    ConnectionId,
    /// DATABASE().
    Database,
    /// USER().
    User,
    /// Bytes that are others in each statement, and that nobody can guess.
    Random,
    /// `@name`.
    UserVariable(String),
    /// `@@name`.
    SystemVariable {
        /// `@@global.name`.
        global: bool,
        /// Its name, in lower case.
        name: String,
    },
    /// A value of the row that WITH CHECK OPTION looks at.
    OfRow(u32),
}

/// The parts of an expression.
pub fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Literal(_) | Expr::Column(_) => Vec::new(),
        Expr::Unary { arg, .. }
        | Expr::IsNull { arg, .. }
        | Expr::Cast { arg, .. }
        | Expr::Collate { arg, .. } => vec![arg],
        Expr::Binary { left, right, .. } | Expr::Compare { left, right, .. } => vec![left, right],
        Expr::Between { arg, low, high, .. } => vec![arg, low, high],
        Expr::In { arg, list, .. } => std::iter::once(&**arg).chain(list).collect(),
        Expr::Like { arg, pattern, .. } => vec![arg, pattern],
        Expr::Case { operand, branches, otherwise } => {
            let mut all: Vec<&Expr> = operand.iter().map(|e| &**e).collect();
            for (when, then) in branches {
                all.push(when);
                all.push(then);
            }
            all.extend(otherwise.iter().map(|e| &**e));
            all
        }
        Expr::Call { args, .. } => args.iter().collect(),
    }
}

/// Calls `visit` with every column number in the expression.
pub fn visit_columns(expr: &Expr, visit: &mut dyn FnMut(u32)) {
    if let Expr::Column(number) = expr {
        visit(*number);
    }
    for child in children(expr) {
        visit_columns(child, visit);
    }
}

/// A copy of the expression with columns replaced where `replace` has something.
pub fn map_columns(expr: &Expr, replace: &dyn Fn(u32) -> Option<Expr>) -> Expr {
    let map = |e: &Expr| map_columns(e, replace);
    let boxed = |e: &Expr| Box::new(map_columns(e, replace));
    match expr {
        Expr::Literal(_) => expr.clone(),
        Expr::Column(number) => replace(*number).unwrap_or_else(|| expr.clone()),
        Expr::Unary { op, arg } => Expr::Unary { op: *op, arg: boxed(arg) },
        Expr::Binary { op, left, right } => {
            Expr::Binary { op: *op, left: boxed(left), right: boxed(right) }
        }
        Expr::IsNull { arg, negated } => Expr::IsNull { arg: boxed(arg), negated: *negated },
        Expr::Between { arg, low, high, negated } => {
            Expr::Between { arg: boxed(arg), low: boxed(low), high: boxed(high), negated: *negated }
        }
        Expr::In { arg, list, negated } => {
            Expr::In { arg: boxed(arg), list: list.iter().map(map).collect(), negated: *negated }
        }
        Expr::Like { arg, pattern, escape, negated } => Expr::Like {
            arg: boxed(arg),
            pattern: boxed(pattern),
            escape: *escape,
            negated: *negated,
        },
        Expr::Case { operand, branches, otherwise } => Expr::Case {
            operand: operand.as_deref().map(boxed),
            branches: branches.iter().map(|(when, then)| (map(when), map(then))).collect(),
            otherwise: otherwise.as_deref().map(boxed),
        },
        Expr::Cast { arg, to } => Expr::Cast { arg: boxed(arg), to: to.clone() },
        Expr::Call { function, args } => {
            Expr::Call { function: *function, args: args.iter().map(map).collect() }
        }
        Expr::Collate { arg, collation } => {
            Expr::Collate { arg: boxed(arg), collation: *collation }
        }
        Expr::Compare { op, by, left, right } => {
            Expr::Compare { op: *op, by: *by, left: boxed(left), right: boxed(right) }
        }
    }
}

/// True if the expression takes nothing from a row, and has the same value each time.
pub fn is_constant(expr: &Expr) -> bool {
    !names_columns(expr) && !walk::is_volatile(expr)
}

/// True if the expression takes values from a row.
pub fn names_columns(expr: &Expr) -> bool {
    let mut found = false;
    visit_columns(expr, &mut |number| found |= number < EXTERNAL_BASE);
    found
}

/// True if the expression takes values from outside.
pub fn has_externals(expr: &Expr) -> bool {
    let mut found = false;
    visit_columns(expr, &mut |number| found |= number >= EXTERNAL_BASE);
    found
}

/// True if the expression takes results of aggregate functions.
pub fn has_aggregates(expr: &Expr) -> bool {
    let mut found = false;
    visit_columns(expr, &mut |n| found |= (AGGREGATE_BASE..EXTERNAL_BASE).contains(&n));
    found
}

/// The expression with the values from outside written into it, as data nodes need it.
pub fn with_externals(expr: &Expr, externals: &[Value]) -> Expr {
    map_columns(expr, &|number| {
        let at = number.checked_sub(EXTERNAL_BASE)?;
        Some(Expr::Literal(externals.get(at as usize).cloned().unwrap_or(Value::Null)))
    })
}

/// The same where the values behind the first `constants` come from another row: a text or bytes of a row is no literal, whose
/// collation would give way to a column's.
pub fn with_outside(expr: &Expr, outside: &[Value], constants: usize) -> Expr {
    map_columns(expr, &|number| {
        let at = number.checked_sub(EXTERNAL_BASE)? as usize;
        let value = outside.get(at).cloned().unwrap_or(Value::Null);
        let kind = match &value {
            Value::Text(..) if at >= constants => TypeKind::LongText,
            Value::Bytes(_) if at >= constants => TypeKind::LongBlob,
            _ => return Some(Expr::Literal(value)),
        };
        let to = ColumnType::new(kind).collated(value.collation());
        Some(Expr::Cast { arg: Box::new(Expr::Literal(value)), to })
    })
}

/// What expressions are computed over: a row image, aggregates, and values from outside.
pub struct RowSource<'a> {
    /// The layout of the row image.
    pub layout: Option<&'a RowLayout>,
    /// The row image; none for the single group of no rows.
    pub row: Option<&'a [u8]>,
    /// Where in the image each column of the table is.
    pub positions: &'a [u16],
    /// Results of aggregate functions.
    pub aggregates: &'a [Value],
    /// Values from outside.
    pub externals: &'a [Value],
}

impl<'a> RowSource<'a> {
    /// For expressions that take nothing from a row.
    pub fn constant(externals: &'a [Value]) -> Self {
        Self { layout: None, row: None, positions: &[], aggregates: &[], externals }
    }
}

impl ColumnSource for RowSource<'_> {
    fn column(&self, index: u32) -> Value {
        let found = if index >= EXTERNAL_BASE {
            self.externals.get((index - EXTERNAL_BASE) as usize).cloned()
        } else if index >= AGGREGATE_BASE {
            self.aggregates.get((index - AGGREGATE_BASE) as usize).cloned()
        } else {
            let own = u16::try_from(index).unwrap_or(u16::MAX);
            let at = self.positions.get(index as usize).copied().unwrap_or(own);
            self.layout.zip(self.row).map(|(layout, row)| layout.value(row, at))
        };
        found.unwrap_or(Value::Null)
    }
}

/// A row that is held as values.
pub struct ValuesSource<'a> {
    /// The row's values.
    pub row: &'a [Value],
    /// Values from outside.
    pub externals: &'a [Value],
}

impl ColumnSource for ValuesSource<'_> {
    fn column(&self, index: u32) -> Value {
        let found = match index.checked_sub(EXTERNAL_BASE) {
            Some(at) => self.externals.get(at as usize),
            None => self.row.get(index as usize),
        };
        found.cloned().unwrap_or(Value::Null)
    }
}

/// The type that the client is told for an expression.
pub fn type_of(
    expr: &Expr,
    columns: &[ColumnType],
    aggregates: &[ColumnType],
    externals: &[Value],
) -> ColumnType {
    if let Expr::Column(number) = expr {
        let number = *number as usize;
        if let Some(found) = columns.get(number) {
            return found.clone();
        }
        if let Some(at) = number.checked_sub(AGGREGATE_BASE as usize)
            && let Some(found) = aggregates.get(at)
        {
            return found.clone();
        }
    }
    let (plain, all) = renumbered(expr, columns, aggregates, externals);
    lats_values::result_type(&plain, &all)
}

/// The expression with values from outside in it, over the columns and behind them the results of aggregate functions.
pub fn renumbered(
    expr: &Expr,
    columns: &[ColumnType],
    aggregates: &[ColumnType],
    externals: &[Value],
) -> (Expr, Vec<ColumnType>) {
    let first_aggregate = columns.len();
    let plain = map_columns(expr, &|number| {
        if let Some(at) = number.checked_sub(EXTERNAL_BASE) {
            let value = externals.get(at as usize).cloned().unwrap_or(Value::Null);
            return Some(Expr::Literal(value));
        }
        let at = number.checked_sub(AGGREGATE_BASE)?;
        Some(Expr::Column(u32::try_from(first_aggregate).ok()? + at))
    });
    (plain, columns.iter().chain(aggregates).cloned().collect())
}
