//! Starting a node: its threads, and all that they share.

use crate::{
    Running, RuntimeConfig, clock,
    closer::Closer,
    cpus,
    directory::{Directory, Outputs},
    doorbell::Doorbell,
    ends,
    engine::Engine,
    figures::{Board, Figures, Published},
    io::{Answers, Io, Served, Shared, thread_of},
    links::{Links, Peer},
    output::{Output, PortOutput},
    pace::Pace,
    plan::ThreadPlan,
    port::NodeEnd,
    pulse::Pulse,
    reads::{Load, Reads},
    report,
    rings::{self, Rings},
    sender::Sender,
    spin::{self, SpinMethod, Spinner},
    strangers::Strangers,
    thread::{
        Homes, News, Place, PortInput, Senders, SentAway, Shell, TOKEN_BELL,
        TOKEN_FIRST_CONNECTION, TOKEN_LISTENER, Thread, watch_input,
    },
};
use lats_base::{Duration, Instant};
use lats_kernel::Executor;
use lats_signals::{BlockRef, SignalBuffer};
use rustix::event::epoll;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock, mpsc},
};

/// Threads that read and write files, at most.
const IO_THREADS_MAX: usize = 4;

/// Starts the threads of a node.
///
/// # Errors
/// When the machine refuses a thread, an epoll instance or a doorbell.
pub fn start(config: RuntimeConfig) -> std::io::Result<Running> {
    let (tell_stopped, stopped) = mpsc::channel();
    report::install();
    crate::output::limit_by(config.node.memory_bytes);
    let plans = config.threads.clone();
    let (spin_method, ports, helping) = (config.spin_method, config.ports.len(), config.helping);
    let slots: Vec<_> = config.ports.iter().map(|end| end.engine.clone()).collect();
    let mut threads = Vec::new();
    let senders = start_senders(&plans, &mut threads)?;
    let working: Vec<ThreadPlan> = plans.into_iter().filter(|p| !p.only_sends()).collect();
    let readers: Vec<usize> = ThreadPlan::readers(&working);
    let assembly = Assembly::new(&config, &working, senders, &tell_stopped)?;
    start_io(&config, &assembly.places, &mut threads)?;
    let closer = assembly.closer().ok_or(std::io::ErrorKind::InvalidInput)?;
    let assembled = assembly.threads(config)?;
    let all = Arc::new(OnceLock::new());
    let names = working.iter().map(ThreadPlan::name);
    let published = assembled.iter().map(|t| t.published.clone());
    if let Some(first) = assembled.first() {
        let _ = first.place.board.set(names.zip(published).collect());
    }
    // THREAD-6: nobody is to be late in control's place, and control is not to be late in anybody's.
    let helps = |plan: &ThreadPlan| helping && !plan.is_control();
    let engines = working.iter().zip(assembled);
    let engines: Vec<Arc<Engine>> =
        engines.map(|(plan, thread)| Engine::new(thread, all.clone(), helps(plan))).collect();
    for (port, slot) in (0..ports).zip(slots) {
        // Each port is given to one node only.
        let _ = slot.set(engines[readers[port % readers.len()]].clone());
    }
    let _ = all.set(engines.clone());
    let wake_us = match spin_method {
        SpinMethod::Static => 0,
        _ => {
            let wake_us = spin::wake_cost_us();
            tracing::info!(wake_us, "waking a thread takes this machine so long");
            wake_us
        }
    };
    for ((number, plan), engine) in working.iter().enumerate().zip(engines) {
        let spinner = match plan.is_control() {
            true => Spinner::new(SpinMethod::Static, Duration::ZERO, 0),
            false => Spinner::new(spin_method, plan.spin, wake_us),
        };
        let (how, counts) = (plan.clone(), ends::announce());
        threads.push(spawn(&format!("lats-exec-{number}"), move || {
            counts.enter();
            cpus::settle(&how);
            engine.run(spinner);
        })?);
    }
    Ok(Running { threads, stopped, closer })
}

