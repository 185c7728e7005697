//! Memory ahead of need. The kernel clears a page when it is touched for the first time, and a huge one takes
//! long enough for every client of the cluster to notice, most of all when a node has just started. So what has been
//! freed is kept, and a thread of its own touches what the allocator is going to give next.

use lats_base::Instant;
use lats_runtime::{MemoryUse, clock};
use std::{
    os::unix::process::CommandExt,
    process::Command,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

/// How much is kept ready.
const AHEAD_BYTES: usize = 32 << 20;
/// The smallest page there is.
const PAGE_BYTES: usize = 4 << 10;
/// How often the thread looks whether some of it was used, and how soon again if it was: a node that is being filled uses much.
const LOOKS_EVERY: Duration = Duration::from_millis(50);
const LOOKS_AGAIN: Duration = Duration::from_millis(2);
/// After how long the allocator gives back by itself what was freed, in ms: never, for our purposes, but it notes what can be
/// given back. It reads this when a process starts.
pub(crate) const PURGE_DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "100000000");
/// So much may be resident beyond what is in use; when it was more for so long, it is given back: what a burst has freed is
/// used again by the next one until then.
const SPARE_BYTES: usize = 192 << 20;
const SPARE_FOR: lats_base::Duration = lats_base::Duration::from_millis(10_000);
/// It is given back sooner, but not again and again, when the process has more than it may have and so much of it is not in use;
/// code, stacks and what is kept ready are always there.
const URGENT_BYTES: usize = 112 << 20;
const NEAR_BYTES: usize = 64 << 20;
const URGENT_AGAIN: lats_base::Duration = lats_base::Duration::from_millis(1_000);
/// How often it is looked at.
const LOOKS_AT_SPARE: lats_base::Duration = lats_base::Duration::from_millis(250);

/// Of a node's memory, what rows and their indexes may take: statements and clients always have a part.
pub(crate) fn for_rows(bytes: usize) -> usize {
    bytes - (bytes / 8).max(BESIDE_ROWS_BYTES.min(bytes / 2))
}

/// What the whole process may take: a small node that is full of rows still needs its buffers, its catalog, and the statement that
/// deletes some.
pub(crate) fn for_all(bytes: usize) -> usize {
    bytes.max(for_rows(bytes) + BESIDE_ROWS_BYTES)
}

const BESIDE_ROWS_BYTES: usize = 96 << 20;

/// What people see of a node that may have so many bytes.
pub(crate) fn figures(bytes: usize) -> Vec<MemoryUse> {
    let named = |name: &str, limit_bytes: usize| MemoryUse {
        name: name.to_string(),
        limit_bytes: limit_bytes as u64,
        ..MemoryUse::default()
    };
    let (now, most) = (lats_alloc::in_use() as u64, lats_alloc::most() as u64);
    let all = MemoryUse { bytes: now, most_bytes: most, ..named("all", for_all(bytes)) };
    // The runtime knows what there is of them.
    vec![all, named(MemoryUse::ROWS, for_rows(bytes))]
}

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

/// Keeps memory ready from now on, of a node that may have so many bytes; some is when this returns.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread of the process, not of the node; it waits for nothing but time"
)]
pub(crate) fn keep_ahead(memory_bytes: usize) -> std::io::Result<()> {
    NODE_BYTES.store(memory_bytes, Ordering::Relaxed);
    let (mut at, mut touched) = touch(0);
    let mut spare = Spare::new(memory_bytes);
    std::thread::Builder::new().name("lats-memory".to_string()).spawn(move || {
        loop {
            std::thread::sleep(if touched > 0 { LOOKS_AGAIN } else { LOOKS_EVERY });
            (at, touched) = touch(at);
            if clock::now().since(spare.looked) >= LOOKS_AT_SPARE {
                spare.looked = clock::now();
                if spare.is_due(resident_bytes(), lats_alloc::in_use(), spare.looked) {
                    lats_alloc::give_back();
                }
            }
        }
    })?;
    Ok(())
}

/// What the node may have; nothing until it is known.
static NODE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// What was resident when it was looked at last.
static RESIDENT: AtomicUsize = AtomicUsize::new(0);
/// When it is looked at again, and when freed memory is given back again, in ns: both take time.
static LOOKS_AGAIN_AT: AtomicU64 = AtomicU64::new(0);
static GIVES_BACK_AT: AtomicU64 = AtomicU64::new(0);
const LOOKS_AT_ROOM: lats_base::Duration = lats_base::Duration::from_millis(10);
const ROOM_AGAIN: lats_base::Duration = lats_base::Duration::from_millis(1_000);
/// So much may be resident beyond what the node may have, before large needs are refused.
const BEYOND_BYTES: usize = 224 << 20;

