//! Commands, byte by byte, and from nowhere.

use super::*;
use lats_base::prng::Prng;

fn parse(payload: &[u8]) -> Result<Command<'_>, WireError> {
    Command::parse(payload, Capabilities::SERVER)
}

#[test]
fn every_command_is_read() {
    let cases: Vec<(&[u8], Command<'_>)> = vec![
        (b"\x01", Command::Quit),
        (b"\x02test", Command::InitDb("test")),
        (b"\x03select 1", Command::Query(b"select 1")),
        (b"\x03", Command::Query(b"")),
        (b"\x04t1\0%", Command::FieldList { table: "t1", wildcard: "%" }),
        (b"\x04t1\0", Command::FieldList { table: "t1", wildcard: "" }),
        (b"\x09", Command::Statistics),
        (b"\x0C\x05\0\0\0", Command::ProcessKill(5)),
        (b"\x0D", Command::Debug),
        (b"\x0E", Command::Ping),
        (b"\x16select ?", Command::StmtPrepare(b"select ?")),
        (
            b"\x18\x01\0\0\0\x02\0abc",
            Command::StmtSendLongData { statement_id: 1, parameter: 2, data: b"abc" },
        ),
        (b"\x19\x01\0\0\0", Command::StmtClose(1)),
        (b"\x1A\x01\0\0\0", Command::StmtReset(1)),
        (b"\x1B\x01\0", Command::SetOption(1)),
        (b"\x1C\x01\0\0\0\x0A\0\0\0", Command::StmtFetch { statement_id: 1, rows: 10 }),
        (b"\x1F", Command::ResetConnection),
        (b"\x12binlog", Command::Unknown(18)),
        (b"\xFF", Command::Unknown(255)),
    ];
    for (payload, command) in cases {
        assert_eq!(parse(payload), Ok(command));
    }
    for short in [&b""[..], b"\x0C\x05", b"\x19", b"\x1C\x01\0\0\0", b"\x17\0\0\0\0\0", b"\x02\xFF"]
    {
        assert!(parse(short).is_err(), "{short:?}");
    }
}

#[test]
fn the_documented_execute_request_is_read() {
    let payload = b"\x17\x01\0\0\0\x01\x01\0\0\0\0\x01\x0F\0\x03foo";
    let Ok(Command::StmtExecute(request)) = parse(payload) else { panic!() };
    assert_eq!(request.statement_id, 1);
    assert!(request.cursor.read_only() && request.cursor.any());
    assert_eq!(request.bindings, b"\0\x01\x0F\0\x03foo");
}

#[test]
fn change_user_is_read() {
    let payload = b"\x11root\0\x02xytest\0\xFF\0mysql_native_password\0\x04\x01a\x01b";
    let Ok(Command::ChangeUser(change)) = parse(payload) else { panic!() };
    assert_eq!((change.user, change.auth_response), ("root", &b"xy"[..]));
    assert_eq!((change.database, change.collation_id), (Some("test"), Some(255)));
    assert_eq!(change.plugin, Some("mysql_native_password"));
    assert_eq!(change.attributes, [("a".to_owned(), "b".to_owned())]);
    let Ok(Command::ChangeUser(short)) = parse(b"\x11root\0\0\0") else { panic!() };
    assert_eq!((short.database, short.collation_id, short.plugin), (None, None, Some("")));
}

#[test]
fn random_payloads_never_break_the_parser() {
    let mut prng = Prng::new(2);
    let seeds: [&[u8]; 3] = [
        b"\x11root\0\x02xytest\0\xFF\0mysql_native_password\0\x04\x01a\x01b",
        b"\x17\x01\0\0\0\x01\x01\0\0\0\0\x01\x0F\0\x03foo",
        b"\x18\x01\0\0\0\x02\0abc",
    ];
    for round in 0..30_000_u32 {
        let mut bytes = seeds[prng.below(3) as usize].to_vec();
        if prng.chance(1, 2) {
            bytes = (0..prng.below(60)).map(|_| prng.next_u64() as u8).collect();
        }
        if let Some(first) = bytes.first_mut().filter(|_| prng.chance(1, 2)) {
            *first = prng.below(33) as u8;
        }
        bytes.truncate(prng.below(bytes.len() as u64 + 1) as usize);
        let capabilities = Capabilities(prng.next_u64() as u32);
        let parsed = Command::parse(&bytes, capabilities);
        assert!(!bytes.is_empty() || parsed.is_err(), "round {round}");
    }
}
