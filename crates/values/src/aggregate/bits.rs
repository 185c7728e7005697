//! BIT_AND, BIT_OR and BIT_XOR: over whole numbers, and byte by byte over byte strings.

use super::AggregateKind;
use crate::{ColumnType, EvalContext, SqlError, TypeKind, Value, expr::to_integer};
use alloc::{string::String, vec::Vec};

/// Longest byte string that is taken.
const BYTES_MAX: usize = 511;

/// The bits so far.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    kind: AggregateKind,
    so_far: SoFar,
    /// The length of the argument's type, for a result without values.
    width: usize,
}

#[derive(Clone, Debug)]
enum SoFar {
    Number(u64),
    /// `None` until the first value.
    Bytes(Option<Vec<u8>>),
}

impl Bits {
    pub(super) fn new(kind: AggregateKind, input: Option<&ColumnType>) -> Self {
        let neutral = if kind == AggregateKind::BitAnd { u64::MAX } else { 0 };
        // NULL has no bytes: it is a number here.
        let is_null = |of: &ColumnType| of.kind == TypeKind::VarBinary { bytes: 0 };
        let bytes = input.filter(|of| of.kind.is_bytes() && !is_null(of));
        let so_far = if bytes.is_some() { SoFar::Bytes(None) } else { SoFar::Number(neutral) };
        Self { kind, so_far, width: bytes.map_or(0, |of| of.kind.max_variable_bytes()) }
    }

    pub(super) fn add(&mut self, value: &Value, ctx: &mut EvalContext) -> Result<(), SqlError> {
        match &mut self.so_far {
            SoFar::Number(bits) => {
                *bits = unite(self.kind, *bits, to_integer(value, ctx)? as u64);
                Ok(())
            }
            SoFar::Bytes(_) => self.add_bytes(&value.as_bytes().unwrap_or_default()),
        }
    }

    fn add_bytes(&mut self, value: &[u8]) -> Result<(), SqlError> {
        let SoFar::Bytes(so_far) = &mut self.so_far else { return Ok(()) };
        if value.len() > BYTES_MAX {
            return Err(SqlError::bits_too_long());
        }
        match so_far {
            None => *so_far = Some(value.to_vec()),
            Some(bytes) if bytes.len() == value.len() => {
                for (byte, other) in bytes.iter_mut().zip(value) {
                    *byte = unite(self.kind, u64::from(*byte), u64::from(*other)) as u8;
                }
            }
            Some(_) => return Err(SqlError::bits_of_unequal_length()),
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: &Self) -> Result<(), SqlError> {
        match (&mut self.so_far, &other.so_far) {
            (SoFar::Number(bits), SoFar::Number(more)) => {
                *bits = unite(self.kind, *bits, *more);
                Ok(())
            }
            (SoFar::Bytes(_), SoFar::Bytes(Some(more))) => self.add_bytes(more),
            _ => Ok(()),
        }
    }

    pub(super) fn finish(self) -> Value {
        let neutral = if self.kind == AggregateKind::BitAnd { 0xff } else { 0 };
        match self.so_far {
            SoFar::Number(bits) => Value::UInt(bits),
            SoFar::Bytes(Some(bytes)) => Value::Bytes(bytes),
            SoFar::Bytes(None) => Value::Bytes(alloc::vec![neutral; self.width.min(BYTES_MAX)]),
        }
    }
}

fn unite(kind: AggregateKind, a: u64, b: u64) -> u64 {
    match kind {
        AggregateKind::BitAnd => a & b,
        AggregateKind::BitOr => a | b,
        _ => a ^ b,
    }
}

impl SqlError {
    /// 3513: the byte strings of a bit operation differ in length.
    pub(crate) fn bits_of_unequal_length() -> Self {
        let text = "Binary operands of bitwise operators must be of equal length";
        Self::new(3513, *b"HY000", String::from(text))
    }

    /// 3514: a byte string is too long for BIT_AND, BIT_OR and BIT_XOR.
    pub(crate) fn bits_too_long() -> Self {
        let text = "Aggregate bitwise functions cannot accept arguments longer than 511 bytes; \
                    consider using the SUBSTRING() function";
        Self::new(3514, *b"HY000", String::from(text))
    }
}
