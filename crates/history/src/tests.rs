//! Histories that must pass, and the anomalies of the literature.

use crate::{Action, Outcome, Transaction, check};

fn append(list: u64, element: u64) -> Action {
    Action::Append { list, element }
}

fn read(list: u64, elements: &[u64]) -> Action {
    Action::Read { list, elements: elements.to_vec() }
}

/// A committed transaction of these two moments.
fn t(begun_ns: u64, ended_ns: u64, actions: &[Action]) -> Transaction {
    let outcome = Outcome::Committed;
    Transaction { client: 1, begun_ns, ended_ns, outcome, locks: true, actions: actions.to_vec() }
}

/// The anomalies, as one text.
fn found(history: &[Transaction]) -> String {
    check(history).anomalies.join("\n")
}

#[test]
fn what_happens_one_after_the_other_is_well() {
    let history = [
        t(0, 1, &[append(1, 10)]),
        t(2, 3, &[read(1, &[10]), append(1, 11), read(1, &[10, 11])]),
        t(4, 5, &[append(2, 20), append(1, 12)]),
        t(6, 7, &[read(1, &[10, 11, 12]), read(2, &[20])]),
    ];
    let report = check(&history);
    assert_eq!(report.anomalies, Vec::<String>::new());
    assert_eq!((report.committed, report.reads), (4, 4));
}

#[test]
fn transactions_at_the_same_time_may_come_in_any_order() {
    let history = [
        t(0, 10, &[append(1, 10)]),
        t(0, 10, &[append(1, 11)]),
        t(0, 10, &[read(1, &[])]),
        t(11, 12, &[read(1, &[11, 10])]),
    ];
    assert_eq!(found(&history), "");
}

#[test]
fn a_lost_append_is_found() {
    let history =
        [t(0, 1, &[append(1, 10)]), t(2, 3, &[append(1, 11)]), t(4, 5, &[read(1, &[11])])];
    assert!(found(&history).contains("a circle"), "{}", found(&history));
}

#[test]
fn an_old_read_is_found() {
    let history = [t(0, 1, &[append(1, 10)]), t(2, 3, &[read(1, &[])])];
    assert!(found(&history).contains("had ended before"), "{}", found(&history));
}

#[test]
fn write_skew_is_found() {
    let history = [
        t(0, 9, &[read(1, &[]), append(2, 20)]),
        t(0, 9, &[read(2, &[]), append(1, 10)]),
        t(10, 11, &[read(1, &[10]), read(2, &[20])]),
    ];
    assert!(found(&history).contains("did not see in list"), "{}", found(&history));
}

#[test]
fn half_a_transaction_is_found() {
    let transfer = t(0, 9, &[append(1, 10), append(2, 20)]);
    let torn = [transfer.clone(), t(0, 9, &[read(1, &[10]), read(2, &[])])];
    assert!(found(&torn).contains("a circle"), "{}", found(&torn));
    let twice = t(0, 9, &[append(1, 10), append(1, 11)]);
    let half = [twice, t(0, 9, &[read(1, &[10])])];
    assert!(found(&half).contains("G1b"), "{}", found(&half));
}

#[test]
fn what_was_rolled_back_is_not_there() {
    let gone = Transaction { outcome: Outcome::RolledBack, ..t(0, 1, &[append(1, 10)]) };
    let seen = t(0, 9, &[read(1, &[10])]);
    assert!(found(&[gone.clone(), seen.clone()]).contains("G1a"));
    let dirty = Transaction { outcome: Outcome::RolledBack, ..seen };
    assert!(found(&[gone, dirty]).contains("G1a"), "who rolls back must not see it either");
    let elsewhere =
        [t(0, 1, &[append(2, 20)]), t(2, 3, &[append(1, 10)]), t(4, 5, &[read(1, &[20, 10])])];
    assert!(found(&elsewhere).contains("nobody appended"));
    assert!(found(&[t(0, 9, &[read(1, &[99])])]).contains("nobody appended"));
}

#[test]
fn reads_that_contradict_each_other_are_found() {
    let history = [
        t(0, 9, &[append(1, 10)]),
        t(0, 9, &[append(1, 11)]),
        t(0, 9, &[read(1, &[10, 11])]),
        t(0, 9, &[read(1, &[11])]),
    ];
    assert!(found(&history).contains("neither is a beginning"), "{}", found(&history));
}

#[test]
fn an_unknown_outcome_counts_when_it_was_seen() {
    let unknown = Transaction { outcome: Outcome::Unknown, ..t(0, 0, &[append(1, 10)]) };
    let never = [unknown.clone(), t(1, 2, &[read(1, &[])])];
    assert_eq!(found(&never), "");
    // It may happen late.
    let late = [unknown.clone(), t(1, 2, &[read(1, &[])]), t(3, 4, &[read(1, &[10])])];
    assert_eq!(found(&late), "");
    let gone_again = [unknown, t(1, 2, &[read(1, &[10])]), t(3, 4, &[read(1, &[])])];
    assert!(found(&gone_again).contains("a circle"));
}

#[test]
fn reads_without_locks_are_judged_by_list() {
    let look = |begun, list, elements: &[u64]| Transaction {
        locks: false,
        ..t(begun, begun + 1, &[read(list, elements)])
    };
    let both = t(0, 100, &[append(1, 10), append(2, 20)]);
    // While it commits, one list may show it before the other does.
    assert_eq!(found(&[both.clone(), look(10, 1, &[10]), look(20, 2, &[])]), "");
    let back = [both, look(10, 1, &[10]), look(20, 1, &[])];
    assert!(found(&back).contains("list 1: a circle"), "{}", found(&back));
}
