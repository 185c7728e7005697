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
        catalog: Catalog { version, ..Catalog::default() },
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
        let log = LogId {
            cluster: CLUSTER,
            node: NodeId::new(node),
            instance: 0,
            life: Incarnation::new(1),
        };
        Self { files: files.to_path_buf(), writer: Writer::new(log), segment: 0 }
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

fn span(after: u64, upto: u64) -> Span {
    Span { after: Epoch::new(after), upto: Epoch::new(upto) }
}

fn rows_of(archive: &Archive, wanted: Span, bytes_max: usize) -> (BTreeMap<u8, Vec<u8>>, usize) {
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
        let mut archiver = Archiver::new(&to, decode).unwrap();
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
                let whole = archiver.copy_logs(&node.logs()).unwrap();
                archiver.note_time(1_000 * epoch).unwrap();
                for log in whole.iter().filter(|_| random.chance(1, 2)) {
                    fs::remove_file(&log.path).unwrap();
                }
            }
            if random.chance(1, 8) {
                // Another process goes on; what was not synced may be torn.
                archiver = Archiver::new(&to, decode).unwrap();
                for file in fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().path()) {
                    if file.extension().is_some_and(|e| e == OPEN) {
                        let file = File::options().write(true).open(file).unwrap();
                        let length = file.metadata().unwrap().len();
                        file.set_len(length - random.below(length.min(300))).unwrap();
                    }
                }
            }
        }
        archiver.copy_logs(&node.logs()).unwrap();
        archiver.sync().unwrap();
        let archive = Archive::open(&[path.join("archive")], CLUSTER, decode, |_| {}).unwrap();
        let reached = archive.moment(Epoch::new(1), Until::End).unwrap();
        assert_eq!(reached.epoch, Epoch::new(59), "seed {seed}");
        let backup = random.between(1, 58);
        let epoch = random.between(backup + 1, 59);
        let bytes_max = if random.chance(1, 2) { 1 << 30 } else { 2_000 };
        let (mut rows, passes) = rows_of(&archive, span(backup, epoch), bytes_max);
        assert!(bytes_max > 2_000 || rows.len() < 10 || passes > 1, "it does not fit");
        // What was not changed since is in the backup.
        let (old, new) = (&states[backup as usize - 1], &states[epoch as usize - 1]);
        for (key, image) in old {
            if new.get(key) == Some(image) {
                rows.entry(*key).or_insert_with(|| image.clone());
            }
        }
        assert!(rows == *new, "seed {seed}, from epoch {backup} to {epoch}");
        fs::remove_dir_all(path).unwrap();
    }
}

#[test]
fn whatever_is_missing_is_named() {
    let path = directory("gaps");
    let mut archivers = Vec::new();
    for of in [1, 2] {
        let mut node = Node::new(&path.join(format!("files-{of}")), of);
        let mut archiver = Archiver::new(&path.join(format!("archive/node-{of}")), decode).unwrap();
        archiver.copy_state(&state(of, 3, 1, &[])).unwrap();
        archiver.copy_state(&state(of, 4, 1, &[])).unwrap();
        for epoch in (10..=50).step_by(10) {
            if epoch == 30 {
                archiver.copy_state(&state(of, 6, 2, &[])).unwrap();
            }
            node.put(epoch, epoch as u8, epoch, Some(&[epoch as u8, 7]));
            // Node 2 is being filled at first.
            node.seal(epoch, if epoch < 30 { 4 } else { 7 }, of == 1 || epoch > 20);
            node.write(1);
            archiver.copy_logs(&node.logs()).unwrap();
            archiver.note_time(1_000 * epoch).unwrap();
        }
        archiver.copy_state(&state(of, 9, 3, &[])).unwrap();
        archivers.push(archiver);
    }
    let open = || Archive::open(&[path.join("archive")], CLUSTER, decode, |_| {}).unwrap();
    let moment = |archive: &Archive, until| archive.moment(Epoch::new(10), until);
    let words = |refused: Result<Moment, crate::BackupError>| refused.unwrap_err().to_string();
    let archive = open();
    assert_eq!(moment(&archive, Until::End).unwrap().epoch, Epoch::new(50));
    let at = moment(&archive, Until::Time(29_999)).unwrap();
    assert_eq!((at.epoch, at.at_ms, at.kept.commands), (Epoch::new(20), Some(20_000), 3));
    let sealed = moment(&archive, Until::Epoch(Epoch::new(25))).unwrap();
    assert_eq!((sealed.epoch, sealed.kept.commands), (Epoch::new(25), 3));
    let later = moment(&archive, Until::Time(30_000)).unwrap();
    assert_eq!((later.epoch, later.kept.catalog.version), (Epoch::new(30), 2));
    let end = moment(&archive, Until::End).unwrap();
    assert_eq!(
        (end.epoch, end.kept.catalog.version),
        (Epoch::new(50), 3),
        "a table was dropped at rest"
    );
    assert!(words(moment(&archive, Until::Time(50_001))).contains("1970-01-01 00:00:50"));
    assert!(words(moment(&archive, Until::Epoch(Epoch::new(4)))).contains("earlier backup"));
    let log = |node: u16, number: u32| {
        path.join(format!("archive/node-{node}/redo-0-{number:010}-0000000001.log"))
    };
    // One node without a segment does not matter; both do.
    fs::remove_file(log(1, 4)).unwrap();
    assert_eq!(moment(&open(), Until::End).unwrap().epoch, Epoch::new(50));
    assert_eq!(rows_of(&open(), span(10, 50), 1 << 20).0.len(), 4);
    let damaged = fs::read(log(2, 4)).unwrap();
    fs::write(log(2, 4), &damaged[..damaged.len() - END_BYTES]).unwrap();
    let archive = open();
    assert!(words(moment(&archive, Until::Epoch(Epoch::new(40)))).contains("epochs 31 to 40"));
    assert_eq!(moment(&archive, Until::End).unwrap().epoch, Epoch::new(30));
    fs::remove_dir_all(&path).unwrap();
    drop(archivers);
}

#[test]
fn another_clusters_archive_is_refused() {
    let path = directory("other");
    let mut node = Node::new(&path.join("files"), 1);
    let mut archiver = Archiver::new(&path.join("archive"), decode).unwrap();
    archiver.copy_state(&state(1, 3, 1, &[])).unwrap();
    node.put(1, 1, 1, None);
    node.seal(1, 3, true);
    node.write(1);
    archiver.copy_logs(&node.logs()).unwrap();
    let open = |cluster| Archive::open(&[path.join("archive")], cluster, decode, |_| {});
    assert!(open(CLUSTER).is_ok());
    let refused = open(8).unwrap_err().to_string();
    assert!(refused.contains("no redo logs and states of cluster 0000000000000008"), "{refused}");
    fs::remove_dir_all(path).unwrap();
}
