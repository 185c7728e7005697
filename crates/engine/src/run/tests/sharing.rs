//! Rows that ask for the same share an answer, and joins by lookups turn to a hash join where too many rows ask.

use super::*;
use crate::physical::Beyond;

const ROOM: usize = 1 << 30;

/// One of seven numbers, and the row's own.
fn one_of_seven(at: u64) -> Row {
    vec![Value::UInt(at % 7), Value::UInt(at)]
}

/// For each row the one row of a source that its first column asks for.
fn apply(right_width: u32, keeps: bool) -> Op {
    Op::Apply {
        output: ApplyOutput::Single,
        left: boxed(source(0)),
        right: boxed(Op::Source { source: 1, params: vec![column(PARAM_BASE)] }),
        params: vec![column(0)],
        on: None,
        right_width,
        keeps,
        once: false,
        slots: vec![0],
        when: None,
        equal: None,
    }
}

#[test]
fn rows_with_the_same_parameters_share_a_run() {
    let tables = [table(5_000, one_of_seven), table(1, narrow)];
    let shared = run(&plan(apply(2, true), 2), &tables, ROOM);
    assert_eq!((shared.rows, shared.asked[1], shared.used), (5_000, 7, 0));
    let each = run(&plan(apply(2, false), 2), &tables, ROOM);
    assert_eq!((each.rows, each.asked[1], each.used), (5_000, 5_000, 0));
    // No more is begun where few rows are wanted.
    let limit = Op::Limit {
        input: boxed(apply(2, true)),
        count: Some(Expr::Literal(Value::UInt(3))),
        offset: None,
    };
    let few = run(&plan(limit, 2), &tables, ROOM);
    assert_eq!((few.rows, few.asked[1], few.used), (3, 3, 0));
}

/// One of two numbers.
fn one_of_two(at: u64) -> Row {
    vec![Value::UInt(at % 2), Value::UInt(at)]
}

/// A text of 200 KB.
fn vast(at: u64) -> Row {
    vec![Value::text(&format!("{at:0200}").repeat(1_000))]
}

#[test]
fn a_result_that_is_too_large_to_be_kept_is_handed_on() {
    // An eighth of the memory is less than such a text.
    let ran =
        run(&plan(apply(1, true), 2), &[table(5_000, one_of_two), table(1, vast)], 1_200 << 10);
    assert_eq!((ran.error.as_deref(), ran.rows, ran.used), (None, 5_000, 0));
    assert!(ran.asked[1] < 100, "{} runs", ran.asked[1]);
}

/// A join of rows with themselves by their number, which asks so often before it reads all of the right side.
fn lookups(kind: JoinKind, asked: Option<u64>) -> Op {
    let pair =
        EqualPair { left: column(0), right: column(0), class: KeyClass::Integer, null_safe: false };
    let beyond = |asked| {
        Box::new(Beyond { asked, right: source(2), pairs: vec![pair.clone()], residual: None })
    };
    Op::LookupJoin {
        kind,
        left: boxed(source(0)),
        source: 1,
        params: vec![column(0)],
        residual: None,
        at_once: 1_024,
        beyond: asked.map(beyond),
        right_width: 2,
    }
}

#[test]
fn a_join_turns_where_more_rows_ask_than_was_thought() {
    let tables = [table(10_000, narrow), table(10_000, narrow), table(10_000, narrow)];
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi] {
        let turned = run(&plan(lookups(kind, Some(3_000)), 3), &tables, ROOM);
        assert_eq!((turned.rows, turned.read[2], turned.used), (10_000, 10_000, 0));
        assert!((3_001..5_100).contains(&turned.asked[1]), "{} have asked", turned.asked[1]);
        let stays = run(&plan(lookups(kind, None), 3), &tables, ROOM);
        assert_eq!((stays.rows, stays.asked[1], stays.read[2]), (10_000, 10_000, 0));
    }
    let anti = run(&plan(lookups(JoinKind::Anti, Some(3_000)), 3), &tables, ROOM);
    assert_eq!((anti.rows, anti.read[2], anti.used), (0, 10_000, 0));
}

#[test]
fn a_join_does_not_turn_where_it_may_not_or_need_not() {
    let tables = [table(10_000, narrow), table(10_000, narrow), table(10_000, narrow)];
    let of = |asked| plan(lookups(JoinKind::Inner, Some(asked)), 3);
    // As many rows as were thought of.
    assert_eq!(run(&of(10_000), &tables, ROOM).read[2], 0);
    let few = plan(
        Op::Limit {
            input: boxed(lookups(JoinKind::Inner, Some(0))),
            count: Some(Expr::Literal(Value::UInt(900))),
            offset: None,
        },
        3,
    );
    assert_eq!(run(&few, &tables, ROOM).read[2], 0);
    let locking = of(0);
    let mut run = Run::new(&[], EvalContext::new(false), budget(ROOM), u64::MAX);
    run.switches = false;
    let ran = go_on(run, &locking, &tables, u64::MAX);
    assert_eq!((ran.rows, ran.read[2]), (10_000, 0));
    // Who wants no more rows leaves nothing behind.
    let ran = run_until(&of(0), &tables, budget(ROOM), 2_000);
    assert_eq!((ran.read[2], ran.used), (10_000, 0));
}
