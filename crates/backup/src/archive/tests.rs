//! What nodes write is archived while they write it, and gives back rows as of any moment that all groups tell of.

use super::*;
use lats_base::{
    ClientId, FragmentId, Incarnation, NodeId, RowId, TableId, TransactionId, prng::Prng,
};
use lats_files::{
    control::{self, Owner},
    redo::{END_BYTES, LogId, Seal, Span, Writer},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

const CLUSTER: u64 = 7;

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lats-archive-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// A state of these tests: how many commands, the version of the catalog, and what was restored.
fn state(node: u16, commands: u64, version: u64, restored: &[u64]) -> Vec<u8> {
    let content = lats_catalog::encode(&(commands, version, restored));
    control::encode(Owner { cluster: CLUSTER, node: NodeId::new(node) }, &content)
}

fn decode(content: &[u8]) -> Option<Kept> {
    let (commands, version, restored): (u64, u64, Vec<u64>) = lats_catalog::decode(content).ok()?;
    Some(Kept {
        commands,
        restored: restored.into_iter().map(Epoch::new).collect(),
        groups: vec![vec![NodeId::new(1), NodeId::new(2)]],
        instances: 1,
        catalog: {
            let mut catalog = Catalog::default();
            catalog.version = version;
            catalog
        },
    })
}

/// A node that writes a log into a directory.
struct Node {
    files: PathBuf,
    writer: Writer,
    /// What was written last, and where it ends.
    segment: u32,
}

impl Node {
    fn new(files: &Path, node: u16) -> Self {
        fs::create_dir_all(files).unwrap();
        Self { files: files.to_path_buf(), writer: Writer::new(log(node, 1)), segment: 0 }
    }

    fn put(&mut self, epoch: u64, key: u8, number: u64, image: Option<&[u8]>) {
        let transaction = TransactionId { client: ClientId::new(9), sequence: number };
        let place = (TableId::new(3), FragmentId::new(0), RowId::new(u64::from(key)));
        self.writer.change((transaction, Epoch::new(epoch)), place, number, &[key], image);
        self.writer.end();
    }

    fn seal(&mut self, epoch: u64, commands: u64, whole: bool) {
        let (epoch, durable) = (Epoch::new(epoch), Epoch::default());
        self.writer.seal(Seal { epoch, durable, commands, whole });
    }

    /// Writes what there is.
    fn write(&mut self, segment_bytes: u64) {
        let taken = self.writer.take(Vec::new(), 1 << 20, segment_bytes);
        let mut options = File::options();
        let path = self.path(taken.segment);
        let file = options.write(true).create(true).truncate(false).open(path).unwrap();
        file.write_all_at(&taken.bytes, taken.offset).unwrap();
        self.segment = taken.segment;
    }

    fn path(&self, number: u32) -> PathBuf {
        self.files.join(format!("redo-0-{number:010}.log"))
    }

    fn logs(&self) -> BTreeSet<LogFile> {
        let files = (1..=self.segment).map(|number| (number, self.path(number)));
        let there = files.filter(|(_, path)| path.exists());
        there.map(|(number, path)| LogFile { instance: 0, number, path }).collect()
    }
}

fn log(node: u16, life: u32) -> LogId {
    let (node, life) = (NodeId::new(node), Incarnation::new(life));
    LogId { cluster: CLUSTER, node, instance: 0, life }
}

fn of(node: u16) -> (u64, NodeId) {
    (CLUSTER, NodeId::new(node))
}

fn span(after: u64, upto: u64) -> Span {
    Span { after: Epoch::new(after), upto: Epoch::new(upto) }
}

/// Copies what a node has; gives what is there as a whole.
fn copy(archiver: &mut Archiver, node: &Node) -> Vec<LogFile> {
    let Copied { whole, unreadable, failed, .. } = archiver.copy_logs(&node.logs());
    assert!(unreadable.is_empty() && failed.is_none(), "{unreadable:?} {failed:?}");
    whole
}

/// What becomes of the rows of a backup, and how many times the logs were read.
fn rows_of(
    archive: &Archive,
    wanted: Span,
    bytes_max: usize,
    old: &BTreeMap<u8, Vec<u8>>,
) -> (BTreeMap<u8, Vec<u8>>, usize) {
    let (mut passes, mut rows, mut count) = (Passes::new(), BTreeMap::new(), 0);
    while let Some(changes) =
        Changes::read(archive, (wanted, |table| table == TableId::new(3)), &mut passes, bytes_max)
            .unwrap()
    {
        count += 1;
        for (_, image) in changes.rows() {
            assert!(rows.insert(image[0], image.to_vec()).is_none(), "each key is given once");
            assert!(!changes.leaves(TableId::new(3), &image[..1]));
        }
        for (key, image) in old.iter().filter(|(key, _)| changes.leaves(TableId::new(3), &[**key]))
        {
            assert!(rows.insert(*key, image.clone()).is_none(), "each key is given once");
        }
    }
    (rows, count)
}

#[test]
fn an_archive_gives_back_rows_as_of_any_epoch() {
    for seed in 0..20 {
        let mut random = Prng::new(seed);
        let path = directory("rows");
        let mut node = Node::new(&path.join("node"), 1);
        let to = path.join("archive/0007/node-1");
        let mut archiver = Archiver::new(&to, of(1), decode).unwrap();
        assert!(archiver.copy_state(&state(1, 5, 1, &[])).unwrap());
        let (mut model, mut states, mut number) = (BTreeMap::new(), Vec::new(), 0);
        for epoch in 1..60 {
            for _ in 0..random.below(6) {
                number += 1;
                let key = random.below(30) as u8;
                let mut image = vec![0; random.between(1, 200) as usize];
                image.fill_with(|| random.below(256) as u8);
                image[0] = key;
                let image = random.chance(3, 4).then_some(image);
                node.put(epoch, key, number, image.as_deref());
                model.remove(&key);
                model.extend(image.map(|image| (key, image)));
            }
            node.seal(epoch, 5, true);
            states.push(model.clone());
            node.write(2_000);
            if random.chance(1, 2) {
                let whole = copy(&mut archiver, &node);
                archiver.note_time(1_000 * epoch).unwrap();
                for log in whole.iter().filter(|_| random.chance(1, 2)) {
                    fs::remove_file(&log.path).unwrap();
                }
            }
            if random.chance(1, 8) {
                // Another process goes on; what was not synced may be torn.
                archiver = Archiver::new(&to, of(1), decode).unwrap();
                for file in fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().path()) {
                    if file.extension().is_some_and(|e| e == OPEN) {
                        let file = File::options().write(true).open(file).unwrap();
                        let length = file.metadata().unwrap().len();
                        file.set_len(length - random.below(length.min(300))).unwrap();
                    }
                }
            }
        }
        copy(&mut archiver, &node);
        archiver.sync().unwrap();
        let archive = Archive::open(&[path.join("archive")], CLUSTER, decode, |_| {}).unwrap();
        let reached = archive.moment(Epoch::new(1), Until::End).unwrap();
        assert_eq!(reached.epoch, Epoch::new(59), "seed {seed}");
        let backup = random.between(1, 58);
        let epoch = random.between(backup + 1, 59);
        let bytes_max = if random.chance(1, 2) { 1 << 30 } else { 2_000 };
        let (old, new) = (&states[backup as usize - 1], &states[epoch as usize - 1]);
        let (rows, passes) = rows_of(&archive, span(backup, epoch), bytes_max, old);
        let changed = rows.iter().filter(|(key, image)| old.get(key) != Some(image)).count();
        assert!(bytes_max > 2_000 || changed < 10 || passes > 1, "it does not fit");
        assert!(rows == *new, "seed {seed}, from epoch {backup} to {epoch}");
        fs::remove_dir_all(path).unwrap();
    }
}

