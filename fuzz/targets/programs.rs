//! Programs and row images, as clients send them to data nodes (A7): what was found good must run without a panic.
#![no_main]

use lats_values::{ColumnType, Program, RowLayout, TypeKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let columns = [
        ColumnType::new(TypeKind::BigInt).not_null(),
        ColumnType::new(TypeKind::Int),
        ColumnType::new(TypeKind::Double),
    ];
    let layout = RowLayout::new(&columns);
    let (program, row) = bytes.split_at(bytes.len() / 2);
    let _ = layout.validate(row);
    let mut good = Vec::new();
    if layout.encode(&[lats_values::Value::Int(5), lats_values::Value::Null, lats_values::Value::Null], &mut good).is_err() {
        return;
    }
    let Ok(program) = Program::decode(program, &columns) else { return };
    let rows = [Some(good.as_slice()), layout.validate(row).is_ok().then_some(row)];
    for row in rows.into_iter().flatten() {
        let _ = program.matches(&layout, row);
        if let Ok(Some(new)) = program.updated(&layout, row) {
            assert!(layout.validate(&new).is_ok(), "a program makes good rows");
        }
        program.project(&layout, row, &mut Vec::new());
    }
});
