//! Changes that are told instead of the whole catalog (SCHEMA-6), and those that are refused.

use super::table;
use crate::{Builder, Catalog, CatalogUpdate, Change, EncodedCatalog, PutWay, ViewDef, temporary};
use lats_base::{Incarnation, NodeId, TableId, prng::Prng};
use std::{format, string::String, vec, vec::Vec};

const NAMES: u64 = 12;

/// Any change; many of them are refused.
fn some_change(random: &mut Prng, ids: &[TableId]) -> Change {
    let database = || String::from("test");
    let mut name = || format!("t{}", random.below(NAMES));
    let (one, other) = (name(), name());
    let id = |random: &mut Prng| ids[random.below(ids.len() as u64) as usize];
    let builder = Builder { node: NodeId::new(1), incarnation: Incarnation::new(7) };
    match random.below(14) {
        0..4 => table(&one, 2, 0),
        4 => Change::DropTable { database: database(), name: one, if_exists: random.below(2) == 0 },
        5 => Change::TruncateTable { database: database(), name: one },
        6 => Change::Rename {
            pairs: vec![
                ((database(), one.clone()), (database(), "between".into())),
                ((database(), other.clone()), (database(), one)),
                ((database(), "between".into()), (database(), other)),
            ],
        },
        7 | 8 => Change::CreateIndex {
            database: database(),
            table: one,
            name: other,
            columns: vec![1],
            builder: (random.below(2) == 0).then_some(builder),
        },
        9 => Change::DropIndex { database: database(), table: one, name: other },
        10 => Change::IndexReady { table: id(random), entries: id(random) },
        11 => {
            let mut change = table("", 2, 0);
            if let Change::CreateTable { table, .. } = &mut change {
                table.database = String::new();
                table.name = temporary::name(builder, random.below(4));
                return Change::CreateTemporary { table: table.clone() };
            }
            change
        }
        12 => Change::PutView {
            view: ViewDef { database: database(), name: one, ..ViewDef::default() },
            way: PutWay::NewOrReplace,
        },
        _ if random.below(8) == 0 => Change::DropDatabase { name: database(), if_exists: true },
        _ => Change::CreateDatabase { name: database(), if_not_exists: true },
    }
}

fn all_ids(catalog: &Catalog) -> Vec<TableId> {
    catalog.tables.keys().copied().collect()
}

/// Names lead to what has them, and to nothing else.
fn check_names(catalog: &Catalog) {
    for def in catalog.tables.definitions() {
        let found = catalog.table(&def.database, &def.name).map(|found| found.id);
        assert_eq!(found == Some(def.id), def.index_of.is_none(), "{}", def.name);
    }
    for view in catalog.views.definitions() {
        assert_eq!(catalog.view(&view.database, &view.name).map(|found| found.id), Some(view.id));
    }
    let hidden: Vec<TableId> = catalog
        .tables
        .definitions()
        .flat_map(|t| t.unique_indexes())
        .map(|(_, u)| u.table)
        .collect();
    let kept = catalog.tables.definitions().filter(|t| t.index_of.is_some()).map(|t| t.id);
    assert!(kept.eq(hidden.iter().copied().collect::<std::collections::BTreeSet<_>>()));
}

