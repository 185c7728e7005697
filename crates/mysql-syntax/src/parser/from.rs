//! Tables and joins.
//!
//! ON belongs to the join that was opened last; a join without it takes the table before and the table behind it.

use super::{DEPTH_MAX, Parser, Result};
use crate::token::Kind;
use crate::tree::{
    IndexHint, IndexHintFor, IndexHintKind, JoinCondition, JoinKind, JsonColumn, Query, Table,
    TableId, Text,
};
use crate::{Keyword, SyntaxError};
use Keyword as K;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A table or join that is not in the arena yet, as all joins go there together.
#[derive(Clone, Copy)]
enum Node {
    Leaf(TableId),
    Join(usize),
}

/// A part of a join.
#[derive(Clone, Copy)]
struct Operand {
    node: Node,
    /// The join at its left end, unless parentheses close it off.
    leftmost: Option<usize>,
    depth: u32,
}

struct Join {
    kind: JoinKind,
    left: Node,
    right: Node,
    condition: JoinCondition,
}

/// The joins of one table reference.
type Joins = Vec<Join>;

/// What stood in parentheses.
enum Inner {
    Query(Query),
    Table(Operand),
}

impl Parser<'_> {
    /// Tables that commas part.
    pub(super) fn table_references(&mut self) -> Result<Vec<TableId>> {
        self.comma_list(Self::table_reference)
    }

    /// A table, or joined tables.
    pub(super) fn table_reference(&mut self) -> Result<TableId> {
        let mut joins = Vec::new();
        let operand = self.joined(&mut joins, None)?;
        Ok(self.add_joins(operand, &mut joins))
    }

    /// Puts joins into the arena, each one behind its parts.
    fn add_joins(&mut self, operand: Operand, joins: &mut Joins) -> TableId {
        let mut pending = alloc::vec![(operand.node, false)];
        let mut done: Vec<TableId> = Vec::new();
        while let Some((node, has_parts)) = pending.pop() {
            match node {
                Node::Leaf(table) => done.push(table),
                Node::Join(at) if has_parts => {
                    let right = done.pop().unwrap_or(TableId(0));
                    let left = done.pop().unwrap_or(TableId(0));
                    let condition =
                        core::mem::replace(&mut joins[at].condition, JoinCondition::None);
                    let table = Table::Join { kind: joins[at].kind, left, right, condition };
                    done.push(self.tree.add_table(table));
                }
                Node::Join(at) => {
                    pending.push((node, true));
                    pending.push((joins[at].right, false));
                    pending.push((joins[at].left, false));
                }
            }
        }
        done.pop().unwrap_or(TableId(0))
    }

    fn joined(&mut self, joins: &mut Joins, first: Option<Operand>) -> Result<Operand> {
        self.enter()?;
        let first = match first {
            Some(first) => first,
            None => self.factor(joins)?,
        };
        let mut operands = alloc::vec![first];
        let mut kinds: Vec<JoinKind> = Vec::new();
        loop {
            if matches!(self.token().word, K::ON | K::USING) && !kinds.is_empty() {
                let condition = self.join_condition()?;
                self.close_join(joins, &mut operands, &mut kinds, condition)?;
                continue;
            }
            let Some(kind) = self.join_kind()? else { break };
            let right = self.factor(joins)?;
            operands.push(right);
            kinds.push(kind);
            if is_natural(kind) {
                self.close_join(joins, &mut operands, &mut kinds, JoinCondition::None)?;
            }
        }
        if kinds.iter().any(|kind| matches!(kind, JoinKind::Left | JoinKind::Right)) {
            return Err(self.error());
        }
        while let Some(kind) = kinds.pop() {
            let (Some(right), Some(left)) = (operands.pop(), operands.pop()) else { break };
            operands.push(self.join_without_condition(joins, kind, left, right)?);
        }
        self.leave();
        operands.pop().ok_or_else(|| self.error())
    }

    fn close_join(
        &mut self,
        joins: &mut Joins,
        operands: &mut Vec<Operand>,
        kinds: &mut Vec<JoinKind>,
        condition: JoinCondition,
    ) -> Result<()> {
        let (Some(kind), Some(right), Some(left)) = (kinds.pop(), operands.pop(), operands.pop())
        else {
            return Err(self.error());
        };
        let at = joins.len();
        joins.push(Join { kind, left: left.node, right: right.node, condition });
        let depth = self.join_depth(left, right)?;
        operands.push(Operand {
            node: Node::Join(at),
            leftmost: left.leftmost.or(Some(at)),
            depth,
        });
        Ok(())
    }

    fn join_depth(&self, left: Operand, right: Operand) -> Result<u32> {
        let depth = left.depth.max(right.depth + 1);
        if depth > DEPTH_MAX / 2 {
            return Err(Box::new(SyntaxError::too_deep(self.token().start)));
        }
        Ok(depth)
    }

    /// `a JOIN (b JOIN c ON x)`, written without the parentheses, means `(a JOIN b) JOIN c ON x`.
    fn join_without_condition(
        &mut self,
        joins: &mut Joins,
        kind: JoinKind,
        left: Operand,
        right: Operand,
    ) -> Result<Operand> {
        let at = joins.len();
        let condition = JoinCondition::None;
        let Some(leftmost) = right.leftmost else {
            joins.push(Join { kind, left: left.node, right: right.node, condition });
            let depth = self.join_depth(left, right)?;
            return Ok(Operand {
                node: Node::Join(at),
                leftmost: left.leftmost.or(Some(at)),
                depth,
            });
        };
        let inner = joins[leftmost].left;
        joins.push(Join { kind, left: left.node, right: inner, condition });
        joins[leftmost].left = Node::Join(at);
        let depth = left.depth.max(right.depth);
        Ok(Operand { node: right.node, leftmost: left.leftmost.or(Some(at)), depth })
    }

    fn join_condition(&mut self) -> Result<JoinCondition> {
        if self.eat_word(K::ON) {
            return Ok(JoinCondition::On(self.expr()?));
        }
        self.expect_word(K::USING)?;
        Ok(JoinCondition::Using(self.names_in_parentheses()?))
    }

    fn join_kind(&mut self) -> Result<Option<JoinKind>> {
        let word = self.token().word;
        let kind = match word {
            K::JOIN => JoinKind::Plain,
            K::INNER => JoinKind::Inner,
            K::CROSS => JoinKind::Cross,
            K::STRAIGHT_JOIN => JoinKind::Straight,
            K::LEFT => JoinKind::Left,
            K::RIGHT => JoinKind::Right,
            K::NATURAL => JoinKind::Natural,
            _ => return Ok(None),
        };
        self.advance();
        match kind {
            JoinKind::Inner | JoinKind::Cross => self.expect_word(K::JOIN)?,
            JoinKind::Left | JoinKind::Right => {
                self.eat_word(K::OUTER);
                self.expect_word(K::JOIN)?;
            }
            JoinKind::Natural => {
                let side = self.eat_one_of(&[K::INNER, K::LEFT, K::RIGHT]);
                if matches!(side, Some(K::LEFT | K::RIGHT)) {
                    self.eat_word(K::OUTER);
                }
                self.expect_word(K::JOIN)?;
                return Ok(Some(match side {
                    Some(K::INNER) => JoinKind::NaturalInner,
                    Some(K::LEFT) => JoinKind::NaturalLeft,
                    Some(_) => JoinKind::NaturalRight,
                    None => JoinKind::Natural,
                }));
            }
            _ => {}
        }
        Ok(Some(kind))
    }

    fn leaf(&mut self, table: Table) -> Operand {
        let table = self.tree.add_table(table);
        Operand { node: Node::Leaf(table), leftmost: None, depth: 0 }
    }

    fn factor(&mut self, joins: &mut Joins) -> Result<Operand> {
        let start = self.token().start;
        if self.is(Kind::Open) {
            return match self.table_parentheses(joins)? {
                Inner::Query(query) => self.derived(query, false, start),
                Inner::Table(operand) => Ok(Operand { leftmost: None, ..operand }),
            };
        }
        if self.eat(Kind::OpenBrace) {
            if !self.at_name() {
                return Err(self.error());
            }
            self.advance();
            self.enter()?;
            let operand = self.joined(joins, None)?;
            self.leave();
            self.expect(Kind::CloseBrace)?;
            return Ok(Operand { leftmost: None, ..operand });
        }
        if self.eat_word(K::LATERAL) {
            let id = self.subquery()?;
            let Some(query) = self.tree.queries.pop() else { return Err(self.error()) };
            debug_assert_eq!(id.0 as usize, self.tree.queries.len());
            return self.derived(query, true, start);
        }
        if self.is_word(K::JSON_TABLE) {
            return self.json_table();
        }
        self.named_table()
    }

    /// Parentheses around a query or tables.
    fn table_parentheses(&mut self, joins: &mut Joins) -> Result<Inner> {
        self.enter_parentheses()?;
        let start = self.token().start;
        self.expect(Kind::Open)?;
        let mut first = None;
        if self.at_query() {
            let query = self.query_expression()?;
            self.expect(Kind::Close)?;
            self.leave_parentheses();
            return Ok(Inner::Query(query));
        }
        if self.is(Kind::Open) {
            match self.table_parentheses(joins)? {
                Inner::Query(query) if self.is(Kind::Close) => {
                    self.advance();
                    self.leave_parentheses();
                    return Ok(Inner::Query(query));
                }
                Inner::Query(query) if self.continues_query() => {
                    let id = self.tree.add_query(query);
                    let query = self.query_behind(id)?;
                    self.expect(Kind::Close)?;
                    self.leave_parentheses();
                    return Ok(Inner::Query(query));
                }
                Inner::Query(query) => first = Some(self.derived(query, false, start)?),
                Inner::Table(operand) => first = Some(Operand { leftmost: None, ..operand }),
            }
        }
        let operand = self.joined(joins, first)?;
        if !self.is(Kind::Comma) {
            self.expect(Kind::Close)?;
            self.leave_parentheses();
            return Ok(Inner::Table(operand));
        }
        // A list: each of its tables is complete.
        let mut tables = alloc::vec![self.add_joins(operand, joins)];
        while self.eat(Kind::Comma) {
            tables.push(self.table_reference()?);
        }
        self.expect(Kind::Close)?;
        self.leave_parentheses();
        Ok(Inner::Table(self.leaf(Table::Cross(tables))))
    }

    /// The alias and columns behind a query in parentheses.
    fn derived(&mut self, query: Query, is_lateral: bool, start: u32) -> Result<Operand> {
        let span = self.span_from(start);
        let query = self.tree.add_query(query);
        let alias = self.table_alias()?;
        if alias.is_none() {
            let message = "Every derived table must have its own alias";
            return Err(Box::new(SyntaxError::new(1248, "42000", message, start)));
        }
        let columns = if self.is(Kind::Open) { self.names_in_parentheses()? } else { Vec::new() };
        Ok(self.leaf(Table::Derived { is_lateral, query, alias, columns, span }))
    }

    /// `AS t` or `t`, if it comes next.
    pub(super) fn table_alias(&mut self) -> Result<Text> {
        if self.eat_word(K::AS) || self.at_name() {
            return self.name();
        }
        Ok(Text::NONE)
    }

    fn named_table(&mut self) -> Result<Operand> {
        let name = self.table_name()?;
        let partitions = self.partitions()?;
        let alias = self.table_alias()?;
        let mut hints = Vec::new();
        while matches!(self.token().word, K::USE | K::FORCE | K::IGNORE)
            && matches!(self.word_ahead(1), K::INDEX | K::KEY)
        {
            self.index_hint(&mut hints)?;
        }
        if self.is_word(K::TABLESAMPLE) {
            return Err(Box::new(SyntaxError::unsupported("TABLESAMPLE", self.token().start)));
        }
        Ok(self.leaf(Table::Named { name, partitions, alias, hints }))
    }

    /// `PARTITION (p0, p1)`, if it comes next.
    pub(super) fn partitions(&mut self) -> Result<Vec<Text>> {
        if self.is_word(K::PARTITION) && self.kind_ahead(1) == Kind::Open {
            self.advance();
            return self.names_in_parentheses();
        }
        Ok(Vec::new())
    }

    fn index_hint(&mut self, hints: &mut Vec<IndexHint>) -> Result<()> {
        let kind = match self.expect_one_of(&[K::USE, K::FORCE, K::IGNORE])? {
            K::USE => IndexHintKind::Use,
            K::FORCE => IndexHintKind::Force,
            _ => IndexHintKind::Ignore,
        };
        self.advance();
        let mut purpose = IndexHintFor::All;
        if self.eat_word(K::FOR) {
            purpose = match self.expect_one_of(&[K::JOIN, K::ORDER, K::GROUP])? {
                K::JOIN => IndexHintFor::Join,
                K::ORDER => IndexHintFor::OrderBy,
                _ => IndexHintFor::GroupBy,
            };
            if purpose != IndexHintFor::Join {
                self.expect_word(K::BY)?;
            }
        }
        self.expect(Kind::Open)?;
        let indexes = if self.is(Kind::Close) && kind == IndexHintKind::Use {
            Vec::new()
        } else {
            self.comma_list(|parser| {
                if parser.eat_word(K::PRIMARY) {
                    Ok(parser.tree.add_text(b"PRIMARY"))
                } else {
                    parser.name()
                }
            })?
        };
        self.expect(Kind::Close)?;
        hints.push(IndexHint { kind, purpose, indexes });
        Ok(())
    }

    fn json_table(&mut self) -> Result<Operand> {
        let start = self.token().start;
        self.advance();
        self.expect(Kind::Open)?;
        let document = self.expr()?;
        self.expect(Kind::Comma)?;
        let path = self.text()?;
        let mut columns = Vec::new();
        self.json_columns(&mut columns)?;
        self.expect(Kind::Close)?;
        let alias = self.table_alias()?;
        if alias.is_none() {
            let message = "Every table function must have an alias";
            return Err(Box::new(SyntaxError::new(3669, "42000", message, start)));
        }
        Ok(self.leaf(Table::Json { document, path, columns, alias }))
    }

    /// `COLUMNS (…)`; the number of columns directly in it.
    fn json_columns(&mut self, columns: &mut Vec<JsonColumn>) -> Result<u32> {
        self.enter()?;
        self.expect_word(K::COLUMNS)?;
        self.expect(Kind::Open)?;
        let mut count = 0;
        loop {
            count += 1;
            if self.is_word(K::NESTED)
                && (self.word_ahead(1) == K::PATH || self.kind_ahead(1) == Kind::Text)
            {
                self.advance();
                self.eat_word(K::PATH);
                let path = self.text()?;
                let at = columns.len();
                columns.push(JsonColumn::Nested { path, columns: 0 });
                let inner = self.json_columns(columns)?;
                columns[at] = JsonColumn::Nested { path, columns: inner };
            } else {
                let column = self.json_column()?;
                columns.push(column);
            }
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Close)?;
        self.leave();
        Ok(count)
    }

    fn json_column(&mut self) -> Result<JsonColumn> {
        let name = self.name()?;
        if self.eat_word(K::FOR) {
            self.expect_word(K::ORDINALITY)?;
            return Ok(JsonColumn::Ordinality(name));
        }
        let data_type = self.column_type()?;
        let collation = if self.eat_word(K::COLLATE) { self.collation_name()? } else { Text::NONE };
        let is_exists = self.eat_word(K::EXISTS);
        self.expect_word(K::PATH)?;
        let path = self.text()?;
        let (on_empty, on_error) = self.json_defaults(true)?;
        Ok(JsonColumn::Path { name, data_type, collation, is_exists, path, on_empty, on_error })
    }
}

fn is_natural(kind: JoinKind) -> bool {
    use JoinKind::{Natural, NaturalInner, NaturalLeft, NaturalRight};
    matches!(kind, Natural | NaturalInner | NaturalLeft | NaturalRight)
}
