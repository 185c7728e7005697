//! Functions with a grammar of their own, aggregates and windows.

use super::Printer;
use crate::Keyword;
use crate::tree::{
    Aggregate, Bound, Expr, ExprId, Frame, JsonDefault, JsonValue, List, MatchMode, Nulls, Over,
    SideId, Text, TrimSide,
};

impl Printer<'_> {
    fn opened(&mut self, name: &str) {
        self.word(name);
        self.raw("(");
    }

    /// `name(a, b)`
    fn call(&mut self, name: &str, list: List) {
        self.opened(name);
        self.exprs(list);
        self.raw(")");
    }

    #[inline(never)]
    pub(super) fn function(&mut self, expr: &Expr) {
        match *expr {
            Expr::Call { schema, name, arguments } => {
                self.qualified(schema, name);
                self.raw("(");
                self.exprs(arguments);
                self.raw(")");
            }
            Expr::Function { name, arguments, has_parentheses: true } => {
                self.call(name.name(), arguments)
            }
            Expr::Function { name, .. } => self.keyword(name),
            Expr::Aggregate(id) => self.aggregate(self.tree.aggregate(id)),
            Expr::Cast { value, data_type, zone, is_interval, is_convert } => {
                self.opened(if is_convert { "CONVERT" } else { "CAST" });
                self.expr(value);
                if zone.is_some() {
                    self.word("AT TIME ZONE");
                    self.word_if(is_interval, "INTERVAL");
                    self.text(zone);
                }
                if is_convert {
                    self.raw(",");
                } else {
                    self.word("AS");
                }
                self.data_type(self.tree.data_type(data_type));
                self.raw(")");
            }
            Expr::ConvertUsing { value, charset } => {
                self.opened("CONVERT");
                self.expr(value);
                self.word("USING");
                self.name(charset);
                self.raw(")");
            }
            Expr::Match { columns, has_parentheses, against, mode } => {
                self.match_against(columns, has_parentheses, against, mode);
            }
            Expr::Extract { unit, value } => {
                self.opened("EXTRACT");
                self.keyword(unit);
                self.word("FROM");
                self.expr(value);
                self.raw(")");
            }
            Expr::Trim { side, list } => self.trim(side, list),
            Expr::Substring { list, has_words, name } => self.substring(list, has_words, name),
            Expr::JsonValue(id) => self.json_value(self.tree.json_value(id)),
            ref other => self.rare_function(other),
        }
    }

    #[inline(never)]
    fn rare_function(&mut self, expr: &Expr) {
        match *expr {
            Expr::Position { part, text } => {
                self.opened("POSITION");
                self.operand(part, 8);
                self.word("IN");
                self.expr(text);
                self.raw(")");
            }
            Expr::GetFormat { kind, style } => {
                self.opened("GET_FORMAT");
                self.keyword(kind);
                self.raw(",");
                self.expr(style);
                self.raw(")");
            }
            Expr::Timestamp { name, unit, list } => {
                self.opened(name.name());
                self.keyword(unit);
                self.raw(",");
                self.exprs(list);
                self.raw(")");
            }
            Expr::DateArithmetic { name, value, amount, unit } => {
                self.opened(name.name());
                self.expr(value);
                self.raw(", INTERVAL");
                self.expr(amount);
                self.keyword(unit);
                self.raw(")");
            }
            Expr::Char { list, charset } => {
                self.opened("CHAR");
                self.exprs(list);
                if charset.is_some() {
                    self.word("USING");
                    self.name(charset);
                }
                self.raw(")");
            }
            Expr::WeightString { value, kind, length } => {
                self.opened("WEIGHT_STRING");
                self.expr(value);
                if kind != Keyword::None {
                    self.word("AS");
                    self.keyword(kind);
                    self.raw("(");
                    self.bytes(length);
                    self.raw(")");
                }
                self.raw(")");
            }
            Expr::Values(column) => self.of_column("VALUES", column),
            Expr::DefaultOf(column) => self.of_column("DEFAULT", column),
            Expr::Arrow { column, is_unquoted, path } => {
                self.expr(column);
                self.word(if is_unquoted { "->>" } else { "->" });
                self.text(path);
            }
            Expr::Odbc { name, value } => {
                self.word("{");
                self.name(name);
                self.expr(value);
                self.raw("}");
            }
            _ => {}
        }
    }

    fn of_column(&mut self, name: &str, column: ExprId) {
        self.opened(name);
        self.expr(column);
        self.raw(")");
    }

    fn trim(&mut self, side: TrimSide, list: List) {
        self.opened("TRIM");
        match side {
            TrimSide::None => {}
            TrimSide::Both => self.word("BOTH"),
            TrimSide::Leading => self.word("LEADING"),
            TrimSide::Trailing => self.word("TRAILING"),
        }
        let list = self.tree.list(list);
        if let [removed, text] = list {
            self.expr(*removed);
            self.word("FROM");
            self.expr(*text);
        } else {
            self.word_if(side != TrimSide::None, "FROM");
            self.commas(list, Self::expr);
        }
        self.raw(")");
    }

    fn substring(&mut self, list: List, has_words: bool, name: Keyword) {
        self.opened(name.name());
        for (at, value) in self.tree.list(list).iter().enumerate() {
            match (at, has_words) {
                (0, _) => {}
                (_, false) => self.raw(","),
                (1, true) => self.word("FROM"),
                (_, true) => self.word("FOR"),
            }
            self.expr(*value);
        }
        self.raw(")");
    }

    fn match_against(
        &mut self,
        columns: List,
        has_parentheses: bool,
        against: ExprId,
        mode: MatchMode,
    ) {
        self.word("MATCH");
        self.word_if(has_parentheses, "(");
        self.exprs(columns);
        if has_parentheses {
            self.raw(")");
        }
        self.word("AGAINST (");
        self.operand(against, 8);
        match mode {
            MatchMode::None => {}
            MatchMode::NaturalLanguage => self.word("IN NATURAL LANGUAGE MODE"),
            MatchMode::NaturalLanguageWithExpansion => {
                self.word("IN NATURAL LANGUAGE MODE WITH QUERY EXPANSION")
            }
            MatchMode::Boolean => self.word("IN BOOLEAN MODE"),
            MatchMode::WithExpansion => self.word("WITH QUERY EXPANSION"),
        }
        self.raw(")");
    }

    fn json_value(&mut self, value: &JsonValue) {
        self.opened("JSON_VALUE");
        self.operand(value.document, 14);
        self.raw(",");
        self.text(value.path);
        if let Some(returning) = value.returning {
            self.word("RETURNING");
            self.data_type(self.tree.data_type(returning));
        }
        self.json_defaults(value.on_empty, value.on_error);
        self.raw(")");
    }

    pub(super) fn json_defaults(
        &mut self,
        on_empty: Option<JsonDefault>,
        on_error: Option<JsonDefault>,
    ) {
        let mut parts = [(on_empty, "ON EMPTY"), (on_error, "ON ERROR")];
        // The default that was written first has the lower number.
        if let (Some(JsonDefault::Default(empty)), Some(JsonDefault::Default(error))) =
            (on_empty, on_error)
            && error < empty
        {
            parts.swap(0, 1);
        }
        for (default, word) in parts {
            match default {
                None => continue,
                Some(JsonDefault::Error) => self.word("ERROR"),
                Some(JsonDefault::Null) => self.word("NULL"),
                Some(JsonDefault::Default(value)) => {
                    self.word("DEFAULT");
                    self.expr(value);
                }
            }
            self.word(word);
        }
    }

    fn aggregate(&mut self, call: &Aggregate) {
        self.opened(call.name.name());
        self.word_if(call.is_distinct, "DISTINCT");
        self.word_if(call.is_all, "ALL");
        self.exprs(call.arguments);
        self.order_by(&call.order);
        if call.separator.is_some() {
            self.word("SEPARATOR");
            self.text(call.separator);
        }
        self.raw(")");
        self.word_if(call.from_first, "FROM FIRST");
        match call.nulls {
            Nulls::None => {}
            Nulls::Respect => self.word("RESPECT NULLS"),
            Nulls::Ignore => self.word("IGNORE NULLS"),
        }
        match call.over {
            Over::None => {}
            Over::Name(name) => {
                self.word("OVER");
                self.name(name);
            }
            Over::Window(window) => {
                self.word("OVER");
                self.window(window);
            }
        }
    }

    pub(super) fn window(&mut self, id: SideId) {
        let window = self.tree.window(id);
        self.word("(");
        if window.base.is_some() {
            self.name(window.base);
        }
        if !window.partition.is_empty() {
            self.word("PARTITION BY");
            self.exprs(window.partition);
        }
        self.order_by(&window.order);
        if let Some(frame) = window.frame {
            self.frame(frame);
        }
        self.raw(")");
    }

    fn frame(&mut self, frame: Frame) {
        self.word(if frame.is_range { "RANGE" } else { "ROWS" });
        let Some(end) = frame.end else {
            self.bound(frame.start);
            return;
        };
        self.word("BETWEEN");
        self.bound(frame.start);
        self.word("AND");
        self.bound(end);
    }

    fn bound(&mut self, bound: Bound) {
        let (value, unit, word) = match bound {
            Bound::CurrentRow => return self.word("CURRENT ROW"),
            Bound::UnboundedPreceding => return self.word("UNBOUNDED PRECEDING"),
            Bound::UnboundedFollowing => return self.word("UNBOUNDED FOLLOWING"),
            Bound::Preceding { value, unit } => (value, unit, "PRECEDING"),
            Bound::Following { value, unit } => (value, unit, "FOLLOWING"),
        };
        self.word_if(unit != Keyword::None, "INTERVAL");
        self.expr(value);
        self.keyword(unit);
        self.word(word);
    }

    /// A text, if there is one.
    pub(super) fn text_behind(&mut self, word: &str, text: Text) {
        if text.is_some() {
            self.word(word);
            self.text(text);
        }
    }

    /// A name, if there is one.
    pub(super) fn name_behind(&mut self, word: &str, name: Text) {
        if name.is_some() {
            self.word(word);
            self.name(name);
        }
    }
}
