//! The options of `lats`, and what they mean together.

use super::figures::What;
use crate::report;
use anyhow::ensure;
use clap::ValueEnum;
use serde_json::{Value, json};

/// Start a cluster, keep a load on it that comes at a fixed rate whatever the answers are, kill nodes meanwhile (or freeze them, or cut
/// off their machines), and measure how long nobody gets on.
///
/// An event that removes its node is followed by the node's rejoin, which is measured, too. Latencies count from the moment at which an
/// operation was due. At the end a ledger is checked: whatever was acknowledged must be there. The exit status is 1 if it is not, if an
/// operation has never come back, or if the load met errors other than those that are tried again. SIGINT and SIGTERM take all down.
///
/// One kill, with a picture: latsdb bench lats --svg kill.svg
///
/// Twenty, for "SIGKILL to first commit": latsdb bench lats --kind kill --events 20 --json kills.json
#[derive(clap::Args, Clone, Debug)]
pub struct LatsArgs {
    /// What happens, in turn: kill (SIGKILL), freeze (SIGSTOP for --lasts-ms), silent (the machine is cut off for --lasts-ms; the nodes
    /// are in network namespaces then, which needs root and `ip`).
    #[arg(long, value_delimiter = ',', default_value = "kill")]
    pub kind: Vec<Kind>,
    /// How often something happens; 0: nothing does, and the load runs for twice --calm-ms.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub events: u32,
    /// When it happens, in seconds after the load has begun, instead of --events at drawn times. What comes too soon after the event
    /// before waits for a whole cluster.
    #[arg(long, value_delimiter = ',', value_name = "SECONDS", conflicts_with = "events")]
    pub at: Vec<f64>,
    /// All nodes serve for so long before an event, and for up to twice as long: that is drawn.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    pub calm_ms: u64,
    /// How long a node is frozen or cut off.
    #[arg(long, default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    pub lasts_ms: u64,
    /// How long after a kill, or after the end of a freeze or a cut, the node is started again.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub away_ms: u64,
    /// a: YCSB A, half reads and half updates, popular rows most of all; lookups: reads of any row by its key.
    #[arg(long, default_value = "a", ignore_case = true)]
    pub workload: Workload,
    /// Operations that are due each second.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub rate: u64,
    /// So many may wait for an answer; what is due beyond that is not sent, and counts as an error.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub outstanding: u64,
    /// Through SQL with prepared statements, instead of the native client.
    #[arg(long)]
    pub sql: bool,
    /// With --sql: connections, round the nodes.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// Rows of the table.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rows: u64,
    /// Bytes of a row, besides its key and its counter.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=20_000))]
    pub row_bytes: u16,
    /// Data nodes.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=48))]
    pub nodes: u16,
    /// Replicas of each row.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=4))]
    pub replicas: u16,
    /// Memory of each node, in MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..))]
    pub memory_mib: u32,
    /// How long a lease lasts, in ms.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(100..=10_000))]
    pub lease_ms: u64,
    /// Nodes keep rows on disk; else in memory only.
    #[arg(long)]
    pub durable: bool,
    /// What is drawn (times, victims, rows) is drawn from this number [default: another one each time].
    #[arg(long)]
    pub seed: Option<u64>,
    /// Ports that the cluster uses: this one, and 100 more.
    #[arg(long, default_value_t = 28_306, value_parser = clap::value_parser!(u16).range(1..=65_400))]
    pub sql_port: u16,
    /// Internal: the network namespaces that this process is in.
    #[arg(long, hide = true)]
    pub net: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become the text of the command's help")]
    pub output: report::Output,
}

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT later.
    Freeze,
    /// Its machine is cut off, and can be reached again later.
    Silent,
}

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// YCSB A: half reads, half updates, by Zipf's law.
    A,
    /// Reads by key, each row as likely.
    Lookups,
}

