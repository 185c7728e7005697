//! Running steps: each in a folder of its own, with a limit, with ports that no other run has, and with nothing left behind.

use super::{
    now,
    outcome::{Outcome, counted},
    say,
    steps::{PROFILE, Phase, Step},
    target,
};
use crate::root;
use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::{
    fs::{File, TryLockError},
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Says of a process which step has started it, itself or through others.
const MARK: &str = "LATSDB_CHECK";
/// How often it is looked whether a step has ended.
const LOOK: Duration = Duration::from_millis(50);
/// The exit status of a step that cannot be run on this machine, and says why.
const SKIPPED: i32 = 77;
/// How long a killed process may take to end.
const GONE: Duration = Duration::from_secs(20);
/// A process that has said its last word may take so long to end.
const ENDING: Duration = Duration::from_secs(1);
/// How often a long step says how far it is.
const PROGRESS: Duration = Duration::from_secs(30);
/// What a step that failed shows of its output.
const LAST_LINES: usize = 60;

/// Steps' ports come in ranges of so many; the first range begins here, and the last one ends below the ports that the
/// system gives to outgoing connections.
const FIRST_PORT: u16 = 12_000;
const PORTS: u16 = 400;
const RANGES: u16 = 50;

/// The folder of this run, in which each step has one.
pub(crate) struct Workplace {
    base: PathBuf,
    steps: AtomicUsize,
    /// One step talks at a time.
    voice: Mutex<()>,
}

/// Ports that are one step's until this is dropped.
struct Ports {
    first: u16,
    _lock: File,
}

/// A process that burns a core until this is dropped.
pub(crate) struct BusyLoop(Child);

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts so many busy loops.
pub(crate) fn busy_loops(count: usize) -> anyhow::Result<Vec<BusyLoop>> {
    let one = || {
        let child = Command::new("bash").args(["-c", "while :; do :; done"]).spawn();
        child.map(BusyLoop).context("cannot start a busy loop")
    };
    (0..count).map(|_| one()).collect()
}

impl Workplace {
    /// A new folder that no other run has.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let above = std::env::temp_dir();
        for number in 0.. {
            let base = above.join(format!("latsdb-checks-{}-{number}", std::process::id()));
            match std::fs::create_dir(&base) {
                Ok(()) => {
                    return Ok(Self { base, steps: AtomicUsize::new(0), voice: Mutex::new(()) });
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e).with_context(|| format!("creating {}", base.display())),
            }
        }
        unreachable!("one number is free")
    }

    /// Removes the folder, or what is empty of it.
    pub(crate) fn clear(self, everything: bool) -> anyhow::Result<()> {
        if everything {
            std::fs::remove_dir_all(&self.base).context("removing what the checks have left")?;
        }
        Ok(())
    }

    /// Runs the steps of a phase, some at once.
    pub(crate) fn run(&self, phase: &Phase, keep_going: bool) -> anyhow::Result<Vec<Outcome>> {
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let outcomes = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let work = || -> anyhow::Result<()> {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(step) = phase.steps.get(at) else { return Ok(()) };
                    if failed.load(Ordering::Relaxed) && !keep_going {
                        return Ok(());
                    }
                    let outcome = self.run_step(step)?;
                    failed.fetch_or(outcome.failed > 0, Ordering::Relaxed);
                    outcomes.lock().map_err(|_| anyhow::anyhow!("a step panicked"))?.push(outcome);
                }
            };
            let workers: Vec<_> = (0..phase.at_once).map(|_| scope.spawn(work)).collect();
            for worker in workers {
                worker.join().map_err(|_| anyhow::anyhow!("a step panicked"))??;
            }
            anyhow::Ok(())
        })?;
        outcomes.into_inner().map_err(|_| anyhow::anyhow!("a step panicked"))
    }

    fn speak(&self, text: &str) {
        let _quiet = self.voice.lock();
        say(text);
    }

    fn run_step(&self, step: &Step) -> anyhow::Result<Outcome> {
        let number = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let slug: String =
            step.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let folder = self.base.join(format!("{number:02}-{slug}"));
        let temporary = folder.join("tmp");
        std::fs::create_dir_all(&temporary).context("creating a folder for a step")?;
        let ports = Ports::reserve()?;
        let words: Vec<String> = step.command.iter().map(|w| ports.put_into(w)).collect();
        self.speak(&format!("== {}: {}", step.name, words.join(" ")));
        let output =
            File::create(folder.join("output.txt")).context("creating a file for output")?;
        let binary = target().join(PROFILE);
        let child = Command::new(&words[0])
            .args(&words[1..])
            .current_dir(root())
            .env("TMPDIR", &temporary)
            .env(MARK, &folder)
            .env("LATSDB", std::path::absolute(binary.join("latsdb"))?)
            .env("LATS_HISTORY", std::path::absolute(binary.join("lats-history"))?)
            .stdin(Stdio::null())
            .stderr(output.try_clone().context("sharing a file for output")?)
            .stdout(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", words[0]))?;
        let begun = now();
        let status = self.wait_for(step, child, &folder)?;
        let left = end_what_is_left(&folder);
        let text = String::from_utf8_lossy(&std::fs::read(folder.join("output.txt"))?).into_owned();
        let trouble = trouble(step, status, &left);
        let skipped = status.and_then(|status| status.code()) == Some(SKIPPED);
        let (passed, failed) = match (counted(&text), &trouble) {
            _ if skipped => (0, 0),
            (Some((passed, failed)), Some(_)) => (passed, failed.max(1)),
            (None, Some(_)) => (0, 1),
            (Some(count), None) if !step.prepares => count,
            (None, None) if !step.prepares => (1, 0),
            (_, None) => (0, 0),
        };
        let seconds = begun.elapsed().as_secs_f64();
        self.tell(step, seconds, &text, skipped, trouble.as_deref());
        if trouble.is_none() {
            std::fs::remove_dir_all(&folder).context("removing the folder of a step")?;
        }
        Ok(Outcome {
            name: step.name.to_string(),
            seconds,
            limit_s: step.limit_s,
            passed,
            failed,
            skipped: u64::from(skipped),
            command: format!("bash scripts/test.sh --only '{}'", step.name),
            folder,
        })
    }

    /// Waits for a step's end; none if it had to be ended because it took too long.
    fn wait_for(
        &self,
        step: &Step,
        mut child: Child,
        folder: &Path,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let (begun, limit) = (now(), Duration::from_secs(step.limit_s));
        let mut told = Duration::ZERO;
        loop {
            if let Some(status) = child.try_wait().context("waiting for a step")? {
                return Ok(Some(status));
            }
            let took = begun.elapsed();
            if took > limit {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                end_what_is_left(folder);
                child.wait().context("waiting for a step that was ended")?;
                return Ok(None);
            }
            if took > told + PROGRESS {
                told = took;
                let text = std::fs::read(folder.join("output.txt")).unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                let last = text.lines().next_back().unwrap_or_default();
                let last: String = last.trim().chars().take(100).collect();
                self.speak(&format!("   {}, {} s: {last}", step.name, took.as_secs()));
            }
            pause(LOOK);
        }
    }

    fn tell(&self, step: &Step, seconds: f64, output: &str, skipped: bool, trouble: Option<&str>) {
        let Some(trouble) = trouble else {
            let last = output.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
            let last: String = last.chars().take(140).collect();
            let how = if skipped { "SKIPPED" } else { "passed" };
            return self.speak(&format!("   {}: {how} in {seconds:.0} s: {last}", step.name));
        };
        let lines: Vec<&str> = output.lines().collect();
        let from = lines.len().saturating_sub(LAST_LINES);
        let end: String = lines[from..].iter().map(|line| format!("   | {line}\n")).collect();
        self.speak(&format!("{end}== FAILED: {}, after {seconds:.0} s: {trouble}", step.name));
    }
}

