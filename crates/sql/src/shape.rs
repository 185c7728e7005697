//! Statements that differ in constants only share a plan: constants of conditions become parameters.
//!
//! Only constants that stand right behind a comparison in WHERE or ON, in the list of an IN, or alone in an assignment of an
//! UPDATE are taken out: there a parameter means what the constant means, and names nothing.

use crate::bind::number;
use lats_base::planted::{QueryBug, errs};
use lats_mysql_syntax::lexer::Lexer;
use lats_mysql_syntax::token::{Kind, Token};
use lats_mysql_syntax::{Keyword as K, Mode};
use lats_values::Value;
use std::sync::Arc;

/// A statement with `?` in the place of constants, and the constants.
#[derive(Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) template: Arc<[u8]>,
    pub(crate) values: Vec<Value>,
    /// Where the constants begin and end in the statement's text.
    pub(crate) places: Vec<(u32, u32)>,
}

/// Longer texts are rarely sent twice.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Constants that are taken out at most.
const VALUES_MAX: usize = 1_024;

impl Shape {
    /// The shape of a statement; none if it has no constants to take out, or is none of those that are planned.
    pub(crate) fn of(text: &[u8], mode: Mode) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX || text.contains(&b'?') {
            return None;
        }
        let mut lexer = Lexer::new(text, 0, mode);
        let first = lexer.next_token();
        if !matches!(first.word, K::SELECT | K::UPDATE | K::DELETE | K::WITH) {
            return None;
        }
        let mut reader = Reader::new(text);
        let (mut before, mut here) = (first, lexer.next_token());
        let (mut in_condition, mut in_list) = (false, false);
        let mut in_assignments = false;
        // For each level of parentheses: it is in a select list, whose texts may be names of columns.
        let mut in_items = Vec::from([first.word == K::SELECT]);
        while here.kind != Kind::End {
            let next = lexer.next_token();
            if matches!(here.kind, Kind::Bad | Kind::Semicolon) {
                return None;
            }
            if ends_condition(here.word) {
                (in_condition, in_list) = (false, false);
            }
            in_condition |= matches!(here.word, K::WHERE | K::ON);
            in_assignments &= !ends_assignments(here.word);
            in_assignments |= here.word == K::SET && first.word == K::UPDATE;
            match here.kind {
                Kind::Open => {
                    in_list = before.word == K::IN;
                    in_items.push(false);
                }
                Kind::Close => {
                    in_list = false;
                    in_items.pop();
                }
                _ => {}
            }
            if let Some(level) = in_items.last_mut()
                && matches!(here.word, K::SELECT | K::FROM)
            {
                *level = here.word == K::SELECT;
            }
            let is_operand = is_comparison(before.kind)
                || (in_list && matches!(before.kind, Kind::Open | Kind::Comma));
            let in_condition = in_condition && is_operand && !continues(next);
            let is_assigned = in_assignments && before.kind == Kind::Equal && is_last(next);
            if (in_condition || is_assigned) && !in_items.contains(&true) {
                reader.take_out(here)?;
            }
            (before, here) = (here, next);
        }
        reader.finish()
    }
}

fn is_comparison(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Equal
            | Kind::NotEqual
            | Kind::Less
            | Kind::LessEqual
            | Kind::Greater
            | Kind::GreaterEqual
    )
}

/// Words behind which other clauses begin.
fn ends_condition(word: K) -> bool {
    matches!(
        word,
        K::SELECT
            | K::GROUP
            | K::HAVING
            | K::WINDOW
            | K::ORDER
            | K::LIMIT
            | K::SET
            | K::UNION
            | K::EXCEPT
            | K::INTERSECT
            | K::INTO
            | K::INTERVAL
            | K::FOR
            | K::LOCK
            | K::CASE
    )
}

/// Words that stand behind assignments.
fn ends_assignments(word: K) -> bool {
    matches!(word, K::WHERE | K::ORDER | K::LIMIT)
}

/// True of what may stand behind the last part of an assignment.
fn is_last(next: Token) -> bool {
    matches!(next.kind, Kind::Comma | Kind::End) || ends_assignments(next.word)
}

/// Texts that follow one another are one text; a constant that an operator of its own follows is left alone.
fn continues(next: Token) -> bool {
    matches!(next.kind, Kind::Text | Kind::Dot) || next.word == K::COLLATE
}

struct Reader<'t> {
    text: &'t [u8],
    /// What is before this is in the template.
    from: usize,
    template: Vec<u8>,
    values: Vec<Value>,
    places: Vec<(u32, u32)>,
}

