//! REGEXP and its functions: patterns of ICU, as MySQL takes them, are written anew for the crate `fancy-regex`. One match takes time
//! linear in the text, unless the pattern has back-references or looks around; such a match may take so many steps and no more.
//! What all matches of a call take together is bounded, too (`effort.rs`).

mod effort;
mod pattern;
mod set;
#[cfg(test)]
mod tests;

use super::{Function, RESULT_BYTES_MAX};
use crate::{Collation, EvalContext, SqlError, Value, expr::to_integer};
use alloc::{
    format,
    string::{String, ToString},
    sync::Arc,
    vec::Vec,
};
use effort::Effort;
use fancy_regex::{Captures, CompileError, Error, Regex, RegexBuilder};
use pattern::{Options, Pattern};

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 2 << 20;
/// Steps of a pattern with back-references or look-around.
const STEPS_MAX: usize = 500_000;
/// Such a pattern is tried with so many steps first: so it is known how many it has taken.
const QUICK_STEPS: [usize; 3] = [100, 5_000, 50_000];
/// Compiled patterns that are kept.
const KEPT_MAX: usize = 4;
/// Characters of text that cost as much as computing one node.
const CHARS_PER_WORK: u64 = 16;

/// The patterns that a statement has compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    known: Vec<(Options, String, Arc<Compiled>)>,
}

#[derive(Debug)]
struct Compiled {
    regex: Regex,
    /// The same with few steps, for patterns that need steps.
    quick: Vec<(usize, Regex)>,
    ignores_case: bool,
    groups: usize,
    names: Vec<(String, usize)>,
}

impl Patterns {
    fn get(&mut self, text: &str, options: Options) -> Result<Arc<Compiled>, SqlError> {
        let same = |(other, known, _): &&(Options, String, Arc<Compiled>)| {
            *other == options && known == text
        };
        if let Some((.., compiled)) = self.known.iter().find(same) {
            return Ok(Arc::clone(compiled));
        }
        let compiled = Arc::new(compile(text, options)?);
        if self.known.len() >= KEPT_MAX {
            self.known.remove(0);
        }
        self.known.push((options, text.to_string(), Arc::clone(&compiled)));
        Ok(compiled)
    }
}

fn compile(text: &str, options: Options) -> Result<Compiled, SqlError> {
    let Pattern { regex, groups, names, has_property } = pattern::read(text, options)?;
    let ignores_case = options.ignores_case;
    let build = |steps: usize| {
        RegexBuilder::new(&regex)
            .case_insensitive(ignores_case)
            .backtrack_limit(steps)
            .delegate_size_limit(PATTERN_BYTES_MAX)
            .delegate_dfa_size_limit(PATTERN_BYTES_MAX)
            .build()
    };
    let quick = || {
        let needed = effort::needs_steps(&regex, ignores_case);
        let steps = QUICK_STEPS.iter().filter(|_| needed);
        steps.map(|steps| Ok((*steps, build(*steps)?))).collect::<Result<Vec<_>, Error>>()
    };
    match build(STEPS_MAX).and_then(|all| Ok((all, quick()?))) {
        Ok((regex, quick)) => Ok(Compiled { regex, quick, ignores_case, groups, names }),
        Err(error) if has_property && !is_too_large(&error) => Err(illegal_argument()),
        Err(_) => {
            Err(error(3700, "The regular expression pattern exceeds limits on size or complexity."))
        }
    }
}

fn is_too_large(error: &Error) -> bool {
    match error {
        Error::CompileError(inner) => match &**inner {
            CompileError::InnerError(inner) => inner.size_limit().is_some(),
            _ => false,
        },
        _ => false,
    }
}

/// Where the groups of a match are: the whole match comes first.
type Groups = Vec<Option<(usize, usize)>>;

/// The subject and what it is looked through for.
struct Search {
    text: String,
    pattern: Arc<Compiled>,
    form: Form,
}

/// What texts come back as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Bytes,
    Text(Collation),
}

impl Form {
    fn value(self, text: String) -> Value {
        match self {
            Self::Text(collation) => Value::Text(text, collation),
            Self::Bytes => {
                Value::Bytes(text.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect())
            }
        }
    }
}

