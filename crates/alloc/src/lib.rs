//! The allocator of our programs: mimalloc, asked for aligned memory only where its usual memory is not aligned enough.
//!
//! The functions of mimalloc for aligned memory cost about twice as many instructions as its usual ones, and take more
//! memory for many sizes. The `mimalloc` crate calls them for each allocation.
//!
//! The allocator counts the bytes that the program asks for and has not given back: exactly for each thread, and for the
//! process but for what threads have not reported yet. What is counted so cannot be forgotten by whoever writes new code.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicIsize, Ordering};
use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use std::cell::Cell;

/// mimalloc's usual memory is aligned to as many bytes (`MI_MAX_ALIGN_SIZE`), if it is not smaller than they are.
const USUAL_ALIGNMENT: usize = 16;

/// The allocator, to be named as `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

unsafe extern "C" {
    /// Frees what can be; if it is forced, memory goes back to the system before its time has come.
    fn mi_collect(force: bool);
}

/// A thread reports to the process when its count has changed by so much: threads seldom meet, and the process knows
/// what it has but for a few times this much for each thread.
const REPORTED_BYTES: isize = 64 << 10;

/// What threads have reported.
static IN_USE: AtomicIsize = AtomicIsize::new(0);
/// The most that it was.
static MOST: AtomicIsize = AtomicIsize::new(0);

/// What a thread has taken and not given back; memory that another thread gives back makes it less than nothing there.
struct Count {
    reported: Cell<isize>,
    since: Cell<isize>,
    /// What may be taken, and given back, before both are added up: to count down to nothing takes the fewest instructions.
    until_taken: Cell<isize>,
    until_freed: Cell<isize>,
}

impl Count {
    /// What was taken and given back since both were added up.
    fn rest(&self) -> isize {
        self.until_freed.get().wrapping_sub(self.until_taken.get())
    }

    #[cold]
    #[inline(never)]
    fn add_up(&self) {
        let since = self.since.get().wrapping_add(self.rest());
        self.since.set(since);
        self.until_taken.set(REPORTED_BYTES);
        self.until_freed.set(REPORTED_BYTES);
        if since.unsigned_abs() > REPORTED_BYTES.unsigned_abs() {
            self.report();
        }
    }

    fn report(&self) {
        let since = self.since.replace(0);
        self.reported.set(self.reported.get().wrapping_add(since));
        let before = IN_USE.fetch_add(since, Ordering::Relaxed);
        if since > 0 {
            MOST.fetch_max(before.wrapping_add(since), Ordering::Relaxed);
        }
    }
}

thread_local! {
    static COUNT: Count = const {
        Count {
            reported: Cell::new(0),
            since: Cell::new(0),
            until_taken: Cell::new(REPORTED_BYTES),
            until_freed: Cell::new(REPORTED_BYTES),
        }
    };
}

#[inline]
fn count(bytes: isize) {
    COUNT.with(|count| {
        let left = count.until_taken.get().wrapping_sub(bytes);
        count.until_taken.set(left);
        if left < 0 {
            count.add_up();
        }
    });
}

#[inline]
fn count_freed(bytes: isize) {
    COUNT.with(|count| {
        let left = count.until_freed.get().wrapping_sub(bytes);
        count.until_freed.set(left);
        if left < 0 {
            count.add_up();
        }
    });
}

/// Bytes that the process has asked for and not given back, as its threads have reported them.
#[must_use]
pub fn in_use() -> usize {
    usize::try_from(IN_USE.load(Ordering::Relaxed)).unwrap_or(0)
}

