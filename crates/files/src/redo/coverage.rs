//! Of which epochs a log tells every change: what rows are restored from as of any moment (ARCHIVE-3;
//! `docs/protocols/archive.md`).

use super::{Record, RecordKind, Segment, void_after};
use alloc::vec::Vec;
use lats_base::{Epoch, Incarnation};

/// Epochs after one, up to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The epoch before the first one.
    pub after: Epoch,
    /// The last one.
    pub upto: Epoch,
}

/// Reads the segments of one data manager of one node, life by life in the order of their numbers, and with gaps where some are
/// missing.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// What each restart of the cluster has begun with.
    restored: Vec<Epoch>,
    last: Option<Last>,
    /// What has smaller numbers was shown by another copy of the segment.
    seen_below: u64,
    /// The segment that is read tells of void epochs only.
    is_void: bool,
    /// While nothing is known: no record up to here is of a later epoch.
    newest: Epoch,
    /// All changes of its epochs stand in what was read.
    open: Option<Span>,
    spans: Vec<Span>,
}

/// The last segment that was read.
#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    life: Incarnation,
    /// The number of the record that would go on.
    next_record: u64,
    restarts: u32,
}

impl Last {
    fn of(segment: &Segment<'_>) -> Self {
        Self {
            number: segment.number,
            life: segment.log.life,
            next_record: segment.next_record(),
            restarts: segment.restarts,
        }
    }

    fn is_copy_of(&self, other: &Self) -> bool {
        (self.number, self.life) == (other.number, other.life)
    }
}

impl Coverage {
    /// Nothing is read yet.
    pub fn new(restored: &[Epoch]) -> Self {
        Self {
            restored: restored.to_vec(),
            last: None,
            seen_below: 0,
            is_void: false,
            newest: Epoch::default(),
            open: None,
            spans: Vec::new(),
        }
    }

    /// Of the next segment only the head has been read. It may be another copy of the last one, from somewhere else.
    pub fn begin(&mut self, segment: &Segment<'_>) {
        self.is_void = self.has_reached(void_after(&self.restored, segment.restarts));
        if self.is_void {
            return;
        }
        if !self.goes_on_with(segment) {
            self.close();
        }
        let copy = self.last.filter(|last| last.is_copy_of(&Last::of(segment)));
        self.seen_below = copy.map_or(0, |copy| copy.next_record);
        self.newest = self.newest.max(segment.before);
        self.note_place(segment);
    }

    /// So far the segment was read.
    pub fn note_place(&mut self, segment: &Segment<'_>) {
        if self.is_void {
            return;
        }
        let mut here = Last::of(segment);
        if let Some(copy) = self.last.filter(|last| last.is_copy_of(&here)) {
            here.next_record = here.next_record.max(copy.next_record);
        }
        self.last = Some(here);
    }

    /// A record of the segment.
    pub fn note(&mut self, record: &Record<'_>, restarts: u32) {
        // Another copy has shown it, or it does not count.
        if self.is_void || record.number < self.seen_below {
            return;
        }
        self.newest = self.newest.max(record.epoch);
        if record.kind != RecordKind::Seal {
            return;
        }
        if !record.seal.whole {
            // REJOIN-8: of rows that were changed meanwhile it may have the last change only.
            return self.close();
        }
        // Changes of later epochs than the sealed one, too, may stand before the first whole seal, and some may be missing there.
        let open = self.open.get_or_insert(Span { after: self.newest, upto: self.newest });
        let sealed = record.seal.epoch.min(void_after(&self.restored, restarts));
        open.upto = open.upto.max(sealed);
    }

    /// Where it tells everything. A span of no epoch only says that there is something later.
    pub fn spans(mut self) -> Vec<Span> {
        self.close();
        self.spans
    }

    fn goes_on_with(&self, segment: &Segment<'_>) -> bool {
        let (Some(last), here) = (self.last, Last::of(segment)) else { return false };
        if last.life == here.life {
            return last.is_copy_of(&here) || last.next_record == here.next_record;
        }
        // Numbers of records say nothing here: the new life may have cut off what is archived, and what it has written before this
        // segment may be missing. Restarts in between have begun with what stands here, unless this log had to be filled.
        let between =
            self.restored.get(last.restarts as usize..here.restarts.max(last.restarts) as usize);
        // A group that was formed anew by nodes that lived has made nothing void.
        let from_disks = between.into_iter().flatten().filter(|epoch| epoch.get() < u64::MAX);
        let mut all = from_disks.chain([&segment.before]);
        between.is_some() && all.all(|epoch| self.has_reached(*epoch))
    }

