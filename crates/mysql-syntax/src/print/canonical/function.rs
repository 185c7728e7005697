//! Functions, by the names that MySQL prints for them.

use super::Canonical;
use crate::Keyword as K;
use crate::tree::{
    Aggregate, Bound, Charset, DataType, Direction, Expr, ExprId, List, Nulls, Over, SideId, Text,
    TrimSide, TypeName,
};

/// Names for which MySQL prints another one.
fn printed(name: K) -> Option<&'static str> {
    Some(match name {
        K::CURRENT_TIMESTAMP | K::LOCALTIME | K::LOCALTIMESTAMP => "now",
        K::CURRENT_DATE => "curdate",
        K::CURRENT_TIME => "curtime",
        K::MID | K::SUBSTRING => "substr",
        K::SESSION_USER | K::SYSTEM_USER => "user",
        K::STDDEV | K::STDDEV_POP => "std",
        K::VAR_POP => "variance",
        _ => return None,
    })
}

impl Canonical<'_> {
    fn opened(&mut self, name: &str) {
        self.lower(name);
        self.raw("(");
    }

    fn keyword_call(&mut self, name: K, list: List) {
        self.opened(printed(name).unwrap_or(name.name()));
        self.exprs(list);
        self.raw(")");
    }

    #[inline(never)]
    pub(super) fn function(&mut self, id: ExprId, expr: &Expr) {
        match *expr {
            Expr::Call { schema, name, arguments } if schema.is_none() => {
                let bytes = self.tree.text(name);
                self.out.extend(bytes.iter().map(u8::to_ascii_lowercase));
                self.raw("(");
                self.exprs(arguments);
                self.raw(")");
            }
            Expr::Function { name, arguments, .. } => self.keyword_call(name, arguments),
            Expr::Aggregate(side) => self.aggregate(self.tree.aggregate(side)),
            Expr::Cast { value, data_type, zone, .. } if zone.is_none() => {
                self.raw("cast(");
                self.expr(value);
                self.raw(" as ");
                self.data_type(self.tree.data_type(data_type));
                self.raw(")");
            }
            Expr::ConvertUsing { value, charset } => {
                self.raw("convert(");
                self.expr(value);
                self.raw(" using ");
                self.out.extend_from_slice(self.tree.text(charset));
                self.raw(")");
            }
            Expr::Extract { unit, value } => {
                self.raw("extract(");
                self.lower(unit.name());
                self.raw(" from ");
                self.expr(value);
                self.raw(")");
            }
            Expr::Trim { side, list } => self.trim(side, list),
            Expr::Substring { list, .. } => {
                self.raw("substr(");
                self.exprs(list);
                self.raw(")");
            }
            Expr::Position { part, text } => {
                self.raw("locate(");
                self.expr(part);
                self.raw(",");
                self.expr(text);
                self.raw(")");
            }
            Expr::Timestamp { name, unit, list } => {
                self.opened(name.name());
                self.raw(unit.name());
                self.raw(",");
                self.exprs(list);
                self.raw(")");
            }
            Expr::DateArithmetic { name, value, amount, unit } => {
                let is_minus = matches!(name, K::DATE_SUB | K::SUBDATE);
                self.add_interval(value, is_minus, amount, unit);
            }
            Expr::Char { list, charset } => self.char(list, charset),
            Expr::DefaultOf(column) => {
                self.raw("default(");
                self.expr(column);
                self.raw(")");
            }
            _ => self.as_written(id),
        }
    }

    fn char(&mut self, list: List, charset: Text) {
        self.raw("char(");
        self.exprs(list);
        if charset.is_some() {
            self.raw(" using ");
            self.out.extend_from_slice(self.tree.text(charset));
        }
        self.raw(")");
    }

    /// Functions that nothing is known of here: names within them stay as they were written.
    fn as_written(&mut self, id: ExprId) {
        let text = super::super::print_expr(self.tree, id, crate::Mode::default());
        self.out.extend_from_slice(&text);
    }

    /// What CAST makes: with the character set, and all digits of DECIMAL.
    fn data_type(&mut self, data_type: &DataType) {
        let (length, decimals) = (data_type.length, data_type.decimals);
        let is_plain = data_type.charset == Charset::None;
        match data_type.name {
            TypeName::Decimal => {
                self.raw("decimal(");
                self.digits(length, "10");
                self.raw(",");
                self.digits(decimals, "0");
                return self.raw(")");
            }
            TypeName::Binary | TypeName::Char => {
                self.raw("char");
                if length.is_some() {
                    self.raw("(");
                    self.digits(length, "");
                    self.raw(")");
                }
                if data_type.name == TypeName::Binary {
                    return self.raw(" charset binary");
                }
                self.raw(if is_plain { " charset utf8mb4" } else { "" });
            }
            _ => self.type_name(data_type),
        }
        self.charset_of(data_type);
    }

    fn digits(&mut self, given: Text, otherwise: &str) {
        match given.is_some() {
            true => self.out.extend_from_slice(self.tree.text(given)),
            false => self.raw(otherwise),
        }
    }

    fn type_name(&mut self, data_type: &DataType) {
        let plain = DataType { charset: Charset::None, is_binary: false, ..data_type.clone() };
        let mut printer = super::super::Printer::new(self.tree);
        printer.data_type(&plain);
        self.out.extend(printer.out.iter().map(u8::to_ascii_lowercase));
    }

    fn charset_of(&mut self, data_type: &DataType) {
        match data_type.charset {
            Charset::None => {}
            Charset::Name(name) => {
                self.raw(" charset ");
                self.out.extend_from_slice(self.tree.text(name));
            }
            Charset::Ascii => self.raw(" ascii"),
            Charset::Unicode => self.raw(" unicode"),
            Charset::Byte => self.raw(" byte"),
        }
        self.raw(if data_type.is_binary { " binary" } else { "" });
    }

    fn trim(&mut self, side: TrimSide, list: List) {
        self.raw("trim(");
        self.raw(match side {
            TrimSide::None => "",
            TrimSide::Both => "both ",
            TrimSide::Leading => "leading ",
            TrimSide::Trailing => "trailing ",
        });
        match self.tree.list(list) {
            [removed, text] => {
                self.expr(*removed);
                self.raw(" from ");
                self.expr(*text);
            }
            other => {
                self.raw(if side == TrimSide::None { "" } else { "from " });
                self.commas(other, |printer, id| printer.expr(*id));
            }
        }
        self.raw(")");
    }

    fn aggregate(&mut self, call: &Aggregate) {
        self.opened(printed(call.name).unwrap_or(call.name.name()));
        self.raw(if call.is_distinct { "distinct " } else { "" });
        let arguments = self.tree.list(call.arguments);
        let is_star = |id: &ExprId| matches!(self.tree.expr(*id), Expr::Star { .. });
        match arguments {
            [only] if is_star(only) => self.raw("0"),
            _ => self.exprs(call.arguments),
        }
        if !call.order.is_empty() {
            self.raw(" order by ");
            self.commas(&call.order, |printer, item| {
                printer.expr(item.value);
                let is_down = item.direction == Direction::Descending;
                printer.raw(if is_down { " DESC" } else { " ASC" });
            });
        }
        if call.separator.is_some() {
            self.raw(" separator ");
            self.text(call.separator);
        } else if call.name == K::GROUP_CONCAT {
            self.raw(" separator ','");
        }
        self.raw(")");
        self.raw(if call.from_first { " from first" } else { "" });
        self.raw(match call.nulls {
            Nulls::None => "",
            Nulls::Respect => " respect nulls",
            Nulls::Ignore => " ignore nulls",
        });
        match call.over {
            Over::None => {}
            Over::Name(name) => {
                self.raw(" OVER ");
                self.name(name);
            }
            Over::Window(window) => {
                self.raw(" OVER ");
                self.window(window);
            }
        }
    }

    pub(super) fn window(&mut self, id: SideId) {
        let window = self.tree.window(id);
        self.raw("(");
        if window.base.is_some() {
            self.name(window.base);
            self.raw(" ");
        }
        if !window.partition.is_empty() {
            self.raw("PARTITION BY ");
            self.exprs(window.partition);
            self.raw(" ");
        }
        self.order_by("ORDER BY ", &window.order);
        if let Some(frame) = window.frame {
            self.raw(if frame.is_range { " RANGE " } else { " ROWS " });
            match frame.end {
                None => self.bound(frame.start),
                Some(end) => {
                    self.raw("BETWEEN ");
                    self.bound(frame.start);
                    self.raw(" AND ");
                    self.bound(end);
                }
            }
        }
        self.raw(")");
    }

    fn bound(&mut self, bound: Bound) {
        let (value, unit, word) = match bound {
            Bound::CurrentRow => return self.raw("CURRENT ROW"),
            Bound::UnboundedPreceding => return self.raw("UNBOUNDED PRECEDING"),
            Bound::UnboundedFollowing => return self.raw("UNBOUNDED FOLLOWING"),
            Bound::Preceding { value, unit } => (value, unit, " PRECEDING"),
            Bound::Following { value, unit } => (value, unit, " FOLLOWING"),
        };
        self.raw(if unit == K::None { "" } else { "INTERVAL " });
        self.expr(value);
        if unit != K::None {
            self.raw(" ");
            self.raw(unit.name());
        }
        self.raw(word);
    }
}
