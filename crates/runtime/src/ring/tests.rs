//! The ring: nothing lost, nothing torn, order kept; under loom in every interleaving.

use super::ring;

#[cfg(not(feature = "loom"))]
#[test]
fn what_goes_in_comes_out_in_order_round_after_round() {
    let (mut producer, mut consumer) = ring(64);
    let mut out = Vec::new();
    for round in 0..1_000u64 {
        assert!(producer.push(&round.to_le_bytes()));
        assert!(producer.push(&[round.to_le_bytes(), (round + 1).to_le_bytes()].concat()));
        out.clear();
        assert!(consumer.pop_all(&mut out));
        let expected = [round, round, round + 1].map(u64::to_le_bytes).concat();
        assert_eq!(out, expected);
    }
    assert!(!consumer.pop_all(&mut out));
}

#[cfg(not(feature = "loom"))]
#[test]
fn a_full_ring_refuses_and_takes_again_when_read() {
    let (mut producer, mut consumer) = ring(32);
    assert!(producer.push(&[1; 24]));
    assert!(!producer.push(&[2; 16]));
    assert!(producer.push(&[3; 8]));
    let mut out = Vec::new();
    consumer.pop_all(&mut out);
    assert_eq!(out, [[1; 24].as_slice(), &[3; 8]].concat());
    assert!(producer.push(&[4; 32]));
}

#[cfg(not(feature = "loom"))]
#[test]
fn a_small_ring_carries_large_signals_in_parts() {
    let (mut producer, mut consumer) = ring(64);
    let large: Vec<u8> = (0..=255).collect();
    let (mut sent, mut out) = (0, Vec::new());
    while sent < large.len() {
        sent += producer.push_some(&large[sent..]);
        assert_eq!(producer.push_some(&large[sent..]), 0);
        consumer.pop_all(&mut out);
    }
    assert_eq!(out, large);
}

#[cfg(feature = "loom")]
#[test]
fn every_interleaving_keeps_signals_whole_and_in_order() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring(32);
        let writer = loom::thread::spawn(move || {
            let mut sent = Vec::new();
            for signal in 1..=3u8 {
                if producer.push(&[signal; 16]) {
                    sent.extend_from_slice(&[signal; 16]);
                }
            }
            sent
        });
        let mut out = Vec::new();
        consumer.pop_all(&mut out);
        assert!(out.len() % 16 == 0);
        let sent = writer.join().unwrap();
        consumer.pop_all(&mut out);
        assert_eq!(out, sent);
    });
}
