//! A statement's text without its plain constants, found without tokens: texts that differ in these only are told apart by
//! nothing else, so what is known of one is known of the others.
//!
//! A constant is plain if its bytes are its value, and if no byte beside it could belong to its token: digits, or a text in single
//! quotes without backslashes and doubled quotes. Whatever is not read here for certain as the lexer reads it gives no skeleton:
//! comments, placeholders, names in double quotes, and all that is rare.

use crate::bind::number;
use crate::shape::{Shape, plain_text, take_value};
use lats_values::Value;
use std::sync::Arc;

/// Longer texts are rarely sent twice.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Constants at most.
const CONSTANTS_MAX: usize = 256;

/// What stands in a skeleton in the place of digits and of a text.
const DIGITS: u8 = 1;
const TEXT: u8 = 2;

/// Where the plain constants of a text are.
pub(crate) type Spans = Vec<(u32, u32)>;

/// What is known of all texts with one skeleton and the same constants in the places that count.
#[derive(Debug, PartialEq)]
pub(crate) struct Known {
    /// The shape's template.
    pub(crate) template: Arc<[u8]>,
    /// For each constant: none if it is taken out of the template, else the bytes that it must have.
    kept: Box<[Option<Box<[u8]>>]>,
}

impl Known {
    /// What a shape tells of the texts that have its skeleton; none if it takes out what is no plain constant.
    pub(crate) fn of(text: &[u8], spans: &Spans, shape: &Shape) -> Option<Self> {
        let mut taken = shape.places.iter().peekable();
        let kept = spans.iter().map(|&(start, end)| {
            if taken.next_if(|&&place| place == (start, end)).is_some() {
                return Some(None);
            }
            Some(Some(text.get(start as usize..end as usize)?.into()))
        });
        let kept = kept.collect::<Option<_>>()?;
        taken.next().is_none().then(|| Self { template: Arc::clone(&shape.template), kept })
    }

    /// The constants of a text that has the skeleton; none if another one than those taken out is different.
    pub(crate) fn values(&self, text: &[u8], spans: &Spans) -> Option<Vec<Value>> {
        let mut values = Vec::with_capacity(self.kept.len());
        for (kept, &(start, end)) in self.kept.iter().zip(spans) {
            let span = text.get(start as usize..end as usize)?;
            match kept {
                Some(kept) if **kept == *span => {}
                Some(_) => return None,
                None if span.first() == Some(&b'\'') => take_value(&mut values, plain_text(span)?),
                None => take_value(&mut values, number(core::str::from_utf8(span).ok()?).ok()?),
            }
        }
        Some(values)
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let kept = self.kept.iter().flatten().map(|kept| kept.len());
        self.template.len() + size_of_val(&*self.kept) + kept.sum::<usize>()
    }
}

/// What a byte outside of quotes means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of a name; a point or `@`, behind which names begin with digits, too.
    Name,
    Digit,
    Quote,
    /// `-`, `/` and `*`: two in a row may begin or end a comment.
    Pair,
    Other,
    /// There is no skeleton.
    Unsure,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut at = 0;
    while at < 256 {
        classes[at] = match at as u8 {
            b'0'..=b'9' => Class::Digit,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'.' | b'@' | 0x80..=0xff => Class::Name,
            b'\'' => Class::Quote,
            b'-' | b'/' | b'*' => Class::Pair,
            b'#' | b'?' | b';' | b'"' | b'`' | b'\\' | 0..=8 | 0x0e..=0x1f | 0x7f => Class::Unsure,
            _ => Class::Other,
        };
        at += 1;
    }
    classes
};

fn class(text: &[u8], at: usize) -> Class {
    text.get(at).map_or(Class::Other, |byte| CLASSES[usize::from(*byte)])
}

