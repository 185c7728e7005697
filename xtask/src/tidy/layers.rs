//! Which of our crates may use which, and what every manifest has.

use super::{fail, files, metadata};

/// Each crate, and those of ours that it may use. A new edge is a decision: make it here, knowingly.
const LAYERS: [(&str, &[&str]); 25] = [
    ("lats-alloc", &[]),
    ("lats-base", &[]),
    ("lats-values", &["base"]),
    ("lats-catalog", &["base", "values"]),
    ("lats-signals", &["base"]),
    ("lats-files", &["base"]),
    ("lats-kernel", &["base", "signals"]),
    ("lats-ldm", &["base", "values", "catalog", "files", "signals", "kernel"]),
    ("lats-tc", &["base", "catalog", "signals", "kernel"]),
    ("lats-control", &["base", "catalog", "files", "signals", "kernel"]),
    ("lats-client", &["base", "catalog", "signals", "values"]),
    ("lats-node", &["base", "catalog", "signals", "kernel", "ldm", "tc", "control"]),
    ("lats-runtime", &["base", "catalog", "signals", "kernel", "node"]),
    ("lats-history", &["base", "values", "catalog", "client"]),
    (
        "lats-sim",
        &["base", "catalog", "values", "files", "signals", "kernel", "node", "client", "history"],
    ),
    ("lats-models", &[]),
    ("lats-engine", &["base", "values"]),
    ("lats-mysql-syntax", &[]),
    ("lats-mysql-wire", &["base", "values"]),
    ("lats-sql", &["base", "values", "catalog", "client", "engine", "mysql-syntax", "mysql-wire"]),
    ("lats-backup", &["base", "values", "catalog", "files", "client"]),
    ("lats-bench", &["base", "values", "catalog", "client"]),
    (
        "lats-cost",
        &["alloc", "base", "values", "catalog", "signals", "kernel", "ldm", "tc", "client", "sql"],
    ),
    (
        "latsdb",
        &[
            "alloc", "base", "backup", "bench", "values", "catalog", "files", "signals", "client",
            "node", "runtime", "sql",
        ],
    ),
    ("xtask", &[]),
];

#[test]
fn crates_use_only_the_layers_below_them() {
    let metadata = metadata(&["--no-deps"]);
    let mut offenders = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some((_, allowed)) = LAYERS.iter().find(|(n, _)| *n == name) else {
            offenders.push(format!("{name}: give it a line in LAYERS, and in ARCHITECTURE.md"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let ours = LAYERS.iter().any(|(n, _)| *n == used);
            if ours && !allowed.iter().any(|a| used == format!("lats-{a}")) {
                offenders.push(format!("{name} uses {used}: move the code, or change LAYERS"));
            }
        }
    }
    fail("a crate uses one that is not below it (xtask/src/tidy/layers.rs)", offenders);
}

#[test]
fn crates_are_named_like_their_folders() {
    let mut offenders = Vec::new();
    for (path, manifest) in files("Cargo.toml") {
        let Some(folder) = path.strip_prefix("crates/") else { continue };
        let folder = folder.trim_end_matches("/Cargo.toml");
        let expected =
            if folder == "server" { "latsdb".to_string() } else { format!("lats-{folder}") };
        if !manifest.contains(&format!("name = \"{expected}\"")) {
            offenders.push(format!("{path}: name the package {expected:?}"));
        }
    }
    fail("a crate is not named like its folder", offenders);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let manifests = files("Cargo.toml");
    // The fuzzers are a workspace of their own.
    let members =
        manifests.iter().filter(|(n, _)| !["Cargo.toml", "fuzz/Cargo.toml"].contains(&n.as_str()));
    let lacking = members.filter(|(_, t)| !t.contains("[lints]\nworkspace = true"));
    let offenders = lacking.map(|(n, _)| n.clone()).collect();
    fail("without [lints] workspace = true no lint looks at the crate: write it", offenders);
}