/// So many bytes are about to be taken; false if they are too many for what is resident. Freed memory that is of no use for them goes
/// back to the system first, if the process would come near to more than it may have: pages of many sizes are free then, and none
/// is large enough.
pub(crate) fn make_room(bytes: usize) -> bool {
    let max = NODE_BYTES.load(Ordering::Relaxed);
    if max == 0 {
        return true;
    }
    let (now, look) = (clock::now().as_nanos(), || {
        RESIDENT.store(resident_bytes(), Ordering::Relaxed);
    });
    if now >= LOOKS_AGAIN_AT.load(Ordering::Relaxed) {
        LOOKS_AGAIN_AT.store(now + LOOKS_AT_ROOM.as_nanos(), Ordering::Relaxed);
        look();
    }
    let resident = RESIDENT.load(Ordering::Relaxed);
    let spare = resident.saturating_sub(lats_alloc::in_use());
    let is_near = resident.saturating_add(bytes) > max.saturating_add(NEAR_BYTES);
    if is_near && spare > URGENT_BYTES && now >= GIVES_BACK_AT.load(Ordering::Relaxed) {
        GIVES_BACK_AT.store(now + ROOM_AGAIN.as_nanos(), Ordering::Relaxed);
        lats_alloc::give_back();
        look();
    }
    let resident = RESIDENT.load(Ordering::Relaxed);
    resident.saturating_add(bytes) <= max.saturating_add(BEYOND_BYTES)
}

/// Memory that is resident and not in use.
struct Spare {
    memory_bytes: usize,
    looked: Instant,
    /// Since when there is much of it.
    since: Option<Instant>,
    given_back: Option<Instant>,
}

impl Spare {
    fn new(memory_bytes: usize) -> Self {
        Self { memory_bytes, looked: clock::now(), since: None, given_back: None }
    }

    /// True if it is time to give it back.
    fn is_due(&mut self, resident: usize, in_use: usize, now: Instant) -> bool {
        let spare = resident.saturating_sub(in_use);
        if spare <= SPARE_BYTES {
            self.since = None;
        }
        let since = match spare > SPARE_BYTES {
            true => Some(*self.since.get_or_insert(now)),
            false => None,
        };
        let is_again = self.given_back.is_some_and(|at| now.since(at) < URGENT_AGAIN);
        let is_near = resident > self.memory_bytes.saturating_add(NEAR_BYTES);
        let is_urgent = spare > URGENT_BYTES && is_near && !is_again;
        let is_old = since.is_some_and(|since| now.since(since) >= SPARE_FOR);
        if is_old {
            self.since = Some(now);
        }
        if is_urgent || is_old {
            self.given_back = Some(now);
        }
        is_urgent || is_old
    }
}

/// What of the process is in memory, as the system counts it: nothing if it does not say.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
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
    fn much_spare_memory_is_given_back_after_a_while_and_at_once_when_it_is_urgent() {
        const MIB: usize = 1 << 20;
        let mut spare = Spare::new(1_024 * MIB);
        let start = clock::now();
        let at = |seconds: u64| start.plus(lats_base::Duration::from_millis(seconds * 1_000));
        assert!(!spare.is_due(400 * MIB, 300 * MIB, start));
        assert!(!spare.is_due(900 * MIB, 300 * MIB, start));
        assert!(!spare.is_due(900 * MIB, 800 * MIB, at(5)), "it is used again");
        assert!(!spare.is_due(900 * MIB, 300 * MIB, at(6)));
        assert!(!spare.is_due(900 * MIB, 300 * MIB, at(15)));
        assert!(spare.is_due(900 * MIB, 300 * MIB, at(16)));
        assert!(!spare.is_due(900 * MIB, 300 * MIB, at(17)), "not again and again");
        assert!(spare.is_due(1_150 * MIB, 1_000 * MIB, at(18)));
        assert!(!spare.is_due(1_150 * MIB, 1_000 * MIB, at(18)), "not at once again");
        assert!(!spare.is_due(1_150 * MIB, 1_120 * MIB, at(20)), "nothing to give");
        assert!(spare.is_due(1_150 * MIB, 1_000 * MIB, at(21)));
        assert!(resident_bytes() > MIB);
    }

    #[test]
    fn small_nodes_have_room_beside_their_rows() {
        const MIB: usize = 1 << 20;
        for (mib, rows, all) in
            [(64, 32, 128), (128, 64, 160), (192, 96, 192), (256, 160, 256), (1_024, 896, 1_024)]
        {
            assert_eq!(for_rows(mib * MIB), rows * MIB, "{mib}");
            assert_eq!(for_all(mib * MIB), all * MIB, "{mib}");
        }
    }

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
