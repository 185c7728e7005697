//! Memory: each kind of buffer is counted, ends with the error near the limit, and is released at the end.

use super::*;
use std::sync::Mutex;

const MIB: usize = 1 << 20;
/// More rows than fit anywhere.
const ENDLESS: u64 = 100_000_000;

/// Runs it over tables without end; bytes of rows that were read of the table in question when the error came.
fn read_until_error(root: Op, tables: &[Table], asked: usize) -> usize {
    let ran = run(&plan(root, tables.len()), tables, 4 * MIB);
    assert_eq!(ran.error.as_deref(), Some("out of memory"));
    assert!(ran.peak <= 4 * MIB, "{} bytes", ran.peak);
    assert!(ran.peak > 2 * MIB, "{} bytes", ran.peak);
    usize::try_from(ran.read[asked]).unwrap() * row_bytes(&(tables[asked].row)(0))
}

/// The error came when about as much was read as may be held.
fn is_near(bytes: usize) {
    assert!(bytes > MIB, "{bytes} bytes");
    assert!(bytes < 6 * MIB, "{bytes} bytes");
}

fn count(spec: AggregateSpec, at: u32) -> AggregateCall {
    AggregateCall { spec: Arc::new(spec), args: vec![(column(at), bigint())] }
}

#[test]
fn joins_end_near_the_limit() {
    let pair =
        EqualPair { left: column(0), right: column(0), class: KeyClass::Integer, null_safe: false };
    for row in [narrow as fn(u64) -> Row, wide] {
        let tables = [table(10, narrow), table(ENDLESS, row)];
        let hash = Op::HashJoin {
            kind: JoinKind::Inner,
            left: boxed(source(0)),
            right: boxed(source(1)),
            pairs: vec![pair.clone()],
            residual: None,
            right_width: 3,
        };
        is_near(read_until_error(hash, &tables, 1));
        let nested = Op::NestedJoin {
            kind: JoinKind::Inner,
            left: boxed(source(0)),
            right: boxed(source(1)),
            on: None,
            right_width: 3,
        };
        is_near(read_until_error(nested, &tables, 1));
    }
}

#[test]
fn orders_groups_and_windows_end_near_the_limit() {
    for row in [narrow as fn(u64) -> Row, wide] {
        let tables = [table(ENDLESS, row)];
        let sort = Op::Sort { input: boxed(source(0)), keys: vec![key(1)], top: None };
        is_near(read_until_error(sort, &tables, 0));
        let window = Op::Window {
            input: boxed(source(0)),
            partition: vec![(column(1), bigint())],
            order: vec![key(0)],
            calls: Vec::new(),
        };
        is_near(read_until_error(window, &tables, 0));
        let group = Op::Aggregate {
            input: boxed(source(0)),
            keys: vec![(column(0), bigint())],
            rollup: false,
            calls: vec![count(AggregateSpec::new(AggregateKind::Sum, vec![bigint()]), 1)],
            width: 3,
        };
        let bytes = read_until_error(group, &tables, 0);
        assert!(bytes < 6 * MIB, "{bytes} bytes");
    }
}

#[test]
fn a_single_group_that_gathers_ends_near_the_limit() {
    let tables = [table(ENDLESS, wide)];
    let text = ColumnType::new(TypeKind::LongText);
    let concat = AggregateSpec {
        order: vec![(0, false)],
        max_bytes: 1_000,
        ..AggregateSpec::new(AggregateKind::GroupConcat, vec![text])
    };
    let distinct = AggregateSpec::new(AggregateKind::Count, vec![bigint()]).distinct();
    for (spec, at) in [(concat, 2), (distinct, 0)] {
        let op = Op::Aggregate {
            input: boxed(source(0)),
            keys: Vec::new(),
            rollup: false,
            calls: vec![count(spec, at)],
            width: 3,
        };
        let ran = run(&plan(op, 1), &tables, 4 * MIB);
        assert_eq!(ran.error.as_deref(), Some("out of memory"));
        assert!(ran.peak <= 4 * MIB);
    }
}

#[test]
fn sets_of_seen_rows_end_near_the_limit() {
    let tables = [table(ENDLESS, wide), table(ENDLESS, wide)];
    let distinct = Op::Distinct { input: boxed(source(0)), slots: vec![0, 1, 2] };
    is_near(read_until_error(distinct, &tables, 0));
    let set = |op, all| Op::Set { op, all, left: boxed(source(0)), right: boxed(source(1)) };
    is_near(read_until_error(set(SetOp::Union, false), &tables, 0));
    is_near(read_until_error(set(SetOp::Except, true), &tables, 1));
    is_near(read_until_error(set(SetOp::Intersect, false), &tables, 1));
}