/// One of the functions; `collation` is what subject and pattern would be compared in.
pub(crate) fn call(
    function: Function,
    args: &[Value],
    collation: Collation,
    ctx: &mut EvalContext,
) -> Result<Value, SqlError> {
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    // Where the text with the options of the match stands.
    let options_at = match function {
        Function::RegexpLike => 2,
        Function::RegexpSubstr => 4,
        _ => 5,
    };
    let Some(search) = search(function, args, (collation, args.get(options_at)), ctx)? else {
        return Err(SqlError::wrong_argument_count(function.name()));
    };
    ctx.charge(search.text.len() as u64 / CHARS_PER_WORK)?;
    match function {
        Function::RegexpLike => {
            let mut effort = Effort::new(ctx);
            let found = search.first(&mut effort, |regex| regex.is_match(search.text.as_str()))?;
            effort.charge(ctx)?;
            Ok(Value::bool(found))
        }
        Function::RegexpInstr => instr(&search, args, ctx),
        Function::RegexpSubstr => substr(&search, args, ctx),
        _ => replace(&search, args, ctx),
    }
}

fn search(
    function: Function,
    args: &[Value],
    (collation, options): (Collation, Option<&Value>),
    ctx: &mut EvalContext,
) -> Result<Option<Search>, SqlError> {
    let [subject, pattern, ..] = args else { return Ok(None) };
    let is_bytes = matches!(subject, Value::Bytes(_));
    if is_bytes != matches!(pattern, Value::Bytes(_)) {
        return Err(mixed(subject, pattern, function));
    }
    let ignores_case = !is_bytes && !matches!(collation, Collation::Binary | Collation::Utf8mb4Bin);
    let mut flags = Options { ignores_case, ..Options::default() };
    for letter in options.map(Value::to_display).unwrap_or_default().chars() {
        match letter {
            'c' => flags.ignores_case = false,
            'i' => flags.ignores_case = true,
            'm' => flags.multi_line = true,
            'n' => flags.dot_is_all = true,
            'u' => flags.unix_lines = true,
            _ => return Err(SqlError::wrong_arguments(&lower(function))),
        }
    }
    let (text, pattern) = (text_of(subject), text_of(pattern));
    if flags.ignores_case && (meets_two(&text, &pattern) || meets_two(&pattern, &text)) {
        return Err(SqlError::not_supported("one letter that is like two, in REGEXP"));
    }
    flags.has_pairs = text.contains("\r\n");
    flags.ends_in_line = text.chars().next_back().is_some_and(pattern::ends_line);
    let pattern = ctx.local()?.patterns.get(&pattern, flags)?;
    let form = match subject {
        Value::Bytes(_) => Form::Bytes,
        Value::Text(_, collation) => Form::Text(*collation),
        _ => Form::Text(Collation::default()),
    };
    Ok(Some(Search { text, pattern, form }))
}

/// True if a text has a letter that another one has as two: where case does not count, `ß` is `ss`.
fn meets_two(text: &str, other: &str) -> bool {
    if text.is_ascii() {
        return false;
    }
    let other = other.to_lowercase();
    text.chars().filter(|c| !c.is_ascii()).any(|c| {
        let letters: String = match c {
            '\u{1e9e}' => String::from("ss"),
            '\u{130}' => c.to_lowercase().collect(),
            _ => c.to_uppercase().flat_map(char::to_lowercase).collect(),
        };
        letters.chars().nth(1).is_some() && other.contains(&letters)
    })
}

/// Of bytes, each is a character.
fn text_of(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => bytes.iter().map(|b| char::from(*b)).collect(),
        other => other.to_display(),
    }
}

impl Search {
    /// Where the character with this number begins, counted from 1; one behind the last is the end.
    fn offset(&self, position: i64) -> Option<usize> {
        let number = usize::try_from(position.checked_sub(1)?).ok()?;
        let starts = self.text.char_indices().map(|(at, _)| at);
        starts.chain(core::iter::once(self.text.len())).nth(number)
    }

    /// The groups of the match that begins at or behind a place: the whole match comes first.
    fn next(&self, from: usize, effort: &mut Effort) -> Result<Option<Groups>, SqlError> {
        effort.begin(&self.pattern, &self.text, from)?;
        Ok(self.find(from, effort)?.map(|groups| {
            (0..=self.pattern.groups)
                .map(|at| groups.get(at).map(|m| (m.start(), m.end())))
                .collect()
        }))
    }

