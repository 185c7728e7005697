//! Which collation texts are compared in, where the types of the two sides do not say it.

use super::Binder;
use crate::error;
use crate::expr::{EXTERNAL_BASE, External};
use lats_engine::ir::ColumnId;
use lats_values::{BinaryOp, Collation, ColumnType, Expr, Function, SqlError, TypeKind, Value};

/// How strongly a text holds to its collation, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// COLLATE.
    Explicit,
    /// A column.
    Implicit,
    /// A constant, or what is not known.
    Coercible,
}

impl Strength {
    fn name(self) -> &'static str {
        match self {
            Self::Explicit => "EXPLICIT",
            Self::Implicit => "IMPLICIT",
            Self::Coercible => "COERCIBLE",
        }
    }
}

impl Binder<'_> {
    /// Texts of two collations that hold to them alike cannot be compared, unless one of them is that of bytes.
    ///
    /// # Errors
    /// 1267.
    pub(super) fn check_collations(
        &self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
    ) -> Result<(), SqlError> {
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
        self.check_mix(sign, &[left, right])
    }

    /// The same for all operands of an operation.
    ///
    /// # Errors
    /// 1267, 1270, or 1271 for more than three.
    pub(super) fn check_mix(&self, operation: &str, operands: &[&Expr]) -> Result<(), SqlError> {
        // Bytes make all of it bytes.
        if operands.iter().any(|operand| self.type_of(operand).kind.is_bytes()) {
            return Ok(());
        }
        let found: Vec<(Collation, Strength)> =
            operands.iter().filter_map(|operand| self.standing(operand)).collect();
        if !conflict(&found) {
            return Ok(());
        }
        let parts: Vec<String> = found
            .iter()
            .map(|(collation, strength)| format!("({},{})", collation.name(), strength.name()))
            .collect();
        let (errno, text) = match parts.as_slice() {
            [a, b] => (1267, format!(" {a} and {b}")),
            [a, b, c] => (1270, format!(" {a}, {b}, {c}")),
            _ => (1271, String::new()),
        };
        let text = format!("Illegal mix of collations{text} for operation '{operation}'");
        Err(error::make(errno, "HY000", &text))
    }

    /// The collation of a text, and how strongly it holds to it.
    pub(crate) fn standing(&self, expr: &Expr) -> Option<(Collation, Strength)> {
        let of = self.type_of(expr);
        of.kind.is_text().then(|| (of.collation, self.strength_of(expr)))
    }

    /// How strongly an expression holds to its collation.
    pub(crate) fn strength_of(&self, expr: &Expr) -> Strength {
        let strongest = |args: &mut dyn Iterator<Item = &Expr>| {
            // A number among texts was made a text: it holds to nothing.
            let standing = |arg: &Expr| match arg {
                Expr::Cast { .. } => self.standing(arg).map(|of| (of.0, Strength::Coercible)),
                _ => self.standing(arg),
            };
            let found: Vec<(Collation, Strength)> = args.filter_map(standing).collect();
            match conflict(&found) {
                // What is made of such a mix has the collation of bytes.
                true => Strength::Coercible,
                false => found.iter().map(|of| of.1).min().unwrap_or(Strength::Coercible),
            }
        };
        match expr {
            _ if expr.is_converted() => Strength::Implicit,
            Expr::Collate { .. } => Strength::Explicit,
            Expr::Column(number) if *number < EXTERNAL_BASE => {
                let column = self.columns.get(*number as usize);
                column.map_or(Strength::Coercible, |column| match column.origin {
                    Some(_) => Strength::Implicit,
                    None => column.strength,
                })
            }
            // That of a text is the text's own here, and the connection's in MySQL.
            Expr::Cast { arg, .. } if self.type_of(arg).kind.is_text() => Strength::Coercible,
            Expr::Cast { .. } => Strength::Implicit,
            Expr::Case { branches, otherwise, .. } => {
                let results = branches.iter().map(|(_, then)| then);
                strongest(&mut results.chain(otherwise.as_deref()))
            }
            Expr::Call { function, args } => match function {
                Function::If => strongest(&mut args.iter().skip(1)),
                // It gives the first one, or NULL.
                Function::NullIf => strongest(&mut args.iter().take(1)),
                Function::Concat
                | Function::ConcatWs
                | Function::IfNull
                | Function::Coalesce
                | Function::Greatest
                | Function::Least
                | Function::Lower
                | Function::Upper
                | Function::Left
                | Function::Right
                | Function::Substring
                | Function::SubstringIndex
                | Function::Trim
                | Function::LTrim
                | Function::RTrim
                | Function::Replace
                | Function::Insert
                | Function::Reverse
                | Function::Repeat
                | Function::Lpad
                | Function::Rpad => strongest(&mut args.iter()),
                _ => Strength::Coercible,
            },
            _ => Strength::Coercible,
        }
    }

    /// The collation of a text that is one of several results: that of the columns among them, and of two columns' that which
    /// compares bytes. None if no column decides.
    pub(super) fn of_results<'e>(
        &self,
        results: impl Iterator<Item = &'e Expr>,
    ) -> Option<Collation> {
        let found: Vec<_> = results.filter_map(|result| self.standing(result)).collect();
        let strongest = found.iter().map(|of| of.1).min()?;
        let mut own = found.iter().filter(|of| of.1 == strongest).map(|of| of.0);
        let first = own.next()?;
        let decides = strongest < Strength::Coercible;
        let wanted = if own.any(|other| other != first) { Collation::Utf8mb4Bin } else { first };
        decides.then_some(wanted)
    }

    /// Says how strongly the values of a column hold to their collation.
    pub(crate) fn set_strength(&mut self, column: ColumnId, strength: Strength) {
        if let Some(column) = self.columns.get_mut(column.0 as usize) {
            column.strength = strength;
        }
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

    /// A text that is compared with several is compared with each of them in the collation of all.
    pub(super) fn of_all(&self, arg: Expr, others: &[&Expr]) -> Expr {
        // Long lists are made of constants, which give way.
        if others.iter().all(|other| matches!(other, Expr::Literal(_))) {
            return arg;
        }
        let operands = || core::iter::once(&arg).chain(others.iter().copied());
        let is_open = |e: &Expr| matches!(e, Expr::Literal(Value::Null)) || self.is_parameter(e);
        let is_bytes = |e: &Expr| !is_open(e) && self.type_of(e).kind.is_bytes();
        if self.standing(&arg).is_none() || operands().any(is_bytes) {
            return arg;
        }
        // Numbers, NULL and values that come later have no collation.
        let found: Vec<(Collation, Strength)> =
            operands().filter_map(|operand| self.standing(operand)).collect();
        let Some(strongest) = found.iter().map(|of| of.1).min() else { return arg };
        let mut own = found.iter().filter(|of| of.1 == strongest).map(|of| of.0);
        let first = own.next().unwrap_or_default();
        // Of two columns' the one that compares bytes decides.
        let wanted = match own.find(|other| *other != first) {
            Some(Collation::Utf8mb4Bin) => Collation::Utf8mb4Bin,
            _ => first,
        };
        let is_needed = strongest < Strength::Coercible
            && found.first() != Some(&(wanted, strongest))
            && found.iter().any(|of| of.0 != wanted);
        match is_needed {
            true => Expr::Collate { arg: Box::new(arg), collation: wanted },
            false => arg,
        }
    }

    /// A user variable's text is as strong as a column's: compared by its bytes, it decides. So a plan that compares one with texts
    /// is made for its type.
    pub(super) fn of_variable(&self, expr: Expr, other: &Expr) -> Expr {
        let is_variable = match &expr {
            Expr::Column(number) => number.checked_sub(EXTERNAL_BASE).is_some_and(|at| {
                let external = self.externals.get(at as usize);
                matches!(external, Some(External::UserVariable(_)))
            }),
            _ => false,
        };
        if !is_variable || !self.type_of(other).kind.is_text() {
            return expr;
        }
        self.compares_variables.set(true);
        let of = self.type_of(&expr);
        match of.kind.is_text() && of.collation == Collation::Utf8mb4Bin {
            true => Expr::Collate { arg: Box::new(expr), collation: of.collation },
            false => expr,
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
    ///
    /// # Errors
    /// 1267.
    pub(super) fn arguments_of_connection(
        &self,
        function: Function,
        args: &mut [Expr],
    ) -> Result<(), SqlError> {
        let operation = match function {
            Function::Strcmp => Some("strcmp"),
            Function::NullIf => Some("nullif"),
            _ => None,
        };
        if let Some(operation) = operation {
            self.check_mix(operation, &args.iter().collect::<Vec<_>>())?;
        }
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
        Ok(())
    }
}

/// True if the strongest of these are of two collations, of which none gives way.
fn conflict(found: &[(Collation, Strength)]) -> bool {
    let Some(strongest) = found.iter().map(|of| of.1).min() else { return false };
    let by_bytes = |of: Collation| matches!(of, Collation::Utf8mb4Bin | Collation::Binary);
    let mut own = found.iter().filter(|of| of.1 == strongest).map(|of| of.0);
    let Some(first) = own.next() else { return false };
    let mut all = own.clone().chain([first]);
    match strongest {
        Strength::Explicit => own.any(|other| other != first),
        Strength::Implicit if all.any(by_bytes) => false,
        Strength::Implicit => own.any(|other| other != first),
        Strength::Coercible => false,
    }
}

/// A text that was given the collation of others beside it: no COLLATE of the statement's own.
pub(super) fn converted(expr: Expr, collation: Collation) -> Expr {
    let inner = Expr::Collate { arg: Box::new(expr), collation };
    Expr::Collate { arg: Box::new(inner), collation }
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

/// What IF, IFNULL, COALESCE, ELT or CASE may give.
pub(super) fn results_of(expr: &Expr) -> impl Iterator<Item = &Expr> {
    let (args, branches, otherwise) = match expr {
        Expr::Call { function: Function::If | Function::Elt, args } => {
            (args.get(1..).unwrap_or_default(), &[][..], None)
        }
        Expr::Call { args, .. } => (&args[..], &[][..], None),
        Expr::Case { branches, otherwise, .. } => (&[][..], &branches[..], otherwise.as_deref()),
        _ => (&[][..], &[][..], None),
    };
    args.iter().chain(branches.iter().map(|(_, then)| then)).chain(otherwise)
}