#[test]
fn whatever_is_missing_is_named() {
    let path = directory("gaps");
    let mut archivers = Vec::new();
    for number in [1, 2] {
        let mut node = Node::new(&path.join(format!("files-{number}")), number);
        let mut archiver =
            Archiver::new(&path.join(format!("archive/node-{number}")), of(number), decode)
                .unwrap();
        archiver.copy_state(&state(number, 3, 1, &[])).unwrap();
        archiver.copy_state(&state(number, 4, 1, &[])).unwrap();
        for epoch in (10..=50).step_by(10) {
            if epoch == 30 {
                archiver.copy_state(&state(number, 6, 2, &[])).unwrap();
            }
            node.put(epoch, epoch as u8, epoch, Some(&[epoch as u8, 7]));
            // Node 2 is being filled at first.
            node.seal(epoch, if epoch < 30 { 4 } else { 7 }, number == 1 || epoch > 20);
            node.write(1);
            copy(&mut archiver, &node);
            archiver.note_time(100 * epoch).unwrap();
        }
        archiver.copy_state(&state(number, 9, 3, &[])).unwrap();
        archivers.push(archiver);
    }
    let open = || Archive::open(&[path.join("archive")], CLUSTER, decode, |_| {}).unwrap();
    let moment = |archive: &Archive, until| archive.moment(Epoch::new(10), until);
    let words = |refused: Result<Moment, crate::BackupError>| refused.unwrap_err().to_string();
    let archive = open();
    assert_eq!(moment(&archive, Until::End).unwrap().epoch, Epoch::new(50));
    let at = moment(&archive, Until::Time(2_999)).unwrap();
    assert_eq!((at.epoch, at.at_ms, at.kept.commands), (Epoch::new(20), Some(2_000), 3));
    let sealed = moment(&archive, Until::Epoch(Epoch::new(25))).unwrap();
    assert_eq!((sealed.epoch, sealed.kept.commands), (Epoch::new(25), 3));
    let later = moment(&archive, Until::Time(3_000)).unwrap();
    assert_eq!((later.epoch, later.kept.catalog.version), (Epoch::new(30), 2));
    let end = moment(&archive, Until::End).unwrap();
    assert_eq!(
        (end.epoch, end.kept.catalog.version),
        (Epoch::new(50), 3),
        "a table was dropped at rest"
    );
    assert!(words(moment(&archive, Until::Time(5_001))).contains("1970-01-01 00:00:05"));
    assert!(words(moment(&archive, Until::Epoch(Epoch::new(4)))).contains("earlier backup"));
    let log = |node: u16, number: u32| {
        path.join(format!("archive/node-{node}/redo-0-{number:010}-0000000001.log"))
    };
    // One node without a segment does not matter; both do.
    fs::remove_file(log(1, 4)).unwrap();
    assert_eq!(moment(&open(), Until::End).unwrap().epoch, Epoch::new(50));
    assert_eq!(rows_of(&open(), span(10, 50), 1 << 20, &BTreeMap::new()).0.len(), 4);
    let damaged = fs::read(log(2, 4)).unwrap();
    fs::write(log(2, 4), &damaged[..damaged.len() - END_BYTES]).unwrap();
    let archive = open();
    assert!(words(moment(&archive, Until::Epoch(Epoch::new(40)))).contains("epochs 31 to 40"));
    let refused = words(moment(&archive, Until::End));
    assert!(refused.contains("epochs 31 to 50") && refused.contains("epoch:30"), "{refused}");
    // What follows the gap is not there at all: the definitions are those of then, and it is said that there was more.
    for node in [1, 2] {
        fs::remove_file(log(node, 5).with_extension(OPEN)).unwrap();
    }
    fs::remove_file(log(2, 4)).unwrap();
    let end = moment(&open(), Until::End).unwrap();
    assert_eq!((end.epoch, end.kept.catalog.version, end.later), (Epoch::new(30), 2, None));
    fs::remove_dir_all(&path).unwrap();
    drop(archivers);
}

