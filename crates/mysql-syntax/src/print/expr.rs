//! Expressions: operators, with parentheses where precedence needs them.

use super::Printer;
use crate::tree::{BinaryOp, Expr, ExprId, NumberKind, Scope, TemporalKind, Truth, UnaryOp};
use alloc::vec::Vec;

/// Classes as in the parser; unary operators, COLLATE and operands have classes of their own here.
const ANY: u8 = 0;
const UNARY: u8 = 15;
const COLLATE: u8 = 16;
const OPERAND: u8 = 17;

fn binary_class(op: BinaryOp) -> u8 {
    use BinaryOp as B;
    match op {
        B::Xor => 2,
        B::Equal
        | B::NullSafeEqual
        | B::NotEqual
        | B::Less
        | B::LessEqual
        | B::Greater
        | B::GreaterEqual => 6,
        B::SoundsLike | B::MemberOf => 7,
        B::BitOr => 8,
        B::BitAnd => 9,
        B::ShiftLeft | B::ShiftRight => 10,
        B::Add | B::Subtract => 11,
        B::Multiply | B::Divide | B::IntegerDivide | B::Modulo => 12,
        B::BitXor => 13,
        B::Concat => 14,
    }
}

pub(super) fn operator(op: BinaryOp) -> &'static str {
    use BinaryOp as B;
    match op {
        B::Xor => "XOR",
        B::Equal => "=",
        B::NullSafeEqual => "<=>",
        B::NotEqual => "<>",
        B::Less => "<",
        B::LessEqual => "<=",
        B::Greater => ">",
        B::GreaterEqual => ">=",
        B::SoundsLike => "SOUNDS LIKE",
        B::MemberOf => "MEMBER OF",
        B::BitOr => "|",
        B::BitAnd => "&",
        B::ShiftLeft => "<<",
        B::ShiftRight => ">>",
        B::Add => "+",
        B::Subtract => "-",
        B::Multiply => "*",
        B::Divide => "/",
        B::IntegerDivide => "DIV",
        B::Modulo => "%",
        B::BitXor => "^",
        B::Concat => "||",
    }
}

fn class(expr: &Expr) -> u8 {
    match expr {
        // They take all that follows.
        Expr::Assign { .. } | Expr::AddInterval { is_first: true, .. } => ANY,
        Expr::Or(_) => 1,
        Expr::And(_) => 3,
        Expr::Unary(UnaryOp::Not, _) => 4,
        Expr::Is { truth: Truth::Null, .. } | Expr::Quantified { .. } => 6,
        Expr::Is { .. } => 4,
        Expr::In { .. }
        | Expr::InQuery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::Regexp { .. } => 7,
        Expr::Binary(op, ..) => binary_class(*op),
        Expr::AddInterval { .. } => 11,
        Expr::Unary(..) => UNARY,
        Expr::Collate { .. } => COLLATE,
        _ => OPERAND,
    }
}

/// The operand with which an expression begins, and the class that it needs.
fn left_of(expr: &Expr) -> Option<(ExprId, u8)> {
    match *expr {
        Expr::Binary(BinaryOp::SoundsLike | BinaryOp::MemberOf, left, _) => Some((left, 8)),
        Expr::Binary(op, left, _) => Some((left, binary_class(op))),
        Expr::Is { value, .. } | Expr::Quantified { left: value, .. } => Some((value, 6)),
        Expr::In { value, .. } | Expr::InQuery { value, .. } | Expr::Between { value, .. } => {
            Some((value, 8))
        }
        Expr::Like { value, .. } | Expr::Regexp { value, .. } => Some((value, 8)),
        Expr::AddInterval { value, is_first: false, .. } => Some((value, 11)),
        Expr::Collate { value, .. } => Some((value, COLLATE)),
        _ => None,
    }
}

