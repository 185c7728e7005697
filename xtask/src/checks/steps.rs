//! The steps of the checks, in their order.

/// What unit tests, the simulator and the server are built with.
pub(crate) const PROFILE: &str = "checked";

/// Steps of real processes wait most of the time: so many run at once.
const PROCESSES_AT_ONCE: usize = 3;

/// A run of the simulator has one thread.
const SIMULATORS_AT_ONCE: usize = 2;

/// Steps that may run at the same time, after all of the phase before.
pub(crate) struct Phase {
    /// How many at once.
    pub(crate) at_once: usize,
    /// They start clusters of real processes.
    pub(crate) of_processes: bool,
    /// The steps.
    pub(crate) steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// What it is called.
    pub(crate) name: String,
    /// The command; `{port}` is the first of 400 ports that are the step's.
    pub(crate) command: Vec<String>,
    /// It is ended, and has failed, after so long.
    pub(crate) limit_s: u64,
    /// It prepares other steps and tests nothing.
    pub(crate) prepares: bool,
}

impl Phase {
    fn one_by_one(steps: Vec<Step>) -> Self {
        Self { at_once: 1, of_processes: false, steps }
    }

    /// False if running it again tells nothing: formatting, lints, builds.
    pub(crate) fn is_repeated(&self) -> bool {
        self.of_processes || self.steps.iter().any(|s| s.name.starts_with("simulator"))
    }
}

/// A step; words of the command are separated by blanks.
fn step(name: &str, limit_s: u64, command: &str) -> Step {
    let command = command.split_whitespace().map(str::to_string).collect();
    Step { name: name.to_string(), command, limit_s, prepares: false }
}

/// A step of the simulator.
fn simulated(name: &str, limit_s: u64, arguments: &str) -> Step {
    let program = super::target().join(PROFILE).join("sim");
    step(&format!("simulator: {name}"), limit_s, &format!("{} {arguments}", program.display()))
}

/// All steps; the number of the commit chooses which planted bugs have their turn.
pub(crate) fn phases(commit: usize) -> Vec<Phase> {
    let build = Step {
        prepares: true,
        ..step("build", 1_200, &format!("bash scripts/build_checked.sh {PROFILE}"))
    };
    vec![
        Phase::one_by_one(vec![
            step("format", 60, "cargo fmt --all --check"),
            // The profile of the build: procedural macros and build scripts are compiled once for both.
            step(
                "lints",
                600,
                &format!(
                    "cargo clippy --workspace --all-targets --locked --profile {PROFILE} -- -D warnings"
                ),
            ),
        ]),
        Phase::one_by_one(vec![build]),
        Phase::one_by_one(vec![
            step(
                "unit tests",
                600,
                &format!("cargo test --workspace --locked --profile {PROFILE}"),
            ),
            step("checkers of tests of real processes", 60, "python3 tests/test_checkers.py"),
        ]),
        Phase { at_once: SIMULATORS_AT_ONCE, of_processes: false, steps: simulator(commit) },
        Phase::one_by_one(vec![
            step(
                "every interleaving: ring, gate, shared data managers",
                300,
                &format!(
                    "cargo test -p lats-runtime -p lats-node --features lats-runtime/loom,lats-node/loom --lib --locked \
                     --profile {PROFILE} -- ring gate shared attendance"
                ),
            ),
            step(
                "costs: nothing is dearer than when it was recorded",
                600,
                "cargo xtask cost --check",
            ),
        ]),
        Phase { at_once: PROCESSES_AT_ONCE, of_processes: true, steps: processes() },
    ]
}

/// Steps of which one has its turn in a run of all checks, by how their names begin: variants of one test, and what takes a build of its own.
const TURNS: &[&[&str]] = &[
    &["clients: placement: "],
    &["clients: histories with "],
    &["clients: partitions with "],
    &["every interleaving: ", "costs: "],
    &["clients: YCSB", "clients: sysbench"],
];

fn is_one(step: &Step, begins: &[&str]) -> bool {
    begins.iter().any(|begin| step.name.starts_with(begin))
}

/// All steps that have turns.
pub(crate) fn by_turns() -> Vec<Step> {
    let all = phases(0).into_iter().flat_map(|phase| phase.steps);
    all.filter(|step| TURNS.iter().any(|begins| is_one(step, begins))).collect()
}

/// Leaves out the steps whose turn comes with another commit.
pub(crate) fn leave_out(phases: &mut [Phase], commit: usize) {
    for begins in TURNS {
        let all = phases.iter().flat_map(|phase| &phase.steps);
        let count = all.filter(|step| is_one(step, begins)).count();
        let mut at = 0;
        for phase in phases.iter_mut() {
            phase.steps.retain(|step| {
                let has_turns = is_one(step, begins);
                at += usize::from(has_turns);
                !has_turns || at - 1 == commit % count
            });
        }
    }
}