    /// All up to there was read, in one piece.
    fn has_reached(&self, epoch: Epoch) -> bool {
        self.open.is_some_and(|open| open.upto >= epoch)
    }

    fn close(&mut self) {
        self.spans.extend(self.open.take());
    }
}

/// The first epochs of these that none of the spans tells of.
pub fn first_gap(spans: &[Span], wanted: Span) -> Option<Span> {
    let mut spans = spans.to_vec();
    spans.sort_unstable();
    let mut known = wanted.after;
    for span in spans {
        if span.after > known && known < wanted.upto {
            return Some(Span { after: known, upto: span.after.min(wanted.upto) });
        }
        known = known.max(span.upto);
    }
    (known < wanted.upto).then_some(Span { after: known, upto: wanted.upto })
}

#[cfg(test)]
mod tests {
    use super::{super::*, *};
    use lats_base::ClientId;

    fn span(after: u64, upto: u64) -> Span {
        Span { after: Epoch::new(after), upto: Epoch::new(upto) }
    }

    struct Log {
        life: u32,
        writer: Writer,
        segments: Vec<Vec<u8>>,
    }

    impl Log {
        fn new() -> Self {
            Self { life: 1, writer: Writer::new(id(1)), segments: Vec::new() }
        }

        /// A change and a seal in a segment of their own.
        fn add(&mut self, change: u64, seal: u64, whole: bool) {
            self.write(change, seal, whole);
            self.end();
        }

        fn write(&mut self, change: u64, seal: u64, whole: bool) {
            let transaction = TransactionId { client: ClientId::new(1), sequence: change };
            let at = (TableId::new(1), FragmentId::new(0), RowId::new(1));
            self.writer.change((transaction, Epoch::new(change)), at, change, b"k", Some(b"i"));
            self.writer.end();
            let epoch = Epoch::new(seal);
            self.writer.seal(Seal { epoch, whole, ..Seal::default() });
        }

        fn end(&mut self) {
            self.segments.push(self.writer.take(Vec::new(), 1 << 20, 1).bytes);
        }

        /// A new life, which the log goes on in.
        fn live_again(&mut self, restarts: u32, newest: u64) {
            self.live_again_behind(restarts, (self.writer.last_record(), newest));
        }

        fn live_again_behind(&mut self, restarts: u32, (last, newest): (u64, u64)) {
            let segment = self.segments.len() as u32;
            self.life += 1;
            self.writer = Writer::new(id(self.life));
            self.writer.go_on_behind(segment, 1, (last, Epoch::new(newest)));
            self.writer.set_restarts(restarts);
        }

        fn spans(&self, restored: &[u64], there: impl Fn(usize) -> bool) -> Vec<Span> {
            let restored: Vec<Epoch> = restored.iter().map(|epoch| Epoch::new(*epoch)).collect();
            let mut coverage = Coverage::new(&restored);
            let segments = self.segments.iter().enumerate().filter(|(at, _)| there(*at));
            for (_, bytes) in segments {
                let mut segment = Segment::open(bytes).unwrap();
                coverage.begin(&segment);
                let restarts = segment.restarts;
                segment.by_ref().for_each(|record| coverage.note(&record, restarts));
                coverage.note_place(&segment);
            }
            coverage.spans()
        }
    }

    fn id(life: u32) -> LogId {
        LogId { cluster: 7, node: NodeId::new(2), instance: 1, life: Incarnation::new(life) }
    }

    #[test]
    fn a_log_tells_of_all_epochs_but_for_those_of_missing_segments() {
        let mut log = Log::new();
        for at in 1..=5 {
            log.add(10 * at + 1, 10 * at, true);
        }
        assert_eq!(log.spans(&[], |_| true), [span(11, 50)]);
        // Changes of epoch 31 may stand in the one that is missing, and of 41 before the first seal that is there.
        assert_eq!(log.spans(&[], |at| at != 2), [span(11, 20), span(41, 50)]);
        assert_eq!(log.spans(&[], |at| at > 0), [span(21, 50)]);
        // Another copy, of which the last record is missing.
        let mut copy = log.segments[1].clone();
        copy.truncate(copy.len() - END_BYTES - 8);
        log.segments.insert(2, copy);
        assert_eq!(log.spans(&[], |_| true), [span(11, 50)]);
        log.segments.swap(1, 2);
        assert_eq!(log.spans(&[], |_| true), [span(11, 50)]);
    }

