//! Who gets memory, and who is refused.

use super::*;

const MIB: usize = 1 << 20;

fn node(mib: usize) -> Arc<NodeMemory> {
    Arc::new(NodeMemory::new(mib * MIB, Meter::default()))
}

#[test]
fn what_statements_hold_is_shared_and_comes_back() {
    let node = node(600);
    let mut first = Share::of(&node);
    first.cover(200 * MIB).unwrap();
    let mut second = Share::of(&node);
    second.cover(1 << 10).unwrap();
    let mut third = Share::of(&node);
    third.cover(250 * MIB).unwrap();
    let error = second.cover(200 * MIB).unwrap_err();
    assert_eq!(error.errno, 4082);
    assert!(error.message.contains("(600 MiB for rows"), "{}", error.message);
    drop(first);
    second.cover(200 * MIB).unwrap();
    let error = second.cover(STATEMENT_BYTES_MAX + 1).unwrap_err();
    assert!(error.message.contains("this statement (256 MiB"), "{}", error.message);
    drop((second, third));
    assert_eq!(node.in_use(), 0);
    let figures = node.figures();
    let of = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap();
    assert_eq!((of("statements").bytes, of("statements").refused), (0, 2));
    assert!(of("statements").most_bytes >= 400 * MIB as u64 && of("all").refused == 2);
}

#[test]
fn a_client_keeps_no_more_than_its_part_and_others_go_on() {
    let node = node(1_024);
    let (greedy, modest) = (Arc::new(Handle::default()), Arc::new(Handle::default()));
    let mut variables = Kept::nothing(&node, &greedy, Kind::Variables);
    let mut packets = Kept::nothing(&node, &greedy, Kind::Packets);
    variables.becomes(300 * MIB).unwrap();
    packets.becomes(20 * MIB).unwrap();
    let error = packets.grow(MIB).unwrap_err();
    assert_eq!(error.errno, 4081);
    assert!(error.message.contains("(320 MiB)"), "{}", error.message);
    assert_eq!((packets.bytes(), greedy.kept_bytes()), (20 * MIB, 320 * MIB));
    let mut own = Kept::nothing(&node, &modest, Kind::Variables);
    own.becomes(MIB).unwrap();
    variables.shrink(30 * MIB);
    packets.grow(30 * MIB).unwrap();
    drop((variables, packets));
    assert_eq!((greedy.kept_bytes(), modest.kept_bytes()), (0, MIB));
}

#[test]
fn small_needs_are_met_when_others_have_taken_all() {
    let node = node(256);
    let hogs: Vec<_> = (0..2).map(|_| Arc::new(Handle::default())).collect();
    let mut kept: Vec<_> =
        hogs.iter().map(|hog| Kept::nothing(&node, hog, Kind::LongData)).collect();
    kept.iter_mut().for_each(|kept| kept.becomes(128 * MIB).unwrap());
    assert_eq!(node.admit(Kind::Plans, MIB).unwrap_err().errno, 4082);
    node.admit(Kind::Plans, 100 << 10).unwrap();
    let mut sorts = Vec::new();
    for _ in 0..SMALL_RESERVE / SMALL_BYTES {
        let mut share = Share::of(&node);
        share.cover(10_000).unwrap();
        assert!(share.cover(SMALL_BYTES + 1).is_err());
        sorts.push(share);
    }
    assert!(Share::of(&node).cover(10_000).is_err(), "the reserve is bounded, too");
    assert!(node.tree_max() == TREE_BYTES_MIN);
}

#[test]
fn what_the_process_has_counts_whoever_has_it() {
    let meter = Meter { in_use: || 900 * MIB, ..Meter::default() };
    let node = Arc::new(NodeMemory::new(1_024 * MIB, meter));
    let client = Arc::new(Handle::default());
    let mut kept = Kept::nothing(&node, &client, Kind::Packets);
    assert_eq!(kept.becomes(125 * MIB).unwrap_err().errno, 4082);
    kept.becomes(124 * MIB).unwrap();
    assert!(node.tree_max() < 60 * MIB);
}

#[test]
fn those_who_reserve_see_each_other_and_copies_have_a_limit() {
    let node = node(600);
    let first = node.reserve(Kind::Plans, 400 * MIB).unwrap();
    assert_eq!(node.reserve(Kind::Plans, 300 * MIB).unwrap_err().errno, 4082);
    assert_eq!(node.admit(Kind::Plans, 300 * MIB).unwrap_err().errno, 4082);
    let copies = node.reserve_copies(200 * MIB).unwrap();
    assert!(copies.is_some() && node.reserve_copies(SMALL_BYTES).unwrap().is_none());
    assert_eq!(node.reserve_copies(MIB).unwrap_err().errno, 4082);
    drop((first, copies));
    assert_eq!(node.reserve_copies(STATEMENT_BYTES_MAX + 1).unwrap_err().errno, 1038);
    node.reserve(Kind::Plans, 600 * MIB).unwrap();
    assert_eq!(node.rows_max(1), STATEMENT_BYTES_MAX);
}

#[test]
fn short_sorts_go_on_when_rows_have_taken_all_and_nothing_else_is_kept() {
    let meter = Meter { in_use: || 400 * MIB, ..Meter::default() };
    let node = Arc::new(NodeMemory::new(256 * MIB, meter));
    let mut sort = Share::of(&node);
    sort.cover(10_000).unwrap();
    assert_eq!(sort.cover(SMALL_BYTES + 1).unwrap_err().errno, 4082);
    let client = Arc::new(Handle::default());
    let mut kept = Kept::nothing(&node, &client, Kind::Variables);
    assert_eq!(kept.becomes(10_000).unwrap_err().errno, 4082);
    // What is there is counted, whether there is room or not.
    kept.is_now(20_000);
    assert_eq!((kept.bytes(), client.kept_bytes()), (20_000, 20_000));
    kept.is_now(5_000);
    assert_eq!((kept.bytes(), client.kept_bytes()), (5_000, 5_000));
}