/// Appends a text's skeleton, and tells where its constants are; none if the text is none of those that have one.
pub(crate) fn read(text: &[u8], skeleton: &mut Vec<u8>) -> Option<Spans> {
    let may_be = matches!(text.first()?, b'S' | b's' | b'U' | b'u' | b'D' | b'd' | b'W' | b'w');
    if !may_be || text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let mut spans = Spans::new();
    let (mut from, mut at) = (0, 0);
    let mut before = Class::Other;
    while at < text.len() {
        let start = at;
        let here = class(text, at);
        at += 1;
        let mark = match here {
            Class::Name | Class::Other => None,
            Class::Unsure => return None,
            Class::Pair if before == Class::Pair => return None,
            Class::Pair => None,
            Class::Digit => {
                at += digits(&text[at..]);
                let is_alone = before != Class::Name && class(text, at) != Class::Name;
                is_alone.then_some(DIGITS)
            }
            Class::Quote if before == Class::Name => return None,
            Class::Quote => {
                at += plain_length(&text[at..])?;
                Some(TEXT)
            }
        };
        if let Some(mark) = mark {
            skeleton.extend_from_slice(&text[from..start]);
            skeleton.push(mark);
            from = at;
            spans.push((start as u32, at as u32));
        }
        // Digits that belong to a name are of it.
        before = if here == Class::Digit && mark.is_none() { Class::Name } else { here };
    }
    skeleton.extend_from_slice(&text[from..]);
    (spans.len() <= CONSTANTS_MAX).then_some(spans)
}

fn digits(rest: &[u8]) -> usize {
    rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())
}