/// A slice of what the soak runs for hours, the longest first.
fn simulator(commit: usize) -> Vec<Step> {
    vec![
        simulated("fresh seeds", 600, "--seeds 150"),
        simulated("planted bugs that have their turn", 600, &format!("--planted {commit}")),
        simulated("scenarios, each with fresh delays", 400, "--scenario all --seeds 30"),
        simulated("all nodes of two node groups die, fresh seeds", 400, "--seeds 80 --blackout"),
        simulated("fixed seeds, each twice", 400, "--seed 1 --seeds 40 --twice"),
        simulated("a node group is lost or falls silent, fresh seeds", 400, "--seeds 80 --outage"),
        simulated("more fixed seeds", 600, "--seed 101 --seeds 50"),
        simulated("fresh storms", 400, "--seeds 8 --storm"),
        simulated("all nodes are told to end, fresh seeds", 400, "--seeds 80 --closing"),
        simulated("any set of nodes fails, fresh seeds", 400, "--seeds 40 --any-set"),
    ]
}

/// Tests of real processes: name, limit in seconds, command.
type Test = (&'static str, u64, &'static str);

/// Tests that start their own clusters, the longest first.
#[rustfmt::skip]
const PROCESSES: &[Test] = &[
    ("backups in an object store", 300, "python3 tests/object_store.py --sql-port {port}"),
    ("damaged files", 400, "python3 tests/damage.py --sql-port {port}"),
    ("partitions with two node groups", 400, "python3 tests/partition.py --nodes 4 --replicas 2"),
    ("the command line", 200, "bash tests/commands.sh {port}"),
    ("partitions with three replicas", 400, "python3 tests/partition.py --nodes 3 --replicas 3"),
    ("nodes that are away for long, or for ever", 500, "python3 tests/away.py --sql-port {port}"),
    ("twenty kills", 400, "python3 tests/kill.py --kills 20 --sql-port {port}"),
    ("partitions with two replicas", 400, "python3 tests/partition.py --nodes 2 --replicas 2"),
    ("a full disk", 400, "python3 tests/full_disk.py --sql-port {port}"),
    ("histories with two replicas", 400, "python3 tests/history.py --nodes 2 --replicas 2 --rounds 6 --sql-port {port}"),
    ("placement: receive threads beside the rest", 400, "bash tests/placement.sh {port} recv={count=2},main+tc+ldm={count=1} 4"),
    ("placement: a pipeline", 400, "bash tests/placement.sh {port} recv={count=1},tc={count=1,spintime=20},ldm={count=2},send={count=1} 2"),
    ("placement: receive threads that do everything", 400, "bash tests/placement.sh {port} recv={count=3} 2"),
    ("placement: threads that read beside data managers", 400, "bash tests/placement.sh {port} recv+query={count=2},tc={count=1},ldm+query={count=2} 2"),
    ("all processes are killed, two replicas", 400, "python3 tests/blackout.py --rounds 10 --sql-port {port}"),
    ("thousands of tables", 300, "python3 tests/many_tables.py --tables 2000 --sql-port {port}"),
    ("all processes are killed at once: what is lost", 300, "python3 tests/last_moments.py --sql-port {port}"),
    ("histories with three replicas", 400, "python3 tests/history.py --nodes 3 --replicas 3 --rounds 5 --sql-port {port}"),
    ("histories with two node groups", 400, "python3 tests/history.py --nodes 4 --replicas 2 --rounds 5 --sql-port {port}"),
    ("TPC-C through kills", 400, "python3 tests/tpcc.py --rounds 5 --sql-port {port}"),
    ("nodes that are told to end by signals", 300, "python3 tests/signals.py --sql-port {port}"),
    ("stopping with a full disk", 300, "python3 tests/stop_full.py --sql-port {port}"),
    ("nodes that are told to stop", 300, "python3 tests/stop_node.py --sql-port {port}"),
    ("a machine is suspended", 200, "python3 tests/suspend.py"),
    ("frozen nodes", 300, "python3 tests/kill.py --fault freeze --kills 4 --sql-port {port}"),
    ("a node group falls silent", 300, "python3 tests/silent_group.py"),
    ("one full replica lives", 300, "python3 tests/survivors.py --rounds 1 --sql-port {port}"),
    ("what was seen is on disk", 200, "python3 tests/shown.py --sql-port {port}"),
    ("what may fail, and what is waited for", 200, "python3 tests/outlook.py"),
    ("backups", 400, "python3 tests/backup.py --sql-port {port}"),
    ("restoring as of a moment", 400, "python3 tests/archive.py --sql-port {port}"),
    ("all processes are killed, two node groups", 400, "python3 tests/blackout.py --nodes 4 --replicas 2 --rounds 4 --sql-port {port}"),
    ("a restarting node is killed again and again", 400, "python3 tests/restart_kills.py --kills 8 --rows 30000 --sql-port {port}"),
    ("a disk that is slow, and fails to sync", 400, "python3 tests/broken_disk.py --sql-port {port}"),
    ("directories of nodes that run are gone", 300, "python3 tests/directory_gone.py --sql-port {port}"),
    ("the gauge, with one kill", 200, "python3 tests/lats.py --sql-port {port}"),
    ("wrong settings, and what start waits for", 200, "python3 tests/settings.py --sql-port {port}"),
    ("guardians watch their nodes", 200, "python3 tests/guardian.py --sql-port {port}"),
    ("a node group is lost", 200, "python3 tests/lost_group.py --sql-port {port}"),
    ("open transactions over a rejoin", 300, "python3 tests/rejoin.py --sql-port {port}"),
    ("nodes that are slow", 300, "python3 tests/slow.py --sql-port {port}"),
    ("files are as the documents say", 200, "python3 tests/formats.py --sql-port {port}"),
];

