//! Framing: fragments, limits, sequence numbers, and bytes from nowhere.

use super::*;
use crate::writer::PacketWriter;
use lats_base::prng::Prng;

fn command_decoder(limit: usize) -> PacketDecoder {
    let mut decoder = PacketDecoder::new();
    decoder.enter_command_phase(limit);
    decoder
}

#[test]
fn a_packet_comes_out_whole_however_it_is_cut() {
    let stream = [1, 0, 0, 0, 0x0E, 3, 0, 0, 0, 3, b'X', b'Y', 0, 0, 0, 0];
    for cut in 0..stream.len() {
        let mut decoder = command_decoder(1024);
        let mut found = Vec::new();
        for part in [&stream[..cut], &stream[cut..]] {
            decoder.feed(part);
            while let Some(packet) = decoder.next_packet().unwrap() {
                found.push(packet.payload);
            }
        }
        assert_eq!(found, [&b"\x0E"[..], b"\x03XY", b""]);
        assert_eq!(decoder.buffered_bytes(), 0);
    }
}

#[test]
fn full_packets_are_continued() {
    for length in [0xFF_FFFE, 0xFF_FFFF, 0x100_0000, 2 * 0xFF_FFFF, 2 * 0xFF_FFFF + 7] {
        let payload: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        let mut writer = PacketWriter::new();
        writer.raw(&payload);
        let packets = length / 0xFF_FFFF + 1;
        assert_eq!(writer.bytes().len(), length + 4 * packets);
        assert_eq!(usize::from(writer.next_sequence()), packets);
        let mut decoder = command_decoder(64 << 20);
        decoder.feed(writer.bytes());
        let packet = decoder.next_packet().unwrap().unwrap();
        assert_eq!(usize::from(packet.sequence), packets - 1);
        assert!(packet.payload == payload);
        assert_eq!(decoder.next_packet(), Ok(None));
    }
}

#[test]
fn a_header_alone_is_enough_to_refuse_a_large_packet() {
    let mut decoder = PacketDecoder::new();
    decoder.feed(&[1, 0, 1, 1]);
    let refused = Err(WireError::PacketTooLarge { bytes: 65_537, limit: LOGIN_PACKET_BYTES_MAX });
    assert_eq!(decoder.next_packet(), refused);
    decoder.feed(&[0; 100]);
    assert_eq!(decoder.buffered_bytes(), 0);
    assert_eq!(decoder.next_packet(), refused);
    let mut decoder = PacketDecoder::new();
    decoder.feed(&[0, 0, 1, 1]);
    assert_eq!(decoder.next_packet(), Ok(None));
}

#[test]
fn the_limit_counts_all_fragments() {
    let mut decoder = command_decoder(0xFF_FFFF + 10);
    decoder.feed(&[0xFF, 0xFF, 0xFF, 0]);
    decoder.feed(&vec![1; 0xFF_FFFF]);
    decoder.feed(&[11, 0, 0, 1]);
    assert!(matches!(decoder.next_packet(), Err(WireError::PacketTooLarge { .. })));
}

/// Feeds a stream in parts, as sockets give it, and takes out what comes.
fn fed(decoder: &mut PacketDecoder, stream: &[u8]) -> Vec<Packet> {
    let mut found = Vec::new();
    for part in stream.chunks(16 << 10) {
        decoder.feed(part);
        while let Some(packet) = decoder.next_packet().unwrap() {
            found.push(packet);
        }
    }
    found
}

