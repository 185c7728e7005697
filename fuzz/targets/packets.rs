//! The MySQL protocol: a login, then commands, from whatever bytes a client sends. Nothing may panic, and the decoder holds no more than
//! it is told to.
#![no_main]

use lats_mysql_wire::{
    AccountPassword, Capabilities, Command, HandshakeResponse, Login, Nonce, PacketDecoder,
    PacketWriter, StatementParameters,
};
use libfuzzer_sys::fuzz_target;

/// The largest statement here.
const LIMIT_BYTES: usize = 4_096;

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = PacketDecoder::new();
    let mut login = Login::new(1, Nonce::from_random([7; 20]), "here");
    let mut writer = PacketWriter::new();
    let mut parameters = StatementParameters::new(3, lats_values::Collation::default());
    // The first byte says how the stream is cut into reads.
    let Some((first, stream)) = bytes.split_first() else { return };
    let mut is_in = false;
    for read in stream.chunks(usize::from(*first) + 1) {
        decoder.feed(read);
        while let Ok(Some(packet)) = decoder.next_packet() {
            if !is_in {
                let _ = HandshakeResponse::parse(&packet.payload);
                let none = |_: &str| None::<AccountPassword>;
                let _ = login.on_packet(&packet, none, &mut writer);
                decoder.enter_command_phase(LIMIT_BYTES);
                is_in = true;
                continue;
            }
            command(&packet.payload, &mut parameters);
        }
        assert!(decoder.buffered_bytes() <= (16 << 20) + LIMIT_BYTES, "the decoder holds too much");
    }
});

fn command(payload: &[u8], parameters: &mut StatementParameters) {
    for capabilities in [Capabilities::default(), Capabilities::PLUGIN_AUTH] {
        if let Ok(Command::StmtExecute(request)) = Command::parse(payload, capabilities) {
            let _ = parameters.bind(request.bindings);
        }
    }
    let _ = parameters.append_long_data(1, payload, LIMIT_BYTES);
}
