//! The threads that serve MySQL clients beside the node in this process. Each has a runtime, a client and a port of its
//! own: a statement stays in its thread, and wakes no other one but the node's.

use crate::{ports::Held, random, store::ClusterStore};
use anyhow::Context;
use lats_base::NodeId;
use lats_client::Secret;
use lats_client::api::SessionCall;
use lats_client::net::{Client, ClientOptions, KnownTables, Wire};
use lats_runtime::{MemoryUse, Port, RuntimeConfig, clock, ends, port::port, sockets};
use lats_sql::{
    connection::Host,
    session::{MemoryFigure, Meter, Shared},
    sessions::Sessions,
};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Runtime,
    sync::{Notify, watch},
};

/// The port as the client's link to its own node.
struct PortWire(Port);

impl Wire for PortWire {
    fn send(&self, signal: &[u8]) -> bool {
        self.0.send(signal)
    }

    fn flush(&self, arrived: &mut Vec<u8>) {
        self.0.ring(arrived);
    }

    fn take(&self, arrived: &mut Vec<u8>) {
        self.0.receive(arrived);
    }
}

/// Ends the sessions of MySQL clients between two transactions: the node is to stop, as a view says, or its process is to end.
#[derive(Clone)]
pub(crate) struct Ending {
    told: Arc<watch::Sender<bool>>,
    ends: Arc<AtomicBool>,
}

impl Ending {
    /// The process is to end: there is no way back.
    pub(crate) fn begin(&self) {
        self.ends.store(true, Ordering::Relaxed);
        self.say(true);
    }

    fn say(&self, stops: bool) {
        let stops = stops || self.ends.load(Ordering::Relaxed);
        self.told.send_if_modified(|said| std::mem::replace(said, stops) != stops);
    }

    /// Waits as long as clients may take that are in a transaction.
    async fn patience(&self) {
        let (mut waited, mut ends_for) = (Duration::ZERO, Duration::ZERO);
        while waited < SESSIONS_END && ends_for < SESSIONS_END_SOON {
            tokio::time::sleep(LOOK_FOR_END).await;
            waited += LOOK_FOR_END;
            if self.ends.load(Ordering::Relaxed) {
                ends_for += LOOK_FOR_END;
            }
        }
    }
}

/// What the threads need, before there are any.
pub(crate) struct SqlThreads {
    node: NodeId,
    held: Held,
    /// MySQL clients that may be connected.
    places: usize,
    ports: Vec<(Port, Arc<Notify>)>,
    stopping: watch::Receiver<bool>,
    ending: Ending,
    sessions: Arc<Sessions>,
    /// For the links to the other nodes.
    secret: Secret,
    /// What this node may have, for rows, statements and clients.
    memory_bytes: usize,
    /// Where people see it.
    figures: Arc<OnceLock<MemoryCall>>,
    /// How long they wait while the node is cut off.
    cut_off_wait: Option<Duration>,
}

/// How the allocator counts.
const METER: Meter = Meter {
    in_use: lats_alloc::in_use,
    of_thread: lats_alloc::of_thread,
    most: lats_alloc::most,
    report: lats_alloc::report,
    make_room: crate::memory::make_room,
};

type MemoryCall = Box<dyn Fn() -> Vec<MemoryFigure> + Send + Sync>;

/// Each thread has links to all other nodes, and memory for its port: more of them should rather be other nodes, for SQL
/// only.
const THREADS_MAX: usize = 8;

