//! MySQL servers as the benchmarks meet them: ours, and any other one to compare with.

use crate::{Place, native::DATABASE};
use anyhow::{Context, bail};
use lats_client::net::Client;
use mysql_async::{Conn, Opts, OptsBuilder, prelude::Queryable};

/// A server, or several that serve the same rows.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// What it is called in reports.
    pub(crate) name: &'static str,
    nodes: Vec<Opts>,
}

impl Server {
    /// The nodes of our cluster that serve MySQL clients.
    pub(crate) async fn ours(place: &Place) -> anyhow::Result<Self> {
        let client = Client::start(place.options.clone(), place.clock);
        client
            .ready(crate::PATIENCE)
            .await
            .context("no node of the cluster answers; does it run?")?;
        let map = client.map();
        let alive = map.view.members.iter().filter(|member| member.alive);
        let mut nodes = Vec::new();
        for address in alive.map(|member| &member.sql_address).filter(|a| !a.is_empty()) {
            let (host, port) = address.rsplit_once(':').context("a node has no SQL port")?;
            let port = port.parse().with_context(|| format!("{address} is no address"))?;
            let host = host.trim_matches(['[', ']']).to_string();
            nodes.push(OptsBuilder::default().ip_or_hostname(host).tcp_port(port).into());
        }
        if nodes.is_empty() {
            bail!("no node of the cluster serves MySQL clients");
        }
        Ok(Self { name: "latsdb", nodes: nodes.into_iter().map(as_root).collect() })
    }

    /// Another server, by its URL.
    pub(crate) fn peer(url: &str) -> anyhow::Result<Self> {
        let example = "write it like mysql://root@127.0.0.1:3306";
        let opts = Opts::from_url(url).with_context(|| format!("{url} is no URL: {example}"))?;
        Ok(Self { name: "peer", nodes: vec![opts] })
    }

    /// A connection; connections of different numbers go round the nodes.
    pub(crate) async fn connect(&self, number: usize) -> anyhow::Result<Conn> {
        let node = self.nodes.get(number % self.nodes.len()).context("a server has a node")?;
        // Without TLS or a local socket, for every server alike.
        let opts = OptsBuilder::from_opts(node.clone()).prefer_socket(false).tcp_nodelay(true);
        let host = (node.ip_or_hostname().to_string(), node.tcp_port());
        let conn = Conn::new(opts).await;
        conn.with_context(|| format!("cannot connect to {}:{}", host.0, host.1))
    }

    /// Makes a table of the database of benchmarks, anew if it is there.
    pub(crate) async fn create_table(
        &self,
        conn: &mut Conn,
        name: &str,
        columns: &str,
    ) -> anyhow::Result<()> {
        let statements = [
            format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"),
            format!("DROP TABLE IF EXISTS {DATABASE}.{name}"),
            format!("CREATE TABLE {DATABASE}.{name} ({columns})"),
        ];
        for statement in statements {
            let done = conn.query_drop(&statement).await;
            done.with_context(|| format!("{} refuses: {statement}", self.name))?;
        }
        Ok(())
    }

    /// Drops it again.
    pub(crate) async fn drop_table(&self, name: &str) -> anyhow::Result<()> {
        let mut conn = self.connect(0).await?;
        conn.query_drop(format!("DROP TABLE IF EXISTS {DATABASE}.{name}")).await?;
        conn.disconnect().await?;
        Ok(())
    }
}

fn as_root(node: Opts) -> Opts {
    OptsBuilder::from_opts(node).user(Some("root")).into()
}
