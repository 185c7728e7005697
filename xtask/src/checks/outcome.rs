//! How steps ended, and the table of them.

use std::path::PathBuf;

/// How a step ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// Its name.
    pub(crate) name: String,
    /// How long it took.
    pub(crate) seconds: f64,
    /// How long it may take; 0: it has no limit.
    pub(crate) limit_s: u64,
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
    /// 1 if it could not be run on this machine.
    pub(crate) skipped: u64,
    /// The command.
    pub(crate) command: String,
    /// Where it was run: what it printed, and the directories of its clusters.
    pub(crate) folder: PathBuf,
}

impl Outcome {
    /// Setting up was done before.
    pub(crate) fn of_setup(seconds: u64) -> Self {
        let name = "set-up".to_string();
        Self { name, seconds: seconds as f64, ..Self::default() }
    }

    /// For a person, after a failure.
    pub(crate) fn what_is_left(&self) -> String {
        let folder = self.folder.display();
        format!(
            "== FAILED: {}\n   again: {}\n   kept:  {folder} (output.txt, data directories, logs)",
            self.name, self.command
        )
    }
}

/// Seconds of all steps, slowest first. Steps that were run several times have one row.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let mut rows: Vec<(String, f64, f64, u64, u64, u64, u64)> = Vec::new();
    for one in outcomes {
        match rows.iter_mut().find(|row| row.0 == one.name) {
            Some(row) => {
                row.1 += one.seconds;
                row.2 = row.2.max(one.seconds);
                (row.4, row.5, row.6) = (row.4 + one.passed, row.5 + one.failed, row.6 + 1);
            }
            None => rows.push((
                one.name.clone(),
                one.seconds,
                one.seconds,
                one.limit_s,
                one.passed,
                one.failed,
                1,
            )),
        }
    }
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let repeated = rows.iter().any(|row| row.6 > 1);
    let mut text = String::from("\nseconds  limit  passed  failed  step\n");
    for (name, sum, longest, limit, passed, failed, runs) in rows {
        let several = match repeated {
            true => format!(
                " ({runs} runs, {:.0} s on average, {longest:.0} s longest)",
                sum / runs as f64
            ),
            false => String::new(),
        };
        text += &format!("{sum:>7.0} {limit:>6} {passed:>7} {failed:>7}  {name}{several}\n");
    }
    text
}

/// Tests that passed and failed by what a step printed: the results of cargo's test programs, else the last line `N passed, N failed`.
pub(crate) fn counted(output: &str) -> Option<(u64, u64)> {
    let numbers = |line: &str| -> Option<(u64, u64)> {
        let (passed, rest) = line.split_once(" passed")?;
        let failed = rest.trim_start_matches([';', ',', ' ']).split_once(" failed")?.0;
        Some((passed.rsplit(' ').next()?.parse().ok()?, failed.parse().ok()?))
    };
    let mut of_cargo = output.lines().filter(|l| l.starts_with("test result: ")).peekable();
    if of_cargo.peek().is_some() {
        let sum = |(a, b): (u64, u64), (c, d): (u64, u64)| (a + c, b + d);
        return Some(of_cargo.filter_map(numbers).fold((0, 0), sum));
    }
    let plain =
        |line: &&str| line.starts_with(|c: char| c.is_ascii_digit()) && line.ends_with(" failed");
    output.lines().rev().find(plain).and_then(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_by_what_was_printed() {
        let cargo = "test result: ok. 3 passed; 0 failed; 0 ignored\nx\ntest result: FAILED. 1 passed; 2 failed; 0\n";
        assert_eq!(counted(cargo), Some((4, 2)));
        assert_eq!(counted("a\n7 passed, 1 failed\n9 passed, 0 failed\nend\n"), Some((9, 0)));
        assert_eq!(counted("nothing was counted; 3 failed attempts\n"), None);
    }

    #[test]
    fn the_slowest_step_comes_first() {
        let one =
            |name: &str, seconds| Outcome { name: name.into(), seconds, ..Outcome::default() };
        let text = table(&[one("a", 1.0), one("b", 9.0), one("a", 3.0)]);
        let at = |what: &str| text.find(what).unwrap();
        assert!(at("  b") < at("  a"), "{text}");
        assert!(text.contains("a (2 runs, 2 s on average, 3 s longest)"), "{text}");
    }
}
