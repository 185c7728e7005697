//! Scrambles made as a client makes them, and the turns of the exchange.

use super::*;

const NONCE: [u8; 20] = *b"abcdefghijklmnopqrst";

fn native_scramble(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let mut scramble = Sha1::digest(password);
    let twice = Sha1::digest(scramble);
    xor(&mut scramble, &Sha1::new().chain_update(nonce).chain_update(twice).finalize());
    scramble.to_vec()
}

fn sha2_scramble(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let mut scramble = Sha256::digest(password);
    let twice = Sha256::digest(scramble);
    xor(&mut scramble, &Sha256::new().chain_update(twice).chain_update(nonce).finalize());
    scramble.to_vec()
}

fn start(
    plugin: Option<&str>,
    response: &[u8],
    account: Option<AccountPassword>,
) -> (Authentication, AuthOutcome, Vec<u8>) {
    let mut writer = PacketWriter::new();
    let request = AuthenticationRequest { user: "u", host: "h", plugin, response, account };
    let (exchange, outcome) = Authentication::start(Nonce(NONCE), &request, &mut writer);
    (exchange, outcome, writer.take())
}

fn hashed() -> Option<AccountPassword> {
    Some(AccountPassword::Hashed(StoredPassword::from_password(b"secret")))
}

#[test]
fn stored_hashes_are_those_of_mysql() {
    // SELECT HEX(UNHEX(SHA1(UNHEX(SHA1('password'))))), as in mysql.user.
    let expected = [
        0x24, 0x70, 0xC0, 0xC0, 0x6D, 0xEE, 0x42, 0xFD, 0x16, 0x18, 0xBB, 0x99, 0x00, 0x5A, 0xDC,
        0xA2, 0xEC, 0x9D, 0x1E, 0x19,
    ];
    assert_eq!(StoredPassword::from_password(b"password").native, expected);
}

#[test]
fn right_scrambles_pass_and_others_do_not() {
    let stored = StoredPassword::from_password(b"secret");
    let nonce = Nonce(NONCE);
    let native = native_scramble(b"secret", &NONCE);
    let sha2 = sha2_scramble(b"secret", &NONCE);
    assert!(stored.verify(AuthPlugin::NativePassword, &nonce, &native));
    assert!(stored.verify(AuthPlugin::CachingSha2Password, &nonce, &sha2));
    for (plugin, good) in
        [(AuthPlugin::NativePassword, native), (AuthPlugin::CachingSha2Password, sha2)]
    {
        assert!(!stored.verify(plugin, &nonce, &[]));
        assert!(!stored.verify(plugin, &nonce, &good[1..]));
        assert!(!stored.verify(plugin, &Nonce([1; 20]), &good));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!stored.verify(plugin, &nonce, &bad));
        }
    }
}

#[test]
fn a_nonce_has_no_byte_that_ends_a_string() {
    for byte in 0..=255 {
        let nonce = Nonce::from_random([byte; 20]);
        assert!(nonce.bytes().iter().all(|b| *b != 0 && *b != b'$' && b.is_ascii()));
    }
}

#[test]
fn the_empty_password_needs_one_step() {
    let native = Some("mysql_native_password");
    let (_, outcome, sent) = start(native, b"", Some(AccountPassword::Empty));
    assert_eq!((outcome, sent), (AuthOutcome::Accepted, vec![]));
    let (_, outcome, _) = start(None, b"", Some(AccountPassword::Empty));
    assert_eq!(outcome, AuthOutcome::Accepted);
    let (_, outcome, _) = start(native, &[1; 20], Some(AccountPassword::Empty));
    assert_eq!(outcome, AuthOutcome::Refused);
    let (_, outcome, _) = start(native, b"", hashed());
    assert_eq!(outcome, AuthOutcome::Refused);
}

#[test]
fn a_refusal_names_the_user_but_not_the_reason() {
    let (_, outcome, sent) = start(Some("mysql_native_password"), &[1; 20], None);
    assert_eq!(outcome, AuthOutcome::Refused);
    let message = b"Access denied for user 'u'@'h' (using password: YES)";
    assert_eq!(sent[4..7], [0xFF, 0x15, 0x04]);
    assert_eq!(&sent[7..], message);
    let (_, _, wrong) = start(Some("mysql_native_password"), &[1; 20], hashed());
    assert_eq!(sent, wrong);
}

#[test]
fn other_plugins_are_switched() {
    for (named, expected) in [
        ("caching_sha2_password", "caching_sha2_password"),
        ("sha256_password", "mysql_native_password"),
        ("", "mysql_native_password"),
    ] {
        let (mut exchange, outcome, sent) = start(Some(named), b"", hashed());
        assert_eq!(outcome, AuthOutcome::Continue);
        let mut request = vec![0xFE];
        request.extend_from_slice(expected.as_bytes());
        request.push(0);
        request.extend_from_slice(&NONCE);
        request.push(0);
        assert_eq!(sent[4..], request);
        let (answer, reply) = if expected == "caching_sha2_password" {
            (sha2_scramble(b"secret", &NONCE), vec![2, 0, 0, 3, 1, 3])
        } else {
            (native_scramble(b"secret", &NONCE), vec![])
        };
        let mut writer = PacketWriter::new();
        writer.start_reply(2);
        assert_eq!(exchange.on_answer(&answer, &mut writer), AuthOutcome::Accepted);
        assert_eq!(writer.take(), reply);
        // Only one answer is taken.
        assert_eq!(exchange.on_answer(&answer, &mut writer), AuthOutcome::Refused);
    }
}

#[test]
fn secrets_are_not_printed() {
    let text = format!("{:?}", StoredPassword::from_password(b"secret"));
    assert_eq!(text, "StoredPassword(..)");
}
