//! `docs/ci-times.csv`: how long the checks took, commit by commit.

use super::{git, outcome::Outcome};
use crate::root;
use anyhow::Context;
use std::time::Duration;

const RECORD: &str = "docs/ci-times.csv";
const HEAD: [&str; 3] = ["commit", "temperature", "total_s"];

/// Appends a row.
pub(crate) fn append(outcomes: &[Outcome], took: Duration, is_cold: bool) -> anyhow::Result<()> {
    let path = root().join(RECORD);
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let temperature = if is_cold { "cold" } else { "warm" };
    let mut row = vec![
        ("commit".to_string(), commit),
        ("temperature".to_string(), temperature.to_string()),
        ("total_s".to_string(), took.as_secs().to_string()),
    ];
    row.extend(outcomes.iter().map(|o| (o.name.replace(',', ""), format!("{:.0}", o.seconds))));
    std::fs::write(&path, with_row(&kept, &row)).with_context(|| format!("writing {RECORD}"))
}

/// The file with one more row: steps that are new get a column at the end, those that are gone keep theirs.
fn with_row(kept: &str, row: &[(String, String)]) -> String {
    let mut lines = kept.lines();
    let mut columns: Vec<&str> = lines.next().map_or(HEAD.to_vec(), |l| l.split(',').collect());
    for (name, _) in row {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let value = |column: &&str| row.iter().find(|(name, _)| name == column).map_or("", |(_, v)| v);
    let new: Vec<&str> = columns.iter().map(value).collect();
    let width = columns.len();
    let padded = lines.map(|line| {
        let missing = width.saturating_sub(line.split(',').count());
        format!("{line}{}\n", ",".repeat(missing))
    });
    format!("{}\n{}{}\n", columns.join(","), padded.collect::<String>(), new.join(","))
}

#[test]
fn steps_that_come_and_go_keep_their_columns() {
    let row = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
    };
    let first = with_row(
        "",
        &row(&[("commit", "a1"), ("temperature", "cold"), ("total_s", "9"), ("lints", "4")]),
    );
    assert_eq!(first, "commit,temperature,total_s,lints\na1,cold,9,4\n");
    let second = with_row(
        &first,
        &row(&[("commit", "b2"), ("temperature", "warm"), ("total_s", "5"), ("kills", "3")]),
    );
    assert_eq!(second, "commit,temperature,total_s,lints,kills\na1,cold,9,4,\nb2,warm,5,,3\n");
}
