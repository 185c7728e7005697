//! Indexes and foreign keys.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{
    AlterAction, CreateIndex, ForeignKey, KeyDef, KeyKind, KeyOption, KeyPart, KeyValue,
    ReferenceOption, References, Statement, Text,
};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) fn create_index(&mut self) -> Result<Statement> {
        self.advance();
        let kind = match self.eat_one_of(&[K::UNIQUE, K::FULLTEXT, K::SPATIAL]) {
            Some(K::UNIQUE) => KeyKind::Unique,
            Some(K::FULLTEXT) => KeyKind::Fulltext,
            Some(_) => KeyKind::Spatial,
            None => KeyKind::Index,
        };
        self.expect_word(K::INDEX)?;
        let name = self.name()?;
        let may_have_type = matches!(kind, KeyKind::Index | KeyKind::Unique);
        let algorithm = if may_have_type { self.key_algorithm()? } else { K::None };
        self.expect_word(K::ON)?;
        let table = self.table_name()?;
        let parts = self.key_parts()?;
        let options = self.key_options(kind)?;
        let lock_and_algorithm = self.lock_and_algorithm()?;
        let key = KeyDef {
            has_constraint: false,
            constraint: Text::NONE,
            kind,
            name,
            algorithm,
            parts,
            options,
        };
        Ok(Statement::CreateIndex(Box::new(CreateIndex { key, table, lock_and_algorithm })))
    }

    pub(super) fn drop_index(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let name =
            if self.eat_word(K::PRIMARY) { self.tree.add_text(b"PRIMARY") } else { self.name()? };
        self.expect_word(K::ON)?;
        let table = self.table_name()?;
        let lock_and_algorithm = self.lock_and_algorithm()?;
        Ok(Statement::DropIndex { name, table, lock_and_algorithm })
    }

    /// `ALGORITHM = x` and `LOCK = y`, each at most once.
    fn lock_and_algorithm(&mut self) -> Result<Vec<AlterAction>> {
        let mut found: Vec<AlterAction> = Vec::new();
        while let Some(action) = self.lock_or_algorithm()? {
            let is_same = |other: &AlterAction| {
                core::mem::discriminant(other) == core::mem::discriminant(&action)
            };
            if found.iter().any(is_same) {
                return Err(self.error_at(self.last_span().start));
            }
            found.push(action);
        }
        Ok(found)
    }

    pub(super) fn lock_or_algorithm(&mut self) -> Result<Option<AlterAction>> {
        let word = self.token().word;
        if !matches!(word, K::ALGORITHM | K::LOCK) {
            return Ok(None);
        }
        self.advance();
        self.eat(Kind::Equal);
        let value =
            if self.eat_word(K::DEFAULT) { self.tree.add_text(b"DEFAULT") } else { self.name()? };
        Ok(Some(if word == K::LOCK {
            AlterAction::Lock(value)
        } else {
            AlterAction::Algorithm(value)
        }))
    }

    /// USING or TYPE, if it comes next.
    fn key_algorithm(&mut self) -> Result<Keyword> {
        if self.eat_one_of(&[K::USING, K::TYPE]).is_none() {
            return Ok(K::None);
        }
        self.expect_one_of(&[K::BTREE, K::HASH, K::RTREE])
    }

    pub(super) fn key_parts(&mut self) -> Result<Vec<KeyPart>> {
        self.expect(Kind::Open)?;
        let parts = self.comma_list(|parser| {
            let value = if parser.eat(Kind::Open) {
                let value = parser.expr()?;
                parser.expect(Kind::Close)?;
                KeyValue::Expr(value)
            } else {
                let name = parser.name()?;
                KeyValue::Column { name, length: parser.optional_length()? }
            };
            Ok(KeyPart { value, direction: parser.direction() })
        })?;
        self.expect(Kind::Close)?;
        Ok(parts)
    }

    pub(super) fn key_options(&mut self, kind: KeyKind) -> Result<Vec<KeyOption>> {
        let mut options = Vec::new();
        loop {
            let word = self.token().word;
            let option = match word {
                K::KEY_BLOCK_SIZE => {
                    self.advance();
                    self.eat(Kind::Equal);
                    KeyOption::BlockSize(self.number()?)
                }
                K::COMMENT => {
                    self.advance();
                    KeyOption::Comment(self.text()?)
                }
                K::VISIBLE | K::INVISIBLE => {
                    self.advance();
                    if word == K::VISIBLE { KeyOption::Visible } else { KeyOption::Invisible }
                }
                K::ENGINE_ATTRIBUTE | K::SECONDARY_ENGINE_ATTRIBUTE => {
                    self.advance();
                    self.eat(Kind::Equal);
                    let text = self.text()?;
                    let is_secondary = word == K::SECONDARY_ENGINE_ATTRIBUTE;
                    if is_secondary {
                        KeyOption::SecondaryEngineAttribute(text)
                    } else {
                        KeyOption::EngineAttribute(text)
                    }
                }
                K::USING | K::TYPE if !matches!(kind, KeyKind::Fulltext | KeyKind::Spatial) => {
                    KeyOption::Using(self.key_algorithm()?)
                }
                K::WITH if kind == KeyKind::Fulltext => {
                    self.advance();
                    self.expect_word(K::PARSER)?;
                    KeyOption::Parser(self.name()?)
                }
                _ => return Ok(options),
            };
            options.push(option);
        }
    }

    /// The key behind its kind: name, algorithm, parts and options.
    pub(super) fn key(&mut self, constraint: Option<Text>, kind: KeyKind) -> Result<KeyDef> {
        let may_have_type = !matches!(kind, KeyKind::Fulltext | KeyKind::Spatial);
        let has_name = self.at_name() && !(self.is_word(K::TYPE) && self.at_key_type());
        let name = if has_name { self.name()? } else { Text::NONE };
        let algorithm = if may_have_type { self.key_algorithm()? } else { K::None };
        let parts = self.key_parts()?;
        let options = self.key_options(kind)?;
        let has_constraint = constraint.is_some();
        let constraint = constraint.unwrap_or(Text::NONE);
        Ok(KeyDef { has_constraint, constraint, kind, name, algorithm, parts, options })
    }

    fn at_key_type(&self) -> bool {
        matches!(self.word_ahead(1), K::BTREE | K::HASH | K::RTREE)
    }

    /// A foreign key, whose words are passed.
    pub(super) fn foreign_key(&mut self, constraint: Option<Text>) -> Result<ForeignKey> {
        let name = if self.at_name() { self.name()? } else { Text::NONE };
        self.expect(Kind::Open)?;
        let columns = self.names()?;
        self.expect(Kind::Close)?;
        let references = self.references()?;
        let has_constraint = constraint.is_some();
        Ok(ForeignKey {
            has_constraint,
            constraint: constraint.unwrap_or(Text::NONE),
            name,
            columns,
            references,
        })
    }

    pub(super) fn references(&mut self) -> Result<References> {
        self.expect_word(K::REFERENCES)?;
        let table = self.table_name()?;
        let columns = if self.is(Kind::Open) { self.names_in_parentheses()? } else { Vec::new() };
        let mut match_kind = K::None;
        if self.eat_word(K::MATCH) {
            match_kind = self.expect_one_of(&[K::FULL, K::PARTIAL, K::SIMPLE])?;
        }
        let (mut on_delete, mut on_update) = (ReferenceOption::None, ReferenceOption::None);
        while self.is_word(K::ON) {
            let at = self.token().start;
            self.advance();
            let is_delete = self.expect_one_of(&[K::DELETE, K::UPDATE])? == K::DELETE;
            let option = self.reference_option()?;
            let slot = if is_delete { &mut on_delete } else { &mut on_update };
            if *slot != ReferenceOption::None {
                return Err(self.error_at(at));
            }
            *slot = option;
        }
        Ok(References { table, columns, match_kind, on_delete, on_update })
    }

    fn reference_option(&mut self) -> Result<ReferenceOption> {
        Ok(match self.expect_one_of(&[K::RESTRICT, K::CASCADE, K::SET, K::NO])? {
            K::RESTRICT => ReferenceOption::Restrict,
            K::CASCADE => ReferenceOption::Cascade,
            K::SET => match self.expect_one_of(&[K::NULL, K::DEFAULT])? {
                K::NULL => ReferenceOption::SetNull,
                _ => ReferenceOption::SetDefault,
            },
            _ => {
                self.expect_word(K::ACTION)?;
                ReferenceOption::NoAction
            }
        })
    }
}
