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
