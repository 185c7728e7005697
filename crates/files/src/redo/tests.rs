//! What is written can be read, up to the first byte that is not right.

use super::*;
use lats_base::ClientId;
use std::{collections::BTreeMap, vec::Vec};

fn log(life: u32) -> LogId {
    LogId { cluster: 7, node: NodeId::new(2), instance: 1, life: Incarnation::new(life) }
}

fn transaction(sequence: u64) -> TransactionId {
    TransactionId { client: ClientId::new(9), sequence }
}

fn put(writer: &mut Writer, sequence: u64, epoch: u64, key: &[u8], image: Option<&[u8]>) {
    let at = (TableId::new(3), FragmentId::new(4), RowId::new(sequence));
    writer.change((transaction(sequence), Epoch::new(epoch)), at, 10 * sequence, key, image);
}

fn seal(epoch: u64, commands: u64) -> Seal {
    let (epoch, durable) = (Epoch::new(epoch), Epoch::new(epoch - 1));
    Seal { epoch, durable, commands, whole: true }
}

/// The zeros behind it are overwritten by the next write.
fn without_end(mut taken: Taken) -> Vec<u8> {
    let end = taken.bytes.split_off(taken.bytes.len() - END_BYTES);
    assert_eq!(end, [0; END_BYTES]);
    taken.bytes
}

/// A segment with two transactions and a seal.
fn written() -> Vec<u8> {
    let mut writer = Writer::new(log(1));
    put(&mut writer, 1, 5, b"key", Some(b"image"));
    put(&mut writer, 1, 5, b"another key", None);
    writer.end();
    put(&mut writer, 2, 6, b"", Some(b""));
    writer.end();
    writer.seal(seal(6, 3));
    let taken = writer.take(Vec::new(), 1 << 20, 1 << 20);
    assert_eq!((taken.segment, taken.offset, taken.last_record), (1, 0, 3));
    assert_eq!(taken.sealed, Some(Epoch::new(6)));
    without_end(taken)
}

#[test]
fn what_is_written_is_read() {
    let bytes = written();
    let mut segment = Segment::open(&bytes).unwrap();
    assert_eq!((segment.log, segment.number, segment.next_record()), (log(1), 1, 1));
    let records: Vec<Record<'_>> = segment.by_ref().collect();
    assert_eq!(*segment.end(), End::Clean);
    let kinds: Vec<(u64, RecordKind, u64)> =
        records.iter().map(|r| (r.number, r.kind, r.epoch.get())).collect();
    let (changes, seal) = (RecordKind::Changes, RecordKind::Seal);
    assert_eq!(kinds, [(1, changes, 5), (2, changes, 6), (3, seal, 6)]);
    assert_eq!(records[0].transaction, transaction(1));
    let first: Vec<Change<'_>> = records[0].changes().collect();
    let (keys, images): (Vec<_>, Vec<_>) = first.iter().map(|c| (c.key, c.image)).unzip();
    assert_eq!(keys, [&b"key"[..], b"another key"]);
    assert_eq!(images, [Some(&b"image"[..]), None]);
    assert_eq!((first[0].table, first[0].fragment), (TableId::new(3), FragmentId::new(4)));
    assert_eq!((first[0].row, first[0].number), (RowId::new(1), 10));
    let second: Vec<Change<'_>> = records[1].changes().collect();
    assert_eq!((second[0].key, second[0].image), (&b""[..], Some(&b""[..])));
    assert_eq!(records[2].changes().count(), 0);
}

#[test]
fn nothing_is_read_behind_a_bit_that_is_another() {
    let bytes = written();
    let whole = Segment::open(&bytes).unwrap().count();
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let Ok(mut segment) = Segment::open(&damaged) else { continue };
        let read = segment.by_ref().count();
        assert!(read < whole, "bit {bit} is not missed");
        assert!(matches!(segment.end(), End::Broken { .. }), "bit {bit}");
    }
}

#[test]
fn a_torn_tail_costs_what_is_torn_only() {
    let bytes = written();
    for length in 0..bytes.len() {
        let Ok(mut segment) = Segment::open(&bytes[..length]) else {
            assert!(length < size_of::<SegmentHead>());
            continue;
        };
        let read = segment.by_ref().count();
        assert!(read < 3, "the last record is not whole");
        // Zeros behind the last record, as in a file that has its length already.
        let mut zeros = bytes[..length].to_vec();
        zeros.resize(bytes.len() + 64, 0);
        let mut segment = Segment::open(&zeros).unwrap();
        let with_zeros = segment.by_ref().count();
        // A record may end with zeros.
        assert!((read..=3).contains(&with_zeros) && *segment.end() != End::Clean);
    }
}

