//! A program of the native API: adds 5 to a subscriber's balance, in the data node, and commits. README.md has the table.
use lats_client::{api::RowOpKind, net::Client, program::RowProgram};
use lats_values::Value;
use std::io::Write;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().ok_or("usage: subscriber HOST:PORT SECRET-FILE")?;
    let secret = std::fs::read_to_string(words.next().ok_or("name the cluster's secret file")?)?;
    let client = Client::connect(vec![address.parse()?], secret.parse()?).await?;
    let catalog = client.catalog();
    let table = catalog.table("test", "subscriber").ok_or("there is no table test.subscriber")?;
    let program = RowProgram::new(table);
    let sum = program.column("balance")? + 5;
    let program = program.set("balance", sum)?.returning(&["balance"])?;
    let update = program.operation(RowOpKind::Update, &[Value::Int(1)]);
    let (results, receipt) = client.begin().execute(&[update], true).await?;
    let row = results[0].row.as_deref().ok_or("there is no subscriber 1")?;
    let balance = program.answered(row);
    writeln!(std::io::stdout(), "balance {balance:?}, {receipt:?}")?;
    Ok(())
}