#[test]
fn recursions_end_near_the_limit() {
    let anchor = Op::Values {
        rows: vec![vec![Expr::Literal(Value::UInt(1))], vec![Expr::Literal(Value::UInt(2))]],
        types: vec![bigint()],
    };
    // Each row gives two: the number of rows doubles with each step.
    let twice = Op::NestedJoin {
        kind: JoinKind::Inner,
        left: boxed(Op::Working { id: 0 }),
        right: boxed(anchor.clone()),
        on: None,
        right_width: 1,
    };
    let step = Op::Narrow { input: boxed(twice), slots: vec![0] };
    let recursive = |distinct| Op::Recursive {
        id: 0,
        anchor: boxed(anchor.clone()),
        step: boxed(step.clone()),
        distinct,
        limit: None,
        types: vec![bigint()],
    };
    let ran = run(&plan(recursive(false), 0), &[], 4 * MIB);
    assert_eq!(ran.error.as_deref(), Some("out of memory"));
    assert!(ran.peak <= 4 * MIB);
    // Two steps' rows are there at a time.
    assert!(ran.rows > 20_000, "{} rows", ran.rows);
    assert!(ran.rows < 80_000, "{} rows", ran.rows);
    let ran = run(&plan(recursive(true), 0), &[], 4 * MIB);
    assert_eq!((ran.error, ran.rows, ran.used), (None, 2, 0));
}

/// A subquery's value for each row of the left side, with the row's own number as parameter.
fn value_of(right: Op) -> Op {
    Op::Apply {
        output: ApplyOutput::Single,
        left: boxed(source(0)),
        right: boxed(right),
        params: vec![column(0)],
        on: None,
        right_width: 1,
        keeps: true,
        once: false,
        slots: vec![0],
        when: None,
        equal: None,
    }
}

#[test]
fn a_cache_makes_room_before_a_statement_fails() {
    let right = Op::Values { rows: vec![vec![column(PARAM_BASE)]], types: vec![bigint()] };
    let tables = [table(100_000, narrow)];
    // Alone it stays within its part.
    let ran = run(&plan(value_of(right.clone()), 1), &tables, 4 * MIB);
    assert_eq!((ran.error.as_deref(), ran.rows, ran.used), (None, 100_000, 0));
    assert!(ran.peak < MIB, "{} bytes", ran.peak);
    // Beside a sort that needs nearly everything it goes.
    let sort = |input| Op::Sort { input: boxed(input), keys: vec![key(1)], top: None };
    let tables = [table(15_000, narrow)];
    let alone = run(&plan(sort(source(0)), 1), &tables, 64 * MIB).peak;
    let both = run(&plan(sort(value_of(right.clone())), 1), &tables, 64 * MIB).peak;
    assert!(both > alone + 15_000 * 100);
    let room = both - 15_000 * 60;
    let ran = run(&plan(sort(value_of(right)), 1), &tables, room);
    assert_eq!((ran.error.as_deref(), ran.rows, ran.used), (None, 15_000, 0));
}

#[test]
fn rows_of_a_join_with_a_subquery_end_near_the_limit() {
    let apply = Op::Apply {
        output: ApplyOutput::Join(JoinKind::Inner),
        left: boxed(source(0)),
        right: boxed(source(1)),
        params: Vec::new(),
        on: None,
        right_width: 3,
        keeps: false,
        once: false,
        slots: Vec::new(),
        when: None,
        equal: None,
    };
    let tables = [table(1, narrow), table(ENDLESS, wide)];
    is_near(read_until_error(apply, &tables, 1));
    let once = Op::Apply {
        output: ApplyOutput::Mark,
        left: boxed(source(0)),
        right: boxed(source(1)),
        params: Vec::new(),
        on: Some(never(0, 3)),
        right_width: 3,
        keeps: true,
        once: true,
        slots: Vec::new(),
        when: None,
        equal: None,
    };
    is_near(read_until_error(once, &tables, 1));
}

