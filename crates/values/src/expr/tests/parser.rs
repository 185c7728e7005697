//! A small reader of SQL expressions, so that tests are tables of text.

use crate::{
    BinaryOp, Collation, ColumnType, Date, DateTime, Decimal, Expr, Function, IntervalUnit, Time,
    TypeKind, UnaryOp, Value,
    temporal::{parse_datetime, parse_time},
};
use std::{boxed::Box, format, string::String, vec, vec::Vec};

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(String),
    Text(String),
    Word(String),
    Sign(String),
}

fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let start = at;
        if c.is_whitespace() {
            at += 1;
        } else if c.is_ascii_digit() || c == '.' {
            while at < chars.len()
                && (chars[at].is_ascii_digit()
                    || chars[at] == '.'
                    || chars[at] == 'e'
                    || (chars[at] == '-' && chars[at - 1] == 'e'))
            {
                at += 1;
            }
            out.push(Token::Number(chars[start..at].iter().collect()));
        } else if c == '\'' {
            at += 1;
            let mut value = String::new();
            while at < chars.len() && chars[at] != '\'' {
                value.push(chars[at]);
                at += 1;
            }
            at += 1;
            out.push(Token::Text(value));
        } else if c.is_alphabetic() || c == '_' {
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
            out.push(Token::Word(chars[start..at].iter().collect::<String>().to_uppercase()));
        } else {
            let three: String = chars[at..chars.len().min(at + 3)].iter().collect();
            let two: String = three.chars().take(2).collect();
            let sign = if three == "<=>" {
                three
            } else if ["<=", ">=", "<>", "<<", ">>"].contains(&two.as_str()) {
                two
            } else {
                String::from(c)
            };
            at += sign.len();
            out.push(Token::Sign(sign));
        }
    }
    out
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

/// Reads an expression; `c0`, `c1`, … are columns.
pub fn parse(text: &str) -> Expr {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let expr = parser.expr(0);
    assert_eq!(parser.at, parser.tokens.len(), "left over in {text}");
    expr
}

fn binary_of(token: &Token) -> Option<(BinaryOp, u8)> {
    use BinaryOp::*;
    let (Token::Sign(name) | Token::Word(name)) = token else { return None };
    Some(match name.as_str() {
        "OR" => (Or, 1),
        "XOR" => (Xor, 2),
        "AND" => (And, 3),
        "=" => (Equal, 5),
        "<=>" => (NullSafeEqual, 5),
        "<>" => (NotEqual, 5),
        "<" => (Less, 5),
        "<=" => (LessOrEqual, 5),
        ">" => (Greater, 5),
        ">=" => (GreaterOrEqual, 5),
        "|" => (BitOr, 6),
        "&" => (BitAnd, 7),
        "<<" => (ShiftLeft, 8),
        ">>" => (ShiftRight, 8),
        "+" => (Add, 9),
        "-" => (Subtract, 9),
        "*" => (Multiply, 10),
        "/" => (Divide, 10),
        "DIV" => (IntDivide, 10),
        "%" => (Modulo, 10),
        "^" => (BitXor, 11),
        _ => return None,
    })
}

impl Parser {
    fn peek_word(&self, word: &str) -> bool {
        self.tokens.get(self.at) == Some(&Token::Word(String::from(word)))
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.peek_word(word);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.tokens.get(self.at) == Some(&Token::Sign(String::from(sign)));
        self.at += usize::from(found);
        found
    }

    fn boxed(&mut self, level: u8) -> Box<Expr> {
        Box::new(self.expr(level))
    }

    fn expr(&mut self, level: u8) -> Expr {
        let mut left = if self.word("NOT") {
            Expr::Unary { op: UnaryOp::Not, arg: self.boxed(4) }
        } else {
            self.prefix()
        };
        while let Some(token) = self.tokens.get(self.at).cloned() {
            if let Some((op, power)) = binary_of(&token) {
                if power <= level {
                    break;
                }
                self.at += 1;
                let right = self.boxed(power);
                left = Expr::Binary { op, left: Box::new(left), right };
            } else if level < 5 {
                match self.postfix(left) {
                    Ok(next) => left = next,
                    Err(same) => {
                        left = same;
                        break;
                    }
                }
            } else if self.word("COLLATE") {
                left = self.collate(left);
            } else {
                break;
            }
        }
        left
    }

