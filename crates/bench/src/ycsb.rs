//! `ycsb`: the workloads A to F of YCSB (B. Cooper and others: "Benchmarking Cloud Serving Systems with YCSB", 2010), through
//! the native client or through SQL.

mod choose;
mod db;
mod work;

pub(crate) use choose::Zipfian;

use crate::{
    Place,
    mysql::Server,
    report,
    threads::{self, Measures},
};
use anyhow::bail;
use clap::ValueEnum;
use db::Target;
use lats_base::Duration;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Run workloads A to F of YCSB, and measure them: records of ten fields with a hundred bytes each. Makes the table
/// `bench.usertable`, anew if it is there, and drops it afterwards. The exit status is 1 if there were errors.
#[derive(clap::Args, Clone, Debug)]
pub struct YcsbArgs {
    /// Which workloads, in this order.
    #[arg(long, value_delimiter = ',', default_value = "a,b,c,d,f,e", ignore_case = true)]
    pub workloads: Vec<Workload>,
    /// Records at the beginning.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub records: u64,
    /// How long each workload runs.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Operations in flight; through SQL each has a connection, and they go round the nodes.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// Threads of the client.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub client_threads: u32,
    /// Through SQL with prepared statements, instead of the native client.
    #[arg(long)]
    pub sql: bool,
    /// With --sql: do the same with another MySQL server, and compare: mysql://USER:PASSWORD@HOST:PORT.
    #[arg(long, value_name = "URL", requires = "sql")]
    pub peer: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become the text of the command's help")]
    pub output: report::Output,
}

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Half reads, half updates of one field.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads, the newest records most of all; 5 % inserts.
    D,
    /// 95 % scans of 1 to 100 records, 5 % inserts.
    E,
    /// Half reads, half reads with an update of the same record.
    F,
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::E => "E",
            Self::F => "F",
        }
    }
}

/// Runs the benchmark, and says what it has measured. How many operations were in vain.
///
/// # Errors
/// If a server does not answer or refuses the table, or the result cannot be written.
pub fn run(args: &YcsbArgs, place: &Place, out: &mut impl Write) -> anyhow::Result<u64> {
    if args.client_threads > args.connections {
        bail!("--client-threads must not be more than --connections");
    }
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut targets = Vec::new();
    if args.sql {
        targets.push(Target::Sql(tokio.block_on(Server::ours(place))?));
        targets.extend(args.peer.as_deref().map(Server::peer).transpose()?.map(Target::Sql));
    } else {
        targets.push(Target::Native(place.clone()));
    }
    if prints_table(args) {
        report::head(out)?;
    }
    let (mut record, mut errors) = (Map::new(), 0);
    for target in targets {
        let (of_target, in_vain) = make_and_measure(&target, args, place, out)?;
        errors += in_vain;
        record.insert(target.name().to_string(), Value::Object(of_target));
    }
    record.insert("config".to_string(), args.as_json());
    report::write("YCSB", record, &args.output, out)?;
    Ok(errors)
}

/// What the native client measures, and the errors; says nothing.
pub(crate) fn measure(args: &YcsbArgs, place: &Place) -> anyhow::Result<(Value, u64)> {
    let target = Target::Native(place.clone());
    let (record, errors) = make_and_measure(&target, args, place, &mut std::io::sink())?;
    Ok((Value::Object(record), errors))
}

fn make_and_measure(
    target: &Target,
    args: &YcsbArgs,
    place: &Place,
    out: &mut impl Write,
) -> anyhow::Result<(Map<String, Value>, u64)> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(target.create())?;
    let measured = run_all(target, args, place, out);
    // Also if something has failed.
    let dropped = tokio.block_on(target.drop_table());
    let measured = measured?;
    dropped?;
    Ok(measured)
}

fn prints_table(args: &YcsbArgs) -> bool {
    args.output.prints_table()
}

/// Loads the table and runs the workloads on it; what was measured, and the errors.
fn run_all(
    target: &Target,
    args: &YcsbArgs,
    place: &Place,
    out: &mut impl Write,
) -> anyhow::Result<(Map<String, Value>, u64)> {
    let (mut record, mut errors) = (Map::new(), 0);
    let load = work::Run::new(target, args, place.clock);
    for workload in std::iter::once(None).chain(args.workloads.iter().copied().map(Some)) {
        let run = load.with(workload);
        let (measures, took) = threads::run(&run, args.client_threads, place.clock)?;
        let name = workload.map_or("load", Workload::name);
        if prints_table(args) {
            for (kind, measure) in &measures {
                report::line(&format!("{} {name} {kind}", target.name()), measure, took, out)?;
            }
        }
        errors += measures.values().map(|m| m.errors).sum::<u64>();
        record.insert(name.to_string(), as_json(&measures, took));
    }
    Ok((record, errors))
}

fn as_json(measures: &Measures, took: Duration) -> Value {
    let all: f64 = measures.values().map(|m| m.operations_per_second(took)).sum();
    let kinds = measures.iter().map(|(kind, m)| (kind.to_string(), m.record(took)));
    let mut record: Map<String, Value> = kinds.collect();
    record.insert("ops_per_second".to_string(), json!(all.round()));
    Value::Object(record)
}

impl YcsbArgs {
    fn as_json(&self) -> Value {
        let workloads: Vec<&str> = self.workloads.iter().map(|w| w.name()).collect();
        json!({
            "workloads": workloads,
            "records": self.records,
            "seconds": self.seconds,
            "connections": self.connections,
            "client_threads": self.client_threads,
            "sql": self.sql,
            "peer": self.peer.is_some(),
        })
    }
}