#[test]
fn what_another_life_has_written_is_no_record() {
    let bytes = written();
    let mut writer = Writer::new(log(2));
    put(&mut writer, 1, 5, b"key", Some(b"image"));
    writer.end();
    let mut newer = without_end(writer.take(Vec::new(), 1 << 20, 1 << 20));
    // The file was used before: the other log's records stand behind.
    let end = newer.len();
    newer.extend_from_slice(&bytes[size_of::<SegmentHead>()..]);
    let mut segment = Segment::open(&newer).unwrap();
    assert_eq!(segment.by_ref().count(), 1);
    assert_eq!(*segment.end(), End::Broken { at: end, why: "the checksum is another" });
}

#[test]
fn what_stood_in_a_file_before_is_no_part_of_the_log() {
    let mut writer = Writer::new(log(1));
    let mut file = Vec::new();
    for round in 0..50 {
        // The same file is used for each segment: older records of the same log, and of the same length, stand behind.
        writer.begin_segment();
        let (mut end, mut before) = (0, Vec::new());
        for number in 0..50 - round {
            put(&mut writer, number + 1, round + 1, b"key", Some(&[7; 100]));
            writer.end();
            let taken = writer.take(Vec::new(), 1 << 20, 1 << 20);
            let from = taken.offset as usize;
            end = from + taken.bytes.len();
            before.clone_from(&file);
            file.resize(file.len().max(end), 0);
            file[from..end].copy_from_slice(&taken.bytes);
            let mut segment = Segment::open(&file).unwrap();
            assert_eq!(segment.by_ref().count() as u64, number + 1);
            assert_eq!((segment.end(), segment.is_over()), (&End::Zeros, true));
        }
        // The zeros may be lost with the power, and the record before them not.
        let mut torn = file.clone();
        before.resize(before.len().max(end), 0);
        torn[end - END_BYTES..end].copy_from_slice(&before[end - END_BYTES..end]);
        let mut segment = Segment::open(&torn).unwrap();
        assert_eq!(segment.by_ref().count() as u64, 50 - round);
        let why = "records before it are missing";
        let stops = |end: &End| matches!(end, End::Broken { why: is, .. } if *is == why);
        assert!(round == 0 || stops(segment.end()), "{:?}", segment.end());
    }
}

#[test]
fn segments_follow_each_other() {
    let mut writer = Writer::new(log(1));
    let mut files: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for number in 1..=20 {
        put(&mut writer, number, number, b"key", Some(&[7; 100]));
        writer.end();
        let taken = writer.take(Vec::new(), 1 << 20, 500);
        let file = files.entry(taken.segment).or_default();
        assert_eq!(file.len() as u64, taken.offset);
        file.extend_from_slice(&without_end(taken));
    }
    assert!(files.len() > 3);
    let mut next = 1;
    for (number, bytes) in &files {
        let mut segment = Segment::open(bytes).unwrap();
        assert_eq!((segment.number, segment.next_record()), (u64::from(*number), next));
        next += segment.by_ref().count() as u64;
        assert_eq!(*segment.end(), End::Clean);
    }
    assert_eq!(next, 21);
}

#[test]
fn much_is_written_in_parts() {
    let mut writer = Writer::new(log(1));
    for number in 1..=10 {
        put(&mut writer, number, number, b"key", Some(&[7; 100]));
        writer.end();
        writer.seal(seal(number, 3));
    }
    let mut file = Vec::new();
    let mut ends = Vec::new();
    while writer.waiting_bytes() > 0 {
        let taken = writer.take(Vec::new(), 700, 1 << 20);
        ends.push((taken.last_record, taken.sealed.map(Epoch::get)));
        file.extend_from_slice(&without_end(taken));
    }
    assert!(ends.len() > 3 && ends.iter().is_sorted(), "{ends:?}");
    assert!(ends.iter().all(|(last, sealed)| sealed.is_none_or(|sealed| sealed == last / 2)));
    assert_eq!(Segment::open(&file).unwrap().count(), 20);
}

#[test]
fn a_large_transaction_has_records_that_fit_into_signals() {
    let mut writer = Writer::new(log(1));
    let image = std::vec![7; 30_000];
    (0..256).for_each(|_| put(&mut writer, 1, 5, b"key", Some(&image)));
    writer.end();
    let mut file = Vec::new();
    while writer.waiting_bytes() > 0 {
        let taken = writer.take(Vec::new(), 1 << 20, 1 << 30);
        assert!(taken.bytes.len() < 2 << 20);
        file.extend_from_slice(&without_end(taken));
    }
    let records: Vec<Record<'_>> = Segment::open(&file).unwrap().collect();
    assert!(records.iter().all(|r| r.transaction == transaction(1) && r.epoch.get() == 5));
    assert_eq!(records.iter().flat_map(|r| r.changes()).count(), 256);
}

