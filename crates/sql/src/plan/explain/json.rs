//! EXPLAIN FORMAT=JSON: the blocks of a plan with MySQL's names.

use super::blocks::{Block, Line, United};
use super::rows::{filtered, looked_at};
use std::fmt::Write as _;

/// A value of JSON; members keep their order.
enum Json {
    Object(Vec<(&'static str, Json)>),
    Array(Vec<Json>),
    Text(String),
    Number(u64),
    Bool(bool),
}

/// Costs are estimates of this engine, in units of its own, with two digits as MySQL shows its own.
const READ_COST: f64 = 0.25;
/// What a row costs that is looked at.
const ROW_COST: f64 = 0.1;

/// The text of a plan; `verb` is `insert`, `update` or `delete` where the first table is changed.
pub(super) fn text(block: &Block, verb: Option<&'static str>) -> String {
    let mut out = String::new();
    write(&Json::Object(vec![("query_block", query_block(block, verb))]), 0, &mut out);
    out
}

fn query_block(block: &Block, verb: Option<&'static str>) -> Json {
    if let Some(united) = &block.united {
        return Json::Object(vec![("union_result", result(united, block.sorts))]);
    }
    let mut members = vec![("select_id", Json::Number(u64::from(block.id)))];
    if block.lines.is_empty() && block.inner.is_empty() {
        members.push(("message", Json::Text("No tables used".to_owned())));
        return Json::Object(members);
    }
    let mut costs = Costs::default();
    let mut tables: Vec<Json> = block.lines.iter().map(|line| costs.table(line, verb)).collect();
    if verb.is_none() {
        members.push(("cost_info", cost_info(&[("query_cost", costs.prefix)])));
    }
    let mut inside = match tables.len() {
        0 => Vec::new(),
        1 => vec![("table", tables.remove(0))],
        _ => {
            let tables = tables.into_iter().map(|table| Json::Object(vec![("table", table)]));
            vec![("nested_loop", Json::Array(tables.collect()))]
        }
    };
    if block.windows {
        inside = within("windowing", &[("using_filesort", true)], inside);
    }
    if block.groups {
        let flags = [("using_temporary_table", true), ("using_filesort", false)];
        inside = within("grouping_operation", &flags, inside);
    }
    if block.distinct {
        inside = within("duplicates_removal", &[("using_temporary_table", true)], inside);
    }
    if block.sorts {
        inside = within("ordering_operation", &[("using_filesort", true)], inside);
    }
    members.extend(inside);
    if !block.inner.is_empty() {
        let inner = block.inner.iter().map(specification).collect();
        members.push(("attached_subqueries", Json::Array(inner)));
    }
    Json::Object(members)
}

/// An operation with flags around what it works on.
fn within(
    name: &'static str,
    flags: &[(&'static str, bool)],
    inside: Vec<(&'static str, Json)>,
) -> Vec<(&'static str, Json)> {
    let flags = flags.iter().map(|(name, value)| (*name, Json::Bool(*value)));
    vec![(name, Json::Object(flags.chain(inside).collect()))]
}

fn specification(block: &Block) -> Json {
    Json::Object(vec![
        ("dependent", Json::Bool(block.is_dependent)),
        ("cacheable", Json::Bool(!block.is_dependent)),
        ("query_block", query_block(block, None)),
    ])
}

fn result(united: &United, sorts: bool) -> Json {
    let mut members = vec![("using_temporary_table", Json::Bool(united.distinct))];
    if united.distinct {
        let parts: Vec<String> = united.parts.iter().map(|part| part.id.to_string()).collect();
        members.push(("select_id", Json::Number(u64::from(united.id))));
        members.push(("table_name", Json::Text(format!("<{}{}>", united.word, parts.join(",")))));
        members.push(("access_type", Json::Text("ALL".to_owned())));
    }
    if sorts {
        members.push(("using_filesort", Json::Bool(true)));
    }
    let parts = united.parts.iter().map(specification).collect();
    members.push(("query_specifications", Json::Array(parts)));
    Json::Object(members)
}

/// What the tables of a block cost, one after the other.
struct Costs {
    /// The rows of the tables before.
    rows: f64,
    prefix: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self { rows: 1.0, prefix: 0.0 }
    }
}

impl Costs {
    fn table(&mut self, line: &Line, verb: Option<&'static str>) -> Json {
        let texts = |list: &[String]| Json::Array(list.iter().cloned().map(Json::Text).collect());
        let mut members = Vec::new();
        members.extend(verb.map(|verb| (verb, Json::Bool(true))));
        members.push(("table_name", Json::Text(line.table.clone())));
        members.push(("access_type", Json::Text(line.kind.to_owned())));
        if !line.possible.is_empty() {
            members.push(("possible_keys", texts(&line.possible)));
        }
        if let Some(key) = &line.key {
            members.push(("key", Json::Text(key.clone())));
            members.push(("used_key_parts", texts(&line.key_columns)));
            members.push(("key_length", Json::Text(line.key_bytes.to_string())));
        }
        if !line.given.is_empty() {
            members.push(("ref", texts(&line.given)));
        }
        if let Some(touched) = line.touched {
            let asks = if line.is_hashed { 1.0 } else { self.rows };
            let produced = self.rows * touched.found;
            members.push(("rows_examined_per_scan", Json::Number(looked_at(line))));
            members
                .push(("rows_produced_per_join", Json::Number(produced.round().max(0.0) as u64)));
            let percent = filtered(touched.looked_at, touched.found);
            members.push(("filtered", Json::Text(format!("{percent:.2}"))));
            let read = asks * READ_COST;
            let eval = asks * touched.looked_at.max(1.0) * ROW_COST;
            self.prefix += read + eval;
            self.rows = produced.max(1.0);
            let costs = [("read_cost", read), ("eval_cost", eval), ("prefix_cost", self.prefix)];
            members.push(("cost_info", cost_info(&costs)));
        }
        if line.is_hashed {
            members.push(("using_join_buffer", Json::Text("hash join".to_owned())));
        }
        if verb != Some("insert") {
            members.push(("used_columns", texts(&line.columns)));
        }
        if let Some(condition) = &line.condition {
            members.push(("attached_condition", Json::Text(condition.clone())));
        }
        Json::Object(members)
    }
}

fn cost_info(costs: &[(&'static str, f64)]) -> Json {
    let member = |(name, cost): &(&'static str, f64)| (*name, Json::Text(format!("{cost:.2}")));
    Json::Object(costs.iter().map(member).collect())
}

/// Writes a value, with two spaces for each level.
fn write(value: &Json, level: usize, out: &mut String) {
    match value {
        Json::Object(members) => {
            let members = members.iter().map(|(name, value)| (Some(*name), value));
            list(('{', '}'), members, level, out);
        }
        Json::Array(values) => {
            list(('[', ']'), values.iter().map(|value| (None, value)), level, out)
        }
        Json::Text(text) => quoted(text, out),
        Json::Number(number) => out.push_str(&number.to_string()),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
    }
}

fn list<'j>(
    (open, close): (char, char),
    members: impl Iterator<Item = (Option<&'static str>, &'j Json)>,
    level: usize,
    out: &mut String,
) {
    out.push(open);
    for (at, (name, value)) in members.enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(level + 1));
        if let Some(name) = name {
            quoted(name, out);
            out.push_str(": ");
        }
        write(value, level + 1, out);
    }
    out.push('\n');
    out.push_str(&"  ".repeat(level));
    out.push(close);
}

fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            letter if u32::from(letter) < 0x20 => {
                // Writing into a text never fails.
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}