    fn collate(&mut self, arg: Expr) -> Expr {
        let Token::Word(name) = self.tokens[self.at].clone() else { panic!("collation") };
        self.at += 1;
        let collation = Collation::from_name(&name).unwrap();
        Expr::Collate { arg: Box::new(arg), collation }
    }

    fn postfix(&mut self, left: Expr) -> Result<Expr, Expr> {
        let arg = Box::new(left);
        let start = self.at;
        if self.word("COLLATE") {
            return Ok(self.collate(*arg));
        }
        if self.word("IS") {
            let negated = self.word("NOT");
            assert!(self.word("NULL"));
            return Ok(Expr::IsNull { arg, negated });
        }
        let negated = self.word("NOT");
        if self.word("BETWEEN") {
            let low = self.boxed(5);
            assert!(self.word("AND"));
            return Ok(Expr::Between { arg, low, high: self.boxed(5), negated });
        }
        if self.word("IN") {
            assert!(self.sign("("));
            return Ok(Expr::In { arg, list: self.list().into(), negated });
        }
        if self.word("LIKE") {
            let pattern = self.boxed(5);
            return Ok(Expr::Like { arg, pattern, escape: None, negated });
        }
        self.at = start;
        Err(*arg)
    }

    /// The rest of a list after its opening parenthesis.
    fn list(&mut self) -> Vec<Expr> {
        let mut list = Vec::new();
        if self.sign(")") {
            return list;
        }
        loop {
            list.push(self.expr(0));
            if self.sign(")") {
                return list;
            }
            assert!(self.sign(","), "list at {}", self.at);
        }
    }

    fn prefix(&mut self) -> Expr {
        let token = self.tokens[self.at].clone();
        self.at += 1;
        match token {
            Token::Number(text) => Expr::Literal(number(&text)),
            Token::Text(text) => Expr::Literal(Value::text(&text)),
            Token::Sign(s) if s == "(" => {
                let inner = self.expr(0);
                assert!(self.sign(")"));
                inner
            }
            Token::Sign(s) if s == "-" => Expr::Unary { op: UnaryOp::Minus, arg: self.boxed(12) },
            Token::Sign(s) if s == "~" => Expr::Unary { op: UnaryOp::BitNot, arg: self.boxed(12) },
            Token::Word(word) => self.named(&word),
            other => panic!("{other:?}"),
        }
    }

    fn named(&mut self, word: &str) -> Expr {
        let literal = self.tokens.get(self.at).cloned();
        match (word, literal) {
            ("NULL", _) => return Expr::Literal(Value::Null),
            ("TRUE", _) => return Expr::Literal(Value::Int(1)),
            ("CASE", _) => return self.case(),
            ("DATE" | "TIME" | "TIMESTAMP" | "X", Some(Token::Text(text))) => {
                self.at += 1;
                return Expr::Literal(typed(word, &text));
            }
            _ => {}
        }
        if let Some(column) = word.strip_prefix('C').and_then(|n| n.parse().ok()) {
            return Expr::Column(column);
        }
        assert!(self.sign("("), "{word}");
        match word {
            "CAST" => {
                let arg = self.boxed(0);
                assert!(self.word("AS"));
                Expr::Cast { arg, to: self.cast_type() }
            }
            "DATE_ADD" | "DATE_SUB" => {
                let start = self.expr(0);
                assert!(self.sign(",") && self.word("INTERVAL"));
                let amount = self.expr(0);
                let unit = self.unit();
                assert!(self.sign(")"));
                let function = if word == "DATE_ADD" {
                    Function::DateAdd { unit }
                } else {
                    Function::DateSub { unit }
                };
                Expr::Call { function, args: vec![start, amount] }
            }
            "TIMESTAMPDIFF" => {
                let unit = self.unit();
                assert!(self.sign(","));
                Expr::Call { function: Function::TimestampDiff { unit }, args: self.list() }
            }
            "EXTRACT" => {
                let unit = self.unit();
                assert!(self.word("FROM"));
                Expr::Call { function: Function::Extract { unit }, args: self.list() }
            }
            _ => {
                let function = Function::from_name(word).unwrap_or_else(|| panic!("{word}"));
                Expr::Call { function, args: self.list() }
            }
        }
    }

