//! AES_ENCRYPT and AES_DECRYPT in the mode `aes-128-ecb`, MySQL's default.

use super::Function;
use crate::Value;
use aes::Aes128;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use alloc::vec::Vec;

const BLOCK: usize = 16;

/// Both arguments are not NULL.
pub(super) fn call(function: Function, args: &[Value]) -> Value {
    let bytes = |at: usize| args.get(at).and_then(Value::as_bytes).unwrap_or_default();
    let (text, key) = (bytes(0), bytes(1));
    let cipher = Aes128::new(&folded(&key).into());
    match function {
        Function::AesEncrypt => Value::Bytes(encrypt(&cipher, &text)),
        _ => decrypt(&cipher, &text).map_or(Value::Null, Value::Bytes),
    }
}

/// A key of any length: its parts on top of each other.
fn folded(key: &[u8]) -> [u8; BLOCK] {
    let mut folded = [0; BLOCK];
    for part in key.chunks(BLOCK) {
        folded.iter_mut().zip(part).for_each(|(to, byte)| *to ^= byte);
    }
    folded
}

/// The last block is filled up with bytes that say how many they are.
fn encrypt(cipher: &Aes128, text: &[u8]) -> Vec<u8> {
    let fill = BLOCK - text.len() % BLOCK;
    let mut out = Vec::with_capacity(text.len() + fill);
    out.extend_from_slice(text);
    out.resize(text.len() + fill, fill as u8);
    for block in out.chunks_exact_mut(BLOCK) {
        cipher.encrypt_block(block.into());
    }
    out
}

fn decrypt(cipher: &Aes128, bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(BLOCK) {
        return None;
    }
    let mut out = bytes.to_vec();
    for block in out.chunks_exact_mut(BLOCK) {
        cipher.decrypt_block(block.into());
    }
    let fill = usize::from(*out.last()?);
    let kept = out.len().checked_sub(fill)?;
    let is_filled =
        (1..=BLOCK).contains(&fill) && out.get(kept..)?.iter().all(|b| usize::from(*b) == fill);
    if !is_filled {
        return None;
    }
    out.truncate(kept);
    Some(out)
}