/// How many bytes behind a quote belong to its text; none if they are not plain.
fn plain_length(rest: &[u8]) -> Option<usize> {
    let length = rest.iter().position(|byte| matches!(byte, b'\'' | b'\\'))?;
    let is_end = rest.get(length) == Some(&b'\'') && rest.get(length + 1) != Some(&b'\'');
    is_end.then_some(length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lats_base::prng::Prng;
    use lats_mysql_syntax::Mode;

    fn skeleton(text: &str) -> Option<(String, Vec<&str>)> {
        let mut bytes = Vec::new();
        let spans = read(text.as_bytes(), &mut bytes)?;
        let of = |(start, end): (u32, u32)| &text[start as usize..end as usize];
        Some((String::from_utf8(bytes).unwrap(), spans.into_iter().map(of).collect()))
    }

    #[test]
    fn plain_constants_are_found() {
        let found =
            skeleton("SELECT c1, t.2a FROM t1 WHERE a=17 AND b IN ('x', '') LIMIT 5").unwrap();
        assert_eq!(
            found.0,
            "SELECT c1, t.2a FROM t1 WHERE a=\u{1} AND b IN (\u{2}, \u{2}) LIMIT \u{1}"
        );
        assert_eq!(found.1, ["17", "'x'", "''", "5"]);
        for text in ["SELECT 1.5, .5, 5., 1e5, 0x41, 0b1, @1, t.1, 1a", "SELECT a FROM t"] {
            assert_eq!(skeleton(text), Some((text.to_owned(), Vec::new())), "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_has_no_skeleton() {
        for text in [
            "SELECT a FROM t WHERE a = 'it''s'",
            "SELECT a FROM t WHERE a = 'it\\'s'",
            "SELECT a FROM t WHERE a = 'x",
            "SELECT a FROM t WHERE a = \"x\"",
            "SELECT a FROM t WHERE a = ?",
            "SELECT a FROM t WHERE a = N'x'",
            "SELECT a FROM t WHERE a = 1 -- 2",
            "SELECT a FROM t WHERE a = /* 1 */ 2",
            "SELECT a FROM t WHERE a = 1 # 2",
            "SELECT a FROM `1 t` WHERE a = 1",
            "SELECT 1; SELECT 2",
            "SELECT '\u{1}' = \u{1}",
            "INSERT INTO t VALUES (1)",
            "",
        ] {
            assert_eq!(skeleton(text), None, "{text}");
        }
    }

    /// Texts whose constants stand in all kinds of places.
    const TEXTS: &[&str] = &[
        "SELECT c FROM t WHERE id=1",
        "SELECT a, 1, 'x' FROM t1 WHERE a = 1 AND b > 'x' OR c IN (1, 2, 'x') LIMIT 1, 2",
        "SELECT * FROM t JOIN u ON t.a = 1 AND u.1b = 2 WHERE u.b <> 'x' GROUP BY 1 HAVING a = 1",
        "SELECT a FROM t WHERE b = 'x' 'y' AND c = 1 COLLATE utf8mb4_bin AND d = 1",
        "SELECT a FROM t WHERE b = -1 AND c = 1 - 1 AND d = 1-1 AND e = 1e-1",
        "SELECT a FROM t WHERE b = DATE '2024-01-01' AND c = 1.5 AND d = 1. AND e = _utf8mb4 'x' AND f = 1",
        "SELECT a FROM t WHERE e = 1 AND d = CASE 1 WHEN 1 THEN 2 END",
        "SELECT a FROM t WHERE e = 1 AND d < NOW() - INTERVAL 1 DAY",
        "SELECT (SELECT a FROM t WHERE b = 1) FROM t WHERE c = 1",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 = 2 FROM u WHERE v = 1) AND c BETWEEN 1 AND 2",
        "UPDATE t SET a = 1, b = b + 1, c = 'x' WHERE d = 1 LIMIT 1",
        "UPDATE t SET a = (SELECT b FROM u WHERE c = 1), d = 'x'",
        "DELETE FROM t WHERE a = 1 ORDER BY b LIMIT 1",
        "WITH x AS (SELECT 1 AS a) SELECT a FROM x WHERE a = 1 AND a = @1 AND a <=> 1",
        "SELECT a FROM t WHERE a=0x41 AND b=01 AND c=1 AND d='1' AND e='x'AND f=1",
    ];

    fn constant(random: &mut Prng, of: &str) -> String {
        let digits = ["0", "7", "007", "42", "9223372036854775807", "9223372036854775808"];
        let long = "99999999999999999999999999";
        let texts = ["''", "'y'", "'1'", "'a b'", "'WHERE'", "'?'", "'-- x'", "'/*'", "'é'", "';'"];
        match (of.starts_with('\''), random.below(8)) {
            (true, at) => texts[at as usize].to_owned(),
            (false, at) => digits.get(at as usize).copied().unwrap_or(long).to_owned(),
        }
    }

    /// The text with other constants: all of them, or only one of every two.
    fn varied(random: &mut Prng, text: &str) -> String {
        let spans = read(text.as_bytes(), &mut Vec::new()).unwrap();
        let (mut varied, mut from) = (String::new(), 0);
        for (start, end) in spans {
            let (start, end) = (start as usize, end as usize);
            varied.push_str(&text[from..start]);
            match random.below(2) {
                0 => varied.push_str(&text[start..end]),
                _ => varied.push_str(&constant(random, &text[start..end])),
            }
            from = end;
        }
        varied.push_str(&text[from..]);
        varied
    }

    #[test]
    fn what_is_known_of_one_text_is_true_of_others() {
        let mut random = Prng::new(1);
        let mut found = 0;
        for text in TEXTS {
            let mut skeleton = Vec::new();
            let spans = read(text.as_bytes(), &mut skeleton).unwrap();
            let shape = Shape::of(text.as_bytes(), Mode::default());
            let shape = shape.unwrap_or_else(|| panic!("{text}"));
            let known = Known::of(text.as_bytes(), &spans, &shape).unwrap();
            for _ in 0..400 {
                let other = varied(&mut random, text);
                let mut others = Vec::new();
                let spans = read(other.as_bytes(), &mut others).unwrap();
                assert_eq!(others, skeleton, "{other}");
                let Some(values) = known.values(other.as_bytes(), &spans) else { continue };
                found += 1;
                // The slow way takes nothing out of a text with a question mark.
                if !other.contains('?') {
                    let shape = Shape::of(other.as_bytes(), Mode::default()).unwrap();
                    assert_eq!(
                        (&shape.template, &shape.values),
                        (&known.template, &values),
                        "{other}"
                    );
                }
            }
        }
        assert!(found > 1_000, "{found}");
    }
}
