//! Files of backups: what is written is read, and what has changed since is noticed.

use crate::{
    BackupError, MANIFEST_FILE, Manifest, Place, Progress, TableEntry,
    format::{push_row, rows},
    read, verify,
    write::Writer,
};
use lats_base::{Epoch, TableId};
use lats_catalog::{Catalog, ColumnDef, TableDef};
use lats_values::{ColumnType, TypeKind, Value};
use std::{
    fs,
    path::{Path, PathBuf},
};

const CLUSTER: u64 = 7;
const EPOCH: Epoch = Epoch::new(42);
const ROWS: i64 = 100;

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lats-backup-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn table() -> TableDef {
    let column = |name: &str| ColumnDef::new(name, ColumnType::new(TypeKind::BigInt).not_null());
    TableDef {
        id: TableId::new(9),
        schema_version: 1,
        fragment_count: 4,
        ..TableDef::new("test", "t", vec![column("id"), column("n")], vec![0])
    }
}

/// A backup of a table, in blocks of ten rows.
fn write(directory: &Path, epoch: Epoch) -> Manifest {
    let def = table();
    let mut catalog = Catalog::initial();
    catalog.tables.insert(def.clone());
    let mut writer = Writer::new(&Place::from(directory), (CLUSTER, epoch)).unwrap();
    let mut entry = TableEntry { table: def.id, ..TableEntry::default() };
    for first in (0..ROWS).step_by(10) {
        let mut block = Vec::new();
        for id in first..first + 10 {
            let mut row = Vec::new();
            def.layout().encode(&[Value::Int(id), Value::Int(id * id)], &mut row).unwrap();
            push_row(&mut block, &row);
            entry.rows += 1;
            entry.bytes += row.len() as u64;
        }
        writer.add(def.id, 10, &block).unwrap();
    }
    let manifest = Manifest {
        is_durable: true,
        software: "0".to_string(),
        cluster: CLUSTER,
        epoch,
        taken_at_ms: 0,
        took_ms: 0,
        catalog,
        tables: vec![entry],
        parts: Vec::new(),
    };
    writer.finish(manifest).unwrap()
}

