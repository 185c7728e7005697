//! Documents: links lead somewhere, decisions have numbers of their own, pages have one title.

use super::{fail, files};
use crate::root;
use std::{collections::BTreeMap, path::Path};

/// The lines of a page that are text, not code.
pub(super) fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// What the links of a line lead to, within this repository.
fn links(line: &str) -> impl Iterator<Item = &str> {
    // Every other part between backquotes is code.
    let text = line.split('`').step_by(2);
    let targets = text.flat_map(|part| part.split("](").skip(1));
    targets.filter_map(|rest| rest.split([')', '#', ' ']).next()).filter(|target| {
        !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")
    })
}

#[test]
fn links_resolve() {
    let mut offenders = Vec::new();
    for (path, page) in files(".md") {
        let folder = root().join(Path::new(&path).parent().unwrap());
        for target in prose(&page).flat_map(links) {
            if !folder.join(target).exists() {
                offenders
                    .push(format!("{path}: {target} is not there; write it, or mend the link"));
            }
        }
    }
    fail("links that lead nowhere", offenders);
}

#[test]
fn pages_have_one_title() {
    let mut offenders = Vec::new();
    for (path, page) in files(".md") {
        let titles = prose(&page).filter(|line| line.starts_with("# ")).count();
        if titles != 1 || !page.starts_with("# ") {
            offenders.push(format!("{path}: {titles} titles; begin with the one line `# Title`"));
        }
    }
    fail("titles", offenders);
}

/// Records are named after what they decide; the first ones have numbers.
#[test]
fn decisions_have_names_of_their_own() {
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    let mut offenders = Vec::new();
    for (path, page) in files(".md") {
        let Some(name) = path.strip_prefix("docs/decisions/") else { continue };
        let number: String = name.chars().take_while(char::is_ascii_digit).collect();
        if number.is_empty() {
            continue;
        }
        if !page.starts_with(&format!("# {number} ")) {
            offenders.push(format!("{path}: begin it with `# {number} Title`"));
        }
        if let Some(other) = taken.insert(number, path.clone()) {
            offenders.push(format!("{path}: {other} has this number; give it a name without one"));
        }
    }
    fail("decision records", offenders);
}

#[test]
fn the_readme_is_short_and_its_program_is_the_example() {
    let readme = super::read("README.md").unwrap();
    let lines = readme.lines().count();
    assert!(lines < 80, "README.md: {lines} lines; the rest belongs into docs/");
    let block = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let example = super::read("crates/client/examples/subscriber.rs").unwrap();
    assert!(
        example.contains(block),
        "README.md: copy the program from crates/client/examples/subscriber.rs"
    );
}

#[test]
fn links_are_found() {
    let line = "[a](x.md) `[b](y.md)` [c](https://z) [d](w.md#part \"t\") [e](#here)";
    assert_eq!(links(line).collect::<Vec<_>>(), ["x.md", "w.md"]);
    assert_eq!(prose("a\n```sh\n# b\n```\nc").collect::<Vec<_>>(), ["a", "c"]);
}