#[test]
fn an_unfinished_packet_holds_about_what_has_come() {
    let mut decoder = command_decoder(64 << 20);
    assert!(fed(&mut decoder, &[0xFF, 0xFF, 0xFF, 0, 3]).is_empty());
    let (announced, space) = decoder.unfinished().unwrap();
    assert_eq!(announced, 0xFF_FFFF);
    assert!(space <= FIRST_BYTES && decoder.is_within_packet());
    assert!(fed(&mut decoder, &vec![1; 9 << 20]).is_empty());
    let (_, space) = decoder.unfinished().unwrap();
    assert!(space <= 14 << 20, "{space}");
    assert!(decoder.buffer.capacity() <= KEPT_CAPACITY_BYTES);
    let found = fed(&mut decoder, &vec![1; 0xFF_FFFF - (9 << 20) - 1]);
    assert!(found.is_empty() && decoder.unfinished() == Some((0xFF_FFFF, 0xFF_FFFF)));
    let found = fed(&mut decoder, &[0, 0, 0, 1]);
    assert!(matches!(&found[..], [Packet { is_cut: false, .. }]));
    assert!(decoder.unfinished().is_none() && !decoder.is_within_packet());
}

#[test]
fn a_packet_that_is_passed_over_ends_where_it_ends() {
    let mut writer = PacketWriter::new();
    writer.raw(&vec![24; 0xFF_FFFF + 100_000]);
    let stream = [writer.bytes(), &[1, 0, 0, 0, 14]].concat();
    for cut in [5, 1_000, 1 << 20, 0xFF_FFFF + 10, 0xFF_FFFF + 90_000] {
        let mut decoder = command_decoder(64 << 20);
        assert!(fed(&mut decoder, &stream[..cut]).is_empty());
        decoder.pass_over();
        assert!(decoder.unfinished().is_none() && decoder.is_within_packet());
        let found = fed(&mut decoder, &stream[cut..]);
        let [passed, ping] = &found[..] else { panic!("two packets") };
        assert!(passed.is_cut && passed.sequence == 1 && passed.payload.len() <= HEAD_BYTES);
        assert_eq!(passed.payload.first(), Some(&24));
        assert!(!ping.is_cut && ping.payload == [14]);
    }
    // The limit counts what is passed over.
    let mut decoder = command_decoder(0xFF_FFFF + 10);
    assert!(fed(&mut decoder, &[0xFF, 0xFF, 0xFF, 0, 3]).is_empty());
    decoder.pass_over();
    assert!(fed(&mut decoder, &vec![1; 0xFF_FFFE]).is_empty());
    decoder.feed(&[11, 0, 0, 1]);
    assert!(matches!(decoder.next_packet(), Err(WireError::PacketTooLarge { .. })));
}

#[test]
fn sequence_numbers_are_checked() {
    let mut decoder = PacketDecoder::new();
    decoder.feed(&[0, 0, 0, 1, 0, 0, 0, 3]);
    assert_eq!(decoder.next_packet().unwrap().unwrap().sequence, 1);
    assert_eq!(decoder.next_packet().unwrap().unwrap().sequence, 3);
    decoder.enter_command_phase(100);
    decoder.feed(&[0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(decoder.next_packet().unwrap().unwrap().sequence, 0);
    assert_eq!(decoder.next_packet().unwrap().unwrap().sequence, 0);
    decoder.expect_sequence(2);
    decoder.feed(&[0, 0, 0, 2, 0, 0, 0, 1]);
    assert_eq!(decoder.next_packet().unwrap().unwrap().sequence, 2);
    assert_eq!(decoder.next_packet(), Err(WireError::OutOfOrder { expected: 0, found: 1 }));
}

#[test]
fn random_bytes_never_break_the_decoder() {
    for seed in 0..300 {
        let mut prng = Prng::new(seed);
        let limit = prng.below(5_000) as usize;
        let mut decoder = command_decoder(limit);
        for _ in 0..40 {
            let mut bytes: Vec<u8> = (0..prng.below(300)).map(|_| prng.next_u64() as u8).collect();
            // Many valid headers, so that the stream lives long enough to matter.
            if prng.chance(4, 5) {
                bytes = [&[bytes.len() as u8, (bytes.len() >> 8) as u8, 0, 0], &bytes[..]].concat();
            }
            decoder.feed(&bytes);
            while let Ok(Some(packet)) = decoder.next_packet() {
                assert!(packet.payload.len() <= limit, "seed {seed}");
            }
            assert!(decoder.buffered_bytes() <= limit + HEADER_BYTES + 304, "seed {seed}");
        }
    }
}