    #[test]
    fn what_happened_while_a_node_was_away_or_filled_its_log_does_not_tell() {
        let mut log = Log::new();
        log.add(11, 10, true);
        log.add(21, 20, true);
        log.live_again(0, 21);
        log.add(40, 40, false);
        log.add(51, 50, true);
        log.add(60, 60, true);
        assert_eq!(log.spans(&[], |_| true), [span(11, 20), span(51, 60)]);
    }

    #[test]
    fn another_copy_of_a_segment_says_nothing_new() {
        let mut log = Log::new();
        log.add(10, 10, true);
        log.write(20, 20, false);
        log.write(30, 30, true);
        log.write(40, 40, true);
        log.end();
        log.add(50, 50, true);
        let alone = log.spans(&[], |_| true);
        assert_eq!(alone, [span(10, 10), span(30, 50)]);
        log.segments.insert(1, log.segments[1].clone());
        assert_eq!(log.spans(&[], |_| true), alone);
        let mut short = log.segments[1].clone();
        short.truncate(short.len() - END_BYTES - 8);
        log.segments[1] = short;
        assert_eq!(log.spans(&[], |_| true), alone);
        log.segments.swap(1, 2);
        assert_eq!(log.spans(&[], |_| true), alone);
    }

    #[test]
    fn a_restart_goes_on_with_what_it_restored() {
        let mut log = Log::new();
        log.add(1, 2, true);
        log.add(11, 12, true);
        log.live_again(1, 10);
        log.add(100, 101, true);
        log.add(102, 103, true);
        assert_eq!(log.spans(&[10], |_| true), [span(2, 103)], "11 and 12 are void");
        let of_others = [span(2, 12), span(101, 103)];
        assert_eq!(log.spans(&[13], |_| true), of_others, "it does not have the changes of 13");
        log.live_again(3, 103);
        log.add(200, 201, true);
        log.add(202, 203, true);
        assert_eq!(log.spans(&[10, 103, 150], |_| true), [span(2, 103), span(201, 203)]);
    }

    #[test]
    fn what_is_missing_between_void_segments_is_missed_by_nobody() {
        let mut log = Log::new();
        log.add(1, 2, true);
        log.add(11, 12, true);
        log.add(13, 14, true);
        log.add(15, 16, true);
        log.live_again(1, 10);
        log.add(100, 101, true);
        // Seed 241629187: the power's loss took the file of void epochs before another one of them.
        assert_eq!(log.spans(&[10], |at| at != 2), [span(2, 101)]);
        assert_eq!(log.spans(&[12], |at| at != 2), [span(2, 101)]);
        assert_eq!(log.spans(&[13], |at| at != 2), [span(2, 12), span(16, 101)]);
    }

    #[test]
    fn a_new_life_that_has_cut_off_what_is_archived_uses_its_numbers_once_more() {
        let mut log = Log::new();
        for at in 1..=5 {
            log.add(10 * at, 10 * at, true);
        }
        // Of what stands behind the third record its disk has nothing that can be read; the other nodes have it all.
        log.live_again_behind(1, (3, 20));
        for at in 101..=105 {
            log.add(at, at, at > 101);
        }
        assert_eq!(log.spans(&[50], |_| true), [span(10, 50), span(102, 105)]);
        let next_record = |at: usize| Segment::open(&log.segments[at]).unwrap().next_record();
        assert_eq!(next_record(8), next_record(4) + 1);
        // Seed 1651: what stands in between was taken for what is there of the former life.
        assert_eq!(log.spans(&[50], |at| !(5..8).contains(&at)), [span(10, 50), span(104, 105)]);
    }

    #[test]
    fn gaps_are_found_where_nobody_tells() {
        let spans = [span(20, 30), span(0, 10), span(8, 15)];
        assert_eq!(first_gap(&spans, span(3, 12)), None);
        assert_eq!(first_gap(&spans, span(3, 25)), Some(span(15, 20)));
        assert_eq!(first_gap(&spans, span(3, 18)), Some(span(15, 18)));
        assert_eq!(first_gap(&spans, span(21, 33)), Some(span(30, 33)));
        assert_eq!(first_gap(&[], span(1, 2)), Some(span(1, 2)));
        assert_eq!(first_gap(&[], span(2, 2)), None);
    }
}