/// The most bytes that the process has ever had.
#[must_use]
pub fn most() -> usize {
    usize::try_from(MOST.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Bytes that this thread has asked for, less those that it has given back. Differences say what work has kept.
#[must_use]
pub fn of_thread() -> i64 {
    COUNT.with(|count| {
        let reported = count.reported.get().wrapping_add(count.since.get());
        reported.wrapping_add(count.rest()) as i64
    })
}

/// Reports what this thread has not reported yet: what it takes to its end is never known.
pub fn report() {
    COUNT.with(|count| {
        count.add_up();
        count.report();
    });
}

/// Gives freed memory back to the system, as far as this thread or all threads have freed it.
pub fn give_back() {
    // SAFETY: it may be called at any time.
    unsafe { mi_collect(true) }
}

/// True if mimalloc's usual memory of this size is aligned as it must be.
const fn is_usual(size: usize, alignment: usize) -> bool {
    alignment <= USUAL_ALIGNMENT && alignment <= size
}

// SAFETY: mimalloc's functions keep what `GlobalAlloc` promises: memory of at least the size that is asked for, aligned as
// asked for (`is_usual`), or null; `mi_free` and the functions for new sizes take the memory of all of them.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        count(size.cast_signed());
        // SAFETY: any size and any power of two as alignment are allowed.
        let memory = unsafe {
            if is_usual(size, alignment) {
                mi_malloc(size)
            } else {
                mi_malloc_aligned(size, alignment)
            }
        };
        memory.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, alignment) = (layout.size(), layout.align());
        count(size.cast_signed());
        // SAFETY: any size and any power of two as alignment are allowed.
        let memory = unsafe {
            if is_usual(size, alignment) {
                mi_zalloc(size)
            } else {
                mi_zalloc_aligned(size, alignment)
            }
        };
        memory.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count_freed(layout.size().cast_signed());
        // SAFETY: the caller has it from this allocator, and does not use it any more.
        unsafe { mi_free(memory.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let alignment = layout.align();
        match size.cast_signed() - layout.size().cast_signed() {
            more @ 0.. => count(more),
            less => count_freed(-less),
        }
        // SAFETY: the caller has it from this allocator, and uses only what it gets back.
        let memory = unsafe {
            if is_usual(size, alignment) {
                mi_realloc(memory.cast(), size)
            } else {
                mi_realloc_aligned(memory.cast(), size, alignment)
            }
        };
        memory.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// All tests take megabytes, and one of them looks at what the whole process has.
    static ALONE: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of every small size and alignment, and some large ones, is aligned before and after it grows, and keeps what is
    /// in it.
    #[test]
    fn memory_is_aligned_and_keeps_its_bytes() {
        let _alone = alone();
        let sizes = (1..300).chain([1_000, 4_096, 70_000, 3 << 20]);
        for size in sizes {
            for alignment in [1, 2, 4, 8, 16, 32, 64, 4_096] {
                let layout = Layout::from_size_align(size, alignment).unwrap();
                for larger in [size + 1, size * 3, size.div_ceil(2)] {
                    check(layout, larger);
                }
            }
        }
    }

    /// Threads count what they take and give back, and report it to the process.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "counts of threads are what is tested")]
    fn what_is_taken_and_given_back_is_counted() {
        const BYTES: i64 = 8 << 20;
        let _alone = alone();
        let taken = std::thread::spawn(|| {
            let before = (of_thread(), in_use());
            let layout = Layout::from_size_align(BYTES as usize / 2, 8).unwrap();
            // SAFETY: the size is not 0; it is freed once, with the layout that it has then.
            unsafe {
                let memory = Allocator.alloc(layout);
                let memory = Allocator.realloc(memory, layout, BYTES as usize);
                assert_eq!(of_thread() - before.0, BYTES);
                // Nothing else takes megabytes meanwhile.
                assert!(in_use() + (1 << 20) >= before.1 + BYTES as usize);
                memory.expose_provenance()
            }
        });
        let memory = core::ptr::with_exposed_provenance_mut(taken.join().unwrap());
        let before = of_thread();
        let layout = Layout::from_size_align(BYTES as usize, 8).unwrap();
        // SAFETY: the other thread has left it to this one.
        unsafe { Allocator.dealloc(memory, layout) };
        assert_eq!(of_thread() - before, -BYTES);
        report();
        assert!(in_use() < BYTES as usize / 2 && most() >= BYTES as usize);
        give_back();
    }

    fn check(layout: Layout, new_size: usize) {
        let alignment = layout.align();
        let kept = layout.size().min(new_size);
        // SAFETY: sizes are not 0; bytes are written and read within them; all is freed once with its layout.
        unsafe {
            let zeroed = Allocator.alloc_zeroed(layout);
            assert!(!zeroed.is_null() && zeroed.addr().is_multiple_of(alignment));
            assert!((0..layout.size()).all(|at| *zeroed.add(at) == 0));
            let memory = Allocator.alloc(layout);
            assert!(!memory.is_null() && memory.addr().is_multiple_of(alignment));
            (0..layout.size()).for_each(|at| *memory.add(at) = at as u8);
            let memory = Allocator.realloc(memory, layout, new_size);
            assert!(!memory.is_null() && memory.addr().is_multiple_of(alignment));
            assert!((0..kept).all(|at| *memory.add(at) == at as u8));
            Allocator.dealloc(memory, Layout::from_size_align(new_size, alignment).unwrap());
            Allocator.dealloc(zeroed, layout);
        }
    }
}
