//! Whole logins, packet by packet.

use super::*;
use crate::capabilities::Capabilities;
use crate::packet::PacketDecoder;

fn response(plugin: Option<&str>, extra: Capabilities) -> Vec<u8> {
    let mut wanted = Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION | extra;
    wanted = wanted.with(Capabilities::PLUGIN_AUTH, plugin.is_some());
    let mut out = wanted.bits().to_le_bytes().to_vec();
    out.resize(32, 0);
    out.extend_from_slice(b"root\0\0");
    if let Some(plugin) = plugin {
        out.extend_from_slice(plugin.as_bytes());
        out.push(0);
    }
    out
}

fn accounts(user: &str) -> Option<AccountPassword> {
    (user == "root").then_some(AccountPassword::Empty)
}

fn login() -> (Login, PacketWriter, PacketDecoder) {
    let login = Login::new(5, Nonce::from_random([9; 20]), "localhost");
    let mut writer = PacketWriter::new();
    login.greet(&mut writer);
    assert_eq!(writer.take()[3], 0);
    (login, writer, PacketDecoder::new())
}

/// Sends one packet of the client through framing and login.
fn send(
    parts: &mut (Login, PacketWriter, PacketDecoder),
    sequence: u8,
    payload: &[u8],
) -> LoginOutcome {
    let mut framed = vec![payload.len() as u8, (payload.len() >> 8) as u8, 0, sequence];
    framed.extend_from_slice(payload);
    parts.2.feed(&framed);
    let packet = parts.2.next_packet().unwrap().unwrap();
    parts.0.on_packet(&packet, accounts, &mut parts.1)
}

#[test]
fn root_logs_in_at_once() {
    for plugin in [Some("mysql_native_password"), None] {
        let mut parts = login();
        let outcome = send(&mut parts, 1, &response(plugin, Capabilities::DEPRECATE_EOF));
        let LoginOutcome::Accepted(accepted) = outcome else { panic!("{outcome:?}") };
        assert_eq!(accepted.user, "root");
        assert!(parts.1.capabilities().contains(Capabilities::DEPRECATE_EOF));
        assert!(parts.1.bytes().is_empty());
        assert_eq!(parts.1.next_sequence(), 2);
    }
}

#[test]
fn another_plugin_takes_one_more_turn() {
    for (plugin, answer) in [("caching_sha2_password", &[0][..]), ("dialog", b""), ("", b"")] {
        let mut parts = login();
        let outcome = send(&mut parts, 1, &response(Some(plugin), Capabilities::NONE));
        assert_eq!(outcome, LoginOutcome::Continue);
        assert_eq!(parts.1.take()[3..5], [2, 0xFE]);
        let outcome = send(&mut parts, 3, answer);
        assert!(matches!(outcome, LoginOutcome::Accepted(_)), "{outcome:?}");
        assert_eq!(parts.1.next_sequence(), 4);
        assert!(parts.1.bytes().is_empty());
    }
}

#[test]
fn refusals_carry_an_error() {
    let tls = response(None, Capabilities::SSL);
    for (payload, errno) in [(&tls[..32], 1043_u16), (b"", 1835), (&tls[..3], 1835)] {
        let mut parts = login();
        assert_eq!(send(&mut parts, 1, payload), LoginOutcome::Refused);
        let sent = parts.1.take();
        assert_eq!(sent[3..5], [2, 0xFF]);
        assert_eq!(u16::from_le_bytes([sent[5], sent[6]]), errno);
        assert_eq!(send(&mut parts, 3, payload), LoginOutcome::Refused);
    }
}