fn start_senders(
    plans: &[ThreadPlan],
    threads: &mut Vec<std::thread::JoinHandle<()>>,
) -> std::io::Result<Arc<[Arc<Sender>]>> {
    let mut senders = Vec::new();
    for plan in plans.iter().filter(|p| p.only_sends()) {
        let (sender, how) = (Sender::new()?, plan.clone());
        let (own, counts) = (sender.clone(), ends::announce());
        threads.push(spawn(&format!("lats-exec-send-{}", senders.len()), move || {
            counts.enter();
            cpus::settle(&how);
            if let Err(error) = own.run() {
                panic!("a send thread cannot wait: {error}");
            }
        })?);
        senders.push(sender);
    }
    Ok(senders.into())
}

fn start_io(
    config: &RuntimeConfig,
    places: &[Place],
    threads: &mut Vec<std::thread::JoinHandle<()>>,
) -> std::io::Result<()> {
    let (Some(files), Some(first)) = (&config.files, places.first()) else { return Ok(()) };
    let Some(shared) = &first.files else { return Ok(()) };
    let ldms = (0..config.node.ldm_instances).map(|i| BlockRef::ldm(first.node, i));
    let blocks: Vec<BlockRef> = ldms.chain([BlockRef::control(first.node)]).collect();
    for (number, io) in first.io.iter().cloned().enumerate() {
        let own = |block: &BlockRef| thread_of(*block, first.io.len()) == number;
        let answers = Answers {
            blocks: blocks.iter().copied().filter(own).collect(),
            threads: first.io.clone(),
            node: first.node,
            life: first.life,
            homes: first.homes.clone(),
            news: first.news.clone(),
            bells: places.iter().map(|place| place.bell.clone()).collect(),
        };
        let served = Served::new(number, files, shared);
        threads.push(spawn(&format!("lats-io-{number}"), move || io.run(served, &answers))?);
    }
    Ok(())
}

fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_string()).spawn(work)
}

/// What the threads of a node are made from.
struct Assembly {
    executors: Vec<Executor>,
    rings: Vec<Rings>,
    places: Vec<Place>,
    readers: Vec<usize>,
    directory: Arc<Directory>,
}

impl Assembly {
    fn new(
        config: &RuntimeConfig,
        plans: &[ThreadPlan],
        senders: Arc<[Arc<Sender>]>,
        tell_stopped: &mpsc::Sender<crate::Stopped>,
    ) -> std::io::Result<Self> {
        let executors = lats_node::build(&config.node);
        lats_base::require!(executors.len() == plans.len(), "a plan for each thread");
        let homes = Arc::new(Homes::new(&config.node.placement));
        let (board, refused) = (Board::default(), Arc::default());
        let news: Arc<[News]> = plans.iter().map(|_| News::default()).collect();
        let pulses: Arc<[Pulse]> = plans.iter().map(|_| Pulse::default()).collect();
        // Control and the data managers have files.
        let ldms = config.node.ldm_instances as usize;
        let io_count = if config.files.is_some() { (ldms + 1).min(IO_THREADS_MAX) } else { 0 };
        let io: Arc<[Arc<Io>]> = (0..io_count).map(|_| Arc::default()).collect();
        let files = config.files.as_ref().map(|files| Shared::new(files, io_count));
        let places = plans.iter().enumerate().map(|(number, plan)| {
            let (board, refused) = (board.clone(), Arc::clone(&refused));
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let bell = Doorbell::new()?;
            watch_input(&epoll, bell.fd(), TOKEN_BELL)?;
            Ok(Place {
                number,
                is_control: plan.is_control(),
                node: config.node.node,
                life: config.node.incarnation.get(),
                pace: Pace::new(config.responsiveness),
                homes: homes.clone(),
                news: news.clone(),
                bell: Arc::new(bell),
                epoll: Arc::new(epoll),
                // THREAD-5: nobody else writes to control's lane.
                senders: Senders {
                    threads: if plan.is_control() { Arc::default() } else { senders.clone() },
                    always: plan.nosend,
                },
                board,
                refused,
                pulses: pulses.clone(),
                io: io.clone(),
                files: files.clone(),
                sessions: config.sessions.clone(),
                memory: config.memory.clone(),
                tell_stopped: tell_stopped.clone(),
            })
        });
        let places = places.collect::<std::io::Result<Vec<Place>>>()?;
        Ok(Self {
            rings: rings::mesh(plans.len()),
            places,
            executors,
            readers: ThreadPlan::readers(plans),
            directory: Arc::default(),
        })
    }

