//! The statements of one text: where each of them ends, the parser says.

use crate::syntax::syntax_error;
use lats_mysql_syntax::lexer::Lexer;
use lats_mysql_syntax::token::Kind;
use lats_mysql_syntax::{Keyword, Mode};
use lats_values::SqlError;

/// Cuts a text into its statements; blanks between semicolons are none.
pub struct Statements<'t> {
    text: &'t [u8],
    at: usize,
}

/// A statement of a text.
#[derive(Debug, PartialEq)]
pub struct Piece<'t> {
    /// Its text.
    pub text: &'t [u8],
    /// Another one follows.
    pub more: bool,
}

impl<'t> Statements<'t> {
    /// The statements of a text.
    pub fn new(text: &'t [u8]) -> Self {
        // What ends a text does not belong to it.
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
        let length = text.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
        Self { text: &text[..length], at: 0 }
    }

    /// All of the text, if there is nothing to cut.
    pub fn only(&self) -> Option<&'t [u8]> {
        (!self.text.contains(&b';')).then_some(self.text)
    }

    /// The next statement; none at the end. Statements before may have changed how texts are read. Its tree may take so many
    /// bytes.
    ///
    /// # Errors
    /// What the parser says. There is no next statement then.
    pub fn next(&mut self, mode: Mode, bytes_max: usize) -> Result<Option<Piece<'t>>, SqlError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let skipped = rest.iter().take_while(|b| b.is_ascii_whitespace() || **b == b';').count();
        let start = self.at + skipped;
        if start >= self.text.len() {
            return Ok(None);
        }
        self.at = start;
        let end = match self.end_of_rows(start, mode) {
            Some(end) => end,
            None => self.parsed_end(start, mode, bytes_max)?,
        };
        self.at = end;
        let text = self.text.get(start..end).unwrap_or_default();
        Ok(Some(Piece { text, more: end < self.text.len() }))
    }

    /// What is left, as one statement.
    pub fn rest(self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The end of a statement that may be long, but has no other statements within: what a semicolon ends among its tokens.
    fn end_of_rows(&self, start: usize, mode: Mode) -> Option<usize> {
        let mut lexer = Lexer::new(self.text, u32::try_from(start).ok()?, mode);
        if !matches!(lexer.next_token().word, Keyword::INSERT | Keyword::REPLACE) {
            return None;
        }
        loop {
            let token = lexer.next_token();
            match token.kind {
                Kind::Semicolon => return Some(token.end as usize),
                Kind::End => return Some(self.text.len()),
                Kind::Bad => return None,
                _ => {}
            }
        }
    }

    fn parsed_end(&self, start: usize, mode: Mode, bytes_max: usize) -> Result<usize, SqlError> {
        // No packet is as long as that; the parser refuses such a text.
        let offset = u32::try_from(start).unwrap_or(u32::MAX);
        let parsed = lats_mysql_syntax::parse_within(self.text, offset, mode, bytes_max);
        let parsed = parsed.map_err(|error| syntax_error(&error))?;
        Ok(parsed.next.map_or(self.text.len(), |next| next.0 as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, mode: Mode) -> Vec<String> {
        let mut statements = Statements::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(piece) = statements.next(mode, usize::MAX).unwrap() {
            found.push(String::from_utf8_lossy(piece.text).trim_end().to_owned());
        }
        found
    }

    #[test]
    fn semicolons_in_texts_names_and_comments_end_nothing() {
        let text = "SELECT 'x;\\';y'; SELECT /* ; */ `;` ; # ;\n SELECT 3 -- ; and\n;;";
        assert_eq!(
            pieces(text, Mode::default()),
            ["SELECT 'x;\\';y';", "SELECT /* ; */ `;` ;", "# ;\n SELECT 3 -- ; and"]
        );
    }

    #[test]
    fn a_program_is_one_statement() {
        let program = "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END;";
        let text = format!("INSERT INTO t VALUES (';'); {program} INSERT INTO t SELECT ';'");
        assert_eq!(
            pieces(&text, Mode::default()),
            ["INSERT INTO t VALUES (';');", program, "INSERT INTO t SELECT ';'"]
        );
    }

    #[test]
    fn modes_change_where_texts_end() {
        let plain = Mode { no_backslash_escapes: true, ..Mode::default() };
        assert_eq!(pieces("INSERT INTO t VALUES ('\\'); SELECT 1", plain).len(), 2);
        assert!(
            Statements::new(b"INSERT INTO t VALUES ('\\'); SELECT 1")
                .next(Mode::default(), usize::MAX)
                .is_err()
        );
    }

    #[test]
    fn blanks_are_no_statements() {
        assert_eq!(
            pieces(" ; ;SELECT 1; ;\n;SELECT 2 ; ", Mode::default()),
            ["SELECT 1;", "SELECT 2"]
        );
        assert_eq!(pieces(" \n; ", Mode::default()), [""; 0]);
        assert_eq!(Statements::new(b"SELECT 1;\n").only(), Some(&b"SELECT 1"[..]));
    }
}
