//! Matching the patterns of LIKE.

/// Whether all of `text` matches `pattern`: `%` is any run, `_` any one character, and the escape
/// takes the next character as it is. Time is the product of the lengths at worst: each step counts,
/// and `None` says that there were not enough.
pub(super) fn matches(
    text: &[char],
    pattern: &[char],
    escape: Option<char>,
    same: impl Fn(char, char) -> bool,
    steps_left: &mut u64,
) -> Option<bool> {
    let (mut t, mut p) = (0, 0);
    // Where to go on when what follows the last `%` does not match: pattern place, text place.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        *steps_left = steps_left.checked_sub(1)?;
        let step = next(pattern, p, escape);
        match (step, text.get(t)) {
            (Some((Token::Run, after)), _) => {
                retry = Some((after, t));
                p = after;
                continue;
            }
            (None, None) => return Some(true),
            (Some((Token::One, after)), Some(_)) => {
                (t, p) = (t + 1, after);
                continue;
            }
            (Some((Token::Char(c), after)), Some(d)) if same(c, *d) => {
                (t, p) = (t + 1, after);
                continue;
            }
            _ => {}
        }
        match retry {
            Some((after, from)) if from < text.len() => {
                retry = Some((after, from + 1));
                (t, p) = (from + 1, after);
            }
            _ => return Some(false),
        }
    }
}

enum Token {
    Run,
    One,
    Char(char),
}

fn next(pattern: &[char], at: usize, escape: Option<char>) -> Option<(Token, usize)> {
    let c = *pattern.get(at)?;
    if Some(c) == escape {
        // An escape at the end stands for itself.
        return Some(match pattern.get(at + 1) {
            Some(literal) => (Token::Char(*literal), at + 2),
            None => (Token::Char(c), at + 1),
        });
    }
    let token = match c {
        '%' => Token::Run,
        '_' => Token::One,
        other => Token::Char(other),
    };
    Some((token, at + 1))
}
