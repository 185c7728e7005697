//! What a node that is no member of its cluster yet has said last: a file beside its directory, which `latsdb start` reads when it
//! waits for the node. When the node is a member, its log is enough.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

/// Where that is written, while it is.
static FILE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// No more is kept of what was said.
const CHARACTERS_MAX: usize = 2_000;
/// Who says what blocks tell people.
const OF_BLOCKS: &str = "lats_runtime::thread::shell";

/// From now on what is said is written into this file.
pub(crate) fn begin(file: PathBuf) {
    let _ = std::fs::remove_file(&file);
    *FILE.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
}

/// The node is a member.
pub(crate) fn end() {
    let file = FILE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(file) = file {
        let _ = std::fs::remove_file(file);
    }
}

/// Writes this down, if anything is to be.
pub(crate) fn note(text: &str) {
    let file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = &*file {
        let text: String = text.chars().take(CHARACTERS_MAX).collect();
        // Its reader looks at it at any time.
        let fresh = file.with_extension("new");
        let written = std::fs::write(&fresh, format!("{}\n{text}\n", std::process::id()));
        let _ = written.and_then(|()| std::fs::rename(&fresh, file));
    }
}

/// Which process has said something, and what.
pub(crate) fn read(file: &Path) -> Option<(u32, String)> {
    let text = std::fs::read_to_string(file).ok()?;
    let (pid, words) = text.split_once('\n')?;
    Some((pid.parse().ok()?, words.trim_end().to_string()))
}

/// Hears what is logged.
pub(crate) struct Listener;

impl<S: Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut words = Words::default();
        event.record(&mut words);
        let it = event.metadata();
        if it.target() == OF_BLOCKS || *it.level() == Level::ERROR {
            note(&words.message);
        }
    }
}

#[derive(Default)]
struct Words {
    message: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{value:?}");
        } else if field.name() == "error" {
            let _ = write!(self.message, " ({value:?})");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_last_is_read_until_the_node_is_a_member() {
        let file = std::env::temp_dir().join(format!("lats-words-{}", std::process::id()));
        note("nobody wants to know");
        assert_eq!(read(&file), None);
        begin(file.clone());
        note("the disk is gone");
        note("the port is in use");
        assert_eq!(read(&file), Some((std::process::id(), "the port is in use".to_string())));
        end();
        assert!(!file.exists());
        note("later");
        assert!(!file.exists());
    }
}
