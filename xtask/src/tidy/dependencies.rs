//! Dependencies: each has its reason in `docs/dependencies.md` and a licence that we can ship.

use super::{fail, metadata, read};
use std::process::Command;

/// Licences that ask for no more than their text to be passed on.
const LICENCES: [&str; 13] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "Unicode-3.0",
    "Zlib",
    "ISC",
    "CC0-1.0",
    "Unlicense",
    "0BSD",
];

#[test]
fn every_dependency_has_its_reason() {
    let record = read("docs/dependencies.md").unwrap();
    let manifest = read("Cargo.toml").unwrap();
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let names: Vec<&str> = section
        .lines()
        .filter(|l| !l.starts_with('#') && !l.starts_with("lats-"))
        .filter_map(|l| l.split_once('=').map(|(name, _)| name.trim()))
        .collect();
    let mut offenders = Vec::new();
    for name in &names {
        if !record.lines().any(|l| l.starts_with(&format!("| `{name}` |"))) {
            offenders.push(format!("{name}: write its line: what for, why it and not another"));
        }
    }
    for line in record.lines().filter_map(|l| l.strip_prefix("| `")) {
        let name = line.split('`').next().unwrap_or_default();
        if !names.contains(&name) {
            offenders.push(format!("{name}: no longer in Cargo.toml; take its line out"));
        }
    }
    fail("docs/dependencies.md", offenders);
}

#[test]
fn versions_are_set_in_one_place() {
    let metadata = metadata(&["--no-deps"]);
    let mut offenders = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let path = package["manifest_path"].as_str().unwrap();
        let manifest = std::fs::read_to_string(path).unwrap();
        let dependencies = manifest.split("\n[").filter(|s| s.contains("dependencies]\n"));
        let own = dependencies
            .flat_map(|section| section.lines().skip(1))
            .filter(|l| l.contains('=') && !l.starts_with('#') && !l.contains("workspace = true"));
        offenders.extend(own.map(|line| format!("{}: {line}", package["name"])));
    }
    fail("write the version into [workspace.dependencies], and `workspace = true` here", offenders);
}

/// Whether a licence expression leaves a choice that we can ship.
///
/// `OR` (once written `/`) binds less than `AND`; parentheses group.
fn fits(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) && rest.is_empty()
}

fn any_of(rest: &mut &[&str]) -> bool {
    let mut fits = all_of(rest);
    while let ["OR", after @ ..] = *rest {
        *rest = after;
        fits |= all_of(rest);
    }
    fits
}

fn all_of(rest: &mut &[&str]) -> bool {
    let mut fits = one(rest);
    while let ["AND", after @ ..] = *rest {
        *rest = after;
        fits &= one(rest);
    }
    fits
}

fn one(rest: &mut &[&str]) -> bool {
    match *rest {
        ["(", after @ ..] => {
            *rest = after;
            let fits = any_of(rest);
            let closed = matches!(*rest, [")", ..]);
            *rest = rest.get(1..).unwrap_or_default();
            fits && closed
        }
        [name, "WITH", exception, after @ ..] => {
            *rest = after;
            LICENCES.contains(&format!("{name} WITH {exception}").as_str())
        }
        [name, after @ ..] => {
            *rest = after;
            LICENCES.contains(name)
        }
        [] => false,
    }
}

#[test]
fn licences_are_ones_we_can_ship() {
    // Only what is built here: packages for other platforms may never have been downloaded.
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|l| l.strip_prefix("host: ")).unwrap();
    let metadata = metadata(&["--filter-platform", host]);
    let mut offenders = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("(none)");
        if !fits(licence) {
            offenders.push(format!("{}: {licence}", package["name"]));
        }
    }
    fail("take another library, or argue for its licence in LICENCES", offenders);
}

#[test]
fn licence_expressions_are_understood() {
    for good in ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR (MIT AND Zlib)", "(MIT OR X) AND Unicode-3.0"] {
        assert!(fits(good), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Zlib) AND X", "(MIT", "MIT Zlib"] {
        assert!(!fits(bad), "{bad}");
    }
}
