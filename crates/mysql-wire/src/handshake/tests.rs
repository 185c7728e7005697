//! Greeting and response, byte by byte, and responses from nowhere.

use super::*;
use lats_base::prng::Prng;

/// The response of a MySQL 5.5 client in the protocol's documentation: user pam, database test,
/// a 20-byte scramble.
const DOCUMENTED: &[u8] = b"\x8D\xA6\x0F\x00\x00\x00\x00\x01\x08\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    pam\0\x14\xAB\x09\xEE\xF6\xBC\xB1\x32\x3E\x61\x14\x38\x65\xC0\x99\x1D\x95\x7D\x75\xD4\x47\
    test\0mysql_native_password\0";

fn response(capabilities: Capabilities, tail: &[u8]) -> Vec<u8> {
    let mut out = (capabilities | Capabilities::PROTOCOL_41).bits().to_le_bytes().to_vec();
    out.extend_from_slice(&[0, 0, 0, 1, 45]);
    out.extend_from_slice(&[0; 23]);
    out.extend_from_slice(b"root\0");
    out.extend_from_slice(tail);
    out
}

#[test]
fn the_greeting_has_the_documented_bytes() {
    let nonce = Nonce::from_random(*b"abcdefghijklmnopqrst");
    let payload = Greeting { connection_id: 0x0102_0304, nonce }.payload();
    let mut expected = b"\x0A8.4.0-LatsDB\0\x04\x03\x02\x01abcdefgh\0".to_vec();
    expected.extend_from_slice(&[0x0F, 0xA7, 0xFF, 2, 0, 0x3F, 0x01, 21]);
    expected.extend_from_slice(&[0; 10]);
    expected.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    assert_eq!(payload, expected);
    assert!(!Capabilities::SERVER.contains(Capabilities::SSL));
}

#[test]
fn the_documented_response_is_read() {
    let response = HandshakeResponse::parse(DOCUMENTED).unwrap();
    assert_eq!(response.user, "pam");
    assert_eq!(response.auth_response.len(), 20);
    assert_eq!(response.database.as_deref(), Some("test"));
    assert_eq!(response.plugin.as_deref(), Some("mysql_native_password"));
    assert_eq!(response.max_packet_bytes, 1 << 24);
    assert_eq!(response.collation_id, 8);
    assert!(response.attributes.is_empty());
    // LOCAL_FILES was not offered.
    assert!(!response.capabilities.contains(Capabilities(0x80)));
    assert!(response.capabilities.contains(Capabilities::MULTI_STATEMENTS));
}

#[test]
fn all_encodings_of_the_authentication_data() {
    let secure = Capabilities::SECURE_CONNECTION;
    let parsed = HandshakeResponse::parse(&response(secure, b"\x02ab")).unwrap();
    assert_eq!((parsed.auth_response, parsed.plugin), (b"ab".to_vec(), None));
    let lenenc = secure | Capabilities::PLUGIN_AUTH_LENENC;
    let mut long = vec![0xFC, 0x2C, 1];
    long.extend_from_slice(&[7; 300]);
    let parsed = HandshakeResponse::parse(&response(lenenc, &long)).unwrap();
    assert_eq!(parsed.auth_response, [7; 300]);
    // A NUL-terminated answer belongs to the protocol before 4.1's passwords.
    let old = HandshakeResponse::parse(&response(Capabilities::NONE, b"ab\0"));
    assert_eq!(old, Err(WireError::ClientTooOld));
}

#[test]
fn attributes_are_read() {
    let capabilities =
        Capabilities::SECURE_CONNECTION | Capabilities::PLUGIN_AUTH | Capabilities::CONNECT_ATTRS;
    let tail = b"\0mysql_native_password\0\x10\x03_os\x05Linux\x01a\x03b\xFFc";
    let parsed = HandshakeResponse::parse(&response(capabilities, tail)).unwrap();
    let expected =
        [("_os".to_owned(), "Linux".to_owned()), ("a".to_owned(), "b\u{FFFD}c".to_owned())];
    assert_eq!(parsed.attributes, expected);
    let cut = b"\0mysql_native_password\0\x0F\x03_os";
    assert!(HandshakeResponse::parse(&response(capabilities, cut)).is_err());
    let unterminated = b"\0mysql_native_password";
    let parsed = HandshakeResponse::parse(&response(capabilities, unterminated)).unwrap();
    assert_eq!(parsed.plugin.as_deref(), Some("mysql_native_password"));
}

#[test]
fn old_clients_and_tls_are_refused() {
    assert_eq!(HandshakeResponse::parse(&[0x85, 0x24, 0, 0]), Err(WireError::ClientTooOld));
    let wanted = Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION | Capabilities::SSL;
    let mut request = wanted.bits().to_le_bytes().to_vec();
    request.resize(32, 0);
    assert_eq!(HandshakeResponse::parse(&request), Err(WireError::TlsNotOffered));
}

#[test]
fn mutated_and_random_responses_never_break_the_parser() {
    let mut prng = Prng::new(1);
    for cut in 0..DOCUMENTED.len() {
        let _ = HandshakeResponse::parse(&DOCUMENTED[..cut]);
    }
    for _ in 0..20_000 {
        let mut bytes = DOCUMENTED.to_vec();
        if prng.chance(1, 4) {
            bytes = (0..prng.below(200)).map(|_| prng.next_u64() as u8).collect();
        }
        for _ in 0..prng.below(8) {
            if let Some(last) = bytes.len().checked_sub(1) {
                let at = prng.between(0, last as u64) as usize;
                bytes[at] = prng.next_u64() as u8;
            }
        }
        if let Some(byte) = bytes.get_mut(1) {
            *byte |= 0x82;
            *byte &= !0x08;
        }
        let length = bytes.len();
        if let Ok(parsed) = HandshakeResponse::parse(&bytes) {
            assert!(parsed.auth_response.len() <= length);
            assert!(parsed.attributes.len() <= ATTRIBUTES_MAX);
        }
    }
}