    fn unit(&mut self) -> IntervalUnit {
        let Token::Word(name) = self.tokens[self.at].clone() else { panic!("unit") };
        self.at += 1;
        IntervalUnit::from_name(&name).unwrap()
    }

    fn case(&mut self) -> Expr {
        let operand = if self.peek_word("WHEN") { None } else { Some(self.boxed(0)) };
        let mut branches = Vec::new();
        while self.word("WHEN") {
            let when = self.expr(0);
            assert!(self.word("THEN"));
            branches.push((when, self.expr(0)));
        }
        let otherwise = if self.word("ELSE") { Some(self.boxed(0)) } else { None };
        assert!(self.word("END"));
        Expr::Case { operand, branches, otherwise }
    }

    fn cast_type(&mut self) -> ColumnType {
        let Token::Word(name) = self.tokens[self.at].clone() else { panic!("type") };
        self.at += 1;
        let mut numbers: Vec<u16> = Vec::new();
        if self.sign("(") {
            for value in self.list() {
                let Expr::Literal(Value::Int(n)) = value else { panic!("length") };
                numbers.push(n as u16);
            }
        }
        assert!(self.sign(")"));
        let small = |at: usize| numbers.get(at).map_or(0, |n| *n as u8);
        let kind = match name.as_str() {
            "SIGNED" => TypeKind::BigInt,
            "UNSIGNED" => return ColumnType::new(TypeKind::BigInt).unsigned(),
            "DOUBLE" => TypeKind::Double,
            "DECIMAL" if numbers.is_empty() => TypeKind::Decimal { precision: 10, scale: 0 },
            "DECIMAL" => TypeKind::Decimal { precision: small(0), scale: small(1) },
            "DATE" => TypeKind::Date,
            "DATETIME" => TypeKind::DateTime { fsp: small(0) },
            "TIME" => TypeKind::Time { fsp: small(0) },
            "CHAR" => numbers.first().map_or(TypeKind::LongText, |n| TypeKind::Char { chars: *n }),
            "BINARY" => {
                numbers.first().map_or(TypeKind::LongBlob, |n| TypeKind::Binary { bytes: *n })
            }
            other => panic!("{other}"),
        };
        ColumnType::new(kind)
    }
}

fn number(text: &str) -> Value {
    if text.contains('e') {
        return Value::Double(text.parse().unwrap());
    }
    if text.contains('.') {
        return Value::Decimal(Decimal::parse(text).unwrap());
    }
    match text.parse::<i64>() {
        Ok(v) => Value::Int(v),
        Err(_) => match text.parse::<u64>() {
            Ok(v) => Value::UInt(v),
            Err(_) => Value::Decimal(Decimal::parse(text).unwrap()),
        },
    }
}

fn typed(word: &str, text: &str) -> Value {
    match word {
        "DATE" => {
            let date: Date = parse_datetime(text).unwrap().value.date;
            Value::Date(date)
        }
        "TIMESTAMP" => {
            let moment: DateTime = parse_datetime(text).unwrap().value;
            Value::DateTime(moment)
        }
        "TIME" => {
            let time: Time = parse_time(text).unwrap().value;
            Value::Time(time)
        }
        _ => {
            let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            Value::Bytes((0..text.len() / 2).map(|i| byte(i * 2)).collect())
        }
    }
}

/// What an expression gives as text; errors as `ERROR number: text`.
pub fn run(text: &str, strict: bool) -> String {
    let mut ctx = crate::EvalContext::new(strict);
    let row: Vec<Value> = Vec::new();
    match crate::eval(&parse(text), &row, &mut ctx) {
        Ok(value) => {
            let warnings: Vec<String> =
                ctx.warnings.iter().map(|w| format!(" [{}]", w.errno)).collect();
            format!("{}{}", value.to_display(), warnings.concat())
        }
        Err(error) => format!("ERROR {}: {}", error.errno, error.message),
    }
}
