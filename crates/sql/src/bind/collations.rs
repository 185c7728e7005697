//! Which collation texts are compared in, where the types of the two sides do not say it.

use super::Binder;
use crate::error;
use crate::expr::{EXTERNAL_BASE, External};
use lats_values::{BinaryOp, Collation, ColumnType, Expr, Function, SqlError, TypeKind};

impl Binder<'_> {
    /// Columns of tables with two collations cannot be compared, unless one of them is that of bytes.
    ///
    /// # Errors
    /// 1267.
    pub(super) fn check_collations(
        &self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
    ) -> Result<(), SqlError> {
        let (Some(a), Some(b)) = (self.collation_of_column(left), self.collation_of_column(right))
        else {
            return Ok(());
        };
        let by_bytes = |c| matches!(c, Collation::Utf8mb4Bin | Collation::Binary);
        let sign = match op {
            BinaryOp::Equal => "=",
            BinaryOp::NullSafeEqual => "<=>",
            BinaryOp::NotEqual => "<>",
            BinaryOp::Less => "<",
            BinaryOp::LessOrEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterOrEqual => ">=",
            _ => return Ok(()),
        };
        if a == b || by_bytes(a) || by_bytes(b) {
            return Ok(());
        }
        let (a, b) = (a.name(), b.name());
        let text = format!(
            "Illegal mix of collations ({a},IMPLICIT) and ({b},IMPLICIT) for operation '{sign}'"
        );
        Err(error::make(1267, "HY000", &text))
    }

    /// The collation of a table's column of text.
    fn collation_of_column(&self, expr: &Expr) -> Option<Collation> {
        let Expr::Column(number) = expr else { return None };
        self.columns.get(*number as usize)?.origin?;
        let of = self.types.get(*number as usize)?;
        of.kind.is_text().then_some(of.collation)
    }

    /// Constants beside constants are compared in the connection's collation.
    pub(super) fn of_connection(&self, left: &mut Expr, others: &[&Expr]) {
        let Some(collation) = self.context.connection_collation else { return };
        let is_text = |expr: &Expr| self.type_of(expr).kind.is_text();
        let decides = is_constant(left) && is_text(left);
        if decides && others.iter().all(|other| is_constant(other) || self.is_parameter(other)) {
            let arg = Box::new(std::mem::replace(left, Expr::Column(0)));
            *left = Expr::Collate { arg, collation };
        }
    }

    /// A constant that is compared with several values is compared in the collation of those that are no constants.
    pub(super) fn of_others(&self, constant: Expr, others: &[&Expr]) -> Expr {
        if !is_constant(&constant) || !self.type_of(&constant).kind.is_text() {
            return constant;
        }
        let others = others.iter().filter(|other| !is_constant(other) && !self.is_parameter(other));
        let types: Vec<ColumnType> = others.map(|other| self.type_of(other)).collect();
        let is_string = |of: &ColumnType| of.kind.is_text() || of.kind.is_bytes();
        let own = self.context.connection_collation.unwrap_or_default();
        let Some(of) = types.first().filter(|_| types.iter().all(is_string)) else {
            return constant;
        };
        let arg = Box::new(constant);
        match of.kind.is_bytes() {
            true => Expr::Cast { arg, to: ColumnType::new(TypeKind::LongBlob) },
            false if of.collation == own => *arg,
            false => Expr::Collate { arg, collation: of.collation },
        }
    }

    fn is_parameter(&self, expr: &Expr) -> bool {
        let Expr::Column(number) = expr else { return false };
        let at = number.checked_sub(EXTERNAL_BASE).map(|at| self.externals.get(at as usize));
        matches!(at, Some(Some(External::Parameter(_))))
    }

    /// A constant text of a select list has the connection's collation.
    pub(super) fn shown_constant(&self, mut expr: Expr) -> Expr {
        self.of_connection(&mut expr, &[]);
        expr
    }

    /// The same for functions that compare their arguments.
    pub(super) fn arguments_of_connection(&self, function: Function, args: &mut [Expr]) {
        let compares = matches!(
            function,
            Function::Field
                | Function::Instr
                | Function::Locate
                | Function::Strcmp
                | Function::NullIf
                | Function::Greatest
                | Function::Least
                | Function::FindInSet
        );
        if compares && let [first, others @ ..] = args {
            let others: Vec<&Expr> = others.iter().collect();
            self.of_connection(first, &others);
        }
    }
}

/// Made of literals, without COLLATE.
fn is_constant(expr: &Expr) -> bool {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::Column(_) | Expr::Collate { .. } => return false,
            other => left.extend(crate::expr::children(other)),
        }
    }
    true
}
