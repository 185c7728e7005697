//! Programs of requests. Operations that stand together mostly have the same one, and clients send the same ones
//! again and again: they are read once.

use crate::Table;
use alloc::{boxed::Box, sync::Arc};
use lats_base::{RefCode, TableId, hash::partition_hash};
use lats_values::Program;

/// Programs that were read lately: of those that would stand in the same place, the last one.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    /// The place of the last one: it is likely to be asked for again.
    last: usize,
    kept: [Option<Kept>; PLACES + 1],
}

const PLACES: usize = 16;
/// All longer ones have one place together: they are large, and seldom sent in more than one request.
const SHORT_BYTES_MAX: usize = 1_024;

#[derive(Debug)]
struct Kept {
    table: TableId,
    schema_version: u32,
    bytes: Box<[u8]>,
    program: Arc<Program>,
}

impl Kept {
    fn is(&self, table: &Table, bytes: &[u8]) -> bool {
        *self.bytes == *bytes
            && (self.table, self.schema_version) == (table.def.id, table.def.schema_version)
    }
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
        if let Some(program) = self.find(self.last, table, bytes) {
            return Ok(Some(program));
        }
        let is_short = bytes.len() <= SHORT_BYTES_MAX;
        let place = if is_short { partition_hash(bytes) as usize % PLACES } else { PLACES };
        self.last = place;
        if let Some(program) = self.find(place, table, bytes) {
            return Ok(Some(program));
        }
        let program = Arc::new(decode(table, bytes)?);
        self.kept[place] = Some(Kept {
            table: table.def.id,
            schema_version: table.def.schema_version,
            bytes: bytes.into(),
            program: program.clone(),
        });
        Ok(Some(program))
    }

    fn find(&self, place: usize, table: &Table, bytes: &[u8]) -> Option<Arc<Program>> {
        let kept = self.kept[place].as_ref().filter(|kept| kept.is(table, bytes))?;
        Some(kept.program.clone())
    }
}

pub(crate) fn decode(table: &Table, program: &[u8]) -> Result<Program, RefCode> {
    Program::decode(program, table.layout.columns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::table;
    use lats_values::{Expr, Value};
    use std::vec::Vec;

    fn program(number: i64) -> Vec<u8> {
        let filter = Some(Expr::Literal(Value::Int(number)));
        Program { filter, ..Program::default() }.encode()
    }

    #[test]
    fn a_program_is_read_once_per_version_of_its_table() {
        let (mut programs, table, bytes) = (Programs::default(), table(1), program(1));
        let read = |programs: &mut Programs, table, bytes: &[u8]| {
            programs.read(table, bytes).unwrap().unwrap()
        };
        let first = read(&mut programs, &table, &bytes);
        // More than there are places for.
        for other in 2..50 {
            let bytes = program(other);
            let read = read(&mut programs, &table, &bytes);
            assert_eq!(*read, Program::decode(&bytes, table.layout.columns()).unwrap());
            assert!(!Arc::ptr_eq(&first, &read));
        }
        let again = read(&mut programs, &table, &bytes);
        assert_eq!(again, first);
        assert!(Arc::ptr_eq(&again, &read(&mut programs, &table, &bytes)), "it is kept");
        let altered = crate::tests::table(2);
        assert!(
            !Arc::ptr_eq(&again, &read(&mut programs, &altered, &bytes)),
            "it may mean another column"
        );
        assert!(programs.read(&table, &[]).unwrap().is_none());
        assert!(programs.read(&table, b"no program").is_err());
    }
}
