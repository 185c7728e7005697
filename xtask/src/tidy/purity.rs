//! What keeps blocks deterministic: pure crates, `unsafe` code and shared memory in their places.

use super::{PURE, fail, files, source::Source};

/// The files that may hold unsafe code. Each is small, alone in its module, and has a loom test if threads share anything in it.
/// (`ends.rs` shares mutexes of POSIX with another process, which loom does not know.)
const UNSAFE: [&str; 3] =
    ["crates/alloc/src/lib.rs", "crates/runtime/src/ends.rs", "crates/runtime/src/ring.rs"];

#[test]
fn pure_crates_are_no_std_and_safe() {
    let sources = files("lib.rs");
    let mut offenders = Vec::new();
    for name in PURE {
        let path = format!("crates/{name}/src/lib.rs");
        let Some(text) = sources.get(&path) else {
            offenders.push(format!("{path} is missing: bring it back, or take {name} out of PURE"));
            continue;
        };
        for wanted in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            if !text.lines().any(|l| l == wanted) {
                offenders.push(format!("{path}: write {wanted}"));
            }
        }
        if text.contains("extern crate std") && !text.contains("#[cfg(test)]\nextern crate std") {
            offenders.push(format!("{path}: only tests of a pure crate may have `std`"));
        }
    }
    fail("a pure crate could reach the world", offenders);
}

#[test]
fn unsafe_code_stays_in_its_files() {
    let mut offenders = Vec::new();
    for (path, text) in files(".rs") {
        if Source::of(&text).has_word("unsafe") && !UNSAFE.contains(&path.as_str()) {
            offenders.push(format!("{path}: do without, or move it into one of {UNSAFE:?}"));
        }
    }
    fail("unsafe code outside its files", offenders);
}

/// Which planted bug a process has: only in builds with the feature `planted`, and set once before anything runs.
const SHARED: [&str; 1] = ["crates/base/src/planted.rs"];

#[test]
fn pure_crates_share_no_memory() {
    let mut offenders = Vec::new();
    for (path, text) in files(".rs") {
        let pure = PURE.iter().any(|p| path.starts_with(&format!("crates/{p}/")));
        if SHARED.contains(&path.as_str()) {
            continue;
        }
        let source = Source::of(&text);
        for shared in ["sync::atomic", "static mut", "_rdtsc", "thread_local!"] {
            if pure && source.code.contains(shared) {
                offenders.push(format!("{path}: {shared}; state belongs into the block"));
            }
        }
    }
    fail("a pure crate shares memory or reads a clock", offenders);
}