    /// What tells control, in the first thread, that the node is to end.
    fn closer(&self) -> Option<Closer> {
        let first = self.places.first()?;
        let (news, bell) = (first.news.clone(), first.bell.clone());
        Some(Closer { node: first.node, life: first.life, news, bell })
    }

    /// The threads, before anything runs.
    fn threads(self, config: RuntimeConfig) -> std::io::Result<Vec<Thread>> {
        let Self { executors, rings, places, readers, directory } = self;
        let loads: Arc<[Load]> = places.iter().map(|_| Load::default()).collect();
        let parts = executors.into_iter().zip(rings).zip(places);
        let mut threads: Vec<Thread> = parts
            .map(|((executor, rings), place)| {
                let reads = Reads::new(config.reads, place.number, loads.clone());
                new_thread(place, (executor, reads), rings, Outputs::new(directory.clone()))
            })
            .collect();
        let mut next_slot = 1;
        for (at, end) in config.ports.into_iter().enumerate() {
            let reader = readers[at % readers.len()];
            threads[reader].ports.push(port_input(end, next_slot, reader, &directory));
            next_slot += 1;
        }
        let nonce = config.node.start.nonce(config.node.node);
        let mut links = Links::default();
        for (node, address) in &config.peers {
            links.peers.insert(node.get(), Peer::wanted_at(*address));
        }
        config.listener.set_nonblocking(true)?;
        let Some(first) = threads.first_mut() else { return Ok(threads) };
        watch_input(&first.place.epoll, &config.listener, TOKEN_LISTENER)?;
        first.shell = Some(Box::new(Shell {
            cluster_id: config.cluster_id,
            secret: config.secret,
            sent_away: SentAway::counted(first.place.refused.clone()),
            strangers: Strangers::default(),
            listener: config.listener,
            links,
            directory,
            greeted: BTreeMap::new(),
            next_connection: TOKEN_FIRST_CONNECTION,
            next_slot,
            readers,
            on_view: config.on_view,
            on_known_life: config.on_known_life,
            nonce,
            told_late: false,
            said_late: None,
            resumed_at: Instant::ZERO,
        }));
        Ok(threads)
    }
}

fn new_thread(
    place: Place,
    (executor, reads): (Executor, Reads),
    rings: Rings,
    outputs: Outputs,
) -> Thread {
    Thread {
        place,
        executor,
        rings,
        outputs,
        connections: BTreeMap::new(),
        hungry: BTreeSet::new(),
        ports: Vec::new(),
        shell: None,
        entering: SignalBuffer::new(),
        reads,
        redirected: SignalBuffer::new(),
        scratch: Vec::new(),
        wakes_at: None,
        news_for: Vec::new(),
        figures: Figures::default(),
        published: Arc::new(Published::default()),
        turn_ended: clock::now(),
        unsent: Vec::new(),
        published_at: clock::now(),
        cpu_time_is_old: false,
    }
}

fn port_input(end: NodeEnd, slot: u32, reader: usize, directory: &Directory) -> PortInput {
    let output = PortOutput::new(end.to_client, reader, end.wake_client);
    let output = Arc::new(Output::Port(output));
    directory.set_client(slot, Some(output.clone()));
    PortInput { from_client: end.from_client, output, slot }
}
