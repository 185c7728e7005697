//! CREATE TABLE: columns, keys and options.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{
    Check, ColumnAttribute, ColumnDef, CreateTable, Expr, ExprId, Generated, KeyKind, List,
    OptionValue, Statement, TableContent, TableElement, TableOption, Text,
};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) fn create_table(&mut self) -> Result<Statement> {
        self.advance();
        let is_temporary = self.eat_word(K::TEMPORARY);
        self.expect_word(K::TABLE)?;
        let if_not_exists = self.eat_if_not_exists()?;
        let table = self.table_name()?;
        let content = self.table_content()?;
        Ok(Statement::CreateTable(Box::new(CreateTable {
            is_temporary,
            if_not_exists,
            table,
            content,
        })))
    }

    fn table_content(&mut self) -> Result<TableContent> {
        if self.eat_word(K::LIKE) {
            return Ok(TableContent::Like { table: self.table_name()?, has_parentheses: false });
        }
        let is_query = |word| matches!(word, K::SELECT | K::WITH | K::TABLE | K::VALUES);
        let in_parentheses = self.is(Kind::Open);
        if in_parentheses && self.word_ahead(1) == K::LIKE {
            self.advance();
            self.advance();
            let table = self.table_name()?;
            self.expect(Kind::Close)?;
            return Ok(TableContent::Like { table, has_parentheses: true });
        }
        let mut elements = Vec::new();
        if in_parentheses && !is_query(self.word_ahead(1)) && self.kind_ahead(1) != Kind::Open {
            self.advance();
            elements = self.comma_list(Self::table_element)?;
            self.expect(Kind::Close)?;
        }
        let options = self.table_options()?;
        let partitioning =
            if self.is_word(K::PARTITION) { Some(Box::new(self.partitioning()?)) } else { None };
        let duplicates = self.eat_one_of(&[K::IGNORE, K::REPLACE]).unwrap_or(K::None);
        let has_as = self.eat_word(K::AS);
        let has_query = has_as || duplicates != K::None || self.at_query() || self.is(Kind::Open);
        let query = if has_query { Some(self.query()?) } else { None };
        if elements.is_empty()
            && query.is_none()
            && (in_parentheses || options.is_empty())
            && partitioning.is_none()
        {
            return Err(self.must_have_columns());
        }
        Ok(TableContent::Elements { elements, options, partitioning, duplicates, query })
    }

    fn must_have_columns(&self) -> Box<crate::SyntaxError> {
        let at = self.token().start;
        if self.is(Kind::End) || self.is(Kind::Semicolon) {
            let message = "A table must have at least 1 column";
            return Box::new(crate::SyntaxError::new(1113, "42000", message, at));
        }
        self.error()
    }

    pub(super) fn table_element(&mut self) -> Result<TableElement> {
        let word = self.token().word;
        let mut constraint = None;
        if word == K::CONSTRAINT {
            self.advance();
            constraint = Some(if self.at_name() { self.name()? } else { Text::NONE });
        }
        let word = self.token().word;
        match word {
            K::PRIMARY => {
                self.advance();
                self.expect_word(K::KEY)?;
                Ok(TableElement::Key(Box::new(self.key(constraint, KeyKind::Primary)?)))
            }
            K::UNIQUE => {
                self.advance();
                self.eat_one_of(&[K::INDEX, K::KEY]);
                Ok(TableElement::Key(Box::new(self.key(constraint, KeyKind::Unique)?)))
            }
            K::FOREIGN => {
                self.advance();
                self.expect_word(K::KEY)?;
                Ok(TableElement::ForeignKey(Box::new(self.foreign_key(constraint)?)))
            }
            K::CHECK => Ok(TableElement::Check(self.check(constraint)?)),
            _ if constraint.is_some() => Err(self.error()),
            K::INDEX | K::KEY => {
                self.advance();
                Ok(TableElement::Key(Box::new(self.key(None, KeyKind::Index)?)))
            }
            K::FULLTEXT | K::SPATIAL => {
                self.advance();
                self.eat_one_of(&[K::INDEX, K::KEY]);
                let kind = if word == K::FULLTEXT { KeyKind::Fulltext } else { KeyKind::Spatial };
                Ok(TableElement::Key(Box::new(self.key(None, kind)?)))
            }
            _ => {
                let name = self.name()?;
                Ok(TableElement::Column(Box::new(self.column_def(name)?)))
            }
        }
    }

    fn check(&mut self, constraint: Option<Text>) -> Result<Check> {
        self.expect_word(K::CHECK)?;
        self.expect(Kind::Open)?;
        let condition = self.expr()?;
        self.expect(Kind::Close)?;
        let enforced = if self.eat_word(K::ENFORCED) {
            Some(true)
        } else if self.eat_words(&[K::NOT, K::ENFORCED]) {
            Some(false)
        } else {
            None
        };
        Ok(Check {
            has_constraint: constraint.is_some(),
            name: constraint.unwrap_or(Text::NONE),
            condition,
            enforced,
        })
    }

    /// A column behind its name.
    pub(super) fn column_def(&mut self, name: Text) -> Result<ColumnDef> {
        let start = self.last_span().start;
        let data_type = self.column_type()?;
        let mut collation = Text::NONE;
        let mut attributes = Vec::new();
        if self.eat_word(K::COLLATE) {
            collation = self.collation_name()?;
        }
        let mut generated = None;
        if self.is_word(K::AS) || self.is_word(K::GENERATED) {
            if self.eat_word(K::GENERATED) {
                self.expect_word(K::ALWAYS)?;
            }
            self.expect_word(K::AS)?;
            self.expect(Kind::Open)?;
            let value = self.expr()?;
            self.expect(Kind::Close)?;
            let storage = self.eat_one_of(&[K::VIRTUAL, K::STORED]).unwrap_or(K::None);
            generated = Some(Generated { value, storage });
        } else if collation.is_some() {
            attributes.push(ColumnAttribute::Collate(collation));
            collation = Text::NONE;
        }
        while let Some(attribute) = self.column_attribute(generated.is_some())? {
            attributes.push(attribute);
        }
        if self.is_word(K::REFERENCES) {
            attributes.push(ColumnAttribute::References(Box::new(self.references()?)));
        }
        Ok(ColumnDef {
            name,
            data_type,
            collation,
            generated,
            attributes,
            span: self.span_from(start),
        })
    }

    fn column_attribute(&mut self, is_generated: bool) -> Result<Option<ColumnAttribute>> {
        use ColumnAttribute as A;
        let word = self.token().word;
        let is_plain = !is_generated;
        let attribute = match word {
            K::NULL => A::Null,
            K::NOT => {
                self.advance();
                if self.eat_word(K::SECONDARY) {
                    return Ok(Some(A::NotSecondary));
                }
                self.expect_word(K::NULL)?;
                return Ok(Some(A::NotNull));
            }
            K::AUTO_INCREMENT if is_plain => A::AutoIncrement,
            K::VISIBLE => A::Visible,
            K::INVISIBLE => A::Invisible,
            K::DEFAULT if is_plain => return Ok(Some(self.column_default()?)),
            K::CONSTRAINT | K::CHECK => return Ok(Some(A::Check(self.column_check()?))),
            K::PRIMARY | K::KEY => {
                self.eat_word(K::PRIMARY);
                self.expect_word(K::KEY)?;
                return Ok(Some(A::PrimaryKey));
            }
            K::UNIQUE => {
                self.advance();
                self.eat_word(K::KEY);
                return Ok(Some(A::Unique));
            }
            K::ON if is_plain => {
                self.advance();
                self.expect_word(K::UPDATE)?;
                return Ok(Some(A::OnUpdate(self.now()?)));
            }
            K::SERIAL if is_plain => {
                self.advance();
                self.expect_words(&[K::DEFAULT, K::VALUE])?;
                return Ok(Some(A::SerialDefaultValue));
            }
            _ => return self.column_attribute_with_value(word, is_plain),
        };
        self.advance();
        Ok(Some(attribute))
    }

    /// Attributes whose value follows their name.
    fn column_attribute_with_value(
        &mut self,
        word: Keyword,
        is_plain: bool,
    ) -> Result<Option<ColumnAttribute>> {
        use ColumnAttribute as A;
        let is_one = matches!(
            word,
            K::COMMENT | K::COLLATE | K::ENGINE_ATTRIBUTE | K::SECONDARY_ENGINE_ATTRIBUTE
        );
        let is_other = matches!(word, K::COLUMN_FORMAT | K::STORAGE) && is_plain;
        if !is_one && !is_other && word != K::SRID {
            return Ok(None);
        }
        self.advance();
        Ok(Some(match word {
            K::COMMENT => A::Comment(self.text()?),
            K::COLLATE => A::Collate(self.collation_name()?),
            K::SRID => A::Srid(self.integer()?),
            K::COLUMN_FORMAT => {
                A::ColumnFormat(self.expect_one_of(&[K::DEFAULT, K::FIXED, K::DYNAMIC])?)
            }
            K::STORAGE => A::Storage(self.expect_one_of(&[K::DEFAULT, K::DISK, K::MEMORY])?),
            _ => {
                self.eat(Kind::Equal);
                let text = self.text()?;
                let is_secondary = word == K::SECONDARY_ENGINE_ATTRIBUTE;
                if is_secondary {
                    A::SecondaryEngineAttribute(text)
                } else {
                    A::EngineAttribute(text)
                }
            }
        }))
    }

    fn column_check(&mut self) -> Result<Check> {
        let mut constraint = None;
        if self.eat_word(K::CONSTRAINT) {
            constraint = Some(if self.at_name() { self.name()? } else { Text::NONE });
        }
        self.check(constraint)
    }

    fn column_default(&mut self) -> Result<ColumnAttribute> {
        self.advance();
        if self.eat(Kind::Open) {
            let value = self.expr()?;
            self.expect(Kind::Close)?;
            return Ok(ColumnAttribute::Default { value, has_parentheses: true });
        }
        let value = if self.at_now() { self.now()? } else { self.signed_literal()? };
        Ok(ColumnAttribute::Default { value, has_parentheses: false })
    }

    fn at_now(&self) -> bool {
        matches!(
            self.token().word,
            K::NOW | K::CURRENT_TIMESTAMP | K::LOCALTIME | K::LOCALTIMESTAMP
        )
    }

    /// CURRENT_TIMESTAMP and its other names.
    fn now(&mut self) -> Result<ExprId> {
        if !self.at_now() {
            return Err(self.error());
        }
        let start = self.token().start;
        if self.kind_ahead(1) == Kind::Open {
            return self.operand();
        }
        let name = self.token().word;
        self.advance();
        let span = self.span_from(start);
        Ok(self.tree.add_expr(
            Expr::Function { name, arguments: List::EMPTY, has_parentheses: false },
            span,
        ))
    }

    /// Options of a table, which commas may part.
    pub(super) fn table_options(&mut self) -> Result<Vec<TableOption>> {
        let mut options = Vec::new();
        while let Some(option) = self.table_option()? {
            options.push(option);
            if self.is(Kind::Comma) && self.is_table_option(1) {
                self.advance();
            }
        }
        Ok(options)
    }

    fn is_table_option(&self, ahead: usize) -> bool {
        let word = self.word_ahead(ahead);
        let next = self.word_ahead(ahead + 1);
        match word {
            K::DEFAULT => matches!(next, K::CHARSET | K::CHARACTER | K::CHAR | K::COLLATE),
            K::DATA | K::INDEX => next == K::DIRECTORY,
            K::START => next == K::TRANSACTION,
            K::CHARACTER | K::CHAR => next == K::SET,
            _ => TEXTS.contains(&word) || NUMBERS.contains(&word) || OTHERS.contains(&word),
        }
    }

    pub(super) fn table_option(&mut self) -> Result<Option<TableOption>> {
        if !self.is_table_option(0) {
            return Ok(None);
        }
        self.eat_word(K::DEFAULT);
        if self.eat_charset() {
            self.eat(Kind::Equal);
            let value = if self.eat_word(K::DEFAULT) {
                OptionValue::Default
            } else {
                OptionValue::Name(self.charset_name()?)
            };
            return Ok(Some(TableOption { name: K::CHARSET, value }));
        }
        let name = self.token().word;
        self.advance();
        if matches!(name, K::DATA | K::INDEX | K::START) {
            self.advance();
        }
        if name != K::STORAGE && name != K::START {
            self.eat(Kind::Equal);
        }
        let value = match name {
            K::START => OptionValue::Word(K::TRANSACTION),
            K::COLLATE if self.eat_word(K::DEFAULT) => OptionValue::Default,
            K::COLLATE => OptionValue::Name(self.collation_name()?),
            K::ENGINE => OptionValue::Name(self.name_or_text()?),
            K::SECONDARY_ENGINE if self.eat_word(K::NULL) => OptionValue::Null,
            K::SECONDARY_ENGINE => OptionValue::Name(self.name_or_text()?),
            K::TABLESPACE => OptionValue::Name(self.name()?),
            K::ROW_FORMAT => OptionValue::Word(self.expect_one_of(&[
                K::DEFAULT,
                K::FIXED,
                K::DYNAMIC,
                K::COMPRESSED,
                K::REDUNDANT,
                K::COMPACT,
            ])?),
            K::INSERT_METHOD => {
                OptionValue::Word(self.expect_one_of(&[K::NO, K::FIRST, K::LAST])?)
            }
            K::STORAGE => OptionValue::Word(self.expect_one_of(&[K::DISK, K::MEMORY])?),
            K::UNION => {
                self.expect(Kind::Open)?;
                let tables = if self.is(Kind::Close) { Vec::new() } else { self.table_names()? };
                self.expect(Kind::Close)?;
                OptionValue::Tables(tables)
            }
            K::AUTOEXTEND_SIZE if self.at_name() => OptionValue::Name(self.name()?),
            K::PACK_KEYS | K::STATS_AUTO_RECALC | K::STATS_PERSISTENT | K::STATS_SAMPLE_PAGES
                if self.eat_word(K::DEFAULT) =>
            {
                OptionValue::Default
            }
            _ if TEXTS.contains(&name) => OptionValue::Text(self.text()?),
            _ => OptionValue::Number(self.number()?),
        };
        Ok(Some(TableOption { name, value }))
    }
}

