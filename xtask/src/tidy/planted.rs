//! Planted bugs: each is in a list that says how it is found.

use super::{fail, read};

const FAULTS: &str = "crates/kernel/src/fault.rs";
const LISTS: &str = "crates/sim/src/planted.rs";

/// The names of planted bugs that a text defines as variants.
fn variants(text: &str) -> Vec<&str> {
    let lines = text.lines().map(|line| line.trim().trim_end_matches(','));
    lines
        .filter(|line| line.starts_with("Bug") && line.chars().all(char::is_alphanumeric))
        .collect()
}

#[test]
fn every_planted_bug_is_in_a_list() {
    let (faults, lists) = (read(FAULTS).unwrap(), read(LISTS).unwrap());
    let bugs = variants(&faults);
    assert!(bugs.len() > 40, "{FAULTS} is not read rightly: {bugs:?}");
    // The name ends there: a longer one that begins like it is another bug.
    let listed = |bug: &&str| lists.contains(&format!("Fault::{bug},"));
    let offenders = bugs.iter().filter(|bug| !listed(bug));
    let say = |bug| format!("{bug}: give it a line in {LISTS}: in PLANTED, or in BY_UNIT_TESTS");
    fail("planted bugs that nobody looks for", offenders.map(say).collect());
}

#[test]
fn every_planted_bug_errs_somewhere() {
    let faults = read(FAULTS).unwrap();
    let sources = super::files(".rs");
    let of_blocks = |path: &&String| !path.starts_with("crates/sim/") && *path != FAULTS;
    let code: Vec<&str> =
        sources.iter().filter(|(path, _)| of_blocks(path)).map(|(_, text)| text.as_str()).collect();
    let errs = |bug: &&str| code.iter().any(|text| text.contains(&format!("Fault::{bug}")));
    let offenders = variants(&faults).into_iter().filter(|bug| !errs(bug));
    fail(
        "planted bugs without a place",
        offenders.map(|bug| format!("{bug}: plant it, or remove it")).collect(),
    );
}

const QUERY_BUGS: &str = "crates/base/src/planted.rs";
const QUERY_LIST: &str = "tests/differ/planted";

/// The planted bugs of queries: the variant and the name of each.
fn query_bugs(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines().filter_map(|line| line.trim().strip_suffix("\","));
    lines.filter_map(|line| line.split_once(" = \"")).collect()
}

#[test]
fn every_planted_bug_of_queries_is_in_the_list_and_errs() {
    let (bugs, list) = (read(QUERY_BUGS).unwrap(), read(QUERY_LIST).unwrap());
    let bugs = query_bugs(&bugs);
    assert!(bugs.len() >= 60, "{QUERY_BUGS} is not read rightly: {bugs:?}");
    let listed: Vec<&str> = list.lines().filter_map(|l| l.split_whitespace().next()).collect();
    let sources = super::files(".rs");
    let mut offenders = Vec::new();
    for (bug, name) in &bugs {
        if !listed.contains(name) {
            offenders.push(format!("{name}: give it a line in {QUERY_LIST}"));
        }
        let place = format!("errs(QueryBug::{bug})");
        if !sources.iter().any(|(path, text)| path != QUERY_BUGS && text.contains(&place)) {
            offenders.push(format!("{bug}: plant it, or remove it"));
        }
    }
    let is_known = |name: &str| name.starts_with('#') || bugs.iter().any(|(_, of)| *of == name);
    let unknown = listed.into_iter().filter(|name| !is_known(name));
    offenders.extend(unknown.map(|name| format!("{name}: no such bug in {QUERY_BUGS}")));
    fail("planted bugs of queries that nobody looks for", offenders);
}