/// Tests that expect a cluster of two replicas.
#[rustfmt::skip]
const ON_A_CLUSTER: &[Test] = &[
    ("YCSB", 600, "bash tests/ycsb/run.sh {port} 50000 5000 4"),
    ("bad input", 400, "python3 tests/badinput.py --data-dir {data} --sql-port {port}"),
    ("strangers at the native port", 200, "python3 tests/strangers.py --data-dir {data} --sql-port {port}"),
    ("a crowd of clients", 200, "python3 tests/connections.py --data-dir {data} --sql-port {port}"),
    ("a node that is cut off", 200, "python3 tests/cut_off.py --data-dir {data} --sql-port {port}"),
    ("clients that rest or vanish", 200, "python3 tests/idle.py --data-dir {data} --sql-port {port}"),
    ("more than a node's memory", 300, "python3 tests/memory.py --clients 32 --data-dir {data} --sql-port {port}"),
    ("the mariadb client", 300, "bash tests/mariadb.sh {port}"),
    ("queries of our own", 200, "python3 tests/slt.py --port {port} --strict tests/slt"),
    ("queries of the sqllogictest corpus", 300, "python3 tests/slt.py --port {port} --sample"),
    ("the README", 120, "python3 tests/readme.py --data-dir {data} --sql-port {port}"),
    ("definitions are known to all sessions", 200, "python3 tests/definitions.py {port}"),
    ("locks", 200, "python3 tests/locks.py {port}"),
    ("statements that end early", 200, "python3 tests/ends.py {port}"),
    ("long lists and values", 200, "python3 tests/large.py {port} --data-dir {data}"),
    ("heavy statements", 400, "python3 tests/heavy.py --data-dir {data} --sql-port {port}"),
    ("unique indexes on a table in use", 400, "python3 tests/unique.py --ports {port},{port+1}"),
    ("sysbench", 400, "bash tests/sysbench.sh {port} 100000 2 4"),
];

/// All tests of real processes.
fn processes() -> Vec<Step> {
    let named = |name: &str, limit_s: &u64, command: &str| {
        step(&format!("clients: {name}"), *limit_s, command)
    };
    let own = PROCESSES.iter().map(|(name, limit_s, command)| named(name, limit_s, command));
    let shared = ON_A_CLUSTER.iter().map(|(name, limit_s, command)| {
        let command = format!("python3 tests/with_cluster.py --sql-port {{port}} -- {command}");
        named(name, limit_s, &command)
    });
    own.chain(shared).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_its_turn_with_some_commit() {
        let names = |phases: &[Phase]| -> Vec<String> {
            phases.iter().flat_map(|p| &p.steps).map(|step| step.name.clone()).collect()
        };
        let all = names(&phases(0));
        let mut left = all.clone();
        for commit in 0..12 {
            let mut phases = phases(commit);
            leave_out(&mut phases, commit);
            let chosen = names(&phases);
            assert!(chosen.len() < all.len() && chosen.iter().all(|name| all.contains(name)));
            for begins in TURNS {
                let has_turns = |name: &&String| begins.iter().any(|b| name.starts_with(b));
                assert_eq!(chosen.iter().filter(has_turns).count(), 1, "{begins:?}");
            }
            left.retain(|name| !chosen.contains(name));
        }
        assert!(left.is_empty(), "never run: {left:?}");
    }
}