impl Printer<'_> {
    /// Any expression.
    pub(super) fn expr(&mut self, id: ExprId) {
        self.chain(id);
    }

    /// An expression, in parentheses if it is of a looser class.
    pub(super) fn operand(&mut self, id: ExprId, min: u8) {
        if class(self.tree.expr(id)) >= min {
            self.chain(id);
        } else {
            self.word("(");
            self.chain(id);
            self.raw(")");
        }
    }

    /// An expression, from its leftmost operand on.
    fn chain(&mut self, id: ExprId) {
        let mut behind: Vec<ExprId> = Vec::new();
        let mut at = id;
        while let Some((left, min)) = left_of(self.tree.expr(at)) {
            behind.push(at);
            if class(self.tree.expr(left)) < min {
                self.operand(left, min);
                self.tails(&behind);
                return;
            }
            at = left;
        }
        self.first(at);
        self.tails(&behind);
    }

    fn tails(&mut self, behind: &[ExprId]) {
        for id in behind.iter().rev() {
            self.tail(*id);
        }
    }

    /// What follows the left operand.
    fn tail(&mut self, id: ExprId) {
        match *self.tree.expr(id) {
            Expr::Binary(op, _, right) => self.binary_tail(op, right),
            Expr::Is { is_not, truth, .. } => {
                self.word("IS");
                self.word_if(is_not, "NOT");
                self.word(match truth {
                    Truth::Null => "NULL",
                    Truth::True => "TRUE",
                    Truth::False => "FALSE",
                    Truth::Unknown => "UNKNOWN",
                });
            }
            Expr::Quantified { op, is_all, query, .. } => {
                self.word(operator(op));
                self.word(if is_all { "ALL" } else { "ANY" });
                self.query_in_parentheses(query);
            }
            Expr::In { is_not, list, .. } => {
                self.word_if(is_not, "NOT");
                self.word("IN (");
                self.exprs(list);
                self.raw(")");
            }
            Expr::InQuery { is_not, query, .. } => {
                self.word_if(is_not, "NOT");
                self.word("IN");
                self.query_in_parentheses(query);
            }
            Expr::Between { is_not, bounds, .. } => {
                let bounds = self.tree.list(bounds);
                self.word_if(is_not, "NOT");
                self.word("BETWEEN");
                self.operand(bounds[0], 8);
                self.word("AND");
                self.operand(bounds[1], 7);
            }
            Expr::Like { is_not, pattern, .. } => {
                let pattern = self.tree.list(pattern);
                self.word_if(is_not, "NOT");
                self.word("LIKE");
                self.operand(pattern[0], 14);
                if let Some(escape) = pattern.get(1) {
                    self.word("ESCAPE");
                    self.operand(*escape, 14);
                }
            }
            Expr::Regexp { is_not, pattern, .. } => {
                self.word_if(is_not, "NOT");
                self.word("REGEXP");
                self.operand(pattern, 8);
            }
            Expr::AddInterval { amount, unit, is_minus, .. } => {
                self.word(if is_minus { "-" } else { "+" });
                self.interval(amount);
                self.keyword(unit);
            }
            Expr::Collate { collation, .. } => {
                self.word("COLLATE");
                self.name(collation);
            }
            _ => {}
        }
    }

    fn binary_tail(&mut self, op: BinaryOp, right: ExprId) {
        self.word(operator(op));
        match op {
            BinaryOp::MemberOf => {
                self.word("(");
                self.operand(right, 14);
                self.raw(")");
            }
            BinaryOp::SoundsLike => self.operand(right, 8),
            BinaryOp::Add | BinaryOp::Subtract if self.begins_with_interval(right) => {
                // INTERVAL directly behind the sign would be an amount.
                self.word("(");
                self.chain(right);
                self.raw(")");
            }
            _ => self.operand(right, binary_class(op) + 1),
        }
    }

    /// True if the first word of an expression is INTERVAL, without a function's parenthesis.
    fn begins_with_interval(&self, id: ExprId) -> bool {
        matches!(self.tree.expr(id), Expr::AddInterval { is_first: true, .. })
    }

    /// `INTERVAL amount`
    fn interval(&mut self, amount: ExprId) {
        self.word("INTERVAL");
        let expr = self.tree.expr(amount);
        if matches!(expr, Expr::Row { is_named: false, .. }) {
            self.word("(");
            self.chain(amount);
            self.raw(")");
        } else {
            self.operand(amount, OPERAND);
        }
    }

    /// An expression that does not begin with an operand of its own.
    fn first(&mut self, id: ExprId) {
        match *self.tree.expr(id) {
            Expr::And(list) => self.logic(list, "AND", 4),
            Expr::Or(list) => self.logic(list, "OR", 2),
            Expr::Unary(op, value) => self.unary(op, value),
            Expr::AddInterval { value, amount, unit, .. } => {
                self.interval(amount);
                self.keyword(unit);
                self.word("+");
                // What takes all that follows may stand at the end as it is.
                let is_open = class(self.tree.expr(value)) == ANY;
                self.operand(value, if is_open { ANY } else { 4 });
            }
            Expr::Assign { variable, value } => {
                self.variable(variable);
                self.word(":=");
                self.chain(value);
            }
            Expr::Row { list, is_named } => {
                self.word(if is_named { "ROW(" } else { "(" });
                self.exprs(list);
                self.raw(")");
            }
            Expr::Subquery(query) => self.query_in_parentheses(query),
            Expr::Exists(query) => {
                self.word("EXISTS");
                self.query_in_parentheses(query);
            }
            Expr::Case { operand, whens, otherwise } => self.case(operand, whens, otherwise),
            ref expr => {
                if !self.literal(expr) {
                    self.function(expr);
                }
            }
        }
    }

    fn logic(&mut self, list: crate::tree::List, word: &str, min: u8) {
        for (at, item) in self.tree.list(list).iter().enumerate() {
            if at > 0 {
                self.word(word);
            }
            self.operand(*item, min);
        }
    }

    fn unary(&mut self, op: UnaryOp, value: ExprId) {
        match op {
            UnaryOp::Not => self.word("NOT"),
            UnaryOp::Bang => self.word("!"),
            UnaryOp::Minus => self.word("-"),
            UnaryOp::Plus => self.word("+"),
            UnaryOp::BitNot => self.word("~"),
            UnaryOp::Binary => self.word("BINARY"),
        }
        self.operand(value, if op == UnaryOp::Not { 4 } else { UNARY });
    }

    fn case(
        &mut self,
        operand: Option<ExprId>,
        whens: crate::tree::List,
        otherwise: Option<ExprId>,
    ) {
        self.word("CASE");
        if let Some(operand) = operand {
            self.chain(operand);
        }
        for pair in self.tree.list(whens).chunks_exact(2) {
            self.word("WHEN");
            self.chain(pair[0]);
            self.word("THEN");
            self.chain(pair[1]);
        }
        if let Some(otherwise) = otherwise {
            self.word("ELSE");
            self.chain(otherwise);
        }
        self.word("END");
    }

    /// Prints a literal, a name or a variable; false if it is none.
    fn literal(&mut self, expr: &Expr) -> bool {
        match *expr {
            Expr::Null => self.word("NULL"),
            Expr::True => self.word("TRUE"),
            Expr::False => self.word("FALSE"),
            Expr::Default => self.word("DEFAULT"),
            Expr::Parameter(_) => self.word("?"),
            Expr::Number { kind, digits } => {
                let _: NumberKind = kind;
                self.bytes(digits);
            }
            Expr::Text { charset, is_national, text, .. } => {
                self.charset(charset);
                self.word_if(is_national, "N");
                if !is_national {
                    self.blank();
                }
                self.quoted(text);
            }
            Expr::Hex { charset, digits } => {
                self.charset(charset);
                let is_even = self.tree.text(digits).len().is_multiple_of(2);
                self.digits(if is_even { "x'" } else { "0x" }, digits);
            }
            Expr::Bits { charset, digits } => {
                self.charset(charset);
                self.digits("b'", digits);
            }
            Expr::Temporal { kind, text } => {
                self.word(match kind {
                    TemporalKind::Date => "DATE",
                    TemporalKind::Time => "TIME",
                    TemporalKind::Timestamp => "TIMESTAMP",
                });
                self.text(text);
            }
            Expr::Star { schema, table } => {
                if table.is_some() {
                    self.qualified(schema, table);
                    self.raw(".*");
                } else {
                    self.word("*");
                }
            }
            Expr::Column { schema, table, name } => {
                if schema.is_some() {
                    self.name(schema);
                    self.dot();
                }
                self.qualified(table, name);
            }
            Expr::UserVariable(name) => self.variable(name),
            Expr::SystemVariable { scope, component, name } => {
                self.word("@@");
                self.scope_prefix(scope);
                self.qualified(component, name);
            }
            _ => return false,
        }
        true
    }

    pub(super) fn scope_prefix(&mut self, scope: Scope) {
        if scope != Scope::None {
            self.raw(super::statement::scope_name(scope));
            self.dot();
        }
    }

    fn charset(&mut self, charset: crate::tree::Text) {
        if charset.is_some() {
            self.word("_");
            self.out.extend_from_slice(self.tree.text(charset));
        }
    }

    fn digits(&mut self, before: &str, digits: crate::tree::Text) {
        self.word(before);
        self.out.extend_from_slice(self.tree.text(digits));
        if before.ends_with('\'') {
            self.raw("'");
        }
    }
}
