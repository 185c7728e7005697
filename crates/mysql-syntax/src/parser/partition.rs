//! PARTITION BY.

use super::{Parser, Result};
use crate::Keyword;
use crate::token::Kind;
use crate::tree::{
    List, OptionValue, Partition, PartitionBy, PartitionKind, PartitionValues, Partitioning,
    TableOption, Text,
};
use Keyword as K;
use alloc::vec::Vec;

impl Parser<'_> {
    pub(super) fn partitioning(&mut self) -> Result<Partitioning> {
        self.expect_words(&[K::PARTITION, K::BY])?;
        let kind = self.partition_kind(false)?;
        let count = if self.eat_word(K::PARTITIONS) { self.integer()? } else { Text::NONE };
        let mut sub = None;
        if self.eat_word(K::SUBPARTITION) {
            self.expect_word(K::BY)?;
            let kind = self.partition_kind(true)?;
            let count = if self.eat_word(K::SUBPARTITIONS) { self.integer()? } else { Text::NONE };
            sub = Some((kind, count));
        }
        let mut partitions = Vec::new();
        if self.is(Kind::Open) && self.word_ahead(1) == K::PARTITION {
            partitions = self.partition_definitions()?;
        }
        Ok(Partitioning { kind, count, sub, partitions })
    }

    pub(super) fn partition_definitions(&mut self) -> Result<Vec<Partition>> {
        self.expect(Kind::Open)?;
        let partitions = self.comma_list(Self::partition)?;
        self.expect(Kind::Close)?;
        Ok(partitions)
    }

    fn partition_kind(&mut self, is_sub: bool) -> Result<PartitionKind> {
        let is_linear = self.eat_word(K::LINEAR);
        let word = self.token().word;
        match word {
            K::HASH => {
                self.advance();
                Ok(PartitionKind::Value {
                    by: PartitionBy::Hash(self.partition_value()?),
                    is_linear,
                })
            }
            K::KEY => {
                self.advance();
                let mut algorithm = Text::NONE;
                if self.eat_word(K::ALGORITHM) {
                    self.expect(Kind::Equal)?;
                    algorithm = self.integer()?;
                }
                self.expect(Kind::Open)?;
                let columns =
                    if self.is(Kind::Close) && !is_sub { Vec::new() } else { self.names()? };
                self.expect(Kind::Close)?;
                Ok(PartitionKind::Key { is_linear, algorithm, columns })
            }
            K::RANGE | K::LIST if !is_linear && !is_sub => {
                self.advance();
                if self.eat_word(K::COLUMNS) {
                    let columns = self.names_in_parentheses()?;
                    let is_range = word == K::RANGE;
                    return Ok(if is_range {
                        PartitionKind::RangeColumns(columns)
                    } else {
                        PartitionKind::ListColumns(columns)
                    });
                }
                let value = self.partition_value()?;
                let by = if word == K::RANGE {
                    PartitionBy::Range(value)
                } else {
                    PartitionBy::List(value)
                };
                Ok(PartitionKind::Value { by, is_linear })
            }
            _ => Err(self.error()),
        }
    }

    fn partition_value(&mut self) -> Result<crate::tree::ExprId> {
        self.expect(Kind::Open)?;
        let value = self.bit_expr()?;
        self.expect(Kind::Close)?;
        Ok(value)
    }

    fn partition(&mut self) -> Result<Partition> {
        self.expect_word(K::PARTITION)?;
        let name = self.name()?;
        let mut values = PartitionValues::None;
        if self.eat_word(K::VALUES) {
            values = if self.eat_word(K::IN) {
                self.partition_in()?
            } else {
                self.partition_less_than()?
            };
        }
        let options = self.partition_options()?;
        let mut parts = Vec::new();
        if self.eat(Kind::Open) {
            parts = self.comma_list(|parser| {
                parser.expect_word(K::SUBPARTITION)?;
                let name = parser.name_or_text()?;
                Ok((name, parser.partition_options()?))
            })?;
            self.expect(Kind::Close)?;
        }
        Ok(Partition { name, values, options, parts })
    }

    fn partition_less_than(&mut self) -> Result<PartitionValues> {
        self.expect_words(&[K::LESS, K::THAN])?;
        if self.eat_word(K::MAXVALUE) {
            return Ok(PartitionValues::MaxValue);
        }
        self.expect(Kind::Open)?;
        let values = self.comma_list(|parser| {
            if parser.eat_word(K::MAXVALUE) { Ok(None) } else { Ok(Some(parser.bit_expr()?)) }
        })?;
        self.expect(Kind::Close)?;
        Ok(PartitionValues::LessThan(values))
    }

    fn partition_in(&mut self) -> Result<PartitionValues> {
        self.expect(Kind::Open)?;
        let are_rows = self.is(Kind::Open);
        let rows = self.comma_list(|parser| {
            let mark = parser.scratch.len();
            if !are_rows {
                let value = parser.bit_expr()?;
                parser.scratch.push(value);
                return Ok(parser.list_from(mark));
            }
            parser.expect(Kind::Open)?;
            loop {
                let value = parser.bit_expr()?;
                parser.scratch.push(value);
                if !parser.eat(Kind::Comma) {
                    break;
                }
            }
            parser.expect(Kind::Close)?;
            let list: List = parser.list_from(mark);
            Ok(list)
        })?;
        self.expect(Kind::Close)?;
        Ok(PartitionValues::In { rows, are_rows })
    }

    fn partition_options(&mut self) -> Result<Vec<TableOption>> {
        let mut options = Vec::new();
        loop {
            if self.is_word(K::STORAGE) && self.word_ahead(1) == K::ENGINE {
                self.advance();
            }
            let word = self.token().word;
            let is_option = matches!(
                word,
                K::ENGINE
                    | K::NODEGROUP
                    | K::MAX_ROWS
                    | K::MIN_ROWS
                    | K::COMMENT
                    | K::TABLESPACE
                    | K::DATA
                    | K::INDEX
            );
            if !is_option {
                return Ok(options);
            }
            if word == K::NODEGROUP {
                self.advance();
                self.eat(Kind::Equal);
                options
                    .push(TableOption { name: word, value: OptionValue::Number(self.integer()?) });
                continue;
            }
            match self.table_option()? {
                Some(option) => options.push(option),
                None => return Err(self.error()),
            }
        }
    }
}
