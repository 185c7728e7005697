//! A source file, taken apart: code without the contents of strings, and comments.

/// What rules look at: a word in a string is neither code nor a remark.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Source {
    /// The code; strings are empty, characters too.
    pub(crate) code: String,
    /// All comments, one after the other.
    pub(crate) comments: String,
}

impl Source {
    pub(crate) fn of(text: &str) -> Self {
        let mut source = Self::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = if rest.starts_with("//") {
                source.comment(rest, rest.find('\n').unwrap_or(rest.len()))
            } else if rest.starts_with("/*") {
                source.comment(rest, rest.find("*/").map_or(rest.len(), |end| end + 2))
            } else if let Some(after) = after_raw_string(rest, source.code.chars().next_back()) {
                source.code.push_str("\"\"");
                after
            } else if first == '"' {
                source.code.push_str("\"\"");
                after_string(&rest[1..])
            } else if let Some(after) = after_character(rest) {
                source.code.push_str("''");
                after
            } else {
                source.code.push(first);
                &rest[first.len_utf8()..]
            };
        }
        source
    }

    fn comment<'a>(&mut self, rest: &'a str, end: usize) -> &'a str {
        self.comments.push_str(&rest[..end]);
        self.comments.push('\n');
        &rest[end..]
    }

    /// Whether the code has this word, not only as a part of a longer one.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word)
    }
}

/// What follows the string whose opening quote was just passed.
fn after_string(mut rest: &str) -> &str {
    while let Some(at) = rest.find(['"', '\\']) {
        if rest[at..].starts_with('"') {
            return &rest[at + 1..];
        }
        let escaped = rest[at + 1..].chars().next().map_or(0, char::len_utf8);
        rest = &rest[at + 1 + escaped..];
    }
    ""
}

/// What follows the raw string that begins here, if one does.
fn after_raw_string(rest: &str, before: Option<char>) -> Option<&str> {
    // An `r` at the end of a name begins nothing; `br` does.
    if before.is_some_and(|c| (c.is_alphanumeric() && c != 'b') || c == '_') {
        return None;
    }
    let inner = rest.strip_prefix('r')?;
    let fence = inner.len() - inner.trim_start_matches('#').len();
    let inner = inner[fence..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(fence));
    Some(inner.find(&end).map_or("", |at| &inner[at + end.len()..]))
}

/// What follows the character literal that begins here, if one does; a lifetime is none.
fn after_character(rest: &str) -> Option<&str> {
    let inner = rest.strip_prefix('\'')?;
    let mut characters = inner.chars();
    let first = characters.next()?;
    if first == '\\' {
        let escaped = 1 + characters.next()?.len_utf8();
        let end = inner[escaped..].find('\'')?;
        return Some(&inner[escaped + end + 1..]);
    }
    characters.as_str().strip_prefix('\'')
}

#[test]
fn strings_are_neither_code_nor_comments() {
    let source = Source::of(concat!(
        "let a = \"unsafe \\\" // no\"; // yes\n",
        "fn b<'a>(c: &'a str) -> char { '\"' }\n",
        "let d = r#\"dbg!(\"x\")\"#; /* and\nthis */ 'é'; '\\''; '\\u{41}'\n",
    ));
    assert_eq!(source.comments, "// yes\n/* and\nthis */\n");
    assert_eq!(
        source.code,
        "let a = \"\"; \nfn b<'a>(c: &'a str) -> char { '' }\nlet d = \"\";  ''; ''; ''\n"
    );
    assert!(source.has_word("fn") && !source.has_word("unsafe") && !source.has_word("le"));
}