    fn find(
        &self,
        from: usize,
        effort: &mut Effort,
    ) -> Result<Option<Captures<'_, str>>, SqlError> {
        let text = self.text.as_str();
        self.first(effort, |regex| regex.captures_from_pos(text, from))
    }

    /// What a search finds, with as few steps as will do.
    fn first<T>(
        &self,
        effort: &mut Effort,
        look: impl Fn(&Regex) -> Result<T, Error>,
    ) -> Result<T, SqlError> {
        for (steps, quick) in &self.pattern.quick {
            effort.step(*steps)?;
            // It may need more steps.
            if let Ok(found) = look(quick) {
                return Ok(found);
            }
        }
        if !self.pattern.quick.is_empty() {
            effort.step(STEPS_MAX)?;
        }
        look(&self.pattern.regex).map_err(|_| failed())
    }

    /// Where to look for the match behind this one.
    fn behind(&self, (from, to): (usize, usize)) -> Option<usize> {
        if from < to {
            return Some(to);
        }
        self.text.get(to..)?.chars().next().map(|c| to + c.len_utf8())
    }

    /// The match with this number, from a place on.
    fn nth(
        &self,
        from: usize,
        number: i64,
        effort: &mut Effort,
    ) -> Result<Option<(usize, usize)>, SqlError> {
        let (mut from, mut left) = (Some(from), number.max(1));
        while let Some(at) = from {
            let groups = self.next(at, effort)?;
            let Some(found) = groups.and_then(|groups| groups.first().copied().flatten()) else {
                return Ok(None);
            };
            left -= 1;
            if left == 0 {
                return Ok(Some(found));
            }
            from = self.behind(found);
        }
        Ok(None)
    }

    fn number(&self, offset: usize) -> i64 {
        self.text.get(..offset).map_or(0, |before| before.chars().count()) as i64 + 1
    }
}

fn integer(
    args: &[Value],
    at: usize,
    default: i64,
    ctx: &mut EvalContext,
) -> Result<i64, SqlError> {
    args.get(at)
        .map_or(Ok(default), |value| Ok(i64::try_from(to_integer(value, ctx)?).unwrap_or(i64::MAX)))
}

/// What is before the position is no part of the text here, as in MySQL: `^` is at the position.
fn instr(search: &Search, args: &[Value], ctx: &mut EvalContext) -> Result<Value, SqlError> {
    let (position, occurrence) = (integer(args, 2, 1, ctx)?, integer(args, 3, 1, ctx)?);
    // In a text without characters each position will do.
    let from = if search.text.is_empty() { Some(0) } else { search.offset(position) };
    let from = from.filter(|at| *at < search.text.len() || search.text.is_empty());
    let from = from.ok_or_else(out_of_bounds)?;
    let gives_end = match integer(args, 4, 0, ctx)? {
        0 => false,
        1 => true,
        _ => return Err(SqlError::wrong_arguments("regexp_instr: return_option must be 1 or 0.")),
    };
    let text = search.text.get(from..).unwrap_or_default().to_string();
    let rest = Search { text, pattern: Arc::clone(&search.pattern), form: search.form };
    let mut effort = Effort::new(ctx);
    let place = rest.nth(0, occurrence, &mut effort)?.map(|(start, end)| {
        position.saturating_sub(1).saturating_add(rest.number(if gives_end { end } else { start }))
    });
    effort.charge(ctx)?;
    Ok(Value::Int(place.unwrap_or(0)))
}

/// The place where REGEXP_SUBSTR and REGEXP_REPLACE begin.
fn start(search: &Search, function: Function, position: i64) -> Result<usize, SqlError> {
    if position < 1 {
        return Err(SqlError::wrong_parameters(&lower(function)));
    }
    search.offset(position).ok_or_else(out_of_bounds)
}

fn substr(search: &Search, args: &[Value], ctx: &mut EvalContext) -> Result<Value, SqlError> {
    let (position, occurrence) = (integer(args, 2, 1, ctx)?, integer(args, 3, 1, ctx)?);
    let from = start(search, Function::RegexpSubstr, position)?;
    let mut effort = Effort::new(ctx);
    let found = search.nth(from, occurrence, &mut effort)?;
    effort.charge(ctx)?;
    let text = found.and_then(|(from, to)| search.text.get(from..to));
    Ok(text.map_or(Value::Null, |text| search.form.value(text.to_string())))
}

