//! COMPRESS and its reverse: the length in four bytes, then what zlib makes.

use super::{Function, Outcome};
use crate::functions::RESULT_BYTES_MAX;
use crate::{EvalContext, SqlError, Value};
use alloc::{string::String, vec::Vec};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// What zlib takes if nobody says otherwise.
const LEVEL: u8 = 6;
/// Bytes of the length before the data.
const HEAD: usize = 4;

pub(super) fn call(function: Function, args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let bytes = args.first().and_then(Value::as_bytes).unwrap_or_default();
    if bytes.is_empty() {
        return Ok(match function {
            Function::UncompressedLength => Value::Int(0),
            _ => Value::Bytes(Vec::new()),
        });
    }
    if function == Function::Compress {
        return Ok(Value::Bytes(compress(&bytes)));
    }
    let head = bytes.split_first_chunk::<HEAD>().filter(|(_, data)| !data.is_empty());
    let Some((head, data)) = head else { return corrupt(function, ctx) };
    // The two bits above are no part of the length.
    let length = u32::from_le_bytes(*head) & 0x3FFF_FFFF;
    if function == Function::UncompressedLength {
        return Ok(Value::Int(i64::from(length)));
    }
    let length = length as usize;
    if length > RESULT_BYTES_MAX {
        let text = String::from(
            "Uncompressed data size too large; the maximum size is 4194304 (probably, length of uncompressed data was corrupted)",
        );
        ctx.note(SqlError::new(1256, *b"HY000", text));
        return Ok(Value::Null);
    }
    match decompress_to_vec_zlib_with_limit(data, length) {
        Ok(plain) => Ok(Value::Bytes(plain)),
        Err(_) => corrupt(function, ctx),
    }
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::from((bytes.len() as u32).to_le_bytes());
    out.extend(compress_to_vec_zlib(bytes, LEVEL));
    // Some columns lose spaces at the end.
    if out.last() == Some(&b' ') {
        out.push(b'.');
    }
    out
}

/// 1259, as a warning.
fn corrupt(function: Function, ctx: &mut EvalContext) -> Outcome {
    ctx.note(SqlError::new(1259, *b"HY000", String::from("ZLIB: Input data corrupted")));
    Ok(match function {
        Function::UncompressedLength => Value::Int(0),
        _ => Value::Null,
    })
}
