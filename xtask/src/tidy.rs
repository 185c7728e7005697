//! The house rules, as tests. Each failure says what to do.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files that git knows, with their text.
fn files(ending: &str) -> BTreeMap<String, String> {
    let listed = Command::new("git").arg("ls-files").current_dir(root()).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    let wanted = names.lines().filter(|n| n.ends_with(ending));
    wanted
        .filter_map(|n| Some((n.to_string(), std::fs::read_to_string(root().join(n)).ok()?)))
        .collect()
}

fn fail(rule: &str, offenders: Vec<String>) {
    assert!(offenders.is_empty(), "{rule}:\n    {}", offenders.join("\n    "));
}

/// Which of our crates each may use.
const LAYERS: [(&str, &[&str]); 15] = [
    ("base", &[]),
    ("values", &["base"]),
    ("catalog", &["base", "values"]),
    ("signals", &["base"]),
    ("kernel", &["base", "signals"]),
    ("ldm", &["base", "values", "catalog", "signals", "kernel"]),
    ("tc", &["base", "catalog", "signals", "kernel"]),
    ("control", &["base", "catalog", "signals", "kernel"]),
    ("client", &["base", "catalog", "signals", "values"]),
    ("node", &["base", "catalog", "signals", "kernel", "ldm", "tc", "control"]),
    ("runtime", &["base", "catalog", "signals", "kernel", "node"]),
    ("sim", &["base", "catalog", "values", "signals", "kernel", "node", "client"]),
    ("mysql-wire", &["base", "values"]),
    ("sql", &["base", "values", "catalog", "client", "mysql-wire"]),
    ("xtask", &[]),
];

/// Crates whose code cannot even name a clock, a thread, a socket or a file.
const PURE: [&str; 7] = ["base", "values", "catalog", "signals", "kernel", "ldm", "tc"];

#[test]
fn crates_use_only_the_layers_below_them() {
    let manifests = files("Cargo.toml");
    let mut offenders = Vec::new();
    for (name, allowed) in LAYERS {
        let Some(manifest) = manifests.get(&format!("crates/{name}/Cargo.toml")) else { continue };
        for line in manifest.lines().filter(|l| l.starts_with("lats-")) {
            let used = line.trim_start_matches("lats-").split('.').next().unwrap_or_default();
            if !allowed.contains(&used) {
                offenders.push(format!("{name} uses {used}: move the code, or change LAYERS here"));
            }
        }
    }
    fail("a crate uses one that is not below it", offenders);
}

#[test]
fn pure_crates_are_no_std_and_safe() {
    let sources = files("lib.rs");
    let lacking = PURE.iter().filter(|name| {
        let text = &sources[&format!("crates/{name}/src/lib.rs")];
        !text.contains("#![no_std]") || !text.contains("#![forbid(unsafe_code)]")
    });
    fail("write #![no_std] and #![forbid(unsafe_code)]", lacking.map(|n| n.to_string()).collect());
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let manifests = files("Cargo.toml");
    let members = manifests.iter().filter(|(n, _)| *n != "Cargo.toml");
    let lacking = members.filter(|(_, t)| !t.contains("[lints]\nworkspace = true"));
    fail("write [lints] workspace = true", lacking.map(|(n, _)| n.clone()).collect());
}

#[test]
fn files_say_what_they_are_and_stay_small() {
    let mut offenders = Vec::new();
    for (name, text) in files(".rs") {
        if !text.starts_with("//!") {
            offenders.push(format!("{name}: begin with a //! line that says what it is"));
        }
        if text.lines().count() > 1_000 {
            offenders.push(format!("{name}: split it; the limit is 1,000 lines"));
        }
        if name.ends_with("/mod.rs") {
            offenders.push(format!("{name}: write foo.rs beside foo/, not foo/mod.rs"));
        }
    }
    fail("files", offenders);
}

