//! Steps: no operator works long without letting others work, and few rows are read where few may do.

use super::*;

const ROOM: usize = 1 << 30;
/// A step may end a little later than its work is used up.
const WORK_MAX: u64 = STEP_WORK + 1_000;

/// Runs it, and checks that its steps were short: `work` is how many rows or pairs it has to look at.
fn is_patient(root: Op, tables: &[Table], work: u64) -> Ran {
    let ran = run(&plan(root, tables.len()), tables, ROOM);
    assert_eq!((ran.error.as_deref(), ran.used), (None, 0));
    assert!(ran.longest <= WORK_MAX, "{} nodes in a step", ran.longest);
    assert!(ran.most <= memory::CHUNK_ROWS);
    let rows_per_step = STEP_WORK / ROW_WORK;
    assert!(ran.steps >= work / rows_per_step, "{} steps for {work} rows", ran.steps);
    ran
}

fn nested(kind: JoinKind, on: Option<Expr>) -> Op {
    let (left, right) = (boxed(source(0)), boxed(source(1)));
    Op::NestedJoin { kind, left, right, on, right_width: 2 }
}

#[test]
fn joins_pause() {
    let tables = [table(300, narrow), table(1_000, narrow)];
    let ran = is_patient(nested(JoinKind::Anti, Some(never(0, 2))), &tables, 300_000);
    assert_eq!(ran.rows, 300);
    let ran = is_patient(nested(JoinKind::Inner, None), &tables, 300_000);
    assert_eq!(ran.rows, 300_000);
    // All rows are partners of all.
    let one = Expr::Literal(Value::UInt(1));
    let pair =
        EqualPair { left: one.clone(), right: one, class: KeyClass::Integer, null_safe: false };
    for residual in [None, Some(never(0, 2))] {
        let rows = if residual.is_none() { 300_000 } else { 0 };
        let hash = Op::HashJoin {
            kind: JoinKind::Inner,
            left: boxed(source(0)),
            right: boxed(source(1)),
            pairs: vec![pair.clone()],
            residual,
            right_width: 2,
        };
        assert_eq!(is_patient(hash, &tables, 300_000).rows, rows);
    }
}

#[test]
fn orders_sets_and_groups_pause() {
    let tables = [table(100_000, narrow), table(50_000, narrow)];
    let input = || boxed(source(0));
    let sort = Op::Sort { input: input(), keys: vec![key(1)], top: None };
    assert_eq!(is_patient(sort, &tables, 200_000).rows, 100_000);
    let top = Some((Expr::Literal(Value::UInt(60_000)), None));
    let sort = Op::Sort { input: input(), keys: vec![key(1)], top };
    assert_eq!(is_patient(sort, &tables, 200_000).rows, 60_000);
    let distinct = Op::Distinct { input: input(), slots: vec![0] };
    assert_eq!(is_patient(distinct, &tables, 100_000).rows, 100_000);
    let except = Op::Set { op: SetOp::Except, all: false, left: input(), right: boxed(source(1)) };
    assert_eq!(is_patient(except, &tables, 150_000).rows, 50_000);
    let spec = AggregateSpec::new(AggregateKind::Sum, vec![bigint()]);
    let call = AggregateCall { spec: Arc::new(spec), args: vec![(column(1), bigint())] };
    for rollup in [false, true] {
        let group = Op::Aggregate {
            input: input(),
            keys: vec![(column(0), bigint())],
            rollup,
            calls: vec![call.clone()],
            width: 2,
        };
        let rows = is_patient(group, &tables, 200_000).rows;
        assert_eq!(rows, 100_000 + u64::from(rollup));
    }
}

#[test]
fn windows_pause_also_within_a_row() {
    use crate::ir::{Bound, Frame, WindowFunction};
    let spec = AggregateSpec::new(AggregateKind::Sum, vec![bigint()]);
    let call = |end: Bound| WindowCall {
        function: WindowFunction::Aggregate(spec.clone().into()),
        args: vec![(binary(BinaryOp::Add, column(0), column(1)), bigint())],
        column_type: bigint(),
        frame: Frame { is_range: false, start: Bound::CurrentRow, end },
    };
    let window = |partition, calls| Op::Window {
        input: boxed(source(0)),
        partition,
        order: vec![key(1)],
        calls,
    };
    let one_part = window(Vec::new(), vec![call(Bound::Unbounded)]);
    // Each row's frame is all behind it.
    assert_eq!(is_patient(one_part, &[table(1_000, narrow)], 500_000).rows, 1_000);
    let parts = window(vec![(column(0), bigint())], vec![call(Bound::CurrentRow)]);
    assert_eq!(is_patient(parts, &[table(50_000, narrow)], 100_000).rows, 50_000);
}

