//! MySQL's table of EXPLAIN: a row for each table, in the order in which tables are read.

use super::blocks::{Block, Line};
use crate::plan::{ColumnMeta, Columns};
use lats_values::{ColumnType, TypeKind, Value};

/// The names of the columns, and which of them are numbers.
const COLUMNS: [(&str, bool); 12] = [
    ("id", true),
    ("select_type", false),
    ("table", false),
    ("partitions", false),
    ("type", false),
    ("possible_keys", false),
    ("key", false),
    ("key_len", false),
    ("ref", false),
    ("rows", true),
    ("filtered", false),
    ("Extra", false),
];

/// The columns of the table.
pub(super) fn columns() -> Columns {
    let of = |number: bool| match number {
        true => ColumnType::new(TypeKind::BigInt).unsigned(),
        false => ColumnType::new(TypeKind::VarChar { chars: 512 }),
    };
    COLUMNS.iter().map(|(name, number)| ColumnMeta::expression(name, of(*number))).collect()
}

/// The rows of a block and of those in it.
pub(super) fn rows(block: &Block) -> Vec<Vec<Value>> {
    let mut found = Vec::new();
    add(block, &mut found);
    found
}

fn add(block: &Block, rows: &mut Vec<Vec<Value>>) {
    if let Some(united) = &block.united {
        united.parts.iter().for_each(|part| add(part, rows));
        if united.distinct {
            let parts: Vec<String> = united.parts.iter().map(|part| part.id.to_string()).collect();
            let table = format!("<{}{}>", united.word, parts.join(","));
            let mut cells = empty(united.id, &format!("{} RESULT", united.word.to_uppercase()));
            set(&mut cells, 2, &table);
            set(&mut cells, 4, "ALL");
            let sorts =
                if block.sorts { "Using temporary; Using filesort" } else { "Using temporary" };
            set(&mut cells, 11, sorts);
            rows.push(cells);
        }
        return;
    }
    let first = rows.len();
    rows.extend(block.lines.iter().map(|line| row(block, line)));
    if block.lines.is_empty() && block.inner.is_empty() {
        let mut cells = empty(block.id, &block.select_type);
        set(&mut cells, 11, "No tables used");
        rows.push(cells);
    } else if !block.lines.is_empty() {
        let temporary = (block.groups || block.distinct).then_some("Using temporary");
        let sorted = (block.sorts || block.windows).then_some("Using filesort");
        for text in temporary.into_iter().chain(sorted) {
            if let Some(cell) = rows.get_mut(first).and_then(|row| row.get_mut(11)) {
                *cell = Value::text(&match &*cell {
                    Value::Text(before, _) => format!("{before}; {text}"),
                    _ => text.to_owned(),
                });
            }
        }
    }
    block.inner.iter().for_each(|inner| add(inner, rows));
}

fn empty(id: u32, select_type: &str) -> Vec<Value> {
    let mut cells = vec![Value::Null; COLUMNS.len()];
    if let Some(cell) = cells.first_mut() {
        *cell = Value::UInt(u64::from(id));
    }
    set(&mut cells, 1, select_type);
    cells
}

fn set(cells: &mut [Value], at: usize, text: &str) {
    if let Some(cell) = cells.get_mut(at)
        && !text.is_empty()
    {
        *cell = Value::text(text);
    }
}

fn row(block: &Block, line: &Line) -> Vec<Value> {
    let mut cells = empty(block.id, &block.select_type);
    set(&mut cells, 2, &line.table);
    set(&mut cells, 4, line.kind);
    set(&mut cells, 5, &line.possible.join(","));
    if let Some(key) = &line.key {
        set(&mut cells, 6, key);
        set(&mut cells, 7, &line.key_bytes.to_string());
        set(&mut cells, 8, &line.given.join(","));
    }
    if let (Some(touched), Some([rows, percent])) = (line.touched, cells.get_mut(9..11)) {
        *rows = Value::UInt(looked_at(line));
        *percent = Value::text(&format!("{:.2}", filtered(touched.looked_at, touched.found)));
    }
    let mut extra = Vec::new();
    if line.condition.is_some() || line.kind == "range" {
        extra.push("Using where");
    }
    if line.is_hashed {
        extra.push("Using join buffer (hash join)");
    }
    set(&mut cells, 11, &extra.join("; "));
    cells
}

/// The rows that are looked at for each row of the tables before.
pub(super) fn looked_at(line: &Line) -> u64 {
    line.touched.map_or(0, |touched| touched.looked_at.max(1.0).round() as u64)
}

/// How many of a hundred rows pass the condition.
pub(super) fn filtered(looked_at: f64, found: f64) -> f64 {
    (100.0 * found / looked_at.max(0.01)).clamp(0.01, 100.0)
}
