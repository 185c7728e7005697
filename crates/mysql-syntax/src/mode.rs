//! What of `sql_mode` changes how a text is read.

/// The modes that change the syntax.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    /// ANSI_QUOTES: `"a"` is a name.
    pub ansi_quotes: bool,
    /// PIPES_AS_CONCAT: `||` puts texts together.
    pub pipes_as_concat: bool,
    /// NO_BACKSLASH_ESCAPES: `\` is a character like others.
    pub no_backslash_escapes: bool,
    /// HIGH_NOT_PRECEDENCE: `NOT` binds like `!`.
    pub high_not_precedence: bool,
    /// IGNORE_SPACE: blanks may stand between a function's name and its parenthesis.
    pub ignore_space: bool,
    /// REAL_AS_FLOAT: REAL is FLOAT, not DOUBLE.
    pub real_as_float: bool,
}

impl Mode {
    /// A number that is another one for each combination of modes.
    pub fn bits(self) -> u8 {
        let all = [
            self.ansi_quotes,
            self.pipes_as_concat,
            self.no_backslash_escapes,
            self.high_not_precedence,
            self.ignore_space,
            self.real_as_float,
        ];
        all.into_iter().fold(0, |bits, is_on| bits << 1 | u8::from(is_on))
    }
}