#[test]
fn unsafe_code_and_atomics_stay_in_their_files() {
    const UNSAFE: [&str; 1] = ["crates/runtime/src/ring.rs"];
    let mut offenders = Vec::new();
    for (name, text) in files(".rs") {
        let code = || text.lines().filter(|l| !l.trim_start().starts_with("//"));
        let unsafe_word = code().any(|l| l.contains("unsafe {") || l.contains("unsafe impl"));
        if unsafe_word && !UNSAFE.contains(&name.as_str()) && !name.starts_with("xtask/") {
            offenders.push(format!("{name}: unsafe code belongs into {UNSAFE:?}"));
        }
        let pure = PURE.iter().any(|p| name.starts_with(&format!("crates/{p}/")));
        if pure && code().any(|l| l.contains("sync::atomic") || l.contains("static mut")) {
            offenders.push(format!("{name}: a pure crate shares no memory"));
        }
    }
    fail("unsafe code", offenders);
}

#[test]
fn nothing_is_left_open() {
    let mut offenders = Vec::new();
    let open = [concat!("FIX", "ME"), concat!("XX", "X:"), concat!("#[ig", "nore")];
    for (name, text) in files(".rs") {
        offenders.extend(open.iter().filter(|w| text.contains(**w)).map(|w| format!("{name}: {w}")));
    }
    fail("finish it, or write an issue", offenders);
}

/// Ids like COMMIT-3 in a text.
fn invariants(text: &str) -> Vec<String> {
    const KINDS: [&str; 9] = [
        "COMMIT-", "ABORT-", "TAKEOVER-", "FAIL-", "OUTCOME-", "READ-", "REJOIN-", "VIEW-", "LEASE-",
    ];
    let mut found = Vec::new();
    for kind in KINDS {
        for (at, _) in text.match_indices(kind) {
            let digits: String =
                text[at + kind.len()..].chars().take_while(char::is_ascii_digit).collect();
            if !digits.is_empty() {
                found.push(format!("{kind}{digits}"));
            }
        }
    }
    found
}

#[test]
fn invariants_that_the_code_cites_are_written_down() {
    let pages: String =
        files(".md").into_iter().filter(|(n, _)| n.starts_with("docs/protocols/")).map(|p| p.1).collect();
    let written = invariants(&pages);
    let mut missing: Vec<String> = files(".rs")
        .iter()
        .filter(|(n, _)| n.starts_with("crates/"))
        .flat_map(|(n, t)| invariants(t).into_iter().map(move |id| (n.clone(), id)))
        .filter(|(_, id)| !written.contains(id))
        .map(|(name, id)| format!("{id} in {name}: define it in docs/protocols/"))
        .collect();
    missing.dedup();
    fail("invariants without a definition", missing);
}

#[test]
fn every_dependency_has_its_reason() {
    let record = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let names = section
        .lines()
        .filter(|l| !l.starts_with('#') && !l.starts_with("lats-"))
        .filter_map(|l| l.split_once(" = ").map(|(name, _)| name));
    let lacking = names.filter(|n| !record.contains(&format!("`{n}`")));
    fail("write a line in docs/dependencies.md", lacking.map(str::to_string).collect());
}

#[test]
fn licences_are_ones_we_can_ship() {
    const ALLOWED: [&str; 13] = [
        "MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "Unicode-3.0", "Zlib", "ISC",
        "CC0-1.0", "Unlicense", "0BSD", "MIT-0", "BSL-1.0", "Apache-2.0 WITH LLVM-exception",
    ];
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut offenders = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or_default();
        let plain = licence.replace(['(', ')'], "").replace('/', " OR ");
        // One of the alternatives must be allowed in all its parts.
        let fits = plain
            .split(" OR ")
            .any(|choice| choice.split(" AND ").all(|part| ALLOWED.contains(&part.trim())));
        if !fits {
            offenders.push(format!("{}: {licence:?}", package["name"]));
        }
    }
    fail("licences that are not on the list", offenders);
}
