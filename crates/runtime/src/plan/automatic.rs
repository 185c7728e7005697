//! The threads that a node gets if nobody says which.

use super::{Module, THREADS_MAX, ThreadPlan};

/// What a node may use of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    /// How many.
    pub count: usize,
}

impl Processors {
    /// What this process may use (CPU set and limit of its control group are honoured), if so many nodes share it.
    pub fn of_this_machine(nodes: usize) -> Self {
        let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { count: (all / nodes.max(1)).max(1) }
    }
}

/// Partitions should stay few, however many processors there are.
const LDM_MAX: usize = 16;

/// Threads for so many processors, beside the one of control: on small machines everything in one thread, which costs least; on larger
/// ones five eighths of the processors for the data node, whose receiving threads also read, the rest for SQL in the same process, the
/// operating system and others. Control needs no processor of its own: it sleeps most of the time.
pub fn automatic(processors: Processors) -> Vec<ThreadPlan> {
    use Module::{Ldm, Main, Query, Recv, Send, Tc};
    let of = |modules: &[Module], count: usize| vec![ThreadPlan::of(modules); count];
    let count = match processors.count {
        0..=2 => 1,
        more => (more * 5 / 8).min(THREADS_MAX - 1),
    };
    let others = match count {
        1 => of(&[Recv, Tc, Ldm], 1),
        2 => [of(&[Recv, Tc, Query], 1), of(&[Ldm], 1)].concat(),
        _ => {
            let (ldm, send) = ((count / 2).min(LDM_MAX), count / 20);
            let tc = (count * 3 / 10).max(1);
            let recv = count - ldm - tc - send;
            [of(&[Recv, Query], recv), of(&[Tc], tc), of(&[Ldm], ldm), of(&[Send], send)].concat()
        }
    };
    [of(&[Main], 1), others].concat()
}