/// Where the bytes lie in memory does not matter.
#[test]
fn logs_are_read_wherever_they_lie() {
    let bytes = written();
    for shift in 0..8 {
        let mut shifted = std::vec![0; shift];
        shifted.extend_from_slice(&bytes);
        assert_eq!(Segment::open(&shifted[shift..]).unwrap().count(), 3);
    }
}

/// A life of a node writes two transactions and seals each; what it has written, by segment.
fn live<const N: usize>(writer: &mut Writer, epochs: [u64; N], files: &mut BTreeMap<u32, Vec<u8>>) {
    for epoch in epochs {
        put(writer, epoch, epoch, b"key", Some(b"image"));
        writer.end();
        writer.seal(seal(epoch, epoch + 100));
        let taken = writer.take(Vec::new(), 1 << 20, 100);
        files.entry(taken.segment).or_default().extend_from_slice(&without_end(taken));
    }
}

fn survey(files: &BTreeMap<u32, Vec<u8>>, restored: &[Epoch]) -> (Survey, Vec<u64>) {
    let origin = Segment::open(files.last_key_value().unwrap().1).unwrap().origin;
    let (mut survey, mut epochs) = (Survey::of(origin), Vec::new());
    for (_, bytes) in files.range(origin..) {
        let mut segment = Segment::open(bytes).unwrap();
        survey.read(&mut segment, restored, |record, _| epochs.push(record.epoch.get()));
    }
    (survey, epochs)
}

/// A state that knows everything.
const ANY: u64 = u64::MAX;

#[test]
fn a_new_life_goes_on_with_the_log_of_the_former_one() {
    let mut files = BTreeMap::new();
    let mut writer = Writer::new(log(1));
    live(&mut writer, [5, 6], &mut files);
    // A loss of power has torn the last record, a seal.
    let torn = files.get_mut(&2).unwrap();
    torn.truncate(torn.len() - 1);
    let (found, epochs) = survey(&files, &[]);
    assert_eq!((found.restorable(ANY).get(), found.newest.get(), found.durable.get()), (5, 6, 4));
    assert_eq!((found.last_record, epochs), (3, std::vec![5, 5, 6]));
    // The cluster begins again with epoch 5: what was changed in epoch 6 is void.
    let restored = [Epoch::new(5)];
    let mut writer = Writer::new(log(2));
    writer.go_on_behind(2, 1, (found.last_record, found.newest));
    writer.set_restarts(1);
    live(&mut writer, [10, 11], &mut files);
    assert_eq!(files.len(), 4);
    let (found, epochs) = survey(&files, &restored);
    assert_eq!((found.restorable(ANY).get(), found.last_record, found.passed_over), (11, 7, 0));
    assert_eq!(epochs, [5, 5, 6, 10, 10, 11, 11]);
    assert_eq!(void_after(&restored, 0), Epoch::new(5));
    assert_eq!(void_after(&restored, 1), Epoch::new(u64::MAX));
    // If the next restart begins with epoch 10, the seal of 11 is worth as much.
    assert_eq!(survey(&files, &[Epoch::new(5), Epoch::new(10)]).0.restorable(ANY).get(), 10);
}

#[test]
fn a_log_that_begins_anew_has_nothing_to_do_with_the_former_one() {
    let mut files = BTreeMap::new();
    live(&mut Writer::new(log(1)), [5, 6], &mut files);
    let mut writer = Writer::new(log(2));
    writer.begin_behind(2);
    live(&mut writer, [8, 9], &mut files);
    let (found, epochs) = survey(&files, &[]);
    assert_eq!((found.restorable(ANY).get(), found.last_record), (9, 4));
    assert_eq!(epochs, [8, 8, 9, 9]);
}

#[test]
fn behind_a_hole_nothing_is_read() {
    let mut files = BTreeMap::new();
    let mut writer = Writer::new(log(1));
    live(&mut writer, [5, 6], &mut files);
    live(&mut writer, [7, 8], &mut files);
    files.remove(&2);
    let (found, epochs) = survey(&files, &[]);
    assert_eq!((found.restorable(ANY).get(), found.passed_over, epochs), (5, 2, std::vec![5, 5]));
}

