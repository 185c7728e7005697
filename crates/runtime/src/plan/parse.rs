//! Reading `thread_config`: `ldm={count=2,cpubind=0-1},tc={count=1},recv={count=1,spintime=50}`.
//!
//! Names joined by `+` share their threads: `recv+tc={count=2}`. `main` has a thread of its own, unless its name is joined to others.
//! Another module that is not named, or has the count 0, is with others: `tc` with all that receive, `ldm` with all that coordinate.

use super::{Module, THREADS_MAX, ThreadPlan};
use lats_base::Duration;

/// Looking for work longer than this before sleeping is not what anybody means.
const SPIN_US_MAX: u64 = 10_000;

/// The threads that a `thread_config` describes, the one with `main` first.
///
/// # Errors
/// Says what is wrong, and where.
pub fn parse(text: &str) -> Result<Vec<ThreadPlan>, String> {
    let mut threads = Vec::new();
    for (names, attributes) in entries(text)? {
        let modules = modules(names)?;
        threads.extend(group(names, &modules, attributes)?);
        if threads.len() > THREADS_MAX {
            return Err(format!("a node has at most {THREADS_MAX} threads"));
        }
    }
    fold(&mut threads)?;
    if threads.len() > THREADS_MAX {
        return Err(format!("a node has at most {THREADS_MAX} threads, that of main included"));
    }
    Ok(threads)
}

/// Name and what is between the braces, of each entry.
fn entries(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut rest = text.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let misses = |what: &str| format!("thread_config: {what} is missing in `{rest}`");
        let (names, behind) = rest.split_once('=').ok_or_else(|| misses("`=`"))?;
        let behind = behind.trim_start().strip_prefix('{').ok_or_else(|| misses("`{`"))?;
        let (attributes, behind) = behind.split_once('}').ok_or_else(|| misses("`}`"))?;
        found.push((names.trim(), attributes));
        let behind = behind.trim_start();
        rest = match behind.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if behind.is_empty() => behind,
            None => return Err(format!("thread_config: `,` is missing before `{behind}`")),
        };
    }
    Ok(found)
}

fn modules(names: &str) -> Result<Vec<Module>, String> {
    let mut modules = Vec::new();
    for name in names.split('+').map(str::trim) {
        let known = Module::ALL.into_iter().find(|m| m.name() == name);
        let module = known.ok_or_else(|| {
            let all = Module::ALL.map(Module::name).join(", ");
            format!("thread_config: `{name}` is no module; they are {all}")
        })?;
        if modules.contains(&module) {
            return Err(format!("thread_config: `{names}` names {name} twice"));
        }
        modules.push(module);
    }
    if modules.contains(&Module::Send) && modules.len() > 1 {
        return Err(format!(
            "thread_config: `{names}`: send threads do nothing else; others send for themselves, \
             unless they have nosend=1"
        ));
    }
    Ok(modules)
}

/// The threads of one entry.
fn group(names: &str, modules: &[Module], attributes: &str) -> Result<Vec<ThreadPlan>, String> {
    let mut one = ThreadPlan::of(modules);
    let (mut count, mut bind) = (None, None);
    for (name, value) in pairs(attributes)? {
        let wrong = |why: &str| format!("thread_config: {names}: {name}={value}: {why}");
        let number = || value.parse::<u64>().map_err(|_| wrong("that is no number"));
        let flag = || match value.as_str() {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(wrong("it is 0 or 1")),
        };
        match name {
            "count" => count = Some(number()?.min(THREADS_MAX as u64 + 1) as usize),
            "cpubind" => bind = Some(cpu_list(&value).ok_or_else(|| wrong("no list of CPUs"))?),
            "cpuset" => one.cpus = cpu_list(&value).ok_or_else(|| wrong("no list of CPUs"))?,
            "spintime" => match number()? {
                micros @ 0..=SPIN_US_MAX => one.spin = Duration::from_micros(micros),
                _ => return Err(wrong("it is in microseconds, up to 10000")),
            },
            "realtime" => one.realtime = flag()?,
            "nosend" => one.nosend = flag()?,
            _ => {
                return Err(wrong(
                    "no such attribute; they are count, cpubind, cpuset, spintime, realtime, nosend",
                ));
            }
        }
    }
    let count = count.unwrap_or_else(|| bind.as_ref().map_or(1, Vec::len));
    let nothing = modules.iter().find(|m| matches!(m, Module::Rep | Module::Io));
    if let Some(module) = nothing.filter(|_| count > 0) {
        return Err(format!(
            "thread_config: {names}: {} has nothing to do yet in this version; leave it out, or \
             give it count=0",
            module.name()
        ));
    }
    if one.only_sends() && (one.spin != Duration::ZERO || one.nosend) {
        return Err(format!(
            "thread_config: {names}: send threads neither spin nor leave sending to others"
        ));
    }
    match bind {
        Some(_) if !one.cpus.is_empty() => {
            Err(format!("thread_config: {names}: either cpubind or cpuset"))
        }
        Some(cpus) if cpus.len() != count => Err(format!(
            "thread_config: {names}: cpubind names {} CPUs for {count} threads",
            cpus.len()
        )),
        Some(cpus) => {
            Ok(cpus.into_iter().map(|cpu| ThreadPlan { cpus: vec![cpu], ..one.clone() }).collect())
        }
        None => Ok(vec![one; count]),
    }
}

/// `a=1,b=2,3,c=4-5`: what has no `=` belongs to the value before it.
fn pairs(attributes: &str) -> Result<Vec<(&str, String)>, String> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for part in attributes.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let Some((name, value)) = part.split_once('=') else {
            let Some((_, value)) = pairs.last_mut() else {
                return Err(format!("thread_config: `{part}` is no attribute"));
            };
            *value = format!("{value},{part}");
            continue;
        };
        let name = name.trim();
        if pairs.iter().any(|(known, _)| *known == name) {
            return Err(format!("thread_config: {name} is there twice"));
        }
        pairs.push((name, value.trim().to_string()));
    }
    Ok(pairs)
}

/// `0-3,8`
fn cpu_list(text: &str) -> Option<Vec<usize>> {
    const CPUS_MAX: usize = 1_024;
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().ok()?;
        let last: usize = last.trim().parse().ok()?;
        if first > last || last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Gives every module that must be somewhere its threads.
fn fold(threads: &mut Vec<ThreadPlan>) -> Result<(), String> {
    let is_there =
        |threads: &[ThreadPlan], module| threads.iter().any(|t| t.modules.contains(&module));
    if !is_there(threads, Module::Recv) {
        // Something must read the sockets.
        threads.insert(0, ThreadPlan::of(&[Module::Recv]));
    }
    if !is_there(threads, Module::Main) {
        // Heartbeats and leases wait for nothing else.
        threads.insert(0, ThreadPlan::of(&[Module::Main]));
    }
    for (module, host) in [(Module::Tc, Module::Recv), (Module::Ldm, Module::Tc)] {
        if is_there(threads, module) {
            continue;
        }
        for thread in threads.iter_mut().filter(|t| t.modules.contains(&host)) {
            thread.modules.push(module);
            thread.modules.sort();
        }
    }
    let mains = threads.iter().filter(|t| t.modules.contains(&Module::Main)).count();
    if mains > 1 {
        return Err("thread_config: main has one thread".to_string());
    }
    // Thread 0 is the one with control.
    threads.sort_by_key(|t| !t.modules.contains(&Module::Main));
    if !threads.iter().any(|t| t.only_sends()) && threads.iter().any(|t| t.nosend) {
        return Err("thread_config: nosend=1 needs send threads: send={count=1}".to_string());
    }
    Ok(())
}
