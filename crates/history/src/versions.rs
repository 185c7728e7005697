//! Which elements a list got, in which order, and from whom; and what single reads show to be wrong.

use crate::{Action, Outcome, Report, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// A list as the history shows it.
#[derive(Debug, Default)]
pub(crate) struct List {
    /// The longest read: all others must be beginnings of it.
    pub(crate) order: Vec<u64>,
    /// Elements of committed transactions that nobody has read: they came later.
    pub(crate) unread: Vec<u64>,
}

/// What follows from a history about lists.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    pub(crate) lists: BTreeMap<u64, List>,
    /// The transaction that appended an element to a list.
    pub(crate) writers: BTreeMap<(u64, u64), usize>,
    happened: BTreeSet<usize>,
}

impl Versions {
    /// True if the transaction is committed: its client was told, or somebody has read what it wrote.
    pub(crate) fn happened(&self, at: usize) -> bool {
        self.happened.contains(&at)
    }
}

/// Names a transaction, for a person.
pub(crate) fn name(history: &[Transaction], at: usize) -> String {
    let t = &history[at];
    format!("T{at} of client {} ({} to {} us)", t.client, t.begun_ns / 1000, t.ended_ns / 1000)
}

pub(crate) fn infer(history: &[Transaction], report: &mut Report) -> Versions {
    let mut versions = Versions::default();
    for (at, t) in history.iter().enumerate() {
        for action in &t.actions {
            if let Action::Append { list, element } = action
                && versions.writers.insert((*list, *element), at).is_some()
            {
                report
                    .anomalies
                    .push(format!("the history appends {element} twice: it proves nothing"));
            }
        }
        if t.outcome == Outcome::Committed {
            versions.happened.insert(at);
        }
    }
    for (at, t) in history.iter().enumerate() {
        for (list, elements) in reads_of_others(history, at, report) {
            report.reads += 1;
            check_read(history, (at, list, elements), &mut versions, report);
            if t.outcome == Outcome::RolledBack {
                // It must not see what was rolled back either; but it has no place in the order.
                continue;
            }
            let known = &mut versions.lists.entry(list).or_default().order;
            let (short, long) = match known.len() < elements.len() {
                true => (&known[..], elements),
                false => (elements, &known[..]),
            };
            if !long.starts_with(short) {
                report.anomalies.push(format!(
                    "list {list}: {} read {elements:?}, another read {known:?}: neither is a \
                     beginning of the other",
                    name(history, at)
                ));
            } else if known.len() < elements.len() {
                *known = elements.to_vec();
            }
        }
    }
    note_unread(history, &mut versions);
    versions
}

fn note_unread(history: &[Transaction], versions: &mut Versions) {
    for at in versions.happened.clone() {
        for action in &history[at].actions {
            if let Action::Append { list, element } = action {
                let known = versions.lists.entry(*list).or_default();
                if !known.order.contains(element) {
                    known.unread.push(*element);
                }
            }
        }
    }
}

/// What a transaction has read of each list, without what it appended itself before.
pub(crate) fn reads_of_others<'h>(
    history: &'h [Transaction],
    at: usize,
    report: &mut Report,
) -> Vec<(u64, &'h [u64])> {
    let mut own: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut found = Vec::new();
    for action in &history[at].actions {
        match action {
            Action::Append { list, element } => own.entry(*list).or_default().push(*element),
            Action::Read { list, elements } => {
                let mine = own.get(list).map_or(&[][..], |m| m);
                match elements.strip_suffix(mine) {
                    Some(others) => found.push((*list, others)),
                    None => report.anomalies.push(format!(
                        "list {list}: {} does not see its own {mine:?} in {elements:?}",
                        name(history, at)
                    )),
                }
            }
        }
    }
    found
}

/// A read must show no element twice, none that was rolled back or that nobody appended (G1a), and not
/// half of what a transaction appended (G1b).
fn check_read(
    history: &[Transaction],
    (at, list, elements): (usize, u64, &[u64]),
    versions: &mut Versions,
    report: &mut Report,
) {
    let mut seen = BTreeSet::new();
    for element in elements {
        let Some(writer) = versions.writers.get(&(list, *element)).copied() else {
            let who = name(history, at);
            report
                .anomalies
                .push(format!("list {list}: {who} read {element}, which nobody appended"));
            continue;
        };
        if !seen.insert(*element) {
            let who = name(history, at);
            report.anomalies.push(format!("list {list}: {who} read {element} twice"));
        }
        if history[writer].outcome == Outcome::RolledBack {
            report.anomalies.push(format!(
                "list {list}: {} read {element}, which {} appended and rolled back (G1a)",
                name(history, at),
                name(history, writer)
            ));
        }
        versions.happened.insert(writer);
    }
    let Some(writer) = elements.last().and_then(|e| versions.writers.get(&(list, *e)).copied())
    else {
        return;
    };
    let mut appended = history[writer].actions.iter().filter_map(|a| match a {
        Action::Append { list: to, element } if *to == list => Some(*element),
        _ => None,
    });
    if writer != at && appended.next_back() != elements.last().copied() {
        report.anomalies.push(format!(
            "list {list}: {} read half of what {} appended (G1b)",
            name(history, at),
            name(history, writer)
        ));
    }
}
