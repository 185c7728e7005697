//! Plain technical English: one sentence a line, at most 30 words, at most 160 columns (STYLE.md). Tables and code are exempt.

use super::{documents::prose, fail, files};

const COLUMNS_MAX: usize = 160;
const WORDS_MAX: usize = 30;

/// Pages that were written before there was this rule. Whoever touches one brings it to the rule and takes its line away.
const OLDER_PAGES: [&str; 24] = [
    "docs/dependencies.md",
    "docs/threads.md",
    "docs/decisions/0003-link-loss-removes-a-node.md",
    "docs/decisions/0004-locking-reads-belong-to-the-owner.md",
    "docs/formats/archive.md",
    "docs/formats/backup.md",
    "docs/formats/control.md",
    "docs/formats/redo.md",
    "docs/formats/rows.md",
    "docs/protocols/archive.md",
    "docs/protocols/catalog.md",
    "docs/protocols/commit.md",
    "docs/protocols/deadlock.md",
    "docs/protocols/durability.md",
    "docs/protocols/hand-over.md",
    "docs/protocols/locks.md",
    "docs/protocols/membership.md",
    "docs/protocols/program.md",
    "docs/protocols/read.md",
    "docs/protocols/rejoin.md",
    "docs/protocols/restart.md",
    "docs/protocols/snapshot.md",
    "docs/protocols/threads.md",
    "docs/protocols/unique-index.md",
];

/// What ends in a full stop and ends no sentence.
const ABBREVIATIONS: [&str; 5] = ["e.g.", "i.e.", "etc.", "vs.", "cf."];

/// What is wrong with a line of text.
fn complaint(line: &str) -> Option<String> {
    let text = line.trim();
    if text.starts_with('|') {
        return None;
    }
    let columns = line.chars().count();
    if columns > COLUMNS_MAX {
        return Some(format!("{columns} columns; at most {COLUMNS_MAX}"));
    }
    let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric));
    let words = words.count();
    if words > WORDS_MAX {
        return Some(format!("{words} words; at most {WORDS_MAX}"));
    }
    second_sentence(text).map(|begin| format!("a second sentence begins: {begin}"))
}

/// The first words of a second sentence on a line.
fn second_sentence(text: &str) -> Option<String> {
    // Every other part between backquotes is code, which ends no sentence.
    let parts: Vec<&str> = text.split('`').collect();
    let plain: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(at, part)| if at % 2 == 0 { (*part).to_string() } else { "x".repeat(part.len()) })
        .collect();
    let plain = plain.join("`");
    let words: Vec<&str> = plain.split(' ').collect();
    for (at, pair) in words.windows(2).enumerate() {
        let (word, next) = (pair[0].trim_end_matches(['"', ')', '*', '_']), pair[1]);
        let ends = word.ends_with(['.', '?', '!']) && word.len() > 2;
        // A label in bold type is no sentence.
        let is_label = at == 0 && pair[0].ends_with(".**");
        // `1.` at the beginning of a line is its number.
        let is_number = at == 0 && word.trim_end_matches('.').chars().all(|c| c.is_ascii_digit());
        let begins = next.trim_start_matches(['"', '(', '*', '_', '[', '`']);
        let begins = begins.starts_with(|c: char| c.is_uppercase());
        if ends && begins && !is_number && !is_label && !ABBREVIATIONS.contains(&word) {
            return Some(words[at + 1..].iter().take(4).copied().collect::<Vec<_>>().join(" "));
        }
    }
    None
}

#[test]
fn pages_have_one_short_sentence_a_line() {
    let mut offenders = Vec::new();
    for (path, page) in files(".md") {
        let is_ours = path.starts_with("docs/")
            || ["ARCHITECTURE.md", "README.md", "STYLE.md"].contains(&path.as_str());
        if !is_ours || OLDER_PAGES.contains(&path.as_str()) {
            continue;
        }
        for line in prose(&page) {
            if let Some(why) = complaint(line) {
                let begin: String = line.chars().take(60).collect();
                offenders.push(format!("{path}: {why}: {begin}…"));
            }
        }
    }
    fail("lines that are not one short sentence (STYLE.md says how to write)", offenders);
}

#[test]
fn the_list_of_older_pages_only_gets_shorter() {
    let pages = files(".md");
    let is_wrong = |page: &String| prose(page).any(|line| complaint(line).is_some());
    let offends = |path: &str| pages.get(path).is_some_and(is_wrong);
    let good = OLDER_PAGES.iter().filter(|path| !offends(path));
    let offenders = good.map(|path| format!("{path}: gone, or good by now: take its line away"));
    fail("OLDER_PAGES (xtask/src/tidy/language.rs)", offenders.collect());
}

#[test]
fn second_sentences_are_found() {
    assert_eq!(second_sentence("One. Two three four five").as_deref(), Some("Two three four five"));
    assert_eq!(
        second_sentence("A `b. C` now. It ends (so). No.").as_deref(),
        Some("It ends (so). No.")
    );
    for good in [
        "1. One thing.",
        "It is e.g. Rust.",
        "See `a. B`.",
        "It takes 1.5 MiB.",
        "MySQL 8.4 Manual",
    ] {
        assert_eq!(second_sentence(good), None, "{good}");
    }
    assert!(complaint(&"word ".repeat(31)).is_some_and(|text| text.starts_with("31 words")));
    assert_eq!(complaint(&format!("| {} |", "cell. More ".repeat(40))), None);
}
