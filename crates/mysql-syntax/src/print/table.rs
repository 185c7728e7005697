//! CREATE TABLE, ALTER TABLE, CREATE INDEX and CREATE VIEW.

use super::Printer;
use crate::Keyword;
use crate::tree::{
    AlterAction, AlterTable, CheckOption, CreateIndex, CreateTable, CreateView, KeyDef, KeyKind,
    Place, TableContent, TableElement,
};

impl Printer<'_> {
    pub(super) fn create_table(&mut self, create: &CreateTable) {
        self.word("CREATE");
        self.word_if(create.is_temporary, "TEMPORARY");
        self.word("TABLE");
        self.word_if(create.if_not_exists, "IF NOT EXISTS");
        self.table_name(create.table);
        match &create.content {
            TableContent::Like { table, has_parentheses } => {
                self.word(if *has_parentheses { "(LIKE" } else { "LIKE" });
                self.table_name(*table);
                if *has_parentheses {
                    self.raw(")");
                }
            }
            TableContent::Elements { elements, options, partitioning, duplicates, query } => {
                if !elements.is_empty() {
                    self.elements(elements);
                }
                options.iter().for_each(|option| self.table_option(option));
                if let Some(partitioning) = partitioning {
                    self.partitioning(partitioning);
                }
                self.keyword(*duplicates);
                if let Some(query) = query {
                    self.word("AS");
                    self.query(*query);
                }
            }
        }
    }

    fn elements(&mut self, elements: &[TableElement]) {
        self.word("(");
        self.commas_ref(elements, Self::element);
        self.raw(")");
    }

    fn element(&mut self, element: &TableElement) {
        match element {
            TableElement::Column(column) => self.column_def(column),
            TableElement::Key(key) => self.key(key),
            TableElement::ForeignKey(key) => {
                self.constraint(key.has_constraint, key.constraint);
                self.word("FOREIGN KEY");
                if key.name.is_some() {
                    self.name(key.name);
                }
                self.names_in_parentheses(&key.columns);
                self.references(&key.references);
            }
            TableElement::Check(check) => self.check(*check),
        }
    }

    fn key(&mut self, key: &KeyDef) {
        self.constraint(key.has_constraint, key.constraint);
        self.word(match key.kind {
            KeyKind::Index => "KEY",
            KeyKind::Unique => "UNIQUE KEY",
            KeyKind::Primary => "PRIMARY KEY",
            KeyKind::Fulltext => "FULLTEXT KEY",
            KeyKind::Spatial => "SPATIAL KEY",
        });
        if key.name.is_some() {
            self.name(key.name);
        }
        self.key_algorithm(key.algorithm);
        self.key_parts(key);
        key.options.iter().for_each(|option| self.key_option(*option));
    }

    fn key_algorithm(&mut self, algorithm: Keyword) {
        self.word_if(algorithm != Keyword::None, "USING");
        self.keyword(algorithm);
    }

    pub(super) fn create_index(&mut self, create: &CreateIndex) {
        self.word("CREATE");
        match create.key.kind {
            KeyKind::Unique => self.word("UNIQUE"),
            KeyKind::Fulltext => self.word("FULLTEXT"),
            KeyKind::Spatial => self.word("SPATIAL"),
            _ => {}
        }
        self.name_behind("INDEX", create.key.name);
        self.key_algorithm(create.key.algorithm);
        self.word("ON");
        self.table_name(create.table);
        self.key_parts(&create.key);
        create.key.options.iter().for_each(|option| self.key_option(*option));
        create.lock_and_algorithm.iter().for_each(|action| self.alter_action(action));
    }

    pub(super) fn alter_table(&mut self, alter: &AlterTable) {
        self.word("ALTER TABLE");
        self.table_name(alter.table);
        for (at, action) in alter.actions.iter().enumerate() {
            let is_partitioning =
                matches!(action, AlterAction::PartitionBy(_) | AlterAction::RemovePartitioning);
            if at > 0 && !is_partitioning {
                self.raw(",");
            }
            self.alter_action(action);
        }
    }

    fn place(&mut self, place: Place) {
        match place {
            Place::None => {}
            Place::First => self.word("FIRST"),
            Place::After(name) => self.name_behind("AFTER", name),
        }
    }

    pub(super) fn alter_action(&mut self, action: &AlterAction) {
        use AlterAction as A;
        match action {
            A::Add { element, place } => {
                self.word(if matches!(element, TableElement::Column(_)) {
                    "ADD COLUMN"
                } else {
                    "ADD"
                });
                self.element(element);
                self.place(*place);
            }
            A::AddMany(elements) => {
                self.word("ADD COLUMN");
                self.elements(elements);
            }
            A::Change { old, column, place } => {
                self.name_behind("CHANGE COLUMN", *old);
                self.column_def(column);
                self.place(*place);
            }
            A::Modify { column, place } => {
                self.word("MODIFY COLUMN");
                self.column_def(column);
                self.place(*place);
            }
            A::DropColumn(name) => self.name_behind("DROP COLUMN", *name),
            A::DropForeignKey(name) => self.name_behind("DROP FOREIGN KEY", *name),
            A::DropPrimaryKey => self.word("DROP PRIMARY KEY"),
            A::DropKey(name) => self.name_behind("DROP KEY", *name),
            A::DropCheck(name) => self.name_behind("DROP CHECK", *name),
            A::DropConstraint(name) => self.name_behind("DROP CONSTRAINT", *name),
            A::DisableKeys => self.word("DISABLE KEYS"),
            A::EnableKeys => self.word("ENABLE KEYS"),
            A::SetDefault { column, value, has_parentheses } => {
                self.name_behind("ALTER COLUMN", *column);
                self.word("SET DEFAULT");
                self.word_if(*has_parentheses, "(");
                self.expr(*value);
                if *has_parentheses {
                    self.raw(")");
                }
            }
            other => self.other_action(other),
        }
    }

    fn other_action(&mut self, action: &AlterAction) {
        use AlterAction as A;
        match action {
            A::DropDefault(column) => {
                self.name_behind("ALTER COLUMN", *column);
                self.word("DROP DEFAULT");
            }
            A::ColumnVisibility { column, is_visible } => {
                self.name_behind("ALTER COLUMN", *column);
                self.word(if *is_visible { "SET VISIBLE" } else { "SET INVISIBLE" });
            }
            A::IndexVisibility { index, is_visible } => {
                self.name_behind("ALTER INDEX", *index);
                self.word(if *is_visible { "VISIBLE" } else { "INVISIBLE" });
            }
            A::Enforce { is_check, name, is_enforced } => {
                self.name_behind(if *is_check { "ALTER CHECK" } else { "ALTER CONSTRAINT" }, *name);
                self.word(if *is_enforced { "ENFORCED" } else { "NOT ENFORCED" });
            }
            A::RenameColumn { old, new } => {
                self.name_behind("RENAME COLUMN", *old);
                self.name_behind("TO", *new);
            }
            A::RenameTo(table) => {
                self.word("RENAME TO");
                self.table_name(*table);
            }
            A::RenameKey { old, new } => {
                self.name_behind("RENAME KEY", *old);
                self.name_behind("TO", *new);
            }
            A::ConvertTo { charset, collation } => {
                self.word("CONVERT TO CHARACTER SET");
                if charset.is_some() {
                    self.name(*charset);
                } else {
                    self.word("DEFAULT");
                }
                self.name_behind("COLLATE", *collation);
            }
            A::Force => self.word("FORCE"),
            A::OrderBy(order) => self.order_by(order),
            A::Options(options) => options.iter().for_each(|option| self.table_option(option)),
            A::Algorithm(name) => self.default_or_name("ALGORITHM =", *name),
            A::Lock(name) => self.default_or_name("LOCK =", *name),
            A::WithValidation => self.word("WITH VALIDATION"),
            A::WithoutValidation => self.word("WITHOUT VALIDATION"),
            A::PartitionBy(partitioning) => self.partitioning(partitioning),
            A::RemovePartitioning => self.word("REMOVE PARTITIONING"),
            A::Other { text, .. } => self.source(*text),
            _ => {}
        }
    }

    fn default_or_name(&mut self, word: &str, name: crate::tree::Text) {
        self.word(word);
        if self.tree.text(name) == b"DEFAULT" {
            self.word("DEFAULT");
        } else {
            self.name(name);
        }
    }

    pub(super) fn create_view(&mut self, view: &CreateView) {
        self.word(if view.is_alter { "ALTER" } else { "CREATE" });
        self.word_if(view.or_replace, "OR REPLACE");
        self.word_if(view.algorithm != Keyword::None, "ALGORITHM =");
        self.keyword(view.algorithm);
        if let Some(definer) = view.definer {
            self.word("DEFINER =");
            self.account(definer);
        }
        self.word_if(view.security != Keyword::None, "SQL SECURITY");
        self.keyword(view.security);
        self.word("VIEW");
        self.table_name(view.view);
        self.names_in_parentheses(&view.columns);
        self.word("AS");
        self.query(view.query);
        match view.check {
            CheckOption::None => {}
            CheckOption::Cascaded => self.word("WITH CASCADED CHECK OPTION"),
            CheckOption::Local => self.word("WITH LOCAL CHECK OPTION"),
        }
    }
}
