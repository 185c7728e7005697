//! Packets of the server, byte by byte as the protocol's documentation shows them.

use super::*;
use lats_values::TypeKind;

const MODERN: Capabilities =
    Capabilities(Capabilities::PROTOCOL_41.0 | Capabilities::DEPRECATE_EOF.0);

fn writer(capabilities: Capabilities) -> PacketWriter {
    let mut writer = PacketWriter::new();
    writer.set_capabilities(capabilities);
    writer.start_reply(0);
    writer
}

#[test]
fn ok_packets() {
    let mut writer = writer(MODERN);
    writer.ok(&OkPacket { status: StatusFlags::AUTOCOMMIT, ..OkPacket::default() });
    assert_eq!(writer.take(), [7, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    writer.ok(&OkPacket {
        affected_rows: 300,
        last_insert_id: 7,
        status: StatusFlags::IN_TRANS | StatusFlags::MORE_RESULTS,
        warnings: 2,
        info: "ok!",
    });
    let expected = [13, 0, 0, 2, 0, 0xFC, 0x2C, 1, 7, 9, 0, 2, 0, 3, b'o', b'k', b'!'];
    assert_eq!(writer.take(), expected);
}

#[test]
fn err_packets_carry_a_state_once_the_protocol_is_known() {
    let expected = [
        0x17, 0, 0, 1, 0xFF, 0x48, 4, b'#', b'H', b'Y', b'0', b'0', b'0', b'N', b'o', b' ', b't',
        b'a', b'b', b'l', b'e', b's', b' ', b'u', b's', b'e', b'd',
    ];
    let mut known = writer(MODERN);
    known.err(1096, b"HY000", "No tables used");
    assert_eq!(known.take(), expected);
    let mut unknown = writer(Capabilities::NONE);
    unknown.err(1040, b"08004", "Too many connections");
    assert_eq!(&unknown.take()[..7], [0x17, 0, 0, 1, 0xFF, 0x10, 4]);
}

#[test]
fn long_messages_are_cut_between_characters() {
    let mut writer = writer(MODERN);
    writer.err(1064, b"42000", &"é".repeat(400));
    assert_eq!(writer.take().len(), 4 + 9 + 512);
    assert_eq!(cut("aé", 2), "a");
    assert_eq!(cut("aé", 3), "aé");
}

#[test]
fn results_end_as_the_client_asked() {
    let mut old = writer(Capabilities::PROTOCOL_41);
    old.columns_end(StatusFlags::AUTOCOMMIT, 0);
    old.result_end(StatusFlags::AUTOCOMMIT, 1);
    assert_eq!(old.take(), [5, 0, 0, 1, 0xFE, 0, 0, 2, 0, 5, 0, 0, 2, 0xFE, 1, 0, 2, 0]);
    let mut new = writer(MODERN);
    new.columns_end(StatusFlags::AUTOCOMMIT, 0);
    new.result_end(StatusFlags::AUTOCOMMIT, 1);
    assert_eq!(new.take(), [7, 0, 0, 1, 0xFE, 0, 0, 2, 0, 1, 0]);
}

#[test]
fn prepared_statements_are_described() {
    let mut old = writer(Capabilities::PROTOCOL_41);
    old.prepare_ok(1, 0, &[], StatusFlags::AUTOCOMMIT, 0);
    assert_eq!(old.take(), [12, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let column_type = ColumnType::new(TypeKind::BigInt);
    let columns = [ColumnInfo::expression("a", &column_type)];
    old.prepare_ok(9, 2, &columns, StatusFlags::AUTOCOMMIT, 0);
    // OK, two parameters, EOF, one column, EOF.
    assert_eq!(sequences(old.bytes()), [2, 3, 4, 5, 6, 7]);
    let mut new = writer(MODERN);
    new.prepare_ok(9, 2, &columns, StatusFlags::AUTOCOMMIT, 0);
    assert_eq!(sequences(new.bytes()), [1, 2, 3, 4]);
}

#[test]
fn a_cursor_is_announced_by_one_packet() {
    let column_type = ColumnType::new(TypeKind::BigInt);
    let columns = [ColumnInfo::expression("a", &column_type)];
    for capabilities in [MODERN, Capabilities::PROTOCOL_41] {
        let mut writer = writer(capabilities);
        writer.cursor_opened(&columns, StatusFlags::AUTOCOMMIT, 0);
        assert_eq!(sequences(writer.bytes()), [1, 2, 3]);
    }
}

#[test]
fn a_row_that_cannot_be_written_leaves_nothing() {
    let mut writer = writer(MODERN);
    let types = [ColumnType::new(TypeKind::Int), ColumnType::new(TypeKind::Date)];
    let row = [Value::Int(1), Value::Int(2)];
    assert_eq!(writer.binary_row(&row, &types), Err(WireError::ValueMismatch(1)));
    assert!(writer.bytes().is_empty());
    assert_eq!(writer.next_sequence(), 1);
}

#[test]
fn what_leaves_in_parts_is_what_would_leave_at_once() {
    // Long values, so that a packet is split; after each of them so much leaves.
    let values = [200_000, 16 << 20, 70_000, 3];
    let fills = |writer: &mut PacketWriter, at: usize| writer.raw(&vec![at as u8 + 1; values[at]]);
    let mut whole = writer(MODERN);
    (0..values.len()).for_each(|at| fills(&mut whole, at));
    let (mut parts, mut left) = (writer(MODERN), Vec::new());
    for (at, part) in [1_000, 9 << 20, 7 << 20, 0].into_iter().enumerate() {
        fills(&mut parts, at);
        let leaving = parts.bytes().get(..part).unwrap().to_vec();
        parts.sent(leaving.len());
        left.extend(leaving);
    }
    parts.shrink_to(0);
    left.extend(parts.take());
    assert!(left == whole.take(), "bytes were lost, or left twice");
    fills(&mut parts, 0);
    parts.sent(1_000);
    parts.clear();
    assert!(parts.bytes().is_empty(), "what was sent does not count any more");
}

#[test]
fn a_whole_result_set() {
    let mut writer = writer(Capabilities::PROTOCOL_41);
    let column_type = ColumnType::new(TypeKind::BigInt).not_null();
    let columns = [ColumnInfo::expression("1", &column_type)];
    writer.result_start(&columns, StatusFlags::AUTOCOMMIT);
    writer.text_row(&[Value::Int(1)], &[]);
    writer.result_end(StatusFlags::AUTOCOMMIT, 0);
    let mut expected = vec![1, 0, 0, 1, 1, 0x17, 0, 0, 2, 3];
    expected.extend_from_slice(b"def\0\0\0\x011\0\x0C\x3F\0\x14\0\0\0\x08\x01\0\0\0\0");
    expected.extend_from_slice(&[5, 0, 0, 3, 0xFE, 0, 0, 2, 0, 2, 0, 0, 4, 1, b'1']);
    expected.extend_from_slice(&[5, 0, 0, 5, 0xFE, 0, 0, 2, 0]);
    assert_eq!(writer.take(), expected);
}

#[test]
fn definitions_that_were_made_before_are_the_same() {
    let types = [TypeKind::BigInt, TypeKind::VarChar { chars: 9 }].map(ColumnType::new);
    let long = "n".repeat(300);
    let names = ["a", long.as_str()].into_iter().zip(&types);
    let columns: Vec<_> = names.map(|(name, of)| ColumnInfo::expression(name, of)).collect();
    let definitions: ColumnDefinitions = columns.iter().copied().collect();
    for request in [0, 7, 253, 254] {
        let (mut writer, mut expected) = (PacketWriter::new(), PacketWriter::new());
        writer.start_reply(request);
        expected.start_reply(request);
        // There may be something before them in the buffer.
        writer.raw(b"x");
        expected.raw(b"x");
        writer.definitions(&definitions);
        expected.column_count(columns.len());
        columns.iter().for_each(|column| expected.column(column));
        assert_eq!(writer.next_sequence(), expected.next_sequence());
        assert_eq!(writer.bytes(), expected.bytes());
    }
}

#[test]
fn sequence_numbers_wrap() {
    let mut writer = PacketWriter::new();
    writer.start_reply(254);
    for expected in [255, 0, 1] {
        assert_eq!(writer.next_sequence(), expected);
        writer.raw(b"x");
    }
}

/// The sequence numbers of a run of packets.
fn sequences(mut bytes: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    while let [a, b, _, sequence, rest @ ..] = bytes {
        found.push(*sequence);
        bytes = &rest[usize::from(u16::from_le_bytes([*a, *b]))..];
    }
    found
}