impl SqlThreads {
    /// Gives the node a port for each thread, and has it say when it is to stop.
    pub(crate) fn prepare(
        node: u16,
        (held, places): (Held, usize),
        memory_bytes: usize,
        runtime: &mut RuntimeConfig,
    ) -> anyhow::Result<Self> {
        let sessions = Sessions::of_node(node);
        let called = sessions.clone();
        runtime.sessions = Arc::new(move |id, what, statement| {
            match SessionCall::from_number(what, statement) {
                Some(call) => called.call(id, call, clock::unix_micros()),
                // Of a newer version.
                None => (false, Vec::new()),
            }
        });
        let node = NodeId::new(node);
        let count = std::thread::available_parallelism().map_or(1, |n| n.get().min(THREADS_MAX));
        let mut ports = Vec::with_capacity(count);
        for _ in 0..count {
            let arrived = Arc::new(Notify::new());
            let notify = arrived.clone();
            let (own, end) = port(Arc::new(move || notify.notify_one()));
            runtime.ports.push(end);
            ports.push((own, arrived));
        }
        let (told, stopping) = watch::channel(false);
        let mut mark = std::mem::replace(&mut runtime.on_view, Box::new(|_| {}));
        let ending = Ending { told: Arc::new(told), ends: Arc::default() };
        let of_views = ending.clone();
        runtime.on_view = Box::new(move |view| {
            mark(view);
            of_views.say(view.is_stopping(node));
        });
        let figures: Arc<OnceLock<MemoryCall>> = Arc::default();
        let (shown, of_node) = (figures.clone(), runtime.memory.clone());
        runtime.memory = Arc::new(move || {
            // Sessions know who was refused, too.
            let known = shown.get().map(|figures| figures()).unwrap_or_default();
            let is_new = |of: &MemoryUse| known.iter().all(|figure| figure.name != of.name);
            let others = of_node().into_iter().filter(is_new);
            known.iter().cloned().map(memory_use).chain(others).collect()
        });
        let secret = runtime.secret.clone();
        Ok(Self {
            node,
            held,
            places,
            ports,
            stopping,
            ending,
            sessions,
            secret,
            memory_bytes,
            figures,
            cut_off_wait: None,
        })
    }

    /// What ends its sessions when the process is to end.
    pub(crate) fn ending(&self) -> Ending {
        self.ending.clone()
    }

    /// The same with statements that wait for so long while the node is cut off from the majority.
    pub(crate) fn waiting_when_cut_off(self, wait: Duration) -> Self {
        Self { cut_off_wait: Some(wait), ..self }
    }

    /// Starts the threads, and one that takes connections: it waits for no statement.
    pub(crate) fn start(mut self) -> anyhow::Result<()> {
        let mut threads = Vec::new();
        let known = KnownTables::default();
        for end in std::mem::take(&mut self.ports) {
            let runtime = tokio::runtime::Builder::new_current_thread()
                // Long statements are planned in more threads.
                .thread_stack_size(lats_sql::STACK_BYTES)
                .on_thread_stop(lats_alloc::report)
                .enable_all()
                .build();
            let runtime = runtime.context("cannot start the threads for SQL")?;
            let client = self.client_at(&runtime, known.clone(), end)?;
            threads.push((runtime, client));
        }
        let clients: Arc<[Client]> = threads.iter().map(|(_, client)| client.clone()).collect();
        let handles = threads.iter().map(|(runtime, _)| runtime.handle().clone());
        let store = |client: &Client| ClusterStore::new(client.clone()).beside(clients.clone());
        let bytes = crate::memory::for_all(self.memory_bytes);
        let (port, places) = (self.held.address().port(), self.places);
        let mut shared = None;
        let hosts: Vec<_> = handles
            .zip(clients.iter())
            .map(|(handle, client)| {
                let first = || {
                    let shared = Shared::new(store(client), clock::unix_micros).on_port(port);
                    let shared = shared.with_sessions(self.sessions.clone()).with_places(places);
                    shared.measured_by(|| clock::now().as_nanos()).with_memory(bytes, METER)
                };
                Host::new(handle, shared.get_or_insert_with(first).beside(store(client)))
            })
            .collect();
        if let Some(shared) = &shared {
            // There is one of these threads for each node.
            let _ = self.figures.set(Box::new(shared.memory_figures()));
        }
        for (number, (runtime, _)) in threads.into_iter().enumerate() {
            let named = std::thread::Builder::new()
                .name(format!("lats-sql-{number}"))
                .stack_size(lats_sql::STACK_BYTES);
            let counts = ends::announce();
            named.spawn(move || {
                counts.enter();
                runtime.block_on(std::future::pending::<()>())
            })?;
        }
        let taking = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let taking = taking.context("cannot start the thread that takes connections")?;
        let told = (self.stopping, self.ending);
        let serving = serve(hosts, clients, (self.held, self.sessions), told);
        let named = std::thread::Builder::new().name("lats-sql-accept".to_string());
        let counts = ends::announce();
        named.spawn(move || {
            counts.enter();
            taking.block_on(serving)
        })?;
        Ok(())
    }

