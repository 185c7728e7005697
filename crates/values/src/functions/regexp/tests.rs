//! Patterns: bounds of time and memory, errors, and that nothing panics.

use super::call;
use crate::functions::Function;
use crate::{Collation, EvalContext, Value};
use alloc::{string::String, vec::Vec};
use lats_base::prng::Prng;

fn run(function: Function, args: &[Value]) -> Result<Value, u16> {
    let mut ctx = EvalContext::new(false);
    call(function, args, Collation::default(), &mut ctx).map_err(|error| error.errno)
}

fn like(text: &str, pattern: &str) -> Result<Value, u16> {
    run(Function::RegexpLike, &[Value::text(text), Value::text(pattern)])
}

#[test]
fn patterns_that_take_too_long_are_stopped() {
    let text: String = core::iter::repeat_n('a', 40).chain(['b']).collect();
    assert_eq!(like(&text, r"^(a|aa)+\1b\1$"), Err(3699));
    // Without what needs steps back, time is linear.
    assert_eq!(like(&text, "^(a+)+$"), Ok(Value::Int(0)));
}

#[test]
fn all_matches_of_a_call_have_a_limit_together() {
    let replace = |text: &str, pattern: &str| {
        let args = [Value::text(text), Value::text(pattern), Value::text("-")];
        run(Function::RegexpReplace, &args).map(|value| value.to_display().chars().count())
    };
    let text = "a".repeat(200_000);
    // Each search is done at once, as the next letter decides.
    assert_eq!(replace(&text, "a"), Ok(200_000));
    assert_eq!(replace(&"ab ".repeat(60_000), "[a-z]+ "), Ok(60_000));
    assert_eq!(replace(&"ab é".repeat(20_000), r"(a)(b)"), Ok(60_000));
    // Each search looks through the rest of the text for a letter that is not there.
    assert_eq!(replace(&text, "a.*b|a"), Err(3699));
    assert_eq!(replace(&text[..5_000], "a.*b|a"), Ok(5_000));
    // Patterns with steps: many quick matches, or few others.
    assert_eq!(replace(&text[..40_000], "(a)(?=a)"), Ok(40_000));
    assert_eq!(replace(&text, "(a)(?=a)"), Err(3699));
    let hard = "aaaaaaaaaaaaaaaac ".repeat(200);
    assert_eq!(replace(&hard, r"(a|aa)+\1b|c"), Err(3699));
    let last = [Value::text(&text), Value::text("a.*b|a"), Value::Int(1), Value::Int(150_000)];
    assert_eq!(run(Function::RegexpSubstr, &last), Err(3699));
    assert_eq!(run(Function::RegexpInstr, &last), Err(3699));
}

#[test]
fn what_matches_take_is_work() {
    let work = |text: &str| {
        let args = [Value::text(text), Value::text("a+"), Value::text("-")];
        let mut ctx = EvalContext::new(false);
        let before = ctx.work_left();
        call(Function::RegexpReplace, &args, Collation::default(), &mut ctx).unwrap();
        before - ctx.work_left()
    };
    // Four times the words are looked for in four times the text.
    assert!(work(&"aa b ".repeat(400)) > 10 * work(&"aa b ".repeat(100)));
}

#[test]
fn steps_of_a_single_match_are_work_too() {
    let work = |function: Function, pattern: &str| {
        let text = "0123456789abcdef".repeat(12);
        let args = [Value::text(&text), Value::text(pattern)];
        let mut ctx = EvalContext::new(false);
        let before = ctx.work_left();
        call(function, &args, Collation::default(), &mut ctx).unwrap();
        before - ctx.work_left()
    };
    for function in [Function::RegexpLike, Function::RegexpSubstr, Function::RegexpInstr] {
        assert!(work(function, r"(.)(.+)\2\1$") > 500, "{function:?}");
        assert!(work(function, "f0+") < 100, "{function:?}");
    }
}

/// A statement that is to end.
#[derive(Debug)]
struct Ended;

