//! Which modules live in which threads: `thread_config`, and what is chosen without it.
//!
//! A *module* is a part of a node's work: `recv` reads sockets, `tc` coordinates transactions, `ldm` owns fragments,
//! `query` reads fragments of its node's `ldm`s, `main` is control, `rep` is change events, `send` writes sockets for
//! others, `io` works with files. Each may have threads of its own, or share them.

mod automatic;
mod parse;

pub use automatic::{Processors, automatic};
pub use parse::parse;

use lats_base::Duration;
use lats_node::Placement;
use lats_signals::BlockKind;

/// Threads of a node: each has a ring to each other one.
const THREADS_MAX: usize = 256;

/// A part of a node's work that can have threads of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Module {
    /// Control: views, the catalog, membership.
    Main,
    /// Change events. Nothing yet.
    Rep,
    /// Reads sockets.
    Recv,
    /// Coordinates transactions.
    Tc,
    /// Owns fragments.
    Ldm,
    /// Reads fragments of its node's data managers.
    Query,
    /// Writes sockets for others.
    Send,
    /// Works with files. Nothing yet.
    Io,
}

impl Module {
    /// All of them, in the order in which a signal passes them.
    pub const ALL: [Self; 8] =
        [Self::Main, Self::Rep, Self::Recv, Self::Tc, Self::Ldm, Self::Query, Self::Send, Self::Io];

    /// Its name in `thread_config`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Rep => "rep",
            Self::Recv => "recv",
            Self::Tc => "tc",
            Self::Ldm => "ldm",
            Self::Query => "query",
            Self::Send => "send",
            Self::Io => "io",
        }
    }
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadPlan {
    /// What it does, in the order of [`Module::ALL`].
    pub modules: Vec<Module>,
    /// Processors that it may run on; any if empty.
    pub cpus: Vec<usize>,
    /// How long it looks for work before it sleeps (with other methods than static: the most).
    pub spin: Duration,
    /// It runs before all threads of the machine without this priority.
    pub realtime: bool,
    /// It leaves writing to sockets to the send threads.
    pub nosend: bool,
}

impl ThreadPlan {
    /// A thread that does this.
    pub fn of(modules: &[Module]) -> Self {
        let mut modules = modules.to_vec();
        modules.sort();
        Self { modules, ..Self::default() }
    }

    /// It has no executor.
    pub fn only_sends(&self) -> bool {
        self.modules == [Module::Send]
    }

    /// It does nothing but control: so nothing else makes it late.
    pub fn is_control(&self) -> bool {
        self.modules == [Module::Main]
    }

    /// What it does, for a person: `recv+tc`.
    pub fn name(&self) -> String {
        self.modules.iter().map(|m| m.name()).collect::<Vec<_>>().join("+")
    }

    fn does(&self, module: Module) -> bool {
        self.modules.contains(&module)
    }

    /// The numbers of the threads that read sockets.
    pub(crate) fn readers(threads: &[Self]) -> Vec<usize> {
        numbers(threads, Module::Recv)
    }

    /// How many threads of a plan do something: at least 1.
    pub fn count(threads: &[Self], module: Module) -> u32 {
        numbers(threads, module).len().max(1) as u32
    }
}

fn numbers(threads: &[ThreadPlan], module: Module) -> Vec<usize> {
    (0..threads.len()).filter(|number| threads[*number].does(module)).collect()
}

/// Where the blocks of a node live, if these are its threads: instances go round the threads for them. (All nodes of a
/// cluster have the same instances, whatever threads each has.)
pub fn placement(threads: &[ThreadPlan], tc_instances: u32, ldm_instances: u32) -> Placement {
    let working: Vec<ThreadPlan> = threads.iter().filter(|t| !t.only_sends()).cloned().collect();
    let mut blocks = vec![Vec::new(); working.len()];
    blocks[0].push((BlockKind::Control, 0));
    for (module, kind, instances) in
        [(Module::Tc, BlockKind::Tc, tc_instances), (Module::Ldm, BlockKind::Ldm, ldm_instances)]
    {
        let homes = numbers(&working, module);
        for instance in 0..instances {
            blocks[homes[instance as usize % homes.len()]].push((kind, instance));
        }
    }
    Placement { threads: blocks }.with_queries(numbers(&working, Module::Query))
}

#[cfg(test)]
mod tests;
