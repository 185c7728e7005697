//! Changed statements: whatever comes in, the parser answers, and what it takes is printed and taken again.

use super::cases;
use lats_mysql_syntax::lexer::Lexer;
use lats_mysql_syntax::token::Kind;
use lats_mysql_syntax::{Mode, parse, print};

/// A small generator of numbers, so that each run has the same ones.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}

fn check(text: &[u8], mode: Mode) {
    let Ok(parsed) = parse(text, 0, mode) else { return };
    let printed = print(&parsed, mode);
    let shown = String::from_utf8_lossy(&printed);
    let again = parse(&printed, 0, mode);
    let again = again
        .unwrap_or_else(|e| panic!("{:?}\n{shown}\n{}", String::from_utf8_lossy(text), e.message));
    let printed_again = print(&again, mode);
    assert_eq!(
        String::from_utf8_lossy(&printed_again),
        shown,
        "{:?}",
        String::from_utf8_lossy(text)
    );
}

/// The tokens of a text, with the blanks before them.
fn pieces(text: &[u8], mode: Mode) -> Vec<Vec<u8>> {
    let mut lexer = Lexer::new(text, 0, mode);
    let (mut pieces, mut end) = (Vec::new(), 0);
    loop {
        let token = lexer.next_token();
        if matches!(token.kind, Kind::End | Kind::Bad) {
            return pieces;
        }
        pieces.push(text[end..token.end as usize].to_vec());
        end = token.end as usize;
    }
}

#[test]
fn changed_statements_never_panic_and_what_is_taken_can_be_printed() {
    let mut random = Random(7);
    let cases = cases();
    for case in &cases {
        let pieces = pieces(case.text.as_bytes(), case.mode);
        if pieces.is_empty() {
            continue;
        }
        for _ in 0..30 {
            let mut changed = pieces.clone();
            let (one, other) = (random.below(changed.len()), random.below(changed.len()));
            match random.below(5) {
                0 => drop(changed.remove(one)),
                1 => changed.insert(one, pieces[other].clone()),
                2 => changed.swap(one, other),
                3 => {
                    let from = &cases[random.below(cases.len())];
                    let foreign = self::pieces(from.text.as_bytes(), from.mode);
                    if !foreign.is_empty() {
                        changed[one] =
                            [b" ", foreign[random.below(foreign.len())].as_slice()].concat();
                    }
                }
                _ => changed.truncate(one),
            }
            check(&changed.concat(), case.mode);
        }
        for _ in 0..10 {
            let mut bytes = case.text.as_bytes().to_vec();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            check(&bytes, case.mode);
        }
    }
}
