//! What nodes log, and when: the times at the beginning of lines, as `tracing` writes them.

/// The wall-clock time of a line of a log, in us since 1970, and its text; none if it begins with no time.
pub(super) fn parse(line: &str) -> Option<(i64, &str)> {
    let (time, text) = line.split_once('Z')?;
    let (date, clock) = time.split_once('T')?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (parts.next()?.parse::<i64>().ok()?, parts.next()?.parse::<i64>().ok()?);
    let (second, fraction) = parts.next()?.split_once('.')?;
    let micros = format!("{fraction:0<6}").get(..6)?.parse::<i64>().ok()?;
    let minutes = (days_since_1970(year, month, day)? * 24 + hour) * 60 + minute;
    Some(((minutes * 60 + second.parse::<i64>().ok()?) * 1_000_000 + micros, text))
}

/// Days of the Gregorian calendar, from 1970 on.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    if year < 1970 {
        return None;
    }
    let is_leap = |y: i64| (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    let years: i64 = (1970..year).map(|y| if is_leap(y) { 366 } else { 365 }).sum();
    let mut lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    lengths[1] += i64::from(is_leap(year));
    let month = usize::try_from(month - 1).ok().filter(|month| *month < lengths.len())?;
    Some(years + lengths[..month].iter().sum::<i64>() + day - 1)
}

/// When a node has logged that this one's process has ended for certain, in us since 1970.
pub(super) fn certain_end(log: &str, node: u16, from_us: i64) -> Option<i64> {
    let words = format!("the process of node {node}, its life ");
    let lines = log.lines().filter(|line| line.contains(&words));
    lines.filter_map(parse).map(|(at, _)| at).filter(|at| *at >= from_us).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_lines_are_read() {
        for (line, wanted) in [
            ("1970-01-01T00:00:00.000001Z  INFO x", 1),
            ("2000-02-29T12:34:56.789012Z  WARN x", 951_827_696_789_012),
            ("2026-11-28T01:33:55.5Z x", 1_795_829_635_500_000),
        ] {
            assert_eq!(parse(line).map(|(at, _)| at), Some(wanted), "{line}");
        }
        for line in ["latsdb: node 1 runs as process 7", "", "2026-13-28T01:33:55.5Z x", "aTbZ"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn the_first_node_that_knows_of_an_end_counts_and_no_earlier_end() {
        let line = |second: u64, node: u16| {
            format!(
                "1970-01-01T00:00:0{second}.000000Z  INFO a: the process of node {node}, its life 3, has ended for certain\n"
            )
        };
        let log = [line(1, 2), line(5, 2), line(4, 2), line(3, 1)].concat();
        assert_eq!(certain_end(&log, 2, 2_000_000), Some(4_000_000));
        assert_eq!(certain_end(&log, 3, 0), None);
    }
}