impl LatsArgs {
    /// Looks whether the options fit, before anything is started.
    ///
    /// # Errors
    /// Which do not, and what to do.
    pub fn check(&self) -> anyhow::Result<()> {
        self.output.check()?;
        let (nodes, replicas) = (self.nodes, self.replicas);
        ensure!(
            nodes % replicas == 0,
            "--nodes {nodes} is no multiple of --replicas {replicas}; try --nodes {}",
            nodes.next_multiple_of(replicas)
        );
        let is_time = |at: &f64| at.is_finite() && (0.0..=86_400.0).contains(at);
        ensure!(
            self.at.iter().all(is_time),
            "--at takes seconds from 0 to 86400, as in --at 3,8.5"
        );
        ensure!(self.at.is_sorted(), "--at takes times in their order, as in --at 3,8.5");
        let bytes = self.rows.saturating_mul(u64::from(self.row_bytes) + 100);
        let groups = u64::from(nodes / replicas);
        let mib = (bytes / groups) >> 20;
        ensure!(
            mib < u64::from(self.memory_mib) * 3 / 4,
            "{} rows take some {mib} MiB at each node: raise --memory-mib to {} or take fewer --rows",
            self.rows,
            mib * 3 / 2 + 64
        );
        Ok(())
    }

    /// True if nodes must be on machines of their own.
    pub fn wants_namespaces(&self) -> bool {
        self.kind.contains(&Kind::Silent) && (self.events > 0 || !self.at.is_empty())
    }

    /// What happens, and when if that was asked for.
    pub(super) fn plan(&self) -> Vec<(What, Option<f64>)> {
        let times: Vec<Option<f64>> = match self.at.is_empty() {
            true => vec![None; self.events as usize],
            false => self.at.iter().copied().map(Some).collect(),
        };
        let what = |kind: &Kind| match kind {
            Kind::Kill => What::Kill,
            Kind::Freeze => What::Freeze,
            Kind::Silent => What::Silent,
        };
        self.kind.iter().map(what).cycle().zip(times).collect()
    }

    pub(super) fn as_json(&self, seed: u64) -> Value {
        let kinds =
            |plan: Vec<(What, _)>| plan.iter().map(|(what, _)| what.name()).collect::<Vec<_>>();
        json!({
            "events": kinds(self.plan()),
            "at_s": self.at,
            "calm_ms": self.calm_ms,
            "lasts_ms": self.lasts_ms,
            "away_ms": self.away_ms,
            "workload": if self.workload == Workload::A { "a" } else { "lookups" },
            "rate": self.rate,
            "outstanding": self.outstanding,
            "through": if self.sql { "sql" } else { "native" },
            "connections": self.sql.then_some(self.connections),
            "rows": self.rows,
            "row_bytes": self.row_bytes,
            "nodes": self.nodes,
            "replicas": self.replicas,
            "memory_mib": self.memory_mib,
            "lease_ms": self.lease_ms,
            "durable": self.durable,
            "namespaces": self.net.is_some(),
            "seed": seed,
        })
    }

    /// For a person.
    pub(super) fn words(&self, seed: u64) -> String {
        format!(
            "{} nodes, {} replicas, leases of {} ms, {} rows with {} bytes each{}; workload {} through {}, {} operations/s; seed {seed}",
            self.nodes,
            self.replicas,
            self.lease_ms,
            self.rows,
            self.row_bytes,
            if self.durable { ", on disk, too" } else { "" },
            if self.workload == Workload::A { "A" } else { "lookups" },
            if self.sql { "SQL" } else { "the native client" },
            self.rate
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: LatsArgs,
    }

    fn args(words: &str) -> LatsArgs {
        Line::try_parse_from(words.split_whitespace()).unwrap().args
    }

    #[test]
    fn kinds_come_in_turn_and_times_as_asked_for() {
        let plan = args("lats --kind kill,freeze --events 3").plan();
        assert_eq!(plan, [(What::Kill, None), (What::Freeze, None), (What::Kill, None)]);
        let plan = args("lats --kind silent --at 1,2.5").plan();
        assert_eq!(plan, [(What::Silent, Some(1.0)), (What::Silent, Some(2.5))]);
        assert!(args("lats --kind silent").wants_namespaces());
        assert!(!args("lats --kind silent --events 0").wants_namespaces());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        for (words, wanted) in [
            ("lats --nodes 3", "--nodes 4"),
            ("lats --at 3,1", "--at 3,8.5"),
            ("lats --at nan", "--at 3,8.5"),
            ("lats --rows 100000000", "--memory-mib"),
            ("lats --json /nowhere/x", "no such directory"),
        ] {
            let refused = args(words).check().unwrap_err().to_string();
            assert!(refused.contains(wanted), "{words}: {refused}");
        }
        assert!(args("lats --nodes 4").check().is_ok());
    }
}