/// What is wrong with how a step ended.
fn trouble(step: &Step, status: Option<ExitStatus>, left: &[String]) -> Option<String> {
    match status {
        None => Some(format!("it had not ended after its limit of {} s", step.limit_s)),
        Some(status) if !status.success() && status.code() != Some(SKIPPED) => {
            Some(status.to_string())
        }
        Some(_) if !left.is_empty() => {
            Some(format!("it left processes behind: {}", left.join("; ")))
        }
        Some(_) => None,
    }
}

#[expect(clippy::disallowed_methods, reason = "a command-line tool that waits for processes")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Ends the processes that a step has started and that still run; gives their command lines.
fn end_what_is_left(folder: &Path) -> Vec<String> {
    let mark = format!("{MARK}={}", folder.display());
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut ended = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if !environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()) {
            continue;
        }
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if let Some(pid) = Pid::from_raw(pid)
            && !line.is_empty()
            && !ends_within(&entry.path(), ENDING)
        {
            let _ = kill_process(pid, Signal::KILL);
            ends_within(&entry.path(), GONE);
            ended.push(String::from_utf8_lossy(&line).replace('\0', " ").trim().to_string());
        }
    }
    ended
}

/// True if the process is gone by then: its memory must be freed first.
fn ends_within(process: &Path, span: Duration) -> bool {
    let begun = now();
    let lives = || std::fs::read(process.join("cmdline")).is_ok_and(|line| !line.is_empty());
    while lives() && begun.elapsed() < span {
        pause(LOOK);
    }
    !lives()
}

