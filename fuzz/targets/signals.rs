//! The native port: greetings and signals, checked at the door as the runtime does it (A7).
#![no_main]

use lats_base::NodeId;
use lats_signals::{BlockKind, BlockRef, SignalBuffer, admit, buffer::parse, hello::Hello};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(hello) = Hello::read(bytes) {
        let _ = (hello.kind(), hello.misfit(1));
    }
    let Ok(Some(signal)) = parse(bytes) else { return };
    let client = BlockRef::new(NodeId::new(1), BlockKind::Client, 1);
    let mut out = SignalBuffer::new();
    if admit(&signal, client, 1, &mut out).is_ok() {
        while let Some(signal) = out.pop() {
            assert_eq!(parse(signal.bytes()).map(|s| s.is_some()), Ok(true), "what is let in is well formed");
        }
    }
});
