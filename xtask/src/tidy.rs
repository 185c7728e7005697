//! The house rules, as tests. Each failure names the offender and says what to do.
//!
//! The rules look at the files as they lie in the folder, not at what git knows, so that they hold
//! for a change before it is committed and for a copy without git.

mod dependencies;
mod documents;
mod invariants;
mod language;
mod layers;
mod planted;
mod purity;
mod shape;
mod source;

use crate::root;
use std::{collections::BTreeMap, path::Path, process::Command};

/// Crates whose code cannot even name a clock, a thread, a socket or a file.
const PURE: [&str; 10] = [
    "base",
    "values",
    "catalog",
    "files",
    "signals",
    "kernel",
    "ldm",
    "tc",
    "engine",
    "mysql-syntax",
];

/// Folders that hold what was built or what a cluster left behind, not what was written.
const NOT_OURS: [&str; 4] = [".git", "target", "latsdb-data", "__pycache__"];

/// All files of the workspace: path from its root, with `/`, and size in bytes.
fn sizes() -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    walk(&root(), "", &mut found);
    assert!(found.contains_key("Cargo.toml"), "the walk must begin at the root of the workspace");
    found
}

fn walk(folder: &Path, prefix: &str, found: &mut BTreeMap<String, u64>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        // Others may build or edit meanwhile: what has just gone is not looked at.
        let Ok(entry) = entry else { continue };
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
            walk(&entry.path(), &format!("{path}/"), found);
        } else if kind.is_file() && !name.ends_with(".log") {
            let Ok(about) = entry.metadata() else { continue };
            found.insert(path, about.len());
        }
    }
}

/// The files whose names end like this, with their text.
fn files(ending: &str) -> BTreeMap<String, String> {
    let names = sizes().into_keys().filter(|n| n.ends_with(ending));
    names.filter_map(|n| Some((n.clone(), read(&n)?))).collect()
}

fn read(name: &str) -> Option<String> {
    std::fs::read_to_string(root().join(name)).ok()
}

/// What `cargo metadata` says, with these further arguments.
fn metadata(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata has failed: {complaint}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fail(rule: &str, offenders: Vec<String>) {
    assert!(offenders.is_empty(), "{rule}:\n    {}", offenders.join("\n    "));
}
