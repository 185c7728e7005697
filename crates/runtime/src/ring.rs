//! Bounded single-producer, single-consumer rings of bytes that carry whole signals.
//!
//! The producer writes behind `tail` and publishes by moving it; the consumer reads up to `tail`
//! and gives space back by moving `head`. Both only grow; positions are taken modulo the capacity.
//! [`Producer::push`] publishes a signal whole or not at all; [`Producer::push_some`] publishes as much as there is room
//! for, so that a small ring carries large signals in parts.
//! Checked with loom: `cargo test -p lats-runtime --features loom ring` (see docs/testing.md).
#![allow(unsafe_code, reason = "the memory between the two ends is shared without a lock")]

#[cfg(feature = "loom")]
use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
#[cfg(not(feature = "loom"))]
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[cfg(not(feature = "loom"))]
use std::cell::UnsafeCell;

/// Eight bytes: signals are multiples of it.
type Word = u64;
const WORD: usize = 8;

struct Shared {
    words: Box<[UnsafeCell<Word>]>,
    head: AtomicUsize,
    tail: AtomicUsize,
}

// SAFETY: a word is written by the producer only while it is outside `head..tail`, and read by the
// consumer only while it is inside; the release stores and acquire loads of the two positions order
// these accesses. There is one producer and one consumer: neither end can be cloned.
unsafe impl Sync for Shared {}
// SAFETY: as above; the words themselves are plain data.
unsafe impl Send for Shared {}

/// The writing end.
pub struct Producer {
    shared: Arc<Shared>,
}

/// The reading end.
pub struct Consumer {
    shared: Arc<Shared>,
}

/// A ring of so many bytes: 8 times a power of two.
pub fn ring(capacity_bytes: usize) -> (Producer, Consumer) {
    lats_base::require!((capacity_bytes / WORD).is_power_of_two(), "positions are masked");
    let words = (0..capacity_bytes / WORD).map(|_| UnsafeCell::new(0)).collect();
    let shared = Arc::new(Shared { words, head: AtomicUsize::new(0), tail: AtomicUsize::new(0) });
    (Producer { shared: shared.clone() }, Consumer { shared })
}

impl Shared {
    /// The first words from a position on that lie side by side, `count` at most.
    fn run(&self, position: usize, count: usize) -> &[UnsafeCell<Word>] {
        let first = position & (self.words.len() - 1);
        &self.words[first..self.words.len().min(first + count)]
    }
}

/// Writes these bytes (eight for each word).
///
/// # Safety
/// Nobody else touches these words meanwhile.
#[cfg(not(feature = "loom"))]
unsafe fn write(words: &[UnsafeCell<Word>], bytes: &[u8]) {
    lats_base::require!(bytes.len() == words.len() * WORD, "as many words as bytes");
    let to = words.as_ptr().cast::<u8>().cast_mut();
    // SAFETY: these are so many bytes, inside cells, and the caller says that nobody else touches them; `bytes` is not among them,
    // for nobody has a reference into a cell.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
}

/// Appends what these words hold.
///
/// # Safety
/// Nobody writes these words meanwhile.
#[cfg(not(feature = "loom"))]
unsafe fn read(words: &[UnsafeCell<Word>], out: &mut Vec<u8>) {
    // SAFETY: these are so many bytes, which were written before, and the caller says that nobody writes them now.
    out.extend_from_slice(unsafe {
        std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * WORD)
    });
}

/// As above, word by word: loom looks at each of them.
#[cfg(feature = "loom")]
unsafe fn write(words: &[UnsafeCell<Word>], bytes: &[u8]) {
    for (cell, chunk) in words.iter().zip(bytes.chunks_exact(WORD)) {
        let mut word = [0; WORD];
        word.copy_from_slice(chunk);
        // SAFETY: as the caller says.
        cell.with_mut(|p| unsafe { *p = Word::from_ne_bytes(word) });
    }
}

/// As above, word by word: loom looks at each of them.
#[cfg(feature = "loom")]
unsafe fn read(words: &[UnsafeCell<Word>], out: &mut Vec<u8>) {
    for cell in words {
        // SAFETY: as the caller says.
        let word = cell.with(|p| unsafe { *p });
        out.extend_from_slice(&word.to_ne_bytes());
    }
}

impl Producer {
    /// Publishes a whole signal (a multiple of 8 bytes); false if there is no room for it now.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        bytes.len() / WORD <= self.room() && self.push_some(bytes) == bytes.len()
    }

    /// Publishes the first bytes (a multiple of 8), as many as there is room for; gives how many.
    pub fn push_some(&mut self, bytes: &[u8]) -> usize {
        let shared = &*self.shared;
        let tail = shared.tail.load(Ordering::Relaxed);
        let count = (bytes.len() / WORD).min(self.room());
        let mut done = 0;
        while done < count {
            let words = shared.run(tail + done, count - done);
            let end = done + words.len();
            // SAFETY: the words are outside head..tail, so only the producer touches them.
            unsafe { write(words, &bytes[done * WORD..end * WORD]) };
            done = end;
        }
        shared.tail.store(tail + count, Ordering::Release);
        count * WORD
    }

    /// Words that there is room for.
    fn room(&self) -> usize {
        let tail = self.shared.tail.load(Ordering::Relaxed);
        let head = self.shared.head.load(Ordering::Acquire);
        self.shared.words.len() - (tail - head)
    }
}

impl Consumer {
    /// Appends everything that was published to `out`; true if there was anything.
    pub fn pop_all(&mut self, out: &mut Vec<u8>) -> bool {
        let shared = &*self.shared;
        let head = shared.head.load(Ordering::Relaxed);
        let tail = shared.tail.load(Ordering::Acquire);
        out.reserve((tail - head) * WORD);
        let mut at = head;
        while at < tail {
            let words = shared.run(at, tail - at);
            // SAFETY: the words are inside head..tail, so the producer does not touch them.
            unsafe { read(words, out) };
            at += words.len();
        }
        shared.head.store(tail, Ordering::Release);
        tail > head
    }

    /// True if something was published.
    pub fn is_ready(&self) -> bool {
        self.shared.head.load(Ordering::Relaxed) != self.shared.tail.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
