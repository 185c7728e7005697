//! ALTER TABLE.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{AlterAction, AlterTable, OrderItem, Place, Statement, TableElement, Text};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Actions that stand alone, and that LatsDB has not.
const ALONE: &[(&str, &str)] = &[
    ("ALTER TABLE DISCARD TABLESPACE", "DISCARD TABLESPACE"),
    ("ALTER TABLE IMPORT TABLESPACE", "IMPORT TABLESPACE"),
    ("ALTER TABLE SECONDARY_LOAD", "SECONDARY_LOAD [ PARTITION ( { <name> }, ) ]"),
    ("ALTER TABLE SECONDARY_UNLOAD", "SECONDARY_UNLOAD [ PARTITION ( { <name> }, ) ]"),
    (
        "ALTER TABLE ADD PARTITION",
        "ADD PARTITION [ NO_WRITE_TO_BINLOG | LOCAL ] { PARTITIONS <int> | <partitions> }",
    ),
    ("ALTER TABLE DROP PARTITION", "DROP PARTITION { <name> },"),
    (
        "ALTER TABLE REBUILD PARTITION",
        "REBUILD PARTITION [ NO_WRITE_TO_BINLOG | LOCAL ] { ALL | { <name> }, }",
    ),
    (
        "ALTER TABLE OPTIMIZE PARTITION",
        "OPTIMIZE PARTITION [ NO_WRITE_TO_BINLOG | LOCAL ] { ALL | { <name> }, }",
    ),
    (
        "ALTER TABLE ANALYZE PARTITION",
        "ANALYZE PARTITION [ NO_WRITE_TO_BINLOG | LOCAL ] { ALL | { <name> }, }",
    ),
    (
        "ALTER TABLE CHECK PARTITION",
        "CHECK PARTITION { ALL | { <name> }, } [ FOR UPGRADE | QUICK | FAST | MEDIUM | EXTENDED | CHANGED ]*",
    ),
    (
        "ALTER TABLE REPAIR PARTITION",
        "REPAIR PARTITION [ NO_WRITE_TO_BINLOG | LOCAL ] { ALL | { <name> }, } [ QUICK | EXTENDED | USE_FRM ]*",
    ),
    ("ALTER TABLE COALESCE PARTITION", "COALESCE PARTITION [ NO_WRITE_TO_BINLOG | LOCAL ] <int>"),
    ("ALTER TABLE TRUNCATE PARTITION", "TRUNCATE PARTITION { ALL | { <name> }, }"),
    (
        "ALTER TABLE REORGANIZE PARTITION",
        "REORGANIZE PARTITION [ NO_WRITE_TO_BINLOG | LOCAL ] [ { <name> }, INTO <partitions> ]",
    ),
    (
        "ALTER TABLE EXCHANGE PARTITION",
        "EXCHANGE PARTITION <name> WITH TABLE <table> [ WITH VALIDATION | WITHOUT VALIDATION ]",
    ),
    ("ALTER TABLE DISCARD PARTITION", "DISCARD PARTITION { ALL | { <name> }, } TABLESPACE"),
    ("ALTER TABLE IMPORT PARTITION", "IMPORT PARTITION { ALL | { <name> }, } TABLESPACE"),
];

