//! Temporary tables. Each is a table like others, but in no database, so that nobody can name it but the session that has made it; and
//! its own name says which process that is. When the process dies, so do its temporary tables, as do the indexes that it builds
//! (UNIQUE-7).

use crate::{Builder, TableDef};
use alloc::{format, string::String};
use lats_base::{Incarnation, NodeId};

/// The name of a process's temporary table; `number` is another one for each.
pub fn name(owner: Builder, number: u64) -> String {
    format!("#{}.{}.{number}", owner.node, owner.incarnation)
}

/// The process whose temporary table has this name; none if it is no such name.
pub(crate) fn owner(name: &str) -> Option<Builder> {
    let mut parts = name.strip_prefix('#')?.splitn(3, '.');
    let node = NodeId::new(parts.next()?.parse().ok()?);
    let incarnation = Incarnation::new(parts.next()?.parse().ok()?);
    let _: u64 = parts.next()?.parse().ok()?;
    Some(Builder { node, incarnation })
}

impl TableDef {
    /// The process that it belongs to, if it is a temporary table.
    pub fn owner(&self) -> Option<Builder> {
        let is_nowhere = self.database.is_empty() && self.index_of.is_none();
        is_nowhere.then(|| owner(&self.name)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalog, Change, ChangeErrorKind, ColumnDef};
    use lats_values::{ColumnType, TypeKind};

    fn builder(node: u16, life: u32) -> Builder {
        Builder { node: NodeId::new(node), incarnation: Incarnation::new(life) }
    }

    fn table(name: &str) -> TableDef {
        let column = ColumnDef::new("id", ColumnType::new(TypeKind::Int).not_null());
        TableDef::new("", name, alloc::vec![column], alloc::vec![0])
    }

    #[test]
    fn names_say_whose_a_table_is() {
        let longest = name(builder(u16::MAX, u32::MAX), u64::MAX);
        assert!(longest.len() <= lats_base::limits::NAME_CHARS_MAX, "{longest}");
        assert_eq!(table(&longest).owner(), Some(builder(u16::MAX, u32::MAX)));
        for other in ["#1.2", "1.2.3", "#a.2.3", "#1.2.3.4", ""] {
            assert_eq!(table(other).owner(), None, "{other}");
        }
        let named = TableDef { database: "test".into(), ..table(&longest) };
        assert_eq!(named.owner(), None);
    }

    #[test]
    fn a_process_takes_its_tables_with_it() {
        let (one, two) = (builder(1, 7), builder(1, 8));
        let mut catalog = Catalog::initial();
        for (owner, number) in [(one, 1), (one, 2), (two, 1)] {
            let table = table(&name(owner, number));
            catalog.apply(&Change::CreateTemporary { table }, 2).unwrap();
        }
        let again = Change::CreateTemporary { table: table(&name(one, 1)) };
        assert_eq!(catalog.apply(&again, 2).unwrap_err().kind, ChangeErrorKind::TableExists);
        let visible = Change::CreateTemporary {
            table: TableDef { database: "test".into(), ..table(&name(one, 3)) },
        };
        assert_eq!(catalog.apply(&visible, 2).unwrap_err().kind, ChangeErrorKind::NotSupported);
        let gone = Change::DropDatabase { name: "test".into(), if_exists: false };
        catalog.apply(&gone, 2).unwrap();
        let count = |catalog: &Catalog| catalog.tables.values().filter_map(|t| t.owner()).count();
        assert_eq!(count(&catalog), 3);
        let version = catalog.version;
        catalog.drop_builds_of(one);
        assert_eq!((count(&catalog), catalog.version), (1, version + 1));
        catalog.drop_builds_of(one);
        assert_eq!((count(&catalog), catalog.version), (1, version + 1));
        catalog.drop_builds_of(two);
        assert_eq!(count(&catalog), 0);
    }
}
