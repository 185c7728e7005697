//! Reads a pattern in ICU's syntax and writes it in that of the engine. What the two take otherwise is written out: ends of lines, classes
//! of characters, escapes. Nothing of the pattern is copied without being read.

use super::{error, illegal_argument, set};
use crate::SqlError;
use alloc::{format, string::String, vec::Vec};
use core::fmt::Write;

/// How a pattern is to be matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Capital and small letters are the same.
    pub(super) ignores_case: bool,
    /// `^` and `$` are about lines.
    pub(super) multi_line: bool,
    /// A dot takes ends of lines, too.
    pub(super) dot_is_all: bool,
    /// Lines end with a line feed only.
    pub(super) unix_lines: bool,
    /// The text's last character ends a line, so that `$` may be before it.
    pub(super) ends_in_line: bool,
    /// The text has ends of lines of two characters, which a dot takes as one.
    pub(super) has_pairs: bool,
}

/// Whether a character ends a line.
pub(super) fn ends_line(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A pattern that was read.
pub(super) struct Pattern {
    /// As the engine takes it.
    pub(super) regex: String,
    /// Groups that capture.
    pub(super) groups: usize,
    /// The named ones among them.
    pub(super) names: Vec<(String, usize)>,
    /// It has properties of characters, whose names only the engine knows.
    pub(super) has_property: bool,
}

/// What ends a line, as members of a set.
pub(super) const LINE_ENDS: &str = r"\n\x0B\x0C\r\x{85}\x{2028}\x{2029}";
/// Groups within groups.
const DEPTH_MAX: usize = 48;
/// The longest pattern, in characters.
const CHARS_MAX: usize = 32_768;

/// Flags that the pattern itself sets.
#[derive(Clone, Copy)]
struct Flags {
    multi_line: bool,
    dot_is_all: bool,
    unix_lines: bool,
    comments: bool,
}

pub(super) struct Reader<'p> {
    pub(super) chars: &'p [char],
    pub(super) at: usize,
    pub(super) out: String,
    pub(super) has_property: bool,
    groups: usize,
    names: Vec<(String, usize)>,
    references: Vec<usize>,
    flags: Flags,
    ends_in_line: bool,
    has_pairs: bool,
    /// Within a look-behind, what it looks at may not be of any length.
    behind: usize,
}

/// Reads a pattern.
///
/// # Errors
/// What MySQL says of it.
pub(super) fn read(text: &str, options: Options) -> Result<Pattern, SqlError> {
    let chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return Err(illegal_argument());
    }
    if chars.len() > CHARS_MAX {
        return Err(too_large());
    }
    let flags = Flags {
        multi_line: options.multi_line,
        dot_is_all: options.dot_is_all,
        unix_lines: options.unix_lines,
        comments: false,
    };
    let mut reader = Reader {
        chars: &chars,
        at: 0,
        out: String::with_capacity(text.len() * 2),
        has_property: false,
        groups: 0,
        names: Vec::new(),
        references: Vec::new(),
        flags,
        ends_in_line: options.ends_in_line,
        has_pairs: options.has_pairs,
        behind: 0,
    };
    reader.alternatives(0)?;
    if reader.peek().is_some() {
        return Err(mismatched());
    }
    if reader.references.iter().any(|group| *group > reader.groups) {
        return Err(invalid_reference());
    }
    let Reader { out, groups, names, has_property, .. } = reader;
    Ok(Pattern { regex: out, groups, names, has_property })
}

