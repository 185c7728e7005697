//! The entries of an ordered index: short sorted runs, in nodes of some runs each: a B+-tree of always three levels (R. Bayer, E. McCreight:
//! "Organization and Maintenance of Large Ordered Indices", 1972; D. Comer: "The Ubiquitous B-Tree", 1979). The root is an array: it has one place for
//! some thousand entries. Neighbours share cache lines, and entries that come in their order, as those of a log and of counted keys
//! do, are put behind the last one without a search.

use crate::key::Key;
use alloc::{vec, vec::Vec};
use lats_base::RowId;

/// An entry's key, and its row.
pub(crate) type Entry = (Key, RowId);

/// Row ids by entries' keys.
pub(crate) struct Ordered {
    /// There is one at least; the first one begins with the smallest key there is.
    nodes: Vec<Node>,
    len: usize,
}

/// Runs that follow each other: one at least.
struct Node {
    /// What its first run begins with.
    begin: Key,
    runs: Vec<Run>,
}

/// Entries in their order; none only in the very first run.
struct Run {
    /// Not larger than any of its entries, and larger than all of the run before.
    begin: Key,
    entries: Vec<Entry>,
}

/// Where a run is: the node, and the place there.
type At = (usize, usize);

/// A run of so many entries takes 2 kB.
const RUN_MAX: usize = 64;
const NODE_MAX: usize = 128;
/// What has become shorter than a quarter is put to what is before it, if both are not much more than half of one then.
const RUN_MIN: usize = RUN_MAX / 4;
const NODE_MIN: usize = NODE_MAX / 4;
/// One that was longer gives back half of its memory then.
const SHRINKS_AT: usize = RUN_MAX * 3 / 8;
const MERGED_RUN_MAX: usize = RUN_MAX * 5 / 8;
const MERGED_NODE_MAX: usize = NODE_MAX * 5 / 8;

impl Default for Ordered {
    fn default() -> Self {
        let begin = Key::new(&[]);
        let run = Run { begin: begin.clone(), entries: Vec::new() };
        Self { nodes: vec![Node { begin, runs: vec![run] }], len: 0 }
    }
}

impl Ordered {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The run that has a key, if any has: the last one that does not begin behind it.
    fn find(&self, is_not_behind: impl Fn(&Key) -> bool) -> At {
        let nodes = self.nodes.partition_point(|node| is_not_behind(&node.begin));
        let node = nodes.saturating_sub(1);
        let runs = self.nodes.get(node).map_or(&[][..], |node| &node.runs);
        (node, runs.partition_point(|run| is_not_behind(&run.begin)).saturating_sub(1))
    }

    /// Enters a key; false if it is there already, and leads to this row now.
    pub(crate) fn insert(&mut self, key: Key, id: RowId) -> bool {
        let last = self.nodes.last().and_then(|node| node.runs.last()?.entries.last());
        if last.is_some_and(|(last, _)| *last < key) {
            self.append(key, id);
            return true;
        }
        let mut at = self.find(|begin| *begin <= key);
        if self.nodes[at.0].runs[at.1].entries.len() >= RUN_MAX {
            self.split(at);
            at = self.find(|begin| *begin <= key);
        }
        let entries = &mut self.nodes[at.0].runs[at.1].entries;
        let place = entries.partition_point(|(other, _)| *other < key);
        if let Some(same) = entries.get_mut(place).filter(|(other, _)| *other == key) {
            same.1 = id;
            return false;
        }
        entries.insert(place, (key, id));
        self.len += 1;
        true
    }

    /// Puts an entry behind all others. What is full stays so: more of the kind may follow.
    fn append(&mut self, key: Key, id: RowId) {
        self.len += 1;
        let Some(node) = self.nodes.last_mut() else { return };
        if let Some(run) = node.runs.last_mut().filter(|run| run.entries.len() < RUN_MAX) {
            return run.entries.push((key, id));
        }
        let mut entries = Vec::with_capacity(RUN_MAX);
        entries.push((key.clone(), id));
        let run = Run { begin: key.clone(), entries };
        match node.runs.len() < NODE_MAX {
            true => node.runs.push(run),
            false => self.nodes.push(Node { begin: key, runs: vec![run] }),
        }
    }

