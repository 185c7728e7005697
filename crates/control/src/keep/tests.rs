//! Control files of earlier releases.

use super::decode;

/// What a release without views has written: a node, and the table `test.t` with a unique index.
const BEFORE_VIEWS: &str = "01000100d7d7edcfe28996a29d01010101ac02e807010001010101010f3132372e302e302e313a31373431300f3132372e30 \
2e302e313a313733313000010001000000010101010101010100000202066c6174736462047465737403010101066c617473 \
64620973657175656e63657302087461626c655f69640401000000000000000a6e6578745f76616c75650401000000000000 \
0001000000012a4155544f5f494e4352454d454e542076616c756573207468617420776572652068616e646564206f757400 \
0202010474657374017402016103000000000000000001620909000103000106017803000000010000010101620101010300 \
0100000303010003322e310209696e6465785f6b65790b801800000000000000000b7072696d6172795f6b65790b80180000 \
0000000000000100000001000102010401fcc99cfb96f0cff0df010002e907020001";

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

#[test]
fn a_state_without_views_is_read_and_written_with_views() {
    let former = bytes(BEFORE_VIEWS);
    let kept = decode(&former).unwrap();
    assert_eq!(kept.promised, 0);
    assert!(kept.durable.get() > 0);
    let catalog = &kept.state.catalog;
    let table = catalog.table("test", "t").unwrap();
    assert_eq!(table.indexes.len(), 1);
    assert!(catalog.views.is_empty());
    assert_eq!(kept.state.commands, 2);
    let now = lats_catalog::encode(&(kept.promised, &kept.state, kept.durable));
    assert_eq!(decode(&now).unwrap().state, kept.state);
    assert_eq!(now[0], lats_catalog::FORMAT);
}

#[test]
fn a_state_without_what_was_durable_is_read() {
    let mut former = bytes(BEFORE_VIEWS);
    // The epoch is the last byte.
    former.pop();
    let kept = decode(&former).unwrap();
    assert_eq!(kept.durable.get(), 0);
    assert!(kept.state.catalog.table("test", "t").is_some());
}

#[test]
fn what_is_cut_off_or_newer_is_refused() {
    let mut former = bytes(BEFORE_VIEWS);
    let why = |content: &[u8]| decode(content).unwrap_err().why();
    assert!(why(&former[..former.len() / 2]).contains("its content is no control state"));
    former[0] = lats_catalog::FORMAT + 1;
    assert!(why(&former).contains("a newer version"));
    assert!(why(&[]).contains("its content is no control state"));
}

#[test]
fn what_is_written_is_the_encoding() {
    let mut state = decode(&bytes(BEFORE_VIEWS)).unwrap().state;
    let mut encoded = lats_catalog::EncodedCatalog::default();
    for number in 0..3 {
        let durable = lats_base::Epoch::new(number);
        let whole = lats_catalog::encode(&(7_u32, &state, durable));
        assert_eq!(state.encode_to_keep((7, durable), &mut encoded), whole);
        let table = state.catalog.table("test", "t").unwrap().clone();
        let table = lats_catalog::TableDef { name: format!("t{number}"), ..table };
        let change = lats_catalog::Change::CreateTable { table, if_not_exists: false };
        state.catalog.apply(&change, 2).unwrap();
    }
}