fn replace(search: &Search, args: &[Value], ctx: &mut EvalContext) -> Result<Value, SqlError> {
    let (position, occurrence) = (integer(args, 3, 1, ctx)?, integer(args, 4, 0, ctx)?);
    let start = start(search, Function::RegexpReplace, position)?;
    let by = args.get(2).map(text_of).unwrap_or_default();
    if search.text.is_empty() {
        return Ok(search.form.value(String::new()));
    }
    let wanted = if occurrence < 0 { 1 } else { occurrence };
    let (mut out, mut copied) = (String::new(), 0);
    let (mut from, mut number) = (Some(start), 0_i64);
    let mut effort = Effort::new(ctx);
    while let Some(at) = from {
        let Some(groups) = search.next(at, &mut effort)? else { break };
        let Some(found) = groups.first().copied().flatten() else { break };
        number += 1;
        if wanted == 0 || wanted == number {
            out.push_str(search.text.get(copied..found.0).unwrap_or_default());
            expand(search, &by, &groups, &mut out)?;
            copied = found.1;
        }
        if out.len() > RESULT_BYTES_MAX {
            ctx.warn(SqlError::result_too_long("regexp_replace"))?;
            return Ok(Value::Null);
        }
        from = search.behind(found).filter(|_| wanted == 0 || number < wanted);
    }
    out.push_str(search.text.get(copied..).unwrap_or_default());
    effort.charge(ctx)?;
    Ok(search.form.value(out))
}

/// A replacement: `$1` and `${name}` are groups, a backslash takes the next character as it is.
fn expand(
    search: &Search,
    by: &str,
    groups: &[Option<(usize, usize)>],
    out: &mut String,
) -> Result<(), SqlError> {
    let mut rest = by.chars();
    while let Some(c) = rest.next() {
        let group = match c {
            '\\' => {
                out.extend(coded(&mut rest).or_else(|| rest.next()));
                continue;
            }
            '$' => group_number(search, &mut rest)?,
            other => {
                out.push(other);
                continue;
            }
        };
        let found = groups.get(group).copied().flatten();
        out.push_str(found.and_then(|(from, to)| search.text.get(from..to)).unwrap_or_default());
    }
    Ok(())
}

/// `u` and four hexadecimal digits, or `U` and eight, behind a backslash.
fn coded(rest: &mut core::str::Chars<'_>) -> Option<char> {
    let count = match rest.clone().next()? {
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let digits = rest.as_str().get(1..=count)?;
    let is_hex = digits.chars().all(|c| c.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    let found = char::from_u32(code)?;
    *rest = rest.as_str().get(count + 1..)?.chars();
    Some(found)
}

/// The group behind a dollar sign: as many digits as make a number of a group.
fn group_number(search: &Search, rest: &mut core::str::Chars<'_>) -> Result<usize, SqlError> {
    let mut ahead = rest.clone();
    match ahead.next() {
        Some('{') => {
            let name: String = ahead.by_ref().take_while(|c| *c != '}').collect();
            *rest = ahead;
            let found = search.pattern.names.iter().find(|(other, _)| *other == name);
            found.map(|(_, number)| *number).ok_or_else(pattern::invalid_name)
        }
        Some(c) if c.is_ascii_digit() => {
            let mut number = 0;
            let mut taken = false;
            while let Some(digit) = rest.clone().next().and_then(|c| c.to_digit(10)) {
                let next = number * 10 + digit as usize;
                if next > search.pattern.groups {
                    break;
                }
                (number, taken) = (next, true);
                rest.next();
            }
            if taken { Ok(number) } else { Err(out_of_bounds()) }
        }
        _ => Err(pattern::invalid_name()),
    }
}

fn lower(function: Function) -> String {
    function.name().to_ascii_lowercase()
}

fn error(number: u16, text: &str) -> SqlError {
    SqlError::new(number, *b"HY000", text.to_string())
}

/// 3685.
fn illegal_argument() -> SqlError {
    error(3685, "Illegal argument to a regular expression.")
}

/// 3686.
fn out_of_bounds() -> SqlError {
    error(3686, "Index out of bounds in regular expression search.")
}

/// 3699: it takes more steps than it may.
fn failed() -> SqlError {
    error(3699, "Timeout exceeded in regular expression match.")
}

/// 3995: bytes and text do not go together.
fn mixed(subject: &Value, pattern: &Value, function: Function) -> SqlError {
    let name = |value: &Value| match value {
        Value::Bytes(_) => Collation::Binary.name(),
        Value::Text(_, collation) => collation.name(),
        _ => Collation::default().name(),
    };
    let text = format!(
        "Character set '{}' cannot be used in conjunction with '{}' in call to {}.",
        name(subject),
        name(pattern),
        lower(function)
    );
    error(3995, &text)
}
