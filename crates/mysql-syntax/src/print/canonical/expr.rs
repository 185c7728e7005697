//! Expressions: each operator in parentheses.

use super::Canonical;
use crate::tree::{BinaryOp, Expr, ExprId, List, QueryId, TemporalKind, Text, Truth, UnaryOp};

impl Canonical<'_> {
    #[inline(never)]
    pub(super) fn expr(&mut self, id: ExprId) {
        match *self.tree.expr(id) {
            Expr::Column { schema, table, name } => self.column(id, (schema, table, name)),
            Expr::And(list) => self.logic(list, " and "),
            Expr::Or(list) => self.logic(list, " or "),
            Expr::Binary(op, left, right) => self.binary(op, left, right),
            Expr::Unary(op, value) => self.unary(op, value),
            Expr::Is { value, is_not, truth } => self.is(value, is_not, truth),
            Expr::Quantified { op, left, is_all, query } => {
                self.quantified(op, left, is_all, query)
            }
            Expr::In { value, is_not, list } => self.is_in(value, is_not, list),
            Expr::InQuery { value, is_not, query } => {
                self.operand(value);
                self.raw(if is_not { " not in " } else { " in " });
                self.query_in_parentheses(query, false);
            }
            Expr::Between { value, is_not, bounds } => self.between(value, is_not, bounds),
            Expr::Like { value, is_not, pattern } => self.like(value, is_not, pattern),
            Expr::Regexp { value, is_not, pattern } => {
                self.raw(if is_not { "(not((" } else { "(" });
                self.operand(value);
                self.raw(" regexp ");
                self.operand(pattern);
                self.raw(if is_not { ")))" } else { ")" });
            }
            Expr::AddInterval { value, amount, unit, is_minus, .. } => {
                self.add_interval(value, is_minus, amount, unit);
            }
            Expr::Row { list, .. } => {
                self.raw("(");
                self.exprs(list);
                self.raw(")");
            }
            Expr::Subquery(query) => self.query_in_parentheses(query, false),
            Expr::Exists(query) => {
                self.raw("exists");
                self.query_in_parentheses(query, false);
            }
            Expr::Case { operand, whens, otherwise } => self.case(operand, whens, otherwise),
            Expr::Collate { value, collation } => {
                // It binds more tightly than signs.
                let is_sign = matches!(self.tree.expr(value), Expr::Unary(..));
                self.raw(if is_sign { "((" } else { "(" });
                self.operand(value);
                self.raw(if is_sign { ") collate " } else { " collate " });
                self.out.extend_from_slice(self.tree.text(collation));
                self.raw(")");
            }
            ref expr => {
                if !self.literal(expr) {
                    self.function(id, expr);
                }
            }
        }
    }

    /// What stands beside an operator. Comparisons with subqueries are the only ones without parentheses of their own.
    fn operand(&mut self, id: ExprId) {
        let expr = self.tree.expr(id);
        if !matches!(expr, Expr::InQuery { .. } | Expr::Quantified { .. }) {
            return self.expr(id);
        }
        self.raw("(");
        self.expr(id);
        self.raw(")");
    }

    fn column(&mut self, id: ExprId, (schema, table, name): (Text, Text, Text)) {
        if let Some(found) = self.resolved.columns.get(&id) {
            return self.qualified(found);
        }
        if schema.is_some() {
            self.database(self.tree.text(schema));
        }
        if table.is_some() {
            self.name(table);
            self.raw(".");
        }
        self.name(name);
    }

    fn is(&mut self, value: ExprId, is_not: bool, truth: Truth) {
        let word = match truth {
            Truth::Null | Truth::Unknown => "null",
            Truth::True => "true",
            Truth::False => "false",
        };
        self.raw("(");
        self.operand(value);
        self.raw(if is_not { " is not " } else { " is " });
        self.raw(word);
        self.raw(")");
    }

    fn is_in(&mut self, value: ExprId, is_not: bool, list: List) {
        let list = self.tree.list(list);
        self.raw("(");
        self.operand(value);
        if let [only] = list {
            self.raw(if is_not { " <> " } else { " = " });
            self.operand(*only);
            return self.raw(")");
        }
        self.raw(if is_not { " not in (" } else { " in (" });
        self.commas(list, |printer, id| printer.expr(*id));
        self.raw("))");
    }

    fn logic(&mut self, list: List, word: &str) {
        self.raw("(");
        for (at, item) in self.tree.list(list).iter().enumerate() {
            if at > 0 {
                self.raw(word);
            }
            self.expr(*item);
        }
        self.raw(")");
    }

    /// An operator between two values. Chains from the left are printed in a loop.
    fn binary(&mut self, op: BinaryOp, left: ExprId, right: ExprId) {
        let mut behind = alloc::vec::Vec::from([(op, right)]);
        let mut at = left;
        while let Expr::Binary(op, left, right) = *self.tree.expr(at) {
            behind.push((op, right));
            at = left;
        }
        for (op, _) in &behind {
            self.raw(if *op == BinaryOp::Concat { "concat(" } else { "(" });
        }
        self.operand(at);
        for (op, right) in behind.into_iter().rev() {
            match op {
                BinaryOp::Concat => self.raw(","),
                BinaryOp::SoundsLike => self.raw(" sounds like "),
                BinaryOp::MemberOf => self.raw(" member of ("),
                BinaryOp::Xor => self.raw(" xor "),
                _ => {
                    self.raw(" ");
                    self.raw(super::super::expr::operator(op));
                    self.raw(" ");
                }
            }
            self.operand(right);
            self.raw(if op == BinaryOp::MemberOf { "))" } else { ")" });
        }
    }

    fn unary(&mut self, op: UnaryOp, value: ExprId) {
        match op {
            UnaryOp::Plus => return self.operand(value),
            UnaryOp::Not | UnaryOp::Bang => self.raw("(not("),
            UnaryOp::Minus => self.raw("-("),
            UnaryOp::BitNot => self.raw("~("),
            UnaryOp::Binary => {
                self.raw("cast(");
                self.operand(value);
                return self.raw(" as char charset binary)");
            }
        }
        self.operand(value);
        let is_twice = matches!(op, UnaryOp::Not | UnaryOp::Bang);
        self.raw(if is_twice { "))" } else { ")" });
    }

    fn quantified(&mut self, op: BinaryOp, left: ExprId, is_all: bool, query: QueryId) {
        self.operand(left);
        match (op, is_all) {
            (BinaryOp::Equal, false) => self.raw(" in "),
            (BinaryOp::NotEqual, true) => self.raw(" not in "),
            _ => {
                self.raw(" ");
                self.raw(super::super::expr::operator(op));
                self.raw(if is_all { " all " } else { " any " });
            }
        }
        self.query_in_parentheses(query, false);
    }

    fn between(&mut self, value: ExprId, is_not: bool, bounds: List) {
        let bounds = self.tree.list(bounds);
        self.raw("(");
        self.operand(value);
        self.raw(if is_not { " not between " } else { " between " });
        for (at, bound) in bounds.iter().enumerate() {
            self.raw(if at > 0 { " and " } else { "" });
            self.operand(*bound);
        }
        self.raw(")");
    }

    fn like(&mut self, value: ExprId, is_not: bool, pattern: List) {
        self.raw(if is_not { "(not((" } else { "(" });
        self.operand(value);
        for (at, part) in self.tree.list(pattern).iter().enumerate() {
            self.raw(if at > 0 { " escape " } else { " like " });
            self.operand(*part);
        }
        self.raw(if is_not { ")))" } else { ")" });
    }

    pub(super) fn add_interval(
        &mut self,
        value: ExprId,
        is_minus: bool,
        amount: ExprId,
        unit: crate::Keyword,
    ) {
        self.raw("(");
        self.operand(value);
        self.raw(if is_minus { " - interval " } else { " + interval " });
        self.operand(amount);
        self.raw(" ");
        self.lower(unit.name());
        self.raw(")");
    }

    fn case(&mut self, operand: Option<ExprId>, whens: List, otherwise: Option<ExprId>) {
        self.raw("(case");
        self.clause(" ", operand);
        for pair in self.tree.list(whens).chunks_exact(2) {
            self.clause(" when ", pair.first().copied());
            self.clause(" then ", pair.get(1).copied());
        }
        self.clause(" else ", otherwise);
        self.raw(" end)");
    }

    /// Prints a literal; false if it is none.
    fn literal(&mut self, expr: &Expr) -> bool {
        match *expr {
            Expr::Null => self.raw("NULL"),
            Expr::True => self.raw("true"),
            Expr::False => self.raw("false"),
            Expr::Number { digits, .. } => self.out.extend_from_slice(self.tree.text(digits)),
            Expr::Text { charset, is_national, text, .. } => {
                self.charset(charset);
                self.raw(if is_national { "N" } else { "" });
                self.text(text);
            }
            Expr::Hex { charset, digits } => {
                self.charset(charset);
                self.raw(if charset.is_some() { " 0x" } else { "0x" });
                self.out.extend_from_slice(self.tree.text(digits));
            }
            Expr::Bits { charset, digits } => {
                self.charset(charset);
                self.raw(if charset.is_some() { " b'" } else { "b'" });
                self.out.extend_from_slice(self.tree.text(digits));
                self.raw("'");
            }
            Expr::Temporal { kind, text } => {
                self.raw(match kind {
                    TemporalKind::Date => "DATE",
                    TemporalKind::Time => "TIME",
                    TemporalKind::Timestamp => "TIMESTAMP",
                });
                self.text(text);
            }
            _ => return false,
        }
        true
    }

    fn charset(&mut self, charset: crate::tree::Text) {
        if charset.is_some() {
            self.raw("_");
            self.out.extend_from_slice(self.tree.text(charset));
        }
    }

    pub(super) fn text(&mut self, text: crate::tree::Text) {
        self.out.push(b'\'');
        for byte in self.tree.text(text) {
            let escaped = match byte {
                b'\'' | b'\\' => *byte,
                b'\n' => b'n',
                b'\r' => b'r',
                0 => b'0',
                _ => {
                    self.out.push(*byte);
                    continue;
                }
            };
            self.out.extend([b'\\', escaped]);
        }
        self.out.push(b'\'');
    }
}
