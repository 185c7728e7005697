//! `latsdb sql`: statements from the command line or standard input, over the native client.

use crate::say::{self, say};
use crate::{random, status::Target, store::ClusterStore};
use anyhow::Context;
use lats_runtime::clock;
use lats_sql::connection::statements::Statements;
use lats_sql::plan::Columns;
use lats_sql::session::{Client, Outcome, Session, Shared, Sink};
use lats_values::{SqlError, Value};
use std::{
    io::{BufRead, IsTerminal},
    process::ExitCode,
    sync::Arc,
};

/// Run SQL statements: with -e, or line by line from standard input.
#[derive(clap::Args)]
pub(crate) struct SqlArgs {
    #[command(flatten)]
    target: Target,
    /// Statements to run, separated by semicolons.
    #[arg(short, long)]
    execute: Option<String>,
    /// The database to use.
    #[arg(long)]
    database: Option<String>,
}

/// A result, gathered to be printed as a table.
#[derive(Default)]
struct Table {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Sink for Table {
    fn begin(&mut self, columns: &Columns) {
        self.names = columns.iter().map(|c| c.name.clone()).collect();
    }

    fn row(&mut self, values: &[Value]) -> Result<(), SqlError> {
        let text = |v: &Value| match v.to_text() {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => "NULL".to_string(),
        };
        self.rows.push(values.iter().map(text).collect());
        Ok(())
    }

    fn has_begun(&self) -> bool {
        !self.names.is_empty()
    }
}

impl Table {
    fn print(&self) {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|r| r[at].chars().count());
            cells.chain([self.names[at].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.names.len()).map(width).collect();
        let line = |cells: &[String]| {
            let padded: Vec<String> =
                cells.iter().zip(&widths).map(|(c, w)| format!(" {c:<w$} ")).collect();
            say!("|{}|", padded.join("|"));
        };
        let rule: Vec<String> = widths.iter().map(|w| "-".repeat(w + 2)).collect();
        say!("+{}+", rule.join("+"));
        line(&self.names);
        say!("+{}+", rule.join("+"));
        self.rows.iter().for_each(|r| line(r));
        say!("+{}+", rule.join("+"));
    }
}

pub(crate) fn run(args: &SqlArgs) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_stack_size(lats_sql::STACK_BYTES)
        .enable_all()
        .build()
        .context("cannot start")?;
    tokio.block_on(async {
        let client = args.target.connect().await?;
        let shared = Shared::new(ClusterStore::new(client), clock::unix_micros);
        let shared = Arc::new(shared.measured_by(|| clock::now().as_nanos()));
        let who = Client {
            connection_id: (random::number()? >> 40) as u32,
            user: "root".to_string(),
            host: "localhost".to_string(),
            found_rows: false,
            interactive: false,
            secret: random::nonce()?,
            handle: Arc::default(),
        };
        let mut session = Session::new(shared, who);
        if let Some(database) = &args.database {
            session.use_database(database).map_err(shown)?;
        }
        match &args.execute {
            Some(text) => run_all(&mut session, text).await,
            None => read_all(&mut session).await,
        }
    })
}

fn shown(error: SqlError) -> anyhow::Error {
    let state = String::from_utf8_lossy(&error.sqlstate).into_owned();
    anyhow::anyhow!("ERROR {} ({state}): {}", error.errno, error.message)
}

async fn run_all(session: &mut Session<ClusterStore>, text: &str) -> anyhow::Result<ExitCode> {
    let mut statements = Statements::new(text.as_bytes());
    while let Some(piece) = statements.next(session.syntax_mode(), usize::MAX).map_err(shown)? {
        run_one(session, piece.text).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_one(session: &mut Session<ClusterStore>, statement: &[u8]) -> anyhow::Result<()> {
    let mut table = Table::default();
    match session.query(statement, &mut table).await {
        Ok(Outcome::Rows) => {
            table.print();
            say!("{} row(s)", table.rows.len());
        }
        Ok(Outcome::Done(done)) => say!("OK, {} row(s) affected", done.affected_rows),
        Err(failure) => return Err(shown(failure.into_sql())),
    }
    Ok(())
}

/// Statements from standard input, each ended by a semicolon.
async fn read_all(session: &mut Session<ClusterStore>) -> anyhow::Result<ExitCode> {
    let input = std::io::stdin();
    let interactive = input.is_terminal();
    let mut text = String::new();
    let mut failed = false;
    loop {
        if interactive {
            say::part(if text.is_empty() { "latsdb> " } else { "     -> " });
        }
        if input.lock().read_line(&mut text)? == 0 {
            break;
        }
        if matches!(text.trim(), "exit" | "quit" | "\\q") {
            return Ok(ExitCode::SUCCESS);
        }
        if !text.trim_end().ends_with(';') {
            continue;
        }
        if let Err(error) = run_all(session, &std::mem::take(&mut text)).await {
            eprintln!("{error:#}");
            failed = true;
            if !interactive {
                break;
            }
        }
    }
    if !failed && !text.trim().is_empty() {
        run_all(session, &text).await?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