    /// A client in a runtime that does not run yet, linked with the own node.
    fn client_at(
        &self,
        runtime: &Runtime,
        known: KnownTables,
        (own, arrived): (Port, Arc<Notify>),
    ) -> anyhow::Result<Client> {
        let _within = runtime.enter();
        let options = ClientOptions {
            home: Some(self.node),
            secret: Some(self.secret.clone()),
            admin: true,
            seed: random::number().context("the operating system has no random bytes")?,
            known,
            cut_off_wait: self.cut_off_wait,
            ..ClientOptions::default()
        };
        let client = Client::start(options, clock::now);
        // The only link to this node: there is none yet.
        let _ = client.attach(self.node, Arc::new(PortWire(own)));
        runtime.spawn(take_from_port(client.clone(), self.node, arrived));
        Ok(client)
    }
}

fn memory_use(figure: MemoryFigure) -> MemoryUse {
    MemoryUse {
        name: figure.name.to_string(),
        bytes: figure.bytes,
        most_bytes: figure.most_bytes,
        limit_bytes: figure.limit_bytes,
        refused: figure.refused,
    }
}

/// Serves MySQL clients over the node in this process.
async fn serve(
    hosts: Vec<Host<ClusterStore>>,
    clients: Arc<[Client]>,
    (held, sessions): (Held, Arc<Sessions>),
    (stopping, ending): (watch::Receiver<bool>, Ending),
) {
    // Who connects before is refused, and goes to another node.
    for client in clients.iter() {
        loop {
            match client.ready(Duration::from_secs(5)).await {
                Ok(()) if client.home_serves() => break,
                Ok(()) => tokio::time::sleep(Duration::from_millis(2)).await,
                Err(_) => tracing::info!("SQL waits for the cluster to serve"),
            }
        }
    }
    let address = held.address();
    tokio::spawn(end_the_idle(sessions));
    let mut listener = held.listen();
    loop {
        let bound = listener.and_then(|listener| {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        });
        match bound {
            Ok(bound) => {
                let stops = stopping.clone();
                let serving = lats_sql::connection::listen(&hosts, bound, random::nonce, stops);
                leave(serving, (stopping.clone(), &ending), &clients).await;
            }
            Err(error) => {
                tracing::error!(%error, "cannot serve MySQL clients; it is tried again");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        // It stays after all: it has become the last replica (STOP-1).
        listener = Held::new(address, sockets::SQL).and_then(Held::listen);
    }
}

/// Ends sessions whose clients have asked nothing for longer than `wait_timeout`.
async fn end_the_idle(sessions: Arc<Sessions>) {
    loop {
        tokio::time::sleep(LOOK_FOR_IDLE).await;
        sessions.end_idle(clock::unix_micros());
    }
}

/// How often it is looked for sessions that were idle for too long: `wait_timeout` counts seconds.
const LOOK_FOR_IDLE: Duration = Duration::from_millis(200);

/// How long MySQL clients may take to end their transactions when the node is to stop (STOP-3).
const SESSIONS_END: Duration = Duration::from_secs(50);

/// How long they may take when the process is to end (CLOSE-1).
const SESSIONS_END_SOON: Duration = Duration::from_secs(6);
/// How often it is looked which of both it is.
const LOOK_FOR_END: Duration = Duration::from_millis(100);

/// Serves MySQL clients until the node is to stop and they are gone; then it may go.
async fn leave(
    serving: impl Future<Output = std::io::Result<()>>,
    (stopping, ending): (watch::Receiver<bool>, &Ending),
    clients: &[Client],
) {
    let mut told = stopping.clone();
    let overdue = async {
        let told = told.wait_for(|stops| *stops).await.is_ok();
        ending.patience().await;
        told
    };
    tokio::select! {
        ended = serving => if let Err(error) = ended {
            tracing::error!(%error, "this node does not take MySQL clients any more");
        },
        true = overdue => tracing::warn!("MySQL clients are still here, and are left"),
    }
    while *stopping.borrow() {
        // Until the cluster has heard, and this process ends.
        clients.iter().for_each(Client::leave_home);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Has the client take what comes while it makes no request.
async fn take_from_port(client: Client, home: NodeId, arrived: Arc<Notify>) {
    loop {
        client.take_from(home);
        arrived.notified().await;
    }
}