    fn split(&mut self, (at, run): At) {
        let node = &mut self.nodes[at];
        let entries = &mut node.runs[run].entries;
        let mut second = Vec::with_capacity(RUN_MAX);
        second.extend(entries.drain(entries.len() / 2..));
        let begin = second[0].0.clone();
        node.runs.insert(run + 1, Run { begin, entries: second });
        if node.runs.len() > NODE_MAX {
            let runs = node.runs.split_off(NODE_MAX / 2);
            self.nodes.insert(at + 1, Node { begin: runs[0].begin.clone(), runs });
        }
    }

    /// Takes an entry out; false if it was not there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let at = self.find(|begin| **begin <= *key);
        let entries = &mut self.nodes[at.0].runs[at.1].entries;
        let place = entries.partition_point(|(other, _)| **other < *key);
        if entries.get(place).is_none_or(|(other, _)| **other != *key) {
            return false;
        }
        entries.remove(place);
        self.len -= 1;
        if entries.len() == SHRINKS_AT {
            entries.shrink_to(RUN_MAX / 2);
        } else if entries.len() < RUN_MIN {
            self.merge(at);
        }
        true
    }

    /// Puts a short run to the one before it, if it fits well, and then its node likewise.
    fn merge(&mut self, (at, run): At) {
        let Node { begin, runs } = &mut self.nodes[at];
        let short = runs[run].entries.len();
        if run > 0 && runs[run - 1].entries.len() + short <= MERGED_RUN_MAX {
            let mut rest = runs.remove(run).entries;
            runs[run - 1].entries.append(&mut rest);
        } else if short == 0 && runs.len() > 1 {
            runs.remove(run);
            // The first one begins with what its node does.
            runs[0].begin = begin.clone();
        } else if short == 0 && at > 0 {
            self.nodes.remove(at);
            return;
        }
        let count = |node: usize| self.nodes[node].runs.len();
        if at > 0 && count(at) < NODE_MIN && count(at - 1) + count(at) <= MERGED_NODE_MAX {
            let mut rest = self.nodes.remove(at).runs;
            self.nodes[at - 1].runs.append(&mut rest);
        }
    }

    /// The entries from `lower` (included) to `upper` (excluded).
    pub(crate) fn range<'r>(
        &'r self,
        lower: &'r [u8],
        upper: Option<&'r [u8]>,
    ) -> impl DoubleEndedIterator<Item = (&'r [u8], RowId)> {
        let first = self.find(|begin| **begin <= *lower);
        let last = match upper {
            Some(upper) => self.find(|begin| **begin <= *upper).max(first),
            None => (self.nodes.len() - 1, usize::MAX),
        };
        let nodes = self.nodes.iter().enumerate().take(last.0 + 1).skip(first.0);
        let runs = nodes.flat_map(move |(at, node)| {
            let begin = if at == first.0 { first.1 } else { 0 };
            let end = if at == last.0 { last.1.saturating_add(1) } else { usize::MAX };
            &node.runs[begin..end.min(node.runs.len())]
        });
        runs.flat_map(move |run| within(&run.entries, lower, upper)).map(|(key, id)| (&**key, *id))
    }

    /// Runs of neighbours from so many places at most, about equally far apart; all entries by themselves if they are not more.
    pub(crate) fn sample(&self, count: usize) -> impl Iterator<Item = &[Entry]> {
        let all = self.len <= count;
        let runs = if all { 0 } else { self.nodes.iter().map(|node| node.runs.len()).sum() };
        let places = count.min(runs);
        let place = move |at: usize| at * runs / places.max(1);
        // Where there are fewer runs than places are wanted, each is taken apart.
        let part = match count.saturating_sub(runs) {
            0 => usize::MAX,
            spare => self.len.div_ceil(spare).max(1),
        };
        let some = (0..places).filter_map(move |at| self.run(place(at)));
        let some = some.flat_map(move |run| run.chunks(part));
        let each = self.nodes.iter().take(if all { usize::MAX } else { 0 });
        let each = each.flat_map(|node| node.runs.iter().flat_map(|run| run.entries.chunks(1)));
        some.chain(each).filter(|run| !run.is_empty())
    }

    /// The run with this number.
    fn run(&self, mut number: usize) -> Option<&[Entry]> {
        for node in &self.nodes {
            match node.runs.get(number) {
                Some(run) => return Some(&run.entries),
                None => number -= node.runs.len(),
            }
        }
        None
    }

    /// Frees so many entries; true if none is left.
    pub(crate) fn clear_away(&mut self, entries: usize) -> bool {
        let mut left = entries;
        while let Some(node) = self.nodes.last_mut() {
            match node.runs.last_mut() {
                Some(run) if run.entries.len() > left => {
                    run.entries.truncate(run.entries.len() - left);
                    self.len -= left;
                    return false;
                }
                Some(run) => {
                    left -= run.entries.len();
                    self.len -= run.entries.len();
                }
                None => {}
            }
            node.runs.pop();
            if node.runs.is_empty() {
                self.nodes.pop();
            }
        }
        true
    }
}