impl Ports {
    /// A range that no other step, run or person has: the lock is held until this is dropped.
    fn reserve() -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join("latsdb-ports");
        std::fs::create_dir_all(&folder).context("creating the folder for locks of ports")?;
        for range in 0..RANGES {
            let first = FIRST_PORT + range * PORTS;
            let lock = File::create(folder.join(format!("{first}.lock"))).context("a lock")?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(e)) => return Err(e).context("locking a range of ports"),
            }
            let is_free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
            if [first, first + 1, first + 101].into_iter().all(is_free) {
                return Ok(Self { first, _lock: lock });
            }
        }
        anyhow::bail!("no ports are free from {FIRST_PORT} on: is something else running here?")
    }

    /// `{port}` is the first port of the range, `{port+N}` one after it.
    fn put_into(&self, word: &str) -> String {
        let Some((before, rest)) = word.split_once("{port") else { return word.to_string() };
        let Some((offset, after)) = rest.split_once('}') else { return word.to_string() };
        let offset: u16 = offset.trim_start_matches('+').parse().unwrap_or_default();
        format!("{before}{}{}", self.first + offset, self.put_into(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(command: &[&str], limit_s: u64) -> Step {
        Step {
            name: "a step".into(),
            command: command.iter().map(|w| (*w).to_string()).collect(),
            limit_s,
            prepares: false,
        }
    }

    #[test]
    fn two_runs_have_other_ports_and_folders() {
        let (one, two) = (Ports::reserve().unwrap(), Ports::reserve().unwrap());
        assert!(one.first.abs_diff(two.first) >= PORTS);
        assert_eq!(one.put_into("a{port}b{port+7}c"), format!("a{}b{}c", one.first, one.first + 7));
        let (a, b) = (Workplace::new().unwrap(), Workplace::new().unwrap());
        assert_ne!(a.base, b.base);
        a.clear(true).unwrap();
        b.clear(true).unwrap();
    }

    #[test]
    fn a_step_that_takes_too_long_is_ended_with_all_that_it_has_started() {
        let place = Workplace::new().unwrap();
        // The second process is in a session of its own.
        let slow = step(&["bash", "-c", "setsid sleep 600 & sleep 600"], 1);
        let outcome = place.run_step(&slow).unwrap();
        assert_eq!((outcome.passed, outcome.failed), (0, 1));
        assert!(outcome.folder.join("output.txt").exists(), "what it left is kept");
        assert_eq!(end_what_is_left(&outcome.folder), Vec::<String>::new());
        place.clear(true).unwrap();
    }

    #[test]
    fn a_step_that_leaves_processes_behind_has_failed() {
        let place = Workplace::new().unwrap();
        // While a process becomes another program it has no environment: it gets time for that.
        let leaves = step(&["bash", "-c", "setsid sleep 600 & sleep 0.3"], 20);
        let outcome = place.run_step(&leaves).unwrap();
        assert_eq!(outcome.failed, 1);
        let good = place.run_step(&step(&["bash", "-c", "echo 3 passed, 0 failed"], 20)).unwrap();
        assert_eq!((good.passed, good.failed), (3, 0));
        assert!(!good.folder.exists(), "nothing is kept of a step that passed");
        let none = place.run_step(&step(&["bash", "-c", "exit 77"], 20)).unwrap();
        assert_eq!((none.passed, none.failed, none.skipped), (0, 0, 1));
        place.clear(true).unwrap();
    }
}