/// Adds a constant to those that were taken out.
pub(crate) fn take_value(values: &mut Vec<Value>, value: Value) {
    let wrong = errs(QueryBug::ConstantOfFirstUse) && values.len() >= 3;
    let value = values.last().filter(|_| wrong).cloned().unwrap_or(value);
    values.push(value);
}

impl<'t> Reader<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { text, from: 0, template: Vec::new(), values: Vec::new(), places: Vec::new() }
    }

    /// Takes a constant out, if it is one of those that are; none if there are too many.
    fn take_out(&mut self, token: Token) -> Option<()> {
        let span = token.span().of(self.text);
        let value = match token.kind {
            Kind::Integer => number(core::str::from_utf8(span).ok()?).ok(),
            Kind::Text => plain_text(span),
            _ => None,
        };
        let Some(value) = value else { return Some(()) };
        if self.values.len() == VALUES_MAX {
            return None;
        }
        self.template.extend_from_slice(self.text.get(self.from..token.start as usize)?);
        self.template.push(b'?');
        self.from = token.end as usize;
        self.places.push((token.start, token.end));
        take_value(&mut self.values, value);
        Some(())
    }

    fn finish(mut self) -> Option<Shape> {
        if self.values.is_empty() {
            return None;
        }
        self.template.extend_from_slice(self.text.get(self.from..)?);
        let template = self.template.into();
        Some(Shape { template, values: self.values, places: self.places })
    }
}

/// A text in quotes in which every byte stands for itself.
pub(crate) fn plain_text(span: &[u8]) -> Option<Value> {
    let (quote, rest) = span.split_first()?;
    let inner = rest.strip_suffix(&[*quote])?;
    if inner.iter().any(|byte| byte == quote || *byte == b'\\') {
        return None;
    }
    core::str::from_utf8(inner).ok().map(Value::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> (String, Vec<Value>) {
        let shape = Shape::of(text.as_bytes(), Mode::default());
        shape.map_or_else(Default::default, |shape| {
            (String::from_utf8(shape.template.to_vec()).unwrap(), shape.values)
        })
    }

    #[test]
    fn constants_of_conditions_become_parameters() {
        let (template, values) =
            shape("SELECT a, 1 FROM t WHERE b = 5 AND c IN (1, 'x') ORDER BY 1");
        assert_eq!(template, "SELECT a, 1 FROM t WHERE b = ? AND c IN (?, ?) ORDER BY 1");
        assert_eq!(values, [Value::Int(5), Value::Int(1), Value::text("x")]);
        let (template, values) =
            shape("UPDATE t SET a = 1, c = 'x', d = 3 + 1 WHERE b > 2 LIMIT 3");
        assert_eq!(template, "UPDATE t SET a = ?, c = ?, d = 3 + 1 WHERE b > ? LIMIT 3");
        assert_eq!(values, [Value::Int(1), Value::text("x"), Value::Int(2)]);
        let (template, _) = shape("UPDATE t SET a = (SELECT 1), b = 2 + a, c = d = 3");
        assert_eq!(template, "UPDATE t SET a = (SELECT 1), b = 2 + a, c = d = ?");
        let (template, _) = shape("SELECT * FROM t JOIN u ON t.a = 3 WHERE u.b <> 'y'");
        assert_eq!(template, "SELECT * FROM t JOIN u ON t.a = ? WHERE u.b <> ?");
    }

    #[test]
    fn other_constants_stay() {
        for text in [
            "SELECT 1 = 1",
            "SELECT a FROM t WHERE b = 'x' 'y'",
            "SELECT a FROM t WHERE b = 'it''s'",
            "SELECT a FROM t WHERE b = -1",
            "SELECT a FROM t WHERE b = DATE'2024-01-01'",
            "SELECT a FROM t WHERE d = CASE 1 WHEN 1 THEN 2 END",
            "SELECT a FROM t WHERE d < NOW() - INTERVAL 1 DAY",
            "SELECT a FROM t WHERE b = ? AND c = 1",
            "SELECT a FROM t WHERE EXISTS (SELECT 1 = 2)",
            "SELECT (SELECT a FROM t WHERE b = 1) FROM t",
            "INSERT INTO t VALUES (1)",
            "SHOW TABLES WHERE a = 1",
        ] {
            assert_eq!(Shape::of(text.as_bytes(), Mode::default()), None, "{text}");
        }
    }
}
