//! What the command line says. Nobody may be reading any more, as in `latsdb status | head -1`: that
//! ends no process, least of all one that supervises others.

use std::io::Write;

/// Writes a line to standard output, if that can be done.
pub(crate) fn line(text: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Writes a prompt.
pub(crate) fn part(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Like `println!`, but without an end when nobody listens.
macro_rules! say {
    ($($text:tt)*) => { $crate::say::line(format_args!($($text)*)) };
}
pub(crate) use say;
