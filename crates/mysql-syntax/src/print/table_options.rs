//! Options of tables and indexes, and partitions.

use super::Printer;
use crate::Keyword;
use crate::tree::{
    KeyDef, KeyOption, KeyValue, OptionValue, Partition, PartitionBy, PartitionKind,
    PartitionValues, Partitioning, TableOption, Text,
};

impl Printer<'_> {
    pub(super) fn table_option(&mut self, option: &TableOption) {
        match option.name {
            Keyword::DATA => self.word("DATA DIRECTORY"),
            Keyword::INDEX => self.word("INDEX DIRECTORY"),
            Keyword::CHARSET => self.word("CHARACTER SET"),
            Keyword::READ => self.word("READ ONLY"),
            name => self.keyword(name),
        }
        if !matches!(option.name, Keyword::START | Keyword::STORAGE) {
            self.word("=");
        }
        match &option.value {
            OptionValue::Number(number) => self.bytes(*number),
            OptionValue::Name(name) => self.name(*name),
            OptionValue::Text(text) => self.text(*text),
            OptionValue::Word(word) => self.keyword(*word),
            OptionValue::Default => self.word("DEFAULT"),
            OptionValue::Null => self.word("NULL"),
            OptionValue::Tables(tables) => {
                self.word("(");
                self.commas(tables, Self::table_name);
                self.raw(")");
            }
        }
    }

    pub(super) fn key_parts(&mut self, key: &KeyDef) {
        self.word("(");
        self.commas(&key.parts, |printer, part| {
            match part.value {
                KeyValue::Column { name, length } => {
                    printer.name(name);
                    if length.is_some() {
                        printer.raw("(");
                        printer.bytes(length);
                        printer.raw(")");
                    }
                }
                KeyValue::Expr(value) => {
                    printer.word("(");
                    printer.expr(value);
                    printer.raw(")");
                }
            }
            printer.direction(part.direction);
        });
        self.raw(")");
    }

    pub(super) fn key_option(&mut self, option: KeyOption) {
        match option {
            KeyOption::BlockSize(number) => {
                self.word("KEY_BLOCK_SIZE =");
                self.bytes(number);
            }
            KeyOption::Using(algorithm) => {
                self.word("USING");
                self.keyword(algorithm);
            }
            KeyOption::Parser(name) => self.name_behind("WITH PARSER", name),
            KeyOption::Comment(text) => self.text_behind("COMMENT", text),
            KeyOption::Visible => self.word("VISIBLE"),
            KeyOption::Invisible => self.word("INVISIBLE"),
            KeyOption::EngineAttribute(text) => self.text_behind("ENGINE_ATTRIBUTE", text),
            KeyOption::SecondaryEngineAttribute(text) => {
                self.text_behind("SECONDARY_ENGINE_ATTRIBUTE", text)
            }
        }
    }

    pub(super) fn partitioning(&mut self, partitioning: &Partitioning) {
        self.word("PARTITION BY");
        self.partition_kind(&partitioning.kind);
        self.number_behind("PARTITIONS", partitioning.count);
        if let Some((kind, count)) = &partitioning.sub {
            self.word("SUBPARTITION BY");
            self.partition_kind(kind);
            self.number_behind("SUBPARTITIONS", *count);
        }
        if !partitioning.partitions.is_empty() {
            self.word("(");
            self.commas_ref(&partitioning.partitions, Self::partition);
            self.raw(")");
        }
    }

    fn number_behind(&mut self, word: &str, number: Text) {
        if number.is_some() {
            self.word(word);
            self.bytes(number);
        }
    }

    fn partition_kind(&mut self, kind: &PartitionKind) {
        match kind {
            PartitionKind::Value { by, is_linear } => {
                self.word_if(*is_linear, "LINEAR");
                let (word, value) = match *by {
                    PartitionBy::Hash(value) => ("HASH (", value),
                    PartitionBy::Range(value) => ("RANGE (", value),
                    PartitionBy::List(value) => ("LIST (", value),
                };
                self.word(word);
                self.operand(value, 8);
                self.raw(")");
            }
            PartitionKind::Key { is_linear, algorithm, columns } => {
                self.word_if(*is_linear, "LINEAR");
                self.word("KEY");
                self.number_behind("ALGORITHM =", *algorithm);
                self.word("(");
                self.names(columns);
                self.raw(")");
            }
            PartitionKind::RangeColumns(columns) => {
                self.word("RANGE COLUMNS");
                self.names_in_parentheses(columns);
            }
            PartitionKind::ListColumns(columns) => {
                self.word("LIST COLUMNS");
                self.names_in_parentheses(columns);
            }
        }
    }

    fn partition(&mut self, partition: &Partition) {
        self.name_behind("PARTITION", partition.name);
        match &partition.values {
            PartitionValues::None => {}
            PartitionValues::MaxValue => self.word("VALUES LESS THAN MAXVALUE"),
            PartitionValues::LessThan(values) => {
                self.word("VALUES LESS THAN (");
                self.commas(values, |printer, value| match value {
                    Some(value) => printer.operand(value, 8),
                    None => printer.word("MAXVALUE"),
                });
                self.raw(")");
            }
            PartitionValues::In { rows, are_rows } => {
                self.word("VALUES IN (");
                self.commas(rows, |printer, row| {
                    printer.word_if(*are_rows, "(");
                    printer
                        .commas(printer.tree.list(row), |printer, value| printer.operand(value, 8));
                    if *are_rows {
                        printer.raw(")");
                    }
                });
                self.raw(")");
            }
        }
        partition.options.iter().for_each(|option| self.table_option(option));
        if !partition.parts.is_empty() {
            self.word("(");
            self.commas_ref(&partition.parts, |printer, (name, options)| {
                printer.name_behind("SUBPARTITION", *name);
                options.iter().for_each(|option| printer.table_option(option));
            });
            self.raw(")");
        }
    }
}
