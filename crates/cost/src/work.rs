//! What the cluster is given to do.

use crate::cluster::{COLUMN_BYTES, Cluster};
use lats_client::{
    api::{LockMode, LockWait, RowOp, RowOpKind},
    core::{Then, Ticket},
    program::RowProgram,
};
use lats_values::{Value, encode_key_value};

/// What is done with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Insert,
    Read,
    Update,
    Delete,
}

/// One kind of work.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    kind: Kind,
    replicas: u16,
    /// Changes are logged.
    logs: bool,
    /// Operations of a request, and requests that arrive at once.
    operations: u64,
    requests: u64,
}

const fn work(name: &'static str, kind: Kind, replicas: u16, shape: (u64, u64)) -> Work {
    Work { name, kind, replicas, logs: false, operations: shape.0, requests: shape.1 }
}

const fn logged(work: Work) -> Work {
    Work { logs: true, ..work }
}

/// Thirty-two operations to a transaction, as in `flex`; and one.
const MANY: (u64, u64) = (32, 8);
const ONE: (u64, u64) = (1, 100);

/// Rounds before it is measured: buffers have their sizes then.
const WARM_UP: u64 = 10;

/// Rounds that may be asked for.
pub(crate) const ROUNDS_MAX: u64 = 40;

impl Work {
    pub(crate) const ALL: &[Self] = &[
        work("read-32-of-1", Kind::Read, 1, MANY),
        work("read-1-of-1", Kind::Read, 1, ONE),
        work("insert-32-of-1", Kind::Insert, 1, MANY),
        work("update-32-of-1", Kind::Update, 1, MANY),
        work("delete-32-of-1", Kind::Delete, 1, MANY),
        work("update-1-of-1", Kind::Update, 1, ONE),
        work("insert-32-of-2", Kind::Insert, 2, MANY),
        work("update-32-of-2", Kind::Update, 2, MANY),
        work("update-1-of-2", Kind::Update, 2, ONE),
        logged(work("insert-32-of-2-logged", Kind::Insert, 2, MANY)),
        logged(work("update-32-of-2-logged", Kind::Update, 2, MANY)),
    ];

    /// Does it so many times; how many operations that were. Before it begins, `valgrind` counts nothing: see
    /// `cargo xtask cost`.
    pub(crate) fn run(&self, rounds: u64) -> anyhow::Result<u64> {
        let mut cluster = Cluster::new(self.replicas, self.logs)?;
        let per_round = self.operations * self.requests;
        // As many rows whatever is asked for, so that the difference between two runs is what rounds cost.
        let all = (WARM_UP + ROUNDS_MAX) * per_round;
        if self.kind != Kind::Insert {
            let fills = work("", Kind::Insert, self.replicas, MANY);
            for round in 0..all.div_ceil(fills.operations * fills.requests) {
                fills.round(round, &mut cluster)?;
            }
        }
        for round in 0..WARM_UP {
            self.round(round, &mut cluster)?;
        }
        for round in WARM_UP..WARM_UP + rounds {
            cluster.counts = true;
            self.round(round, &mut cluster)?;
        }
        Ok(rounds * per_round)
    }

    fn round(&self, round: u64, cluster: &mut Cluster) -> anyhow::Result<()> {
        let first = round * self.operations * self.requests;
        let mut tickets: Vec<Ticket> = Vec::new();
        for request in 0..self.requests {
            let ids = first + request * self.operations..first + (request + 1) * self.operations;
            let operations: anyhow::Result<Vec<RowOp>> =
                ids.map(|id| self.operation(spread(id), first + request, cluster)).collect();
            let operations = operations?;
            let client = cluster.client();
            tickets.push(if self.kind == Kind::Read {
                client.read(operations)
            } else {
                let sequence = client.begin();
                client.step(sequence, &operations, Then::Commit)
            });
        }
        cluster.answer(tickets)
    }

    /// An operation on this row, in a request with this number: updates set what no other request does.
    fn operation(&self, id: u64, number: u64, cluster: &Cluster) -> anyhow::Result<RowOp> {
        let table = &cluster.table;
        let mut key = Vec::new();
        encode_key_value(&table.columns[0].column_type, &Value::UInt(id), &mut key);
        let bytes = |number: u64| {
            let bytes = number.to_le_bytes().into_iter().cycle();
            Value::Bytes(bytes.take(usize::from(COLUMN_BYTES)).collect())
        };
        let (mut row, mut program) = (Vec::new(), Vec::new());
        let kind = match self.kind {
            Kind::Insert => {
                let encoded = table.layout().encode(&[Value::UInt(id), bytes(id)], &mut row);
                encoded.map_err(|error| anyhow::anyhow!("{}", error.message))?;
                RowOpKind::Insert
            }
            Kind::Read => RowOpKind::Read(LockMode::Committed),
            Kind::Update => {
                let set = RowProgram::new(table).set("c0", bytes(!number));
                program = set.map_err(|code| anyhow::anyhow!("{code}"))?.encode();
                RowOpKind::Update
            }
            Kind::Delete => RowOpKind::Delete,
        };
        let (schema_version, wait) = (table.schema_version, LockWait::Wait);
        Ok(RowOp { table: table.id, schema_version, kind, key, row, program: program.into(), wait })
    }
}

/// Keys in no order, as users have them, each once.
fn spread(id: u64) -> u64 {
    id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
}
