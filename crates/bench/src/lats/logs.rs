//! What nodes log of members, and when: the times at the beginning of lines, as `tracing` writes them. Control writes what is read here when
//! the leader decides to remove a node, and when a node goes on by a view with other members.

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

/// A life of a node: the node, and the number of the life.
pub(super) type Life = (u16, u32);

/// The lines of a log from one moment on that have these words: each with its time, and with what comes before and after them.
fn notes<'log>(
    log: &'log str,
    words: &str,
    from_us: i64,
) -> impl Iterator<Item = (i64, &'log str, &'log str)> {
    log.lines().filter_map(move |line| {
        let (before, after) = line.split_once(words)?;
        let (at, before) = parse(before)?;
        (at >= from_us).then_some((at, before, after))
    })
}

/// When the leader first decided that the cluster is to go on without this life of a node, in us since 1970, and why.
pub(super) fn removal(log: &str, (node, life): Life, from_us: i64) -> Option<(i64, &str)> {
    let words = format!(": the cluster is to go on without node {node}, its life {life}: ");
    let decided = notes(log, &words, from_us).map(|(at, _, why)| (at, why));
    decided.min_by_key(|(at, _)| *at)
}

/// A member, and whether it is a full replica.
type Member = (Life, bool);

/// When a node first went on by a view with such members, in us since 1970, and the number of the view.
fn view(log: &str, from_us: i64, fits: impl Fn(&[Member]) -> bool) -> Option<(i64, u64)> {
    let views = notes(log, ": members: ", from_us).filter_map(|(at, before, after)| {
        let number = before.rsplit_once("view ")?.1.parse().ok()?;
        let members: Option<Vec<Member>> = after.split(", ").map(member).collect();
        members.filter(|members| fits(members)).map(|_| (at, number))
    });
    views.min_by_key(|(at, _)| *at)
}

fn member(words: &str) -> Option<Member> {
    let (words, is_full) = match words.strip_suffix(" (no full replica)") {
        Some(words) => (words, false),
        None => (words, true),
    };
    let (node, life) = words.strip_prefix("node ")?.split_once(" life ")?;
    Some(((node.parse().ok()?, life.parse().ok()?), is_full))
}

/// The first view without this life of a node.
pub(super) fn view_without(log: &str, gone: Life, from_us: i64) -> Option<(i64, u64)> {
    view(log, from_us, |members| members.iter().all(|(life, _)| *life != gone))
}

/// The first view with a later life of the node; `full`: in which that is a full replica.
pub(super) fn view_with(
    log: &str,
    (node, former): Life,
    from_us: i64,
    full: bool,
) -> Option<(i64, u64)> {
    let is_back =
        |((other, life), is_full): &Member| *other == node && *life > former && (*is_full || !full);
    view(log, from_us, |members| members.iter().any(is_back))
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

    /// A line that was written so many seconds after 1970.
    fn line(second: u64, text: &str) -> String {
        format!("1970-01-01T00:00:0{second}.000000Z  INFO lats_runtime::thread::shell: {text}\n")
    }

    #[test]
    fn the_first_decision_about_this_life_counts_and_no_earlier_one() {
        let decides = |second: u64, node: u16, life: u32, why: &str| {
            let text = format!("the cluster is to go on without node {node}, its life {life}: ");
            line(second, &(text + why))
        };
        let log = [
            decides(1, 2, 3, "early"),
            decides(5, 2, 3, "again"),
            decides(4, 2, 3, "it has not been heard for 302 ms"),
            decides(3, 2, 31, "another life"),
            decides(3, 12, 3, "another node"),
        ];
        let log = log.concat();
        let decided = removal(&log, (2, 3), 2_000_000);
        assert_eq!(decided, Some((4_000_000, "it has not been heard for 302 ms")));
        assert_eq!(removal(&log, (3, 3), 0), None);
    }

    #[test]
    fn views_show_who_is_gone_who_is_back_and_who_is_full() {
        let log = [
            line(
                1,
                "view 7: members: node 1 life 1, node 2 life 1, node 3 life 1 (no full replica)",
            ),
            line(3, "view 8: members: node 1 life 1, node 3 life 1 (no full replica)"),
            line(2, "view 8: members: node 1 life 1, node 3 life 1 (no full replica)"),
            line(4, "view 9: members: node 1 life 1, node 2 life 2 (no full replica)"),
            line(5, "view 11: members: node 1 life 1, node 2 life 2"),
            line(6, "view 12: members: node 1 life 1, node 22 life 2"),
            line(0, "view 13: members: something else"),
            "view 14: members: node 1 life 1\n".to_string(),
        ];
        let log = log.concat();
        assert_eq!(view_without(&log, (2, 1), 0), Some((2_000_000, 8)));
        assert_eq!(view_without(&log, (2, 1), 2_500_000), Some((3_000_000, 8)));
        assert_eq!(view_without(&log, (1, 1), 0), None);
        assert_eq!(view_with(&log, (2, 1), 0, false), Some((4_000_000, 9)));
        assert_eq!(view_with(&log, (2, 1), 0, true), Some((5_000_000, 11)));
        assert_eq!(view_with(&log, (2, 2), 0, false), None);
        assert_eq!(view_with(&log, (3, 0), 0, true), None);
    }
}