/// What is wrong with a backup.
fn faults(directory: &Path) -> Vec<String> {
    match verify(&Place::from(directory), &Progress::default()) {
        Ok(verified) => verified.faults,
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn what_is_written_is_read() {
    let path = directory("read");
    let written = write(&path, EPOCH);
    assert_eq!(read::manifest(&Place::from(&*path)).unwrap(), written);
    assert_eq!((written.parts.len(), written.parts[0].blocks), (1, 10));
    assert_eq!(faults(&path), Vec::<String>::new());
    let mut part = read::open_part(&Place::from(&*path), &written, &written.parts[0]).unwrap();
    let (layout, mut next) = (table().layout(), 0);
    while let Some(block) = part.next().unwrap() {
        for row in rows(&block.bytes) {
            assert_eq!(layout.decode(row.unwrap()), [Value::Int(next), Value::Int(next * next)]);
            next += 1;
        }
    }
    assert_eq!(next, ROWS);
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn every_bit_that_is_another_is_noticed() {
    let path = directory("bits");
    write(&path, EPOCH);
    for name in ["rows-0001.lats", MANIFEST_FILE] {
        let file = path.join(name);
        let bytes = fs::read(&file).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&file, &damaged).unwrap();
            assert_ne!(faults(&path), Vec::<String>::new(), "byte {at} of {name} is not missed");
        }
        for length in (0..bytes.len()).step_by(7) {
            fs::write(&file, &bytes[..length]).unwrap();
            assert_ne!(faults(&path), Vec::<String>::new(), "{length} bytes of {name} are enough");
        }
        fs::write(&file, &bytes).unwrap();
    }
    assert_eq!(faults(&path), Vec::<String>::new());
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn parts_that_are_missing_or_of_another_backup_are_noticed() {
    let (path, other) = (directory("own"), directory("other"));
    write(&path, EPOCH);
    write(&other, Epoch::new(43));
    let name = "rows-0001.lats";
    fs::copy(other.join(name), path.join(name)).unwrap();
    let found = faults(&path);
    assert!(found[0].contains("belongs to another backup"), "{found:?}");
    fs::remove_file(path.join(name)).unwrap();
    assert!(faults(&path)[0].contains(name));
    fs::remove_file(path.join(MANIFEST_FILE)).unwrap();
    let refused = read::manifest(&Place::from(&*path)).unwrap_err();
    assert!(matches!(refused, BackupError::Refused(_)), "{refused}");
    fs::remove_dir_all(path).unwrap();
    fs::remove_dir_all(other).unwrap();
}

#[test]
fn rows_that_are_cut_off_are_noticed() {
    let mut block = Vec::new();
    push_row(&mut block, b"one");
    push_row(&mut block, b"");
    push_row(&mut block, b"three");
    let whole: Vec<&[u8]> = rows(&block).map(Result::unwrap).collect();
    assert_eq!(whole, [&b"one"[..], b"", b"three"]);
    for length in 0..block.len() {
        let found: Vec<bool> = rows(&block[..length]).map(|row| row.is_ok()).collect();
        let ends = [0, 7, 11].contains(&length);
        assert_eq!(found.last().copied().unwrap_or(true), ends, "{length} bytes: {found:?}");
    }
}

#[test]
fn a_backup_may_be_in_an_object_store() {
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let place = tokio.block_on(async { Place::named("memory:///backups/daily/1", []) }).unwrap();
    place.prepare().unwrap();
    assert!(place.prepare().unwrap_err().to_string().contains("not empty"));
    assert!(read::manifest(&place).unwrap_err().to_string().contains("is no backup"));
    let def = table();
    let mut catalog = Catalog::initial();
    catalog.tables.insert(def.clone());
    // More than is sent or asked for at once.
    let mut random = lats_base::prng::Prng::new(5);
    let blocks: Vec<Vec<u8>> = (0..7)
        .map(|_| (0..3 << 17).flat_map(|_| random.next_u64().to_le_bytes()).collect())
        .collect();
    let mut writer = Writer::new(&place, (CLUSTER, Epoch::new(9))).unwrap();
    for block in &blocks {
        writer.add(def.id, 1, block).unwrap();
    }
    let manifest = Manifest {
        is_durable: true,
        software: "0".to_string(),
        cluster: CLUSTER,
        epoch: Epoch::new(9),
        taken_at_ms: 0,
        took_ms: 0,
        catalog,
        tables: Vec::new(),
        parts: Vec::new(),
    };
    let written = writer.finish(manifest).unwrap();
    assert_eq!(read::manifest(&place).unwrap(), written);
    let mut part = read::open_part(&place, &written, &written.parts[0]).unwrap();
    for block in &blocks {
        assert!(part.next().unwrap().unwrap().bytes == *block);
    }
    assert!(part.next().unwrap().is_none());
    // An attempt that comes to nothing leaves nothing.
    let mut writer = Writer::new(&place, (CLUSTER, Epoch::new(10))).unwrap();
    writer.add(def.id, 1, &blocks[0]).unwrap();
    drop(writer);
    place.clear().unwrap();
    assert!(read::manifest(&place).unwrap_err().to_string().contains("is no backup"));
    assert!(place.prepare().is_err(), "it is still ours");
    place.release().unwrap();
    place.prepare().unwrap();
    for text in ["ftp://host/x", "s3:///x", "file:///tmp/x"] {
        let refused = tokio.block_on(async { Place::named(text, []) }).err().unwrap().to_string();
        assert!(refused.contains("name a directory, or s3://"), "{refused}");
    }
}

/// What a release without views has written of the table `test.t` with a row.
const BEFORE_VIEWS: &str = "4c415453424b55500100000030000000d76bfb294e58449da7010000000000000000000001000000dd1b62f2ef3068b55ee2 \
384cdd8a43aee4000000150100000000000000000000010000000000000028b52ffd601500d50600e28c2e30604dd301b061 \
05182d006bcfbe56b050ce1afc44d60c68bd43d0a2fb031a3db46218422732838d9c046c89a441a44c32d27fe79a7965aecf \
8bf520264bc2c91cb0702efc00610caba9e9e429d8fc6ee673ff47ff177bf3dc676bd173dfb57fd5ec2bc24186d5931c5b5c \
e1fa49eda2b354280a1406844a02b46069382078669e2fea51408d71259067e0043115bd0ed0c80e155f131cdbffedc8cd44 \
30f6a31a55cd0c343e403c38b6e3191b1817222123592679268f04e0010a001e23009d1dc9eb78b4182a892ce2a18d46897b \
b3ccb8213ad9d403";

#[test]
fn a_backup_without_views_is_read() {
    let directory = directory("before-views");
    let digits: Vec<u32> = BEFORE_VIEWS.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes = digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap());
    fs::write(directory.join(MANIFEST_FILE), bytes.collect::<Vec<u8>>()).unwrap();
    let manifest = read::manifest(&Place::from(directory.as_path())).unwrap();
    assert_eq!(manifest.catalog.table("test", "t").unwrap().indexes.len(), 1);
    assert!(manifest.catalog.views.is_empty());
    assert_eq!(manifest.parts.len(), 1);
    fs::remove_dir_all(&directory).unwrap();
}