/// The entries of a run that are in a range: all of them, mostly.
fn within<'r>(
    run: &'r [Entry],
    lower: &[u8],
    upper: Option<&[u8]>,
) -> core::slice::Iter<'r, Entry> {
    let before = |bound: &[u8]| run.partition_point(|(key, _)| **key < *bound);
    let begin = match run.first() {
        Some((first, _)) if **first < *lower => before(lower),
        _ => 0,
    };
    let end = match (run.last(), upper) {
        (Some((last, _)), Some(upper)) if **last >= *upper => before(upper),
        _ => run.len(),
    };
    run[begin..end.max(begin)].iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use core::ops::Bound::{Excluded, Included, Unbounded};
    use lats_base::prng::Prng;

    fn draw(random: &mut Prng) -> Vec<u8> {
        // Few bytes: many keys begin alike, some are empty.
        let length = random.below(4) as usize;
        (0..length).map(|_| random.below(30) as u8).collect()
    }

    fn check(ordered: &Ordered, model: &BTreeMap<Vec<u8>, RowId>, random: &mut Prng) {
        assert_eq!(ordered.len(), model.len());
        let (lower, upper) = (draw(random), random.chance(3, 4).then(|| draw(random)));
        let end = upper.as_ref().map_or(Unbounded, |u| Excluded(&**u.max(&lower)));
        let expected: Vec<(&[u8], RowId)> =
            model.range::<[u8], _>((Included(&*lower), end)).map(|(k, id)| (&**k, *id)).collect();
        let found: Vec<(&[u8], RowId)> = ordered.range(&lower, upper.as_deref()).collect();
        assert_eq!(found, expected);
        let mut back: Vec<(&[u8], RowId)> = ordered.range(&lower, upper.as_deref()).rev().collect();
        back.reverse();
        assert_eq!(back, expected);
        let runs: Vec<usize> = runs(ordered).collect();
        let filled = runs.iter().filter(|length| **length >= RUN_MIN).count();
        assert!(runs.len() <= 2 * filled + 2, "{} runs, {filled} filled", runs.len());
        let all = ordered.nodes.iter().flat_map(|node| &node.runs);
        assert!(all.clone().all(|run| run.entries.capacity() <= RUN_MAX));
        for node in &ordered.nodes {
            assert!(node.runs[0].begin == node.begin && node.runs.len() <= NODE_MAX);
        }
        let nodes = ordered.nodes.len();
        assert!(nodes <= 1 + 4 * runs.len() / NODE_MAX, "{nodes} nodes, {} runs", runs.len());
    }

    fn runs(ordered: &Ordered) -> impl Iterator<Item = usize> {
        ordered.nodes.iter().flat_map(|node| node.runs.iter().map(|run| run.entries.len()))
    }

    /// It grows and shrinks, three times.
    fn compare_with_a_map(seed: u64, steps: u64, looks_every: u64) {
        let mut random = Prng::new(seed);
        let (mut ordered, mut model) = (Ordered::default(), BTreeMap::new());
        let mut most = 0;
        for step in 0..steps {
            let grows = step % (steps / 3) < steps / 5;
            let (mut key, id) = (draw(&mut random), RowId::new(step));
            if random.chance(1, 20) != grows {
                if steps > 10_000 {
                    key.extend(random.next_u64().to_le_bytes());
                }
                let is_new = model.insert(key.clone(), id).is_none();
                assert_eq!(ordered.insert(Key::new(&key), id), is_new);
            } else {
                // One that is there, most often.
                let near = model.range::<[u8], _>((Included(&*key), Unbounded)).next();
                let key = near.map_or(key.clone(), |(near, _)| near.clone());
                assert_eq!(ordered.remove(&key), model.remove(&key).is_some());
            }
            most = most.max(ordered.nodes.len());
            if step % looks_every == 0 {
                check(&ordered, &model, &mut random);
            }
        }
        assert!(steps < 10_000 || most > 5, "{most} nodes");
        while !ordered.clear_away(100) {}
    }

    #[test]
    fn entries_are_where_a_map_has_them() {
        (0..20).for_each(|seed| compare_with_a_map(seed, 6_000, 20));
        (0..3).for_each(|seed| compare_with_a_map(seed, 180_000, 3_000));
    }

    #[test]
    fn samples_are_far_apart_or_all_entries() {
        let mut ordered = Ordered::default();
        assert_eq!(ordered.sample(10).count(), 0);
        for number in 0..64_000_u32 {
            ordered.insert(Key::new(&number.to_be_bytes()), RowId::new(number.into()));
            if number == 199 {
                let all: Vec<u64> = ordered.sample(200).flatten().map(|(_, id)| id.get()).collect();
                assert_eq!(all, (0..200).collect::<Vec<_>>());
            }
        }
        let begins: Vec<u64> = ordered.sample(100).map(|run| run[0].1.get()).collect();
        assert_eq!(begins, (0..100).map(|at| at * 640).collect::<Vec<_>>());
        assert!(ordered.sample(100).all(|run| run.len() == RUN_MAX));
        assert_eq!(ordered.sample(5_000).count(), 4_000);
    }

    #[test]
    fn samples_of_an_index_with_few_runs_are_about_as_many_as_are_wanted() {
        let mut ordered = Ordered::default();
        for number in 0..9_000_u32 {
            ordered.insert(Key::new(&number.to_be_bytes()), RowId::new(number.into()));
            if [300, 500, 1_000, 5_000].contains(&number) {
                let lengths: Vec<usize> = ordered.sample(256).map(<[Entry]>::len).collect();
                assert!((140..=256).contains(&lengths.len()), "{} of {number}", lengths.len());
                assert!(lengths.iter().filter(|length| **length > 1).count() >= 70);
                assert_eq!(lengths.iter().sum::<usize>(), number as usize + 1);
            }
        }
    }

    #[test]
    fn entries_in_their_order_fill_their_runs() {
        let mut ordered = Ordered::default();
        for number in 0..64_000_u32 {
            assert!(ordered.insert(Key::new(&number.to_be_bytes()), RowId::new(number.into())));
        }
        assert_eq!((runs(&ordered).count(), ordered.nodes.len()), (1_000, 8));
        for number in (0..64_000_u32).filter(|n| n % 64 != 0) {
            assert!(ordered.remove(&number.to_be_bytes()));
        }
        assert!(runs(&ordered).count() < 100 && ordered.nodes.len() < 3);
    }
}