impl Parser<'_> {
    pub(super) fn alter_table(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let table = self.table_name()?;
        let mut actions = Vec::new();
        while let Some(action) = self.lock_or_algorithm()? {
            actions.push(action);
            if !self.eat(Kind::Comma) {
                return self.altered(table, actions);
            }
        }
        for (name, pattern) in ALONE {
            if self.starts(pattern) {
                let first = self.at;
                let pool = self.tree.bytes.len();
                self.follow(pattern)?;
                self.tree.bytes.truncate(pool);
                let text = self.raw_from(first);
                actions.push(AlterAction::Other { name, text });
                return self.altered(table, actions);
            }
        }
        let ends = matches!(self.token().kind, Kind::End | Kind::Semicolon);
        if !ends || !actions.is_empty() {
            loop {
                if self.is_word(K::PARTITION) || self.eat_words(&[K::REMOVE, K::PARTITIONING]) {
                    self.partition_action(&mut actions)?;
                    break;
                }
                let action = self.alter_action()?;
                actions.push(action);
                let at_partition =
                    self.is_word(K::PARTITION) || self.are_words(&[K::REMOVE, K::PARTITIONING]);
                if !at_partition && !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        self.altered(table, actions)
    }

    fn partition_action(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        let action = if self.is_word(K::PARTITION) {
            AlterAction::PartitionBy(Box::new(self.partitioning()?))
        } else {
            AlterAction::RemovePartitioning
        };
        actions.push(action);
        Ok(())
    }

    #[allow(clippy::unnecessary_wraps, reason = "it ends the statement, as all that may fail does")]
    fn altered(
        &mut self,
        table: crate::tree::TableName,
        actions: Vec<AlterAction>,
    ) -> Result<Statement> {
        Ok(Statement::AlterTable(Box::new(AlterTable { table, actions })))
    }

    fn alter_action(&mut self) -> Result<AlterAction> {
        if let Some(action) = self.lock_or_algorithm()? {
            return Ok(action);
        }
        match self.token().word {
            K::ADD => self.add_action(),
            K::CHANGE => {
                self.advance();
                self.eat_word(K::COLUMN);
                let old = self.name()?;
                let name = self.name()?;
                let column = Box::new(self.column_def(name)?);
                Ok(AlterAction::Change { old, column, place: self.place()? })
            }
            K::MODIFY => {
                self.advance();
                self.eat_word(K::COLUMN);
                let name = self.name()?;
                let column = Box::new(self.column_def(name)?);
                Ok(AlterAction::Modify { column, place: self.place()? })
            }
            K::DROP => self.drop_action(),
            K::ALTER => self.alter_column_action(),
            K::RENAME => self.rename_action(),
            K::DISABLE | K::ENABLE => {
                let is_disable = self.is_word(K::DISABLE);
                self.advance();
                self.expect_word(K::KEYS)?;
                Ok(if is_disable { AlterAction::DisableKeys } else { AlterAction::EnableKeys })
            }
            K::CONVERT => {
                self.advance();
                self.expect_word(K::TO)?;
                if !self.eat_charset() {
                    return Err(self.error());
                }
                let charset =
                    if self.eat_word(K::DEFAULT) { Text::NONE } else { self.charset_name()? };
                let collation =
                    if self.eat_word(K::COLLATE) { self.collation_name()? } else { Text::NONE };
                Ok(AlterAction::ConvertTo { charset, collation })
            }
            K::FORCE => {
                self.advance();
                Ok(AlterAction::Force)
            }
            K::WITH | K::WITHOUT => {
                let is_with = self.is_word(K::WITH);
                self.advance();
                self.expect_word(K::VALIDATION)?;
                Ok(if is_with {
                    AlterAction::WithValidation
                } else {
                    AlterAction::WithoutValidation
                })
            }
            K::ORDER => self.order_action(),
            _ => {
                let mut options = Vec::new();
                while let Some(option) = self.table_option()? {
                    options.push(option);
                }
                if options.is_empty() {
                    Err(self.error())
                } else {
                    Ok(AlterAction::Options(options))
                }
            }
        }
    }

    /// ORDER BY columns, each of which may have a direction.
    fn order_action(&mut self) -> Result<AlterAction> {
        self.advance();
        self.expect_word(K::BY)?;
        let order = self.comma_list(|parser| {
            let value = parser.column()?;
            Ok(OrderItem { value, direction: parser.direction() })
        })?;
        Ok(AlterAction::OrderBy(order))
    }

    fn add_action(&mut self) -> Result<AlterAction> {
        self.advance();
        let has_column = self.eat_word(K::COLUMN);
        if self.eat(Kind::Open) {
            let elements = self.comma_list(Self::table_element)?;
            self.expect(Kind::Close)?;
            return Ok(AlterAction::AddMany(elements));
        }
        if has_column {
            let name = self.name()?;
            let element = TableElement::Column(Box::new(self.column_def(name)?));
            return Ok(AlterAction::Add { element, place: self.place()? });
        }
        let element = self.table_element()?;
        let place =
            if matches!(element, TableElement::Column(_)) { self.place()? } else { Place::None };
        Ok(AlterAction::Add { element, place })
    }

    fn place(&mut self) -> Result<Place> {
        if self.eat_word(K::FIRST) {
            return Ok(Place::First);
        }
        if self.eat_word(K::AFTER) {
            return Ok(Place::After(self.name()?));
        }
        Ok(Place::None)
    }

    fn drop_action(&mut self) -> Result<AlterAction> {
        self.advance();
        match self.token().word {
            K::FOREIGN => {
                self.advance();
                self.expect_word(K::KEY)?;
                Ok(AlterAction::DropForeignKey(self.name()?))
            }
            K::PRIMARY => {
                self.advance();
                self.expect_word(K::KEY)?;
                Ok(AlterAction::DropPrimaryKey)
            }
            K::INDEX | K::KEY => {
                self.advance();
                Ok(AlterAction::DropKey(self.name()?))
            }
            K::CHECK => {
                self.advance();
                Ok(AlterAction::DropCheck(self.name()?))
            }
            K::CONSTRAINT => {
                self.advance();
                Ok(AlterAction::DropConstraint(self.name()?))
            }
            _ => {
                self.eat_word(K::COLUMN);
                let name = self.name()?;
                self.eat_one_of(&[K::RESTRICT, K::CASCADE]);
                Ok(AlterAction::DropColumn(name))
            }
        }
    }

    fn alter_column_action(&mut self) -> Result<AlterAction> {
        self.advance();
        if let Some(word) = self.eat_one_of(&[K::CHECK, K::CONSTRAINT]) {
            let name = self.name()?;
            let is_enforced = !self.eat_word(K::NOT);
            self.expect_word(K::ENFORCED)?;
            return Ok(AlterAction::Enforce { is_check: word == K::CHECK, name, is_enforced });
        }
        if self.eat_word(K::INDEX) {
            let index = self.name()?;
            let is_visible = self.expect_one_of(&[K::VISIBLE, K::INVISIBLE])? == K::VISIBLE;
            return Ok(AlterAction::IndexVisibility { index, is_visible });
        }
        self.eat_word(K::COLUMN);
        let column = self.name()?;
        if self.eat_word(K::DROP) {
            self.expect_word(K::DEFAULT)?;
            return Ok(AlterAction::DropDefault(column));
        }
        self.expect_word(K::SET)?;
        if let Some(word) = self.eat_one_of(&[K::VISIBLE, K::INVISIBLE]) {
            return Ok(AlterAction::ColumnVisibility { column, is_visible: word == K::VISIBLE });
        }
        self.expect_word(K::DEFAULT)?;
        if self.eat(Kind::Open) {
            let value = self.expr()?;
            self.expect(Kind::Close)?;
            return Ok(AlterAction::SetDefault { column, value, has_parentheses: true });
        }
        let value = self.signed_literal()?;
        Ok(AlterAction::SetDefault { column, value, has_parentheses: false })
    }

    fn rename_action(&mut self) -> Result<AlterAction> {
        self.advance();
        if self.eat_word(K::COLUMN) {
            let old = self.name()?;
            self.expect_word(K::TO)?;
            return Ok(AlterAction::RenameColumn { old, new: self.name()? });
        }
        if self.eat_one_of(&[K::INDEX, K::KEY]).is_some() {
            let old = self.name()?;
            self.expect_word(K::TO)?;
            return Ok(AlterAction::RenameKey { old, new: self.name()? });
        }
        if !self.eat(Kind::Equal) {
            self.eat_one_of(&[K::TO, K::AS]);
        }
        Ok(AlterAction::RenameTo(self.table_name()?))
    }
}
