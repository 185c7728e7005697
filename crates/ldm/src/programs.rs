//! Programs of a request. Operations that stand together mostly have the same one: it is read once.

use crate::Table;
use alloc::{sync::Arc, vec::Vec};
use lats_base::{RefCode, TableId};
use lats_values::Program;

/// The program that was read last.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    table: TableId,
    schema_version: u32,
    bytes: Vec<u8>,
    program: Option<Arc<Program>>,
}

impl Programs {
    /// The program of an operation on a table, if it has one.
    pub(crate) fn read(
        &mut self,
        table: &Table,
        bytes: &[u8],
    ) -> Result<Option<Arc<Program>>, RefCode> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let same_table =
            (self.table, self.schema_version) == (table.def.id, table.def.schema_version);
        if !same_table || self.program.is_none() || self.bytes != bytes {
            self.program = None;
            let program = decode(table, bytes)?;
            (self.table, self.schema_version) = (table.def.id, table.def.schema_version);
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.program = Some(Arc::new(program));
        }
        Ok(self.program.clone())
    }
}

pub(crate) fn decode(table: &Table, program: &[u8]) -> Result<Program, RefCode> {
    Program::decode(program, table.layout.columns())
}