impl crate::Ends for Ended {
    fn error(&self) -> Option<crate::SqlError> {
        Some(crate::SqlError::new(1317, *b"70100", "it is over".into()))
    }
}

#[test]
fn a_long_call_ends_with_its_statement() {
    let replace = |letters: usize, pattern: &str| {
        let text = "a".repeat(letters);
        let args = [Value::text(&text), Value::text(pattern), Value::text("-")];
        let mut ctx = EvalContext::new(false).ended_by(alloc::sync::Arc::new(Ended));
        let found = call(Function::RegexpReplace, &args, Collation::default(), &mut ctx);
        found.map(|_| ()).map_err(|error| error.errno)
    };
    assert_eq!(replace(9_000, "a.*b|a"), Err(1317));
    assert_eq!(replace(9_000, "(a)(?=a)"), Err(1317));
    // Nobody is asked by what is short.
    assert_eq!(replace(20, "a.*b|a"), Ok(()));
}

#[test]
fn places_cannot_be_repeated() {
    for pattern in
        [r"\b*", r"\B+", r"\A?", r"\z{2}", r"\Z*", "(?=a)*", "(?!a)+", "(?<=a)?", "(?<!a)*"]
    {
        assert_eq!(like("aab", pattern), Err(3688), "{pattern}");
    }
    for pattern in ["^*", "$?", "(?:^)*", "()*", r"\ba", "(?=a)a", "(?<!x)a"] {
        assert_eq!(like("aab", pattern), Ok(Value::Int(1)), "{pattern}");
    }
}

#[test]
fn patterns_that_are_too_large_are_refused() {
    assert_eq!(like("a", "((a{100}){100}){100}"), Err(3700));
    assert_eq!(like("a", &"(".repeat(1_000)), Err(3700));
    assert_eq!(like("a", &"[".repeat(1_000)), Err(3700));
    assert_eq!(like("a", &"a".repeat(40_000)), Err(3700));
    assert_eq!(like("a", "a{4294967295}"), Err(3700));
}

#[test]
fn results_that_are_too_long_are_null() {
    let (text, by) = ("a".repeat(10_000), "b".repeat(10_000));
    let args = [Value::text(&text), Value::text("a"), Value::text(&by)];
    assert_eq!(run(Function::RegexpReplace, &args), Ok(Value::Null));
}

#[test]
fn no_pattern_and_no_replacement_panics() {
    let mut random = Prng::new(7);
    let pieces: Vec<char> =
        "ab0(?<n>:=!#i-)[]^&-\\\\pPdkQER1{}2,*+?|.$\u{e9}\u{1f600}".chars().collect();
    let mut word = |most: u64| -> String {
        (0..random.below(most))
            .map(|_| pieces[random.below(pieces.len() as u64) as usize])
            .collect()
    };
    let mut compiled = 0;
    for _ in 0..20_000 {
        let (text, pattern, by) = (word(9), word(10), word(6));
        let options = ["", "m", "n", "mnu", "c"][pattern.len() % 5];
        let args = [
            Value::text(&text),
            Value::text(&pattern),
            Value::text(&by),
            Value::Int(1),
            Value::Int(0),
            Value::text(options),
        ];
        match run(Function::RegexpReplace, &args) {
            Ok(_) => compiled += 1,
            // Each error is one of MySQL's.
            Err(code) => {
                let is_known = matches!(code, 3685..=3700 | 3887);
                assert!(is_known, "{code} for {pattern:?}");
            }
        }
    }
    assert!(compiled > 2_000, "only {compiled}");
}

#[test]
fn data_nodes_do_not_match_patterns() {
    let mut ctx = EvalContext::within(false, u64::MAX);
    let args = [Value::text("a"), Value::text("a")];
    let refused = call(Function::RegexpLike, &args, Collation::default(), &mut ctx);
    assert_eq!(refused.map_err(|error| error.errno), Err(1235));
}
