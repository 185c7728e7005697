//! What operations cost a data node: a cluster within one thread does the same work again and again, so that
//! `valgrind` can count instructions, cache misses and allocations (`cargo xtask cost`). Everything between
//! the bytes that come from a socket and the bytes that go to one is as in the runtime with all blocks in one
//! thread; clients and control are not counted.
#![forbid(unsafe_code)]

mod cluster;
mod node;
mod sql;
mod work;

use clap::Parser;
use sql::Statement;
use std::io::Write;
use work::Work;

/// The allocator that `latsdb` has.
#[global_allocator]
static ALLOCATOR: lats_alloc::Allocator = lats_alloc::Allocator;

/// Does one kind of work, for `valgrind` to count what it costs.
#[derive(Parser)]
struct Args {
    /// What to do; none: list what there is.
    work: Option<String>,
    /// How often to send this many requests at once.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=work::ROUNDS_MAX))]
    rounds: u64,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut out = std::io::stdout();
    let Some(name) = args.work else {
        for work in Work::ALL {
            writeln!(out, "{}", work.name)?;
        }
        for statement in Statement::ALL {
            writeln!(out, "{}", statement.name)?;
        }
        return Ok(());
    };
    if let Some(statement) = Statement::ALL.iter().find(|s| s.name == name) {
        writeln!(out, "{}", statement.run(args.rounds)?)?;
        return Ok(());
    }
    let Some(work) = Work::ALL.iter().find(|w| w.name == name) else {
        anyhow::bail!("no work is called {name:?}; without an argument they are listed");
    };
    let operations = work.run(args.rounds)?;
    writeln!(out, "{operations}")?;
    Ok(())
}
