//! The shape of files: what they begin with, how long they may be, what they must not contain.

use super::{fail, files, sizes, source::Source};

const LINES_MAX: usize = 1_000;
const BYTES_MAX: u64 = 256 << 10;

#[test]
fn files_say_what_they_are_and_stay_small() {
    let mut offenders = Vec::new();
    for (path, text) in files(".rs") {
        if !text.starts_with("//!") {
            offenders.push(format!("{path}: begin with a //! line that says what it is"));
        }
        if text.lines().count() > LINES_MAX {
            offenders.push(format!("{path}: split it by activity; the limit is {LINES_MAX} lines"));
        }
        if path.ends_with("/mod.rs") {
            offenders.push(format!("{path}: write foo.rs beside foo/, not foo/mod.rs"));
        }
    }
    fail("the shape of files", offenders);
}

#[test]
fn no_file_is_a_blob() {
    let large = sizes().into_iter().filter(|(_, size)| *size > BYTES_MAX);
    let offenders = large.map(|(path, size)| format!("{path}: {size} bytes")).collect();
    fail("files above 256 KiB: generate them, fetch them in a script, or split them", offenders);
}

#[test]
fn nothing_is_left_open() {
    const CODE: [&str; 4] = ["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];
    const COMMENTS: [&str; 2] = ["FIXME", "XXX:"];
    let mut offenders = Vec::new();
    for (path, text) in files(".rs") {
        let source = Source::of(&text);
        let code = CODE.iter().filter(|w| source.code.contains(**w));
        let comments = COMMENTS.iter().filter(|w| source.comments.contains(**w));
        offenders.extend(code.chain(comments).map(|w| format!("{path}: {w}")));
    }
    fail("left open: finish it, or take it out and write an issue", offenders);
}
