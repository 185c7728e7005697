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