#[test]
fn a_state_that_knows_less_is_restored_with_an_earlier_epoch() {
    let mut files = BTreeMap::new();
    let mut writer = Writer::new(log(1));
    live(&mut writer, [5, 6, 7], &mut files);
    let (found, _) = survey(&files, &[]);
    // The last seal says that epoch 6 was durable: whoever has said so knew what it needs.
    assert_eq!(found.steps, [(0, Epoch::new(6)), (107, Epoch::new(7))]);
    assert_eq!([106, 107, ANY].map(|known| found.restorable(known).get()), [6, 7, 7]);
    // What a restart has made void takes nothing away from what came later, although commands are counted anew.
    let mut writer = Writer::new(log(2));
    writer.go_on_behind(3, 1, (found.last_record, found.newest));
    writer.set_restarts(1);
    live(&mut writer, [20], &mut files);
    let (found, _) = survey(&files, &[Epoch::new(5)]);
    assert_eq!(found.steps, [(0, Epoch::new(5)), (120, Epoch::new(20))]);
}

#[test]
fn while_a_disk_stands_still_the_newest_seals_count_as_well() {
    let mut files = BTreeMap::new();
    let mut writer = Writer::new(log(1));
    for epoch in 10..2_000 {
        writer.seal(Seal { durable: Epoch::new(5), ..seal(epoch, epoch + 100) });
        let taken = writer.take(Vec::new(), 1 << 20, 1 << 20);
        files.entry(taken.segment).or_insert_with(Vec::new).extend_from_slice(&without_end(taken));
    }
    let (found, _) = survey(&files, &[]);
    let restorable = [109, 110, 1_000, 2_098, 2_099].map(|known| found.restorable(known).get());
    assert_eq!(restorable, [0, 10, 900, 1_032, 1_999]);
}

#[test]
fn epochs_of_which_rows_are_missing_cannot_be_given_back() {
    let mut files = BTreeMap::new();
    let mut writer = Writer::new(log(1));
    live(&mut writer, [5, 6], &mut files);
    // The next life is being filled when it dies, too.
    let mut writer = Writer::new(log(2));
    writer.go_on_behind(2, 1, (4, Epoch::new(6)));
    writer.seal(Seal { whole: false, ..seal(20, 3) });
    let taken = writer.take(Vec::new(), 1 << 20, 100);
    assert_eq!((taken.sealed, taken.whole), (Some(Epoch::new(20)), None));
    files.entry(taken.segment).or_insert_with(Vec::new).extend_from_slice(&without_end(taken));
    let (found, _) = survey(&files, &[]);
    assert_eq!((found.restorable(ANY).get(), found.durable.get()), (6, 19));
    assert_eq!((found.whole, found.newest), ((0, Epoch::new(6)), Epoch::new(20)));
}

#[test]
fn a_segment_is_read_in_parts_of_any_size() {
    let bytes = written();
    let head = size_of::<SegmentHead>();
    for size in 1..bytes.len() {
        let mut segment = Segment::open(&bytes[..head]).unwrap().go_on(&[]);
        let (mut waiting, mut numbers) = (Vec::new(), Vec::new());
        for part in bytes[head..].chunks(size) {
            waiting.extend_from_slice(part);
            let mut next = segment.go_on(&waiting);
            numbers.extend(next.by_ref().map(|r| r.number));
            assert!(!next.is_over());
            let read = next.bytes_read();
            segment = next.go_on(&[]);
            waiting.drain(..read);
        }
        assert_eq!((&waiting[..], &numbers[..]), (&[][..], &[1, 2, 3][..]), "parts of {size}");
        // Damage is seen as soon as it is there.
        let mut damaged = bytes[head..].to_vec();
        damaged[70] ^= 1;
        let mut next = Segment::open(&bytes[..head]).unwrap().go_on(&damaged);
        assert_eq!((next.by_ref().count(), next.is_over()), (0, true));
    }
}

#[test]
fn another_version_is_named_whatever_its_head_looks_like() {
    let mut file = written();
    file[8] -= 1;
    assert_eq!(
        Segment::open(&file).unwrap_err(),
        "its head is damaged",
        "a bit may have turned over"
    );
    file[12] -= 8;
    assert_eq!(Segment::open(&file).unwrap_err(), OTHER_VERSION, "its checksum is elsewhere");
    file[12] += 8;
    let (mut head, _) = SegmentHead::read_from_prefix(&file).unwrap();
    let checked = size_of::<SegmentHead>() - size_of::<u64>();
    head.checksum = hash::partition_hash(&head.as_bytes()[..checked]);
    file[..size_of::<SegmentHead>()].copy_from_slice(head.as_bytes());
    assert_eq!(Segment::open(&file).unwrap_err(), OTHER_VERSION);
}
