//! Length-encoded integers and strings, at their edges.

use super::*;

#[test]
fn length_encoded_integers_have_the_documented_bytes() {
    let cases: [(u64, &[u8]); 8] = [
        (0, &[0]),
        (250, &[0xFA]),
        (251, &[0xFC, 0xFB, 0]),
        (0xFFFF, &[0xFC, 0xFF, 0xFF]),
        (0x1_0000, &[0xFD, 0, 0, 1]),
        (0xFF_FFFF, &[0xFD, 0xFF, 0xFF, 0xFF]),
        (0x100_0000, &[0xFE, 0, 0, 0, 1, 0, 0, 0, 0]),
        (u64::MAX, &[0xFE, 255, 255, 255, 255, 255, 255, 255, 255]),
    ];
    for (number, bytes) in cases {
        let mut out = Vec::new();
        put_lenenc_int(&mut out, number);
        assert_eq!(out, bytes, "{number}");
        assert_eq!(Reader::new(bytes).lenenc_int(), Ok(number));
        for cut in 0..bytes.len() {
            assert!(Reader::new(&bytes[..cut]).lenenc_int().is_err());
        }
    }
    assert!(Reader::new(&[0xFB]).lenenc_int().is_err());
    assert!(Reader::new(&[0xFF]).lenenc_int().is_err());
}

#[test]
fn a_string_longer_than_its_payload_is_refused() {
    let mut huge = vec![0xFE];
    huge.extend_from_slice(&u64::MAX.to_le_bytes());
    huge.push(1);
    assert!(Reader::new(&huge).lenenc_bytes().is_err());
    assert!(Reader::new(&[3, b'a', b'b']).lenenc_bytes().is_err());
    assert_eq!(Reader::new(&[2, b'a', b'b']).lenenc_bytes(), Ok(&b"ab"[..]));
}

#[test]
fn strings_end_at_nul() {
    let mut reader = Reader::new(b"one\0two");
    assert_eq!(reader.nul_bytes(), Ok(&b"one"[..]));
    assert!(reader.nul_bytes().is_err());
    assert_eq!(reader.nul_bytes_or_rest(), b"two");
    assert!(reader.is_empty());
    assert_eq!(reader.nul_bytes_or_rest(), b"");
}
