//! Invariants: each is defined in a protocol page and cited where the code keeps it, and back.

use super::{fail, files, source::Source};
use std::collections::{BTreeMap, BTreeSet};

/// Words of the same form that are names of something else.
const OTHER_WORDS: [&str; 8] =
    ["UTF-8", "UTF-16", "SHA-1", "SHA-256", "CRC-32", "ISO-8601", "XXH-3", "TLS-1"];

/// Ids like `COMMIT-3` in a text.
fn cited(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    words.filter_map(id).filter(|word| !OTHER_WORDS.contains(&word.as_str())).collect()
}

/// The word, if it is an id: at least three capital letters, a hyphen, digits.
fn id(word: &str) -> Option<String> {
    let (kind, number) = word.trim_end_matches('-').split_once('-')?;
    let capitals = kind.len() >= 3 && kind.bytes().all(|b| b.is_ascii_uppercase());
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (capitals && digits).then(|| format!("{kind}-{number}"))
}

/// Ids that a page defines: a heading, a list item or a row of a table begins with them.
fn defined(page: &str) -> Vec<String> {
    let beginning = |line: &str| {
        let marks = |c: char| "#*-|+_` ".contains(c);
        line.trim_start_matches(|c: char| marks(c) || c.is_ascii_digit() || c == '.')
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .next()
            .and_then(id)
    };
    let marked = page.lines().filter(|l| l.trim_start().starts_with(['#', '*', '-', '|', '+']));
    marked.filter_map(beginning).collect()
}

fn pages() -> BTreeMap<String, String> {
    files(".md").into_iter().filter(|(path, _)| path.starts_with("docs/protocols/")).collect()
}

fn sources() -> BTreeMap<String, String> {
    files(".rs").into_iter().filter(|(path, _)| path.starts_with("crates/")).collect()
}

#[test]
fn invariants_that_the_code_cites_are_defined() {
    let written: BTreeSet<String> = pages().values().flat_map(|page| defined(page)).collect();
    if written.is_empty() {
        return; // No protocol page has been written yet: there is nothing to compare with.
    }
    let mut offenders = Vec::new();
    for (path, text) in sources() {
        for id in cited(&Source::of(&text).comments).difference(&written) {
            offenders.push(format!("{path} cites {id}: define it in docs/protocols/"));
        }
    }
    fail("cited, but not defined (a name of something else belongs into OTHER_WORDS)", offenders);
}

#[test]
fn invariants_of_protocol_pages_are_cited_in_the_code() {
    let cited: BTreeSet<String> = sources().values().flat_map(|text| cited(text)).collect();
    let mut offenders = Vec::new();
    for (path, page) in pages() {
        for id in defined(&page).into_iter().filter(|id| !cited.contains(id)) {
            offenders.push(format!("{path} defines {id}: cite it where the code keeps it"));
        }
    }
    fail("defined, but not cited", offenders);
}

#[test]
fn invariants_are_defined_once() {
    let mut homes = BTreeMap::new();
    let mut offenders = Vec::new();
    for (path, page) in pages() {
        for id in defined(&page) {
            let home = homes.entry(id.clone()).or_insert_with(|| path.clone());
            if *home != path {
                offenders.push(format!("{id}: in {home} and in {path}; give one a new number"));
            }
        }
    }
    fail("defined twice", offenders);
}

#[test]
fn ids_are_found() {
    let text = "COMMIT-3, (see VIEW-12). UTF-8 and SHA-256 are names; A-1, COMMIT-x, X_COMMIT-4.";
    assert_eq!(cited(text).into_iter().collect::<Vec<_>>(), ["COMMIT-3", "VIEW-12"]);
    let page = "- **COMMIT-1** one.\n### COMMIT-2: two\n| READ-1 | a |\n* `LEASE-4`: so.\n- see COMMIT-9\nVIEW-1 in prose\n";
    assert_eq!(defined(page), ["COMMIT-1", "COMMIT-2", "READ-1", "LEASE-4"]);
}