#[test]
fn subqueries_and_recursions_pause() {
    let apply = |once| Op::Apply {
        output: ApplyOutput::Mark,
        left: boxed(source(0)),
        right: boxed(source(1)),
        params: Vec::new(),
        on: Some(never(0, 2)),
        right_width: 2,
        keeps: true,
        once,
        slots: Vec::new(),
        when: None,
        equal: None,
    };
    let tables = [table(200, narrow), table(1_000, narrow)];
    for once in [false, true] {
        assert_eq!(is_patient(apply(once), &tables, 200_000).rows, 200);
    }
    let less = binary(BinaryOp::Less, column(0), Expr::Literal(Value::UInt(20_000)));
    let next = binary(BinaryOp::Add, column(0), Expr::Literal(Value::UInt(1)));
    let below = Op::Filter { input: boxed(Op::Working { id: 3 }), condition: less };
    let step = Op::Extend { input: boxed(below), items: vec![(next, bigint())] };
    let recursive = Op::Recursive {
        id: 3,
        anchor: boxed(Op::Values {
            rows: vec![vec![Expr::Literal(Value::UInt(1))]],
            types: vec![bigint()],
        }),
        step: boxed(Op::Narrow { input: boxed(step), slots: vec![1] }),
        distinct: true,
        limit: None,
        types: vec![bigint()],
    };
    assert_eq!(is_patient(recursive, &[], 40_000).rows, 20_000);
}

#[test]
fn costly_expressions_pause_between_few_rows() {
    let repeated = (0..200).fold(column(0), |sum, _| binary(BinaryOp::Add, sum, column(1)));
    let extend = Op::Extend { input: boxed(source(0)), items: vec![(repeated.clone(), bigint())] };
    let ran = is_patient(extend, &[table(1_000, narrow)], 1_000);
    assert!(ran.steps > 10, "{} steps", ran.steps);
    let condition = binary(BinaryOp::Less, repeated, Expr::Literal(Value::UInt(0)));
    let filter = Op::Filter { input: boxed(source(0)), condition };
    let ran = is_patient(filter, &[table(1_000, narrow)], 1_000);
    assert!(ran.steps > 10, "{} steps", ran.steps);
}

fn limit(input: Op, count: u64) -> Op {
    let count = Some(Expr::Literal(Value::UInt(count)));
    Op::Limit { input: boxed(input), count, offset: None }
}

#[test]
fn few_rows_are_read_where_few_are_wanted() {
    let tables = [table(1_000_000, narrow), table(1, narrow)];
    let lookup = || Op::LookupJoin {
        kind: JoinKind::Inner,
        left: boxed(source(0)),
        source: 1,
        params: vec![column(0)],
        residual: None,
        at_once: 1_024,
        beyond: None,
        right_width: 2,
    };
    for (count, most) in [(1, 1), (5, 5), (40, 40), (1_000, 1_000)] {
        for op in [limit(source(0), count), limit(lookup(), count)] {
            let ran = run(&plan(op, 2), &tables, ROOM);
            assert_eq!((ran.rows, ran.used), (count, 0));
            assert_eq!(ran.read[0], most);
        }
    }
    // What has to see all rows reads them all.
    let sort = Op::Sort { input: boxed(source(0)), keys: vec![key(1)], top: None };
    let ran = run(&plan(limit(sort, 1), 2), &[table(5_000, narrow), table(1, narrow)], ROOM);
    assert_eq!((ran.rows, ran.read[0]), (1, 5_000));
}

#[test]
fn whether_there_is_a_row_is_known_with_the_first_one() {
    let exists = |once| Op::Apply {
        output: ApplyOutput::Mark,
        left: boxed(source(0)),
        right: boxed(source(1)),
        params: Vec::new(),
        on: None,
        right_width: 2,
        keeps: true,
        once,
        slots: Vec::new(),
        when: None,
        equal: None,
    };
    let tables = [table(20, narrow), table(1_000_000, narrow)];
    for once in [false, true] {
        let ran = run(&plan(exists(once), 2), &tables, ROOM);
        assert_eq!((ran.rows, ran.used), (20, 0));
        assert!(ran.read[1] <= 20, "{} rows", ran.read[1]);
    }
}

#[test]
fn who_wants_no_more_rows_leaves_nothing_behind() {
    let tables = [table(100_000, narrow), table(100_000, narrow)];
    let hash = Op::HashJoin {
        kind: JoinKind::Inner,
        left: boxed(source(0)),
        right: boxed(Op::Distinct { input: boxed(source(1)), slots: vec![0] }),
        pairs: vec![EqualPair {
            left: column(0),
            right: column(0),
            class: KeyClass::Integer,
            null_safe: false,
        }],
        residual: None,
        right_width: 2,
    };
    let ran = run_until(&plan(hash, 2), &tables, budget(ROOM), 1);
    assert!(ran.peak > 100_000 * 100);
    assert_eq!(ran.used, 0);
}
