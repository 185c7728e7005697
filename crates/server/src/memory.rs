//! Memory ahead of need. The kernel clears a page when it is touched for the first time, and a huge one takes
//! long enough for every client of the cluster to notice, most of all when a node has just started. So what has been
//! freed is kept, and a thread of its own touches what the allocator is going to give next.

use std::{os::unix::process::CommandExt, process::Command, time::Duration};

/// How much is kept ready.
const AHEAD_BYTES: usize = 32 << 20;
/// The smallest page there is.
const PAGE_BYTES: usize = 4 << 10;
/// How often the thread looks whether some of it was used, and how soon again if it was: a node that is being filled uses much.
const LOOKS_EVERY: Duration = Duration::from_millis(50);
const LOOKS_AGAIN: Duration = Duration::from_millis(2);
/// After how long the allocator gives back what was freed, in ms. It reads this when a process starts.
pub(crate) const PURGE_DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "-1");

/// Lets the program begin again, in the same process, with an allocator that keeps what was freed and memory that is
/// spread over the machine. Who starts nodes by program gives them the variables and spares them that.
pub(crate) fn prepare() {
    if [PURGE_DELAY.0, crate::numa::IS_PLACED].iter().all(|name| std::env::var_os(name).is_some()) {
        return;
    }
    let arguments = std::env::args_os().skip(1);
    let again = |mut program: Command| program.args(arguments).envs([PURGE_DELAY]).exec();
    let error = crate::numa::this_program().map_or_else(|error| error, again);
    tracing::warn!(
        %error,
        "freed memory will be given back, and be slow to get again; start the node with {}={} in its environment",
        PURGE_DELAY.0,
        PURGE_DELAY.1
    );
}

/// Keeps memory ready from now on; some is when this returns.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread of the process, not of the node; it waits for nothing but time"
)]
pub(crate) fn keep_ahead() -> std::io::Result<()> {
    let (mut at, mut touched) = touch(0);
    std::thread::Builder::new().name("lats-memory".to_string()).spawn(move || {
        loop {
            std::thread::sleep(if touched > 0 { LOOKS_AGAIN } else { LOOKS_EVERY });
            (at, touched) = touch(at);
        }
    })?;
    Ok(())
}

/// Touches what the allocator gives next, but for what was made ready `before`: of that as much is left as nobody has used. Where
/// it is, and how many pages were touched.
fn touch(before: usize) -> (usize, usize) {
    let mut block: Vec<u8> = Vec::with_capacity(AHEAD_BYTES);
    let at = block.as_ptr() as usize;
    let mut touched = 0;
    if at != before {
        let ready = before..before.saturating_add(AHEAD_BYTES);
        let pages = block.spare_capacity_mut().iter_mut().step_by(PAGE_BYTES);
        for (number, byte) in pages.enumerate() {
            if !ready.contains(&(at + number * PAGE_BYTES)) {
                byte.write(0);
                touched += 1;
            }
        }
        std::hint::black_box(&block);
    }
    (at, touched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_used_is_not_touched_again() {
        const PAGES: usize = AHEAD_BYTES / PAGE_BYTES;
        let (first, touched) = touch(0);
        assert_eq!(touched, PAGES);
        assert_eq!(touch(first), (first, 0));
        let used = vec![1_u8; AHEAD_BYTES];
        assert_eq!(used.as_ptr() as usize, first, "the allocator gives what was made ready");
        let (next, touched) = touch(first);
        assert!(touched > 0 && next != first);
        // What overlaps with what was made ready is so still.
        let between = first + AHEAD_BYTES / 4;
        let (again, touched) = touch(between);
        assert_eq!(again, next);
        let ready = next.abs_diff(between).min(AHEAD_BYTES);
        assert_eq!(touched, ready.div_ceil(PAGE_BYTES).min(PAGES));
    }
}