impl Reader<'_> {
    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn eat(&mut self, c: char) -> bool {
        let is_there = self.peek() == Some(c);
        self.at += usize::from(is_there);
        is_there
    }

    /// 3688, at the next character.
    pub(super) fn rule(&self) -> SqlError {
        let at = self.at.min(self.chars.len().saturating_sub(1));
        let before = self.chars.get(..at).unwrap_or_default();
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        let column = before.iter().rev().take_while(|c| **c != '\n').count() + 1;
        error(
            3688,
            &format!("Syntax error in regular expression on line {line}, character {column}."),
        )
    }

    pub(super) fn literal(&mut self, c: char) {
        match c.is_ascii_alphanumeric() {
            true => self.out.push(c),
            // Writing to a text cannot fail.
            false => write!(self.out, "\\x{{{:X}}}", u32::from(c)).unwrap_or_default(),
        }
    }

    fn line_ends(&self) -> &'static str {
        if self.flags.unix_lines { r"\n" } else { LINE_ENDS }
    }

    /// All up to the end of the group.
    fn alternatives(&mut self, depth: usize) -> Result<(), SqlError> {
        if depth > DEPTH_MAX {
            return Err(too_large());
        }
        while let Some(c) = self.peek() {
            match c {
                ')' => return Ok(()),
                '|' => {
                    self.at += 1;
                    self.out.push('|');
                }
                c if self.flags.comments && c.is_whitespace() => self.at += 1,
                '#' if self.flags.comments => while self.next().is_some_and(|c| c != '\n') {},
                _ => {
                    let start = self.out.len();
                    if self.term(depth)? {
                        self.quantifier(start)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// One term; false if nothing can be repeated.
    fn term(&mut self, depth: usize) -> Result<bool, SqlError> {
        let Some(c) = self.next() else { return Ok(false) };
        match c {
            '(' => return self.group(depth),
            '[' => set::set(self, 0)?,
            '.' => self.dot(),
            '^' => self.caret(),
            '$' => self.dollar(self.flags.multi_line),
            '\\' => return self.escape(),
            '*' | '+' | '?' | '{' | '}' => {
                self.at -= 1;
                return Err(self.rule());
            }
            other => self.literal(other),
        }
        Ok(true)
    }

    fn dot(&mut self) {
        let ends = self.line_ends();
        match (self.flags.dot_is_all, self.has_pairs) {
            (true, false) => self.out.push_str(r"[\s\S]"),
            (true, true) => self.out.push_str(r"(?>\r\n|[\s\S])"),
            (false, _) => {
                self.out.push_str("[^");
                self.out.push_str(ends);
                self.out.push(']');
            }
        }
    }

    fn caret(&mut self) {
        self.out.push_str(match (self.flags.multi_line, self.flags.unix_lines) {
            (false, _) => r"(?:\A)",
            (true, true) => r"(?:\A|(?<=\n))",
            (true, false) => r"(?:\A|(?<=[\n\x0B\x0C\r\x{85}\x{2028}\x{2029}])(?!\z))",
        });
    }

    fn dollar(&mut self, multi_line: bool) {
        self.out.push_str(match (multi_line, self.flags.unix_lines) {
            (false, _) if !self.ends_in_line => r"(?:\z)",
            (false, true) => r"(?:(?=\n?\z))",
            (false, false) => {
                r"(?:\z|(?=(?:\r\n|[\x0B\x0C\r\x{85}\x{2028}\x{2029}])\z)|(?<!\r)(?=\n\z))"
            }
            (true, true) => r"(?:\z|(?=\n))",
            (true, false) => r"(?:\z|(?=[\x0B\x0C\r\x{85}\x{2028}\x{2029}])|(?<!\r)(?=\n))",
        });
    }

    fn quantifier(&mut self, start: usize) -> Result<(), SqlError> {
        while self.flags.comments && self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        let (repeat, is_bounded) = match self.peek() {
            Some(c @ ('*' | '+' | '?')) => {
                self.at += 1;
                (String::from(c), c == '?')
            }
            Some('{') => {
                self.at += 1;
                self.interval()?
            }
            _ => return Ok(()),
        };
        if self.behind > 0 && !is_bounded {
            return Err(look_behind_limit());
        }
        self.out.push_str(&repeat);
        if self.eat('?') {
            self.out.push('?');
        } else if self.eat('+') {
            self.out.insert_str(start, "(?>");
            self.out.push(')');
        }
        match self.peek() {
            Some('*' | '+' | '?' | '{') => Err(self.rule()),
            _ => Ok(()),
        }
    }

    /// `{n}`, `{n,}`, `{n,m}` behind the brace.
    fn interval(&mut self) -> Result<(String, bool), SqlError> {
        let bad = || error(3692, "Incorrect description of a {min,max} interval.");
        let low = self.number().ok_or_else(bad)?;
        let mut high = Some(low);
        if self.eat(',') {
            high = self.number();
        }
        if !self.eat('}') {
            return Err(bad());
        }
        if high.is_some_and(|high| high < low) {
            return Err(error(
                3693,
                "The maximum is less than the minumum in a {min,max} interval.",
            ));
        }
        Ok(match high {
            Some(high) => (format!("{{{low},{high}}}"), true),
            None => (format!("{{{low},}}"), false),
        })
    }

    fn number(&mut self) -> Option<u32> {
        let mut number: Option<u32> = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
            self.at += 1;
        }
        number
    }

    /// A group, behind its parenthesis.
    fn group(&mut self, depth: usize) -> Result<bool, SqlError> {
        let (flags, behind) = (self.flags, self.behind);
        let (mut is_term, mut looks_around) = (true, false);
        if !self.eat('?') {
            self.groups += 1;
            self.out.push('(');
        } else {
            match self.next() {
                Some(c @ (':' | '>' | '=' | '!')) => {
                    looks_around = matches!(c, '=' | '!');
                    self.out.push_str("(?");
                    self.out.push(c);
                }
                Some('#') => {
                    while self.next().ok_or_else(mismatched)? != ')' {}
                    return Ok(false);
                }
                Some('{' | '(') => return Err(unimplemented()),
                Some('<') => {
                    self.named_or_behind()?;
                    looks_around = self.behind > behind;
                }
                Some(_) => {
                    self.at -= 1;
                    is_term = self.inline_flags()?;
                }
                None => return Err(self.rule()),
            }
        }
        if !is_term {
            return Ok(false);
        }
        self.alternatives(depth + 1)?;
        if !self.eat(')') {
            return Err(mismatched());
        }
        (self.flags, self.behind) = (flags, behind);
        self.out.push(')');
        Ok(!looks_around)
    }

    /// `(?<=`, `(?<!`, `(?<name>`.
    fn named_or_behind(&mut self) -> Result<(), SqlError> {
        match self.peek() {
            Some(c @ ('=' | '!')) => {
                self.at += 1;
                self.behind += 1;
                self.out.push_str("(?<");
                self.out.push(c);
            }
            Some(c) if !c.is_ascii_alphabetic() => return Err(self.rule()),
            Some(_) => {
                let name = self.name()?;
                self.groups += 1;
                if self.names.iter().any(|(other, _)| *other == name) {
                    return Err(invalid_name());
                }
                self.names.push((name, self.groups));
                self.out.push('(');
            }
            None => return Err(self.rule()),
        }
        Ok(())
    }

    /// A name up to `>`.
    fn name(&mut self) -> Result<String, SqlError> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some('>') if !name.is_empty() => return Ok(name),
                Some(c) if c.is_ascii_alphabetic() || (c.is_ascii_digit() && !name.is_empty()) => {
                    name.push(c);
                }
                _ => return Err(invalid_name()),
            }
        }
    }

    /// `(?i)` up to the end of the group, `(?i:…)` for a group; true for the latter.
    fn inline_flags(&mut self) -> Result<bool, SqlError> {
        let mut is_on = true;
        let mut case = None;
        loop {
            match self.next() {
                Some('-') => is_on = false,
                Some('i') => case = Some(is_on),
                Some('m') => self.flags.multi_line = is_on,
                Some('s') => self.flags.dot_is_all = is_on,
                Some('x') => self.flags.comments = is_on,
                Some('d') => self.flags.unix_lines = is_on,
                Some('w') => {}
                Some(c @ (')' | ':')) => {
                    self.out.push_str(match case {
                        Some(true) => "(?i",
                        Some(false) => "(?-i",
                        None if c == ':' => "(?",
                        None => return Ok(false),
                    });
                    self.out.push(c);
                    return Ok(c == ':');
                }
                other => {
                    self.at -= usize::from(other.is_some());
                    return Err(self.rule());
                }
            }
        }
    }

    /// What stands behind a backslash; false if it cannot be repeated.
    fn escape(&mut self) -> Result<bool, SqlError> {
        let Some(c) = self.peek() else { return Err(bad_escape()) };
        match c {
            'A' => self.out.push_str(r"(?:\A)"),
            'z' => self.out.push_str(r"(?:\z)"),
            'b' => self.out.push_str(r"(?:\b)"),
            'B' => self.out.push_str(r"(?:\B)"),
            'Z' => {
                self.at += 1;
                // It is about all ends of lines, whatever the others are about.
                let unix = core::mem::replace(&mut self.flags.unix_lines, false);
                self.dollar(false);
                self.flags.unix_lines = unix;
                return Ok(false);
            }
            'R' => {
                self.at += 1;
                self.out.push_str(r"(?>\r\n|[");
                self.out.push_str(LINE_ENDS);
                self.out.push_str("])");
                return Ok(true);
            }
            'G' | 'X' | 'N' => return Err(unimplemented()),
            'Q' => {
                self.at += 1;
                return self.quoted();
            }
            'E' => {
                self.at += 1;
                return Ok(false);
            }
            'k' => {
                self.at += 1;
                if !self.eat('<') {
                    return Err(invalid_name());
                }
                let name = self.name()?;
                let found = self.names.iter().find(|(other, _)| *other == name);
                let group = found.map(|(_, group)| *group).ok_or_else(invalid_name)?;
                return self.reference(group);
            }
            '1'..='9' => return self.numbered_reference(),
            _ => {
                if !set::class_escape(self)? {
                    let c = set::char_escape(self)?;
                    self.literal(c);
                }
                return Ok(true);
            }
        }
        // A place, which cannot be repeated.
        self.at += 1;
        Ok(false)
    }

    /// Up to `\E`, everything stands for itself.
    fn quoted(&mut self) -> Result<bool, SqlError> {
        let start = self.out.len();
        while let Some(c) = self.next() {
            if c == '\\' && self.peek() == Some('E') {
                self.at += 1;
                break;
            }
            self.literal(c);
        }
        Ok(self.out.len() > start)
    }

    /// As many digits as make the number of a group that was begun.
    fn numbered_reference(&mut self) -> Result<bool, SqlError> {
        let mut group = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            let next = group * 10 + digit as usize;
            if group > 0 && next > self.groups {
                break;
            }
            group = next;
            self.at += 1;
        }
        self.reference(group)
    }

    fn reference(&mut self, group: usize) -> Result<bool, SqlError> {
        if self.behind > 0 {
            return Err(look_behind_limit());
        }
        self.references.push(group);
        // The group around it ends the number.
        self.out.push_str(&format!("(?:\\{group})"));
        Ok(true)
    }
}

/// 3687 to 3700.
pub(super) fn bad_escape() -> SqlError {
    error(3689, "Unrecognized escape sequence in regular expression.")
}

pub(super) fn unimplemented() -> SqlError {
    let text = "The regular expression contains a feature that is not implemented in this library version.";
    error(3690, text)
}

fn mismatched() -> SqlError {
    error(3691, "Mismatched parenthesis in regular expression.")
}

fn invalid_reference() -> SqlError {
    error(3694, "Invalid back-reference in regular expression.")
}

fn look_behind_limit() -> SqlError {
    error(3695, "The look-behind assertion exceeds the limit in regular expression.")
}

pub(super) fn too_large() -> SqlError {
    error(3700, "The regular expression pattern exceeds limits on size or complexity.")
}

/// 3887.
pub(super) fn invalid_name() -> SqlError {
    error(3887, "A capture group has an invalid name.")
}