#[test]
fn a_segment_may_get_its_last_name_while_it_is_being_read() {
    let path = directory("names");
    let mut node = Node::new(&path.join("files"), 1);
    let mut archiver = Archiver::new(&path.join("archive"), of(1), decode).unwrap();
    archiver.copy_state(&state(1, 3, 1, &[])).unwrap();
    for epoch in 1..4 {
        node.put(epoch, epoch as u8, epoch, Some(&[epoch as u8]));
        node.seal(epoch, 3, true);
        node.write(1 << 20);
    }
    copy(&mut archiver, &node);
    let archive = Archive::open(&[path.join("archive")], CLUSTER, decode, |_| {}).unwrap();
    node.put(4, 4, 4, Some(&[4]));
    node.seal(4, 3, true);
    node.write(1);
    assert_eq!(copy(&mut archiver, &node).len(), 1);
    assert_eq!(rows_of(&archive, span(1, 3), 1 << 20, &BTreeMap::new()).0.len(), 2);
    // What was there when it was surveyed must be there to the end.
    let name = path.join("archive/redo-0-0000000001-0000000001.log");
    let bytes = fs::read(&name).unwrap();
    fs::write(&name, &bytes[..bytes.len() - END_BYTES]).unwrap();
    let read = Changes::read(&archive, (span(1, 3), |_| true), &mut Passes::new(), 1 << 20);
    let refused = read.err().unwrap().to_string();
    assert!(refused.contains("while it was being read"), "{refused}");
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn what_cannot_be_read_is_kept_and_does_not_hold_up_the_rest() {
    let path = directory("unreadable");
    let mut node = Node::new(&path.join("files"), 1);
    let to = path.join("archive");
    let mut archiver = Archiver::new(&to, of(1), decode).unwrap();
    assert!(archiver.copy_state(&state(1, 3, 1, &[])).unwrap());
    for epoch in 1..5 {
        node.put(epoch, epoch as u8, epoch, Some(&[epoch as u8]));
        node.seal(epoch, 3, true);
        node.write(1);
    }
    fs::write(node.path(1), [7; 200]).unwrap();
    fs::write(node.path(2), [0; 4_096]).unwrap();
    let copied = archiver.copy_logs(&node.logs());
    assert!(copied.failed.is_none());
    assert_eq!(copied.whole.iter().map(|log| log.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(copied.unreadable.iter().map(|log| log.number).collect::<Vec<_>>(), [1]);
    assert_eq!(fs::read(to.join("redo-0-0000000001.unreadable")).unwrap(), [7; 200]);
    let names = || fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names().count(), 4, "nothing of what was never begun");
    // The directory has gone: what is copied goes into it again when it is there, from the beginning.
    fs::remove_dir_all(&to).unwrap();
    node.put(5, 5, 5, Some(&[5]));
    node.seal(5, 3, true);
    node.write(1);
    assert!(archiver.copy_logs(&node.logs()).failed.is_some());
    archiver.begin_anew().unwrap();
    assert!(archiver.copy_logs(&node.logs()).failed.is_none());
    for number in [3, 4] {
        let name = format!("redo-0-{number:010}-0000000001.log");
        assert!(to.join(name).exists(), "segment {number}");
    }
    assert!(archiver.copy_state(&state(1, 3, 1, &[])).unwrap());
    assert!(names().any(|name| name.to_string_lossy().ends_with(".state")));
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn another_clusters_archive_is_refused() {
    let path = directory("other");
    let mut node = Node::new(&path.join("files"), 1);
    let mut archiver = Archiver::new(&path.join("archive"), of(1), decode).unwrap();
    archiver.copy_state(&state(1, 3, 1, &[])).unwrap();
    node.put(1, 1, 1, None);
    node.seal(1, 3, true);
    node.write(1);
    copy(&mut archiver, &node);
    let open = |cluster| Archive::open(&[path.join("archive")], cluster, decode, |_| {});
    assert!(open(CLUSTER).is_ok());
    let refused = open(8).unwrap_err().to_string();
    assert!(refused.contains("no redo logs and states of cluster 0000000000000008"), "{refused}");
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn what_is_older_than_all_backups_is_not_needed() {
    for seed in 0..10 {
        let mut random = Prng::new(seed);
        let path = directory("prune");
        for number in [1, 2] {
            let mut node = Node::new(&path.join(format!("files-{number}")), number);
            let to = path.join(format!("archive/node-{number}"));
            let mut archiver = Archiver::new(&to, of(number), decode).unwrap();
            for epoch in 1..=60 {
                // A change of the next epoch may come before an epoch is sealed.
                let key = random.below(9) as u8;
                node.put(epoch + random.below(2), key, epoch, Some(&[key, epoch as u8]));
                if random.chance(1, 2) {
                    node.seal(epoch, epoch / 10, true);
                }
                node.write(1_000);
                copy(&mut archiver, &node);
                if epoch % 10 == 0 {
                    archiver.copy_state(&state(number, epoch / 10, epoch / 10, &[])).unwrap();
                    archiver = Archiver::new(&to, of(number), decode).unwrap();
                    copy(&mut archiver, &node);
                }
                archiver.note_time(1_000 * epoch).unwrap();
            }
        }
        let open = || Archive::open(&[path.join("archive")], CLUSTER, decode, |_| {}).unwrap();
        let (mut before, mut removed) = (open(), 0);
        let range = before.ranges()[0];
        assert!(range.after <= Epoch::new(5) && range.upto >= Epoch::new(50), "{range:?}");
        for oldest in [10, 11, 25, 40, 45].map(Epoch::new) {
            let superfluous = before.superfluous(oldest);
            superfluous.iter().for_each(|path| fs::remove_file(path).unwrap());
            removed += superfluous.len();
            let after = open();
            assert!(after.superfluous(oldest).is_empty());
            let [range] = after.ranges()[..] else { panic!("{:?}", after.ranges()) };
            assert!(range.after <= oldest && range.upto == before.ranges()[0].upto, "{range:?}");
            for upto in oldest.get()..=range.upto.get() {
                let wanted = Span { after: oldest, upto: Epoch::new(upto) };
                let rows =
                    |archive: &Archive| rows_of(archive, wanted, 1 << 20, &BTreeMap::new()).0;
                assert_eq!(rows(&before), rows(&after));
                let version = |archive: &Archive, until| {
                    archive.moment(oldest, until).map(|m| m.kept.catalog.version)
                };
                let until = Until::Epoch(Epoch::new(upto));
                assert_eq!(version(&before, until).unwrap(), version(&after, until).unwrap());
                let until = Until::Time(1_000 * upto);
                assert_eq!(version(&before, until).ok(), version(&after, until).ok());
            }
            before = after;
        }
        assert!(removed > 10, "{removed} files");
        let (segments, share) = (before.segments.len(), &before.shares()[&NodeId::new(2)]);
        assert_eq!((share.segments, share.noted_ms), (segments / 2, Some(60_000)), "{share:?}");
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn lives_whose_numbers_go_back_with_a_restart_stand_in_their_order() {
    let path = directory("lives");
    let mut node = Node::new(&path.join("node"), 1);
    node.writer = Writer::new(log(1, 500));
    let write = |node: &mut Node, epochs: std::ops::RangeInclusive<u64>| {
        for epoch in epochs {
            node.put(epoch, 1, epoch, Some(&[1, epoch as u8]));
            node.seal(epoch, 1, true);
            node.write(1);
        }
    };
    write(&mut node, 1..=10);
    let last = node.writer.last_record();
    // The clock was ahead, and lives are numbered by it.
    node.writer = Writer::new(log(1, 400));
    node.writer.go_on_behind(10, 1, (last, Epoch::new(10)));
    node.writer.set_restarts(1);
    write(&mut node, 20..=30);
    let mut archiver = Archiver::new(&path.join("archive"), of(1), decode).unwrap();
    archiver.copy_state(&state(1, 1, 1, &[10])).unwrap();
    while archiver.copy_logs(&node.logs()).is_behind {}
    let archive = Archive::open(&[path.join("archive")], CLUSTER, decode, |_| {}).unwrap();
    assert_eq!(archive.ranges(), [span(1, 30)]);
    let superfluous = archive.superfluous(Epoch::new(9));
    assert_eq!(superfluous.len(), 8, "segments of epochs that are older: {superfluous:?}");
    superfluous.iter().for_each(|path| fs::remove_file(path).unwrap());
    let archive = Archive::open(&[path.join("archive")], CLUSTER, decode, |_| {}).unwrap();
    assert_eq!(archive.ranges(), [span(9, 30)]);
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_segment_with_damage_in_the_middle_is_kept_as_it_is() {
    let path = directory("middle");
    let mut node = Node::new(&path.join("node"), 1);
    for epoch in 1..=4 {
        for key in 0..3 {
            node.put(epoch, key, 10 * epoch + u64::from(key), Some(&[7]));
        }
        node.seal(epoch, 1, true);
        node.write(1);
    }
    let mut bytes = fs::read(node.path(2)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(node.path(2), &bytes).unwrap();
    let mut archiver = Archiver::new(&path.join("archive"), of(1), decode).unwrap();
    let Copied { whole, unreadable, failed, .. } = archiver.copy_logs(&node.logs());
    assert!(failed.is_none() && whole.len() == 3, "{failed:?}");
    assert_eq!(unreadable.iter().map(|log| log.number).collect::<Vec<_>>(), [2]);
    let kept = fs::read(path.join("archive/redo-0-0000000002.unreadable")).unwrap();
    assert_eq!(kept, bytes);
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn who_is_behind_gives_back_files_from_time_to_time_and_notes_no_time() {
    let path = directory("behind");
    let mut node = Node::new(&path.join("node"), 1);
    for epoch in 1..=20 {
        node.put(epoch, 1, epoch, Some(&[7]));
        node.seal(epoch, 1, true);
        node.write(1);
    }
    let mut archiver = Archiver::new(&path.join("archive"), of(1), decode).unwrap();
    let mut wholes = Vec::new();
    for _ in 0..3 {
        let Copied { whole, is_behind, is_current, .. } = archiver.copy_logs(&node.logs());
        wholes.push((whole.len(), is_behind, is_current));
    }
    assert_eq!(wholes, [(8, true, false), (16, true, false), (19, false, true)]);
    fs::remove_dir_all(&path).unwrap();
}
