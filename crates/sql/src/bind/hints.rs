//! What a SELECT says about its plan: STRAIGHT_JOIN, and hints about indexes and the order of joins.

use super::Binder;
use super::from::Hint;
use crate::table::Table;
use lats_engine::ir::SourceId;
use lats_mysql_syntax::tree::{self, IndexHintKind};

/// A hint about the indexes of a table, by its name in the statement.
pub(crate) type Named = (String, IndexHintKind, Vec<String>);

impl Binder<'_> {
    /// Notes what a SELECT's hints say about indexes, before its tables are bound.
    pub(super) fn note_index_hints(&mut self, select: &tree::Select) {
        let mut found = Vec::new();
        for hint in &select.hints {
            let (name, arguments) = self.hint(hint);
            let kind = match name.as_str() {
                "INDEX" | "JOIN_INDEX" => IndexHintKind::Use,
                "NO_INDEX" | "NO_JOIN_INDEX" => IndexHintKind::Ignore,
                _ => continue,
            };
            let mut arguments = arguments.into_iter();
            if let Some(table) = arguments.next() {
                found.push((table, kind, arguments.collect()));
            }
        }
        self.block().index_hints = found;
    }

    /// What the block's hints say about the indexes of a table.
    pub(super) fn hinted_indexes(&mut self, table: &Table, alias: &str) -> Vec<Hint> {
        let all = || {
            let names = table.def.indexes.iter().map(|index| index.name.clone());
            names.chain(["PRIMARY".to_owned()]).collect::<Vec<String>>()
        };
        let known = |name: &String| all().iter().any(|other| other.eq_ignore_ascii_case(name));
        let of_table =
            self.block().index_hints.iter().filter(|(name, ..)| name.eq_ignore_ascii_case(alias));
        of_table
            .map(|(_, kind, names)| match names.is_empty() {
                true => Hint { kind: *kind, indexes: all() },
                false => Hint {
                    kind: *kind,
                    indexes: names.iter().filter(|n| known(n)).cloned().collect(),
                },
            })
            .filter(|hint| !hint.indexes.is_empty())
            .collect()
    }

    /// Notes what a SELECT says about the order of its tables, which are those from this number on.
    pub(super) fn note_join_order(&mut self, select: &tree::Select, first: usize) {
        self.order.is_fixed |= select.options.straight_join;
        let block = self.block().number;
        for hint in &select.hints {
            let (name, arguments) = self.hint(hint);
            if name == "JOIN_FIXED_ORDER" {
                self.order.is_fixed = true;
            }
            if !matches!(name.as_str(), "JOIN_ORDER" | "JOIN_PREFIX" | "JOIN_SUFFIX") {
                continue;
            }
            let own = || {
                let numbered = self.sources.iter().enumerate().skip(first);
                numbered.filter(|(_, source)| source.block == block)
            };
            let number = |at: usize| SourceId(u32::try_from(at).unwrap_or(u32::MAX));
            let find = |name: &String| {
                own()
                    .find(|(_, source)| source.alias.eq_ignore_ascii_case(name))
                    .map(|(at, _)| number(at))
            };
            let named: Vec<SourceId> = arguments.iter().filter_map(find).collect();
            let others: Vec<SourceId> =
                own().map(|(at, _)| number(at)).filter(|source| !named.contains(source)).collect();
            let mut before: Vec<(SourceId, SourceId)> =
                named.windows(2).map(|pair| (pair[0], pair[1])).collect();
            match (name.as_str(), named.first(), named.last()) {
                ("JOIN_PREFIX", _, Some(last)) => before.extend(others.iter().map(|o| (*last, *o))),
                ("JOIN_SUFFIX", Some(head), _) => before.extend(others.iter().map(|o| (*o, *head))),
                _ => {}
            }
            self.order.before.extend(before);
        }
    }

    /// A hint's name, and what stands in its parentheses.
    fn hint(&self, hint: &tree::Hint) -> (String, Vec<String>) {
        let text = |text| crate::syntax::name(self.tree(), text).unwrap_or_default();
        let arguments = text(hint.arguments)
            .split(|c: char| c == ',' || c.is_whitespace())
            .map(|part| part.split('@').next().unwrap_or_default().trim_matches('`').to_owned())
            .filter(|part| !part.is_empty())
            .collect();
        (text(hint.name).to_ascii_uppercase(), arguments)
    }
}
