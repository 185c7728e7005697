//! Order without long pauses: rows are sorted in short runs as they come, and the runs are merged as rows are taken.

use alloc::{collections::VecDeque, vec::Vec};
use core::cmp::Ordering;

/// Rows that are sorted at once.
const RUN_ROWS: usize = 512;

/// A heap whose order is given with each call; the first by that order is at its top.
#[derive(Debug)]
pub(super) struct Heap<T>(Vec<T>);

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Heap<T> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn top(&self) -> Option<&T> {
        self.0.first()
    }

    pub(super) fn push(&mut self, item: T, order: &impl Fn(&T, &T) -> Ordering) {
        self.0.push(item);
        let mut at = self.0.len() - 1;
        while at > 0 {
            let above = (at - 1) / 2;
            if order(&self.0[at], &self.0[above]).is_ge() {
                break;
            }
            self.0.swap(at, above);
            at = above;
        }
    }

    pub(super) fn pop(&mut self, order: &impl Fn(&T, &T) -> Ordering) -> Option<T> {
        let last = self.0.len().checked_sub(1)?;
        self.0.swap(0, last);
        let item = self.0.pop();
        self.sink(order);
        item
    }

    /// Puts the top where it belongs, after it has changed.
    fn sink(&mut self, order: &impl Fn(&T, &T) -> Ordering) {
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut least = at;
            for below in [left, right] {
                if below < self.0.len() && order(&self.0[below], &self.0[least]).is_lt() {
                    least = below;
                }
            }
            if least == at {
                return;
            }
            self.0.swap(at, least);
            at = least;
        }
    }
}

/// Sorts what it is given; equal items keep their order.
#[derive(Debug)]
pub struct Sorter<T> {
    /// Sorted runs, in the order in which their rows came.
    runs: Vec<VecDeque<T>>,
    open: Vec<T>,
    /// The runs that have rows left, by their first ones; none before the first row was taken.
    heads: Option<Heap<usize>>,
}

impl<T> Default for Sorter<T> {
    fn default() -> Self {
        Self { runs: Vec::new(), open: Vec::new(), heads: None }
    }
}

impl<T> Sorter<T> {
    /// Takes an item; all calls must give the same order.
    pub fn push(&mut self, item: T, order: &impl Fn(&T, &T) -> Ordering) {
        self.open.push(item);
        if self.open.len() >= RUN_ROWS {
            self.end_run(order);
        }
    }

    fn end_run(&mut self, order: &impl Fn(&T, &T) -> Ordering) {
        let mut run = core::mem::take(&mut self.open);
        run.sort_by(order);
        self.runs.push(run.into());
    }

    /// How many comparisons the next item needs, about.
    pub(super) fn steps(&self) -> usize {
        (usize::BITS - self.runs.len().leading_zeros()) as usize
    }

    /// The next item, when all were given.
    pub fn pop(&mut self, order: &impl Fn(&T, &T) -> Ordering) -> Option<T> {
        if !self.open.is_empty() {
            self.end_run(order);
        }
        let runs = &mut self.runs;
        let heads = self.heads.get_or_insert_with(|| {
            let mut heads = Heap::default();
            (0..runs.len()).for_each(|run| heads.push(run, &|a, b| compare(runs, *a, *b, order)));
            heads
        });
        let run = heads.pop(&|a, b| compare(runs, *a, *b, order))?;
        let item = runs[run].pop_front();
        if !runs[run].is_empty() {
            heads.push(run, &|a, b| compare(runs, *a, *b, order));
        }
        item
    }
}

/// Which run's first row comes first; of equal rows those of the earlier run.
fn compare<T>(
    runs: &[VecDeque<T>],
    a: usize,
    b: usize,
    order: &impl Fn(&T, &T) -> Ordering,
) -> Ordering {
    match (runs[a].front(), runs[b].front()) {
        (Some(x), Some(y)) => order(x, y).then(a.cmp(&b)),
        (x, y) => x.is_none().cmp(&y.is_none()),
    }
}

/// The first items by an order, as many as are wanted.
#[derive(Debug)]
pub struct Top<T> {
    /// The last of them is at the top; items with the number in which they came.
    kept: Heap<(u64, T)>,
    count: u64,
    /// The items in order, the next one last, as far as they were taken out.
    sorted: Vec<T>,
}

impl<T> Default for Top<T> {
    fn default() -> Self {
        Self { kept: Heap::default(), count: 0, sorted: Vec::new() }
    }
}

impl<T> Top<T> {
    /// Adds an item; gives back the one that is not wanted then.
    pub fn push(
        &mut self,
        item: T,
        wanted: usize,
        order: &impl Fn(&T, &T) -> Ordering,
    ) -> Option<T> {
        let number = self.count;
        self.count += 1;
        if self.kept.len() >= wanted {
            // Of equal items the later ones go.
            let stays = self.kept.top().is_none_or(|(_, last)| order(&item, last).is_ge());
            if stays {
                return Some(item);
            }
        }
        self.kept.push((number, item), &|a, b| last_first(a, b, order));
        (self.kept.len() > wanted)
            .then(|| self.kept.pop(&|a, b| last_first(a, b, order)).map(|(_, item)| item))
            .flatten()
    }

    /// Takes the last item to its place; false if all are in order.
    pub fn sort_one(&mut self, order: &impl Fn(&T, &T) -> Ordering) -> bool {
        let Some((_, item)) = self.kept.pop(&|a, b| last_first(a, b, order)) else { return false };
        self.sorted.push(item);
        true
    }

    /// The next item, when all are in order.
    pub fn pop(&mut self) -> Option<T> {
        self.sorted.pop()
    }

    /// How many comparisons an item needs, about.
    pub(super) fn steps(&self) -> usize {
        (usize::BITS - self.kept.len().leading_zeros()) as usize
    }
}

fn last_first<T>(a: &(u64, T), b: &(u64, T), order: &impl Fn(&T, &T) -> Ordering) -> Ordering {
    order(&b.1, &a.1).then(b.0.cmp(&a.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in no order, many of them equal, each with its place.
    fn numbers(count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58, at)).collect()
    }

    fn by_first(a: &(u64, u64), b: &(u64, u64)) -> Ordering {
        a.0.cmp(&b.0)
    }

    #[test]
    fn runs_are_merged_in_order_and_equal_items_keep_theirs() {
        for count in [0, 1, 511, 512, 513, 5_000] {
            let mut sorter = Sorter::default();
            numbers(count).into_iter().for_each(|item| sorter.push(item, &by_first));
            let found: Vec<_> = core::iter::from_fn(|| sorter.pop(&by_first)).collect();
            let mut wanted = numbers(count);
            wanted.sort_by(by_first);
            assert_eq!(found, wanted, "{count}");
        }
    }

    #[test]
    fn the_first_items_are_those_of_a_whole_sort() {
        for wanted in [0, 1, 7, 100, 1_000, 2_000] {
            let mut top = Top::default();
            let mut gone = 0;
            for item in numbers(1_000) {
                gone += usize::from(top.push(item, wanted, &by_first).is_some());
            }
            while top.sort_one(&by_first) {}
            let found: Vec<_> = core::iter::from_fn(|| top.pop()).collect();
            let mut all = numbers(1_000);
            all.sort_by(by_first);
            all.truncate(wanted);
            assert_eq!(found, all, "{wanted}");
            assert_eq!(gone, 1_000 - all.len());
        }
    }
}