#[test]
fn rows_that_have_come_are_counted_before_they_are_taken() {
    let tables = [table(ENDLESS, wide)];
    let rows = |count: u64| (0..count).map(|at| (0, wide(at))).collect();
    let plan = plan(source(0), tables.len());
    let mut run = Run::new(&[], EvalContext::new(false), budget(MIB), 0);
    let mut machine = Machine::new(&plan);
    assert!(matches!(machine.step(&mut run), Ok(Poll::Pending)));
    let Some(Ask::Read { id, .. }) = run.asks.pop() else { panic!("nothing is asked for") };
    run.answer(id, Answer { rows: rows(500), more: true }).unwrap();
    assert!(run.used() > 500 * 1_000);
    assert!(run.answer(id, Answer { rows: rows(600), more: true }).is_err());
    let Ok(Poll::Rows(taken)) = machine.step(&mut run) else { panic!("no rows") };
    assert_eq!((taken.len(), run.used()), (500, 0));
    assert_eq!(run.asks, [Ask::More(id)]);
    run.answer(id, Answer { rows: rows(10), more: true }).unwrap();
    machine.close(&mut run);
    assert_eq!(run.used(), 0);
}

#[test]
fn the_first_rows_of_an_order_are_all_that_is_kept() {
    let top = Some((Expr::Literal(Value::UInt(10)), Some(Expr::Literal(Value::UInt(5)))));
    let sort = Op::Sort { input: boxed(source(0)), keys: vec![key(1)], top };
    let ran = run(&plan(sort, 1), &[table(20_000, wide)], 4 * MIB);
    assert_eq!((ran.error.as_deref(), ran.rows, ran.used), (None, 15, 0));
}

/// So much memory for all.
struct Tank {
    left: Mutex<usize>,
}

impl Pool for Tank {
    fn take(&self, bytes: usize, _: usize) -> bool {
        let mut left = self.left.lock().unwrap();
        let rest = left.checked_sub(bytes);
        *left = rest.unwrap_or(*left);
        rest.is_some()
    }

    fn give_back(&self, bytes: usize) {
        *self.left.lock().unwrap() += bytes;
    }

    fn refusal(&self) -> SqlError {
        SqlError::new(1041, *b"HY000", "the tank is empty".into())
    }
}

#[test]
fn runs_share_what_there_is() {
    let tank = Arc::new(Tank { left: Mutex::new(4 * MIB) });
    let shared = || Budget { pool: Some(Arc::clone(&tank) as Arc<dyn Pool>), ..budget(64 * MIB) };
    let sort = Op::Sort { input: boxed(source(0)), keys: vec![key(1)], top: None };
    let plan = plan(sort, 1);
    // Two thirds of it, three times: what was taken comes back.
    for _ in 0..3 {
        let ran = run_until(&plan, &[table(2_400, wide)], shared(), u64::MAX);
        assert_eq!((ran.error.as_deref(), ran.rows), (None, 2_400));
        assert!(ran.peak > 5 * MIB / 2, "{} bytes", ran.peak);
        assert_eq!(*tank.left.lock().unwrap(), 4 * MIB);
    }
    // One that runs leaves less for the next.
    assert!(tank.take(2 * MIB, 2 * MIB));
    let ran = run_until(&plan, &[table(2_400, wide)], shared(), u64::MAX);
    assert_eq!(ran.error.as_deref(), Some("the tank is empty"));
    assert!(ran.peak > MIB && ran.peak <= 2 * MIB, "{} bytes", ran.peak);
    assert_eq!(*tank.left.lock().unwrap(), 2 * MIB);
}

/// What a run that ended early held is counted until it is dropped, wherever that is.
#[test]
fn leftovers_are_counted_until_they_are_dropped() {
    let tank = Arc::new(Tank { left: Mutex::new(8 * MIB) });
    let shared = Budget { pool: Some(Arc::clone(&tank) as Arc<dyn Pool>), ..budget(64 * MIB) };
    let sort = Op::Sort { input: boxed(source(0)), keys: vec![key(1)], top: None };
    let plan = plan(sort, 1);
    let tables = [table(2_400, wide)];
    let mut run = Run::new(&[], EvalContext::new(false), shared, u64::MAX);
    let mut machine = Machine::new(&plan);
    let (mut open, mut ran) =
        (BTreeMap::new(), Ran { read: vec![0], asked: vec![0], ..Ran::default() });
    // Until the first rows are there, all others are kept.
    while !matches!(machine.step(&mut run).unwrap(), Poll::Rows(_)) {
        answer(&mut run, &tables, &mut open, &mut ran).unwrap();
    }
    machine.close(&mut run);
    let left = run.leftovers();
    assert!(!left.is_small());
    assert!(*tank.left.lock().unwrap() < 7 * MIB, "it is not counted any more");
    drop(left);
    assert_eq!(*tank.left.lock().unwrap(), 8 * MIB);
}
