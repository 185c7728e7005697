//! MD5, SHA1, SHA2 and BASE64.

use super::{Function, Outcome, plain};
use crate::{EvalContext, SqlError, Value, expr::to_integer, text::hex};
use alloc::{string::String, vec::Vec};
use base64::{Engine, engine::general_purpose::STANDARD};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// Characters of a line of TO_BASE64.
const LINE: usize = 76;

fn sum<D: Digest>(bytes: &[u8]) -> Value {
    plain(hex(&D::digest(bytes)).to_ascii_lowercase())
}

/// Functions whose arguments are not NULL.
pub(super) fn call(function: Function, args: &[Value]) -> Outcome {
    let bytes = args.first().and_then(Value::as_bytes).unwrap_or_default();
    Ok(match function {
        Function::Md5 => sum::<Md5>(&bytes),
        Function::Sha1 => sum::<Sha1>(&bytes),
        Function::ToBase64 => plain(lines(&STANDARD.encode(&bytes))),
        _ => {
            let packed: Vec<u8> =
                bytes.iter().copied().filter(|b| !crate::text::is_space(*b)).collect();
            STANDARD.decode(packed).map_or(Value::Null, Value::Bytes)
        }
    })
}

fn lines(encoded: &str) -> String {
    let mut out = String::with_capacity(encoded.len() + encoded.len() / LINE);
    for (index, c) in encoded.chars().enumerate() {
        if index > 0 && index.is_multiple_of(LINE) {
            out.push('\n');
        }
        out.push(c);
    }
    out
}

/// `SHA2(x, bits)`: 0 stands for 256; no other lengths than the four of the standard.
pub(super) fn sha2(args: &[Value], ctx: &mut EvalContext) -> Outcome {
    let [text, bits] = args else {
        return Err(SqlError::wrong_argument_count(Function::Sha2.name()));
    };
    let Some(bytes) = text.as_bytes() else { return Ok(Value::Null) };
    let bits = if bits.is_null() { -1 } else { to_integer(bits, ctx)? };
    Ok(match bits {
        224 => sum::<Sha224>(&bytes),
        0 | 256 => sum::<Sha256>(&bytes),
        384 => sum::<Sha384>(&bytes),
        512 => sum::<Sha512>(&bytes),
        _ => {
            ctx.warn(SqlError::wrong_parameters("sha2"))?;
            Value::Null
        }
    })
}
