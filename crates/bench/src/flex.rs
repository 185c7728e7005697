//! `flex`: inserts, reads, updates and deletes rows by key, many operations to a transaction and many
//! transactions at a time, through the native client. (NDB's `flexAsynch` does the same.)

mod rows;
mod work;

use crate::{Place, native, report, threads};
use anyhow::bail;
use rows::Rows;
use serde_json::{Map, Value, json};
use std::{io::Write, sync::Arc};

/// Insert, read, update and delete rows by key through the native client, and measure it. Makes the table
/// `bench.flex`, anew if it is there, and drops it afterwards. The exit status is 1 if there were errors.
#[derive(clap::Args, Clone, Debug)]
pub struct FlexArgs {
    /// Operations of a transaction, each on a row of its own.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub operations: u32,
    /// Transactions in flight.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub transactions: u32,
    /// Threads of the client, each with links of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub client_threads: u32,
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: u64,
    /// Columns beside the key.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub columns: u16,
    /// Bytes of each.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=16_000))]
    pub column_bytes: u16,
    /// How long rows are read, and how long they are updated. (Each row is inserted and deleted once.)
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become the text of the command's help")]
    pub output: report::Output,
}

/// The parts of the benchmark, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Insert,
    Read,
    Update,
    Delete,
}

impl Stage {
    const ALL: [Self; 4] = [Self::Insert, Self::Read, Self::Update, Self::Delete];

    fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Read => "read",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// True if it goes over all rows once; else it draws rows for some time.
    fn visits_all(self) -> bool {
        matches!(self, Self::Insert | Self::Delete)
    }
}

impl FlexArgs {
    fn check(&self) -> anyhow::Result<()> {
        let wanted = u64::from(self.operations) * u64::from(self.transactions);
        if self.rows < wanted {
            bail!(
                "each transaction in flight has rows of its own: --rows must be at least {wanted} \
                 (--operations times --transactions)"
            );
        }
        if self.client_threads > self.transactions {
            bail!("--client-threads must not be more than --transactions");
        }
        Ok(())
    }

    fn as_json(&self) -> Value {
        json!({
            "operations": self.operations,
            "transactions": self.transactions,
            "client_threads": self.client_threads,
            "rows": self.rows,
            "columns": self.columns,
            "column_bytes": self.column_bytes,
            "seconds": self.seconds,
        })
    }
}

/// Runs the benchmark, and says what it has measured. How many operations were in vain.
///
/// # Errors
/// If the cluster does not answer, the options do not fit, or the result cannot be written.
pub fn run(args: &FlexArgs, place: &Place, out: &mut impl Write) -> anyhow::Result<u64> {
    let (mut record, errors) = make_and_measure(args, place, out)?;
    record.insert("config".to_string(), args.as_json());
    report::write("flex", record, &args.output, out)?;
    Ok(errors)
}

/// What each stage measures, and the errors of all; says nothing.
pub(crate) fn measure(args: &FlexArgs, place: &Place) -> anyhow::Result<(Map<String, Value>, u64)> {
    make_and_measure(args, place, &mut std::io::sink())
}

fn make_and_measure(
    args: &FlexArgs,
    place: &Place,
    out: &mut impl Write,
) -> anyhow::Result<(Map<String, Value>, u64)> {
    args.check()?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = Arc::new(tokio.block_on(prepare(args, place))?);
    let measured = run_stages(args, place, &rows, out);
    // Also if something has failed.
    let dropped = tokio.block_on(rows::drop_table(place));
    let measured = measured?;
    dropped?;
    Ok(measured)
}

/// What each stage has measured, and the errors of all.
fn run_stages(
    args: &FlexArgs,
    place: &Place,
    rows: &Arc<Rows>,
    out: &mut impl Write,
) -> anyhow::Result<(Map<String, Value>, u64)> {
    let (mut record, mut errors) = (Map::new(), 0);
    let table = args.output.prints_table();
    if table {
        report::head(out)?;
    }
    for stage in Stage::ALL {
        let work =
            work::Work { stage, args: args.clone(), place: place.clone(), rows: rows.clone() };
        let (mut measures, took) = threads::run(&work, args.client_threads, place.clock)?;
        let measure = threads::of(&mut measures, stage.name())?;
        if table {
            report::line(stage.name(), measure, took, out)?;
        }
        errors += measure.errors;
        record.insert(stage.name().to_string(), measure.record(took));
    }
    Ok((record, errors))
}

async fn prepare(args: &FlexArgs, place: &Place) -> anyhow::Result<Rows> {
    let client = native::connect(place, 0).await?;
    rows::create_table(&client, args).await
}