/// Options whose value is a text.
const TEXTS: [Keyword; 9] = [
    K::PASSWORD,
    K::COMMENT,
    K::COMPRESSION,
    K::ENCRYPTION,
    K::DATA,
    K::INDEX,
    K::CONNECTION,
    K::ENGINE_ATTRIBUTE,
    K::SECONDARY_ENGINE_ATTRIBUTE,
];
/// Options whose value is a number.
const NUMBERS: [Keyword; 13] = [
    K::MAX_ROWS,
    K::MIN_ROWS,
    K::AVG_ROW_LENGTH,
    K::AUTO_INCREMENT,
    K::PACK_KEYS,
    K::STATS_AUTO_RECALC,
    K::STATS_PERSISTENT,
    K::STATS_SAMPLE_PAGES,
    K::CHECKSUM,
    K::TABLE_CHECKSUM,
    K::DELAY_KEY_WRITE,
    K::KEY_BLOCK_SIZE,
    K::AUTOEXTEND_SIZE,
];
/// Options with values of their own.
const OTHERS: [Keyword; 9] = [
    K::ENGINE,
    K::SECONDARY_ENGINE,
    K::ROW_FORMAT,
    K::UNION,
    K::CHARSET,
    K::COLLATE,
    K::INSERT_METHOD,
    K::TABLESPACE,
    K::STORAGE,
];
