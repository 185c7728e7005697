//! Tables of benchmarks through the native client.

use crate::Place;
use anyhow::{Context, bail};
use lats_catalog::{Change, ColumnDef, TableDef};
use lats_client::net::Client;

/// The database of all benchmarks.
pub(crate) const DATABASE: &str = "bench";

/// A client with links of its own. Call it within a tokio runtime.
pub(crate) async fn connect(place: &Place, number: u64) -> anyhow::Result<Client> {
    let mut options = place.options.clone();
    options.seed ^= number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let client = Client::start(options, place.clock);
    client.ready(crate::PATIENCE).await.context("no node of the cluster answers; does it run?")?;
    Ok(client)
}

/// A table whose first column is its primary key.
pub(crate) fn definition(name: &str, columns: Vec<ColumnDef>) -> TableDef {
    TableDef::new(DATABASE, name, columns, vec![0])
}

/// Makes a table, anew if it is there.
pub(crate) async fn create_table(client: &Client, table: TableDef) -> anyhow::Result<()> {
    let create = Change::CreateDatabase { name: DATABASE.to_string(), if_not_exists: true };
    change(client, create).await?;
    drop_table(client, &table.name).await?;
    change(client, Change::CreateTable { table, if_not_exists: false }).await
}

/// Drops a table, if it is there.
pub(crate) async fn drop_table(client: &Client, name: &str) -> anyhow::Result<()> {
    let (database, name) = (DATABASE.to_string(), name.to_string());
    change(client, Change::DropTable { database, name, if_exists: true }).await
}

async fn change(client: &Client, change: Change) -> anyhow::Result<()> {
    match client.change(change).await.context("the cluster does not answer")? {
        Ok(()) => Ok(()),
        Err(refused) => bail!("the cluster refuses the table: {}", refused.message),
    }
}