#[test]
fn whoever_is_told_the_changes_has_the_same_catalog() {
    for seed in 0..40 {
        let mut random = Prng::new(seed);
        let mut catalog = Catalog::initial();
        // Readers that ask now and then, as clients do.
        let mut readers = vec![Catalog::default(); 4];
        let mut encoded = EncodedCatalog::default();
        for _ in 0..400 {
            let (ids, before) = (all_ids(&catalog), catalog.clone());
            if catalog.apply(&some_change(&mut random, &ids), 2).is_err() {
                assert_eq!(catalog, before, "a change that is refused changes nothing");
            }
            if random.below(50) == 0 {
                let builder = Builder { node: NodeId::new(1), incarnation: Incarnation::new(7) };
                catalog.drop_builds_of(builder);
            }
            check_names(&catalog);
            if random.below(2) == 0 {
                let mut bytes = vec![crate::FORMAT];
                encoded.append(&catalog, &mut bytes);
                assert!(bytes == catalog.encode(), "what is kept up to date is the encoding");
            }
            let reader = &mut readers[random.below(4) as usize];
            if random.below(3) == 0 {
                let bytes = catalog.update_since(reader.version);
                reader.update(crate::decode::<CatalogUpdate>(&bytes).unwrap());
                assert_eq!(*reader, catalog);
                check_names(reader);
            }
        }
        // Who has read it whole counts the same bytes as who has made each change.
        let mut read = Catalog::decode(&catalog.encode()).unwrap();
        assert_eq!(read.definition_bytes(), catalog.definition_bytes());
    }
}

#[test]
fn changes_are_told_and_not_the_whole() {
    let mut catalog = super::with_database();
    for number in 0..100 {
        catalog.apply(&table(&format!("t{number}"), 2, 0), 2).unwrap();
    }
    let before = catalog.version;
    catalog.apply(&table("another", 2, 0), 2).unwrap();
    let changes = catalog.changes_since(before).unwrap();
    assert_eq!((changes.tables.len(), changes.gone.len()), (1, 0));
    assert!(catalog.update_since(before).len() * 20 < catalog.encode().len());
    // Who has read the catalog does not know what was before, and tells the whole.
    let read = Catalog::decode(&catalog.encode()).unwrap();
    assert!(read.changes_since(before).is_none());
    let whole: CatalogUpdate = crate::decode(&read.update_since(before)).unwrap();
    assert_eq!(whole, CatalogUpdate::Whole(catalog));
}

#[test]
fn what_was_long_ago_is_forgotten() {
    let mut catalog = super::with_database();
    let first = catalog.version;
    let text = |number| (String::from("test"), format!("t{number}"));
    for number in 0..3_000 {
        catalog.apply(&table("t0", 1, 0), 2).unwrap_or_default();
        let (from, to) = (text(number), text(number + 1));
        catalog.apply(&Change::Rename { pairs: vec![(from, to)] }, 2).unwrap();
        let gone = text(number + 1);
        if number % 2 == 1 {
            let gone = Change::DropTable { database: gone.0, name: gone.1, if_exists: false };
            catalog.apply(&gone, 2).unwrap();
            catalog.apply(&table(&text(number + 1).1, 1, 0), 2).unwrap();
        }
    }
    assert!(catalog.changes_since(first).is_none());
    let lately = catalog.changes_since(catalog.version - 100).unwrap();
    assert!(lately.tables.len() + lately.gone.len() <= 100);
}

#[test]
fn after_a_restart_no_version_is_given_again() {
    let mut kept = super::with_database();
    let mut lived = kept.clone();
    for number in 0..3 {
        // It was heard of, and is void: the cluster restarts with the older catalog.
        lived.apply(&table(&format!("void{number}"), 1, 0), 2).unwrap();
    }
    kept.begin_again(1);
    for number in 0..3 {
        kept.apply(&table(&format!("t{number}"), 1, 0), 2).unwrap();
        let bytes = kept.update_since(lived.version);
        lived.update(crate::decode(&bytes).unwrap());
        assert_eq!(lived, kept);
    }
}

#[test]
fn an_update_with_a_gap_is_not_taken() {
    let mut catalog = super::with_database();
    for number in 0..3 {
        catalog.apply(&table(&format!("t{number}"), 1, 0), 2).unwrap();
    }
    let update = CatalogUpdate::Changes(catalog.changes_since(catalog.version - 1).unwrap());
    let mut old = Catalog::initial();
    let before = old.clone();
    assert!(old.is_far_from(&update));
    old.update(update);
    assert_eq!(old, before);
}
