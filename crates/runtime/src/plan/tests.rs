//! Every placement that the notation names, and what is chosen without one.

use super::{Processors, ThreadPlan, automatic, parse, placement};
use lats_base::Duration;
use lats_signals::BlockKind;

fn names(text: &str) -> Vec<String> {
    parse(text).unwrap().iter().map(ThreadPlan::name).collect()
}

#[test]
fn modules_without_threads_of_their_own_are_with_others() {
    assert_eq!(names(""), ["main", "recv+tc+ldm"]);
    assert_eq!(names("main={count=0}"), ["main", "recv+tc+ldm"]);
    assert_eq!(names("main+recv={}"), ["main+recv+tc+ldm"]);
    assert_eq!(names("recv={count=2}"), ["main", "recv+tc+ldm", "recv+tc+ldm"]);
    assert_eq!(names("recv={},main+tc+ldm={}"), ["main+tc+ldm", "recv"]);
    assert_eq!(names("recv={count=1},tc={count=1},ldm={count=1}"), ["main", "recv", "tc", "ldm"]);
    let with_send = "ldm={count=2},tc={count=0},recv={count=1},send={count=1},query={count=0}";
    assert_eq!(names(with_send), ["main", "ldm", "ldm", "recv+tc", "send"]);
    assert_eq!(names("main={},recv={},ldm={}"), ["main", "recv+tc", "ldm"]);
}

#[test]
fn attributes_are_those_of_the_articles() {
    let text =
        "ldm={cpubind=0,3-4}, recv={count=2,cpuset=5,6,spintime=50,realtime=1,nosend=1},send={}";
    let threads = parse(text).unwrap();
    let ldm: Vec<_> = threads.iter().filter(|t| t.name() == "ldm").collect();
    assert_eq!(ldm.iter().map(|t| t.cpus.clone()).collect::<Vec<_>>(), [[0], [3], [4]]);
    let recv = threads.iter().find(|t| t.name().contains("recv")).unwrap();
    assert_eq!((recv.cpus.clone(), recv.spin), (vec![5, 6], Duration::from_micros(50)));
    assert!(recv.realtime && recv.nosend && !ldm[0].realtime);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    for (text, reason) in [
        ("ldm", "`=` is missing"),
        ("ldm=2", "`{` is missing"),
        ("ldm={count=2", "`}` is missing"),
        ("ldm={count=2}tc={}", "`,` is missing"),
        ("lqh={}", "no module"),
        ("recv+recv={}", "twice"),
        ("recv+send={}", "nothing else"),
        ("ldm={count=two}", "no number"),
        ("ldm={count=1,count=2}", "twice"),
        ("ldm={count=2,cpubind=1}", "1 CPUs for 2 threads"),
        ("ldm={cpubind=3-1}", "no list"),
        ("ldm={cpubind=99999999999999999999}", "no list"),
        ("ldm={cpubind=1,cpuset=1}", "either"),
        ("ldm={spintime=20000}", "microseconds"),
        ("ldm={realtime=yes}", "0 or 1"),
        ("ldm={prio=1}", "no such attribute"),
        ("ldm={7}", "no attribute"),
        ("ldm={count=5000}", "at most"),
        ("main={count=2}", "one thread"),
        ("recv={nosend=1}", "needs send"),
        ("io={count=1}", "nothing to do yet"),
        ("send={spintime=5}", "neither spin"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn instances_go_round_the_threads_for_them() {
    let threads = parse("recv={count=1},tc={count=2},ldm={count=2},send={count=1}").unwrap();
    let placed = placement(&threads, 3, 4).threads;
    let (tc, ldm) = (BlockKind::Tc, BlockKind::Ldm);
    assert_eq!(placed.len(), 6, "send threads have no blocks");
    assert_eq!(placed[0], [(BlockKind::Control, 0)]);
    assert!(placed[1].is_empty(), "it only reads sockets");
    assert_eq!(placed[2..4], [vec![(tc, 0), (tc, 2)], vec![(tc, 1)]]);
    assert_eq!(placed[4..], [[(ldm, 0), (ldm, 2)], [(ldm, 1), (ldm, 3)]]);
}

#[test]
fn query_threads_read_beside_the_data_managers_of_others() {
    let threads = parse("main+recv+query={count=1},ldm+query={count=2},query={count=1}").unwrap();
    let placed = placement(&threads, 1, 3);
    let queries = |thread: usize| -> Vec<u32> {
        let blocks = placed.threads[thread].iter();
        let queries = blocks.filter(|(kind, _)| *kind == BlockKind::Query).map(|(_, at)| *at);
        let mut queries: Vec<u32> = queries.collect();
        queries.sort_unstable();
        queries
    };
    assert_eq!(queries(0), [0, 1, 2]);
    assert_eq!((queries(1), queries(2)), (vec![1], vec![0, 2]), "not beside their own");
    assert_eq!(queries(3), [0, 1, 2]);
    assert_eq!(placed.queries_of(1).collect::<Vec<_>>(), [0, 1, 3]);
    // Where one thread does everything there is nobody to read beside.
    assert!(placement(&parse("main+recv+query={}").unwrap(), 1, 1).queries_of(0).next().is_none());
}

#[test]
fn every_machine_gets_threads_for_everything() {
    for count in 0..=1_024 {
        let threads = automatic(Processors { count });
        assert!(threads.len() <= (count.max(1) + 1).min(super::THREADS_MAX));
        assert!(threads[0].is_control() && !threads[1..].iter().any(|t| t.name().contains("main")));
        for module in ["recv", "tc", "ldm"] {
            assert!(threads.iter().any(|t| t.name().contains(module)), "{count}: {module}");
        }
    }
    assert_eq!(automatic(Processors { count: 2 }).len(), 2);
    assert_eq!(automatic(Processors { count: 16 }).len(), 11);
}
