//! The allocator of our programs: mimalloc, asked for aligned memory only where its usual memory is not aligned enough.
//!
//! The functions of mimalloc for aligned memory cost about twice as many instructions as its usual ones, and take more
//! memory for many sizes. The `mimalloc` crate calls them for each allocation.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};

/// mimalloc's usual memory is aligned to as many bytes (`MI_MAX_ALIGN_SIZE`), if it is not smaller than they are.
const USUAL_ALIGNMENT: usize = 16;

/// The allocator, to be named as `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

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
    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: the caller has it from this allocator, and does not use it any more.
        unsafe { mi_free(memory.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let alignment = layout.align();
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

    /// Memory of every small size and alignment, and some large ones, is aligned before and after it grows, and keeps what is
    /// in it.
    #[test]
    fn memory_is_aligned_and_keeps_its_bytes() {
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
