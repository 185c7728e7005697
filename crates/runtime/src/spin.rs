//! How a thread waits: whether it looks again and again for a while before it sleeps, and for how long.
//!
//! To be woken costs a thread, and whoever wakes it, some microseconds, and a processor that sleeps deeply even more. A
//! thread that spins for a short gap saves that; one that spins through a long gap has burnt the processor for nothing.

use crate::clock;
use lats_base::Duration;
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
};
use std::sync::Arc;

/// How the time is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpinMethod {
    /// Always as long as the configuration says (`spintime`).
    #[default]
    Static,
    /// As long as spinning has lately cost less than it has saved.
    CostBased,
    /// As long as it has lately cost at most [`LATENCY_FACTOR`] times what it has saved.
    LatencyOptimised,
}

impl std::str::FromStr for SpinMethod {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "static" => Ok(Self::Static),
            "cost-based" => Ok(Self::CostBased),
            "latency-optimised" => Ok(Self::LatencyOptimised),
            _ => Err(format!("{name} is no way to wait: static, cost-based, or latency-optimised")),
        }
    }
}

/// What waking a thread may be taken to cost: less is noise, more is a machine that did something else meanwhile.
const WAKE_COST_US: std::ops::RangeInclusive<u64> = 2..=100;
/// How often it is tried.
const WAKES_TRIED: usize = 100;
/// Processor time that is given for a wake-up saved, in wake-ups.
pub const LATENCY_FACTOR: u64 = 10;
/// Gaps after which the choice is made again.
const GAPS_PER_CHOICE: u64 = 256;
/// The longest time that is ever chosen: 2 to this power, in microseconds.
const LONGEST_LOG2: usize = 10;

/// Chooses how long one thread spins.
#[derive(Debug)]
pub(crate) struct Spinner {
    method: SpinMethod,
    /// What the configuration says; with other methods than `Static` the most that is chosen.
    spin_us: u64,
    chosen_us: u64,
    /// Gaps by length: number n counts those shorter than 2 to the power of n microseconds, the last one all others.
    gaps: [u64; LONGEST_LOG2 + 2],
    count: u64,
    /// What to be woken costs on this machine.
    wake_us: u64,
}

/// What it takes until a thread that sleeps has been woken, on this machine, in us: half of a round trip, the median of
/// some.
pub(crate) fn wake_cost_us() -> u64 {
    median_trip_us().map_or(*WAKE_COST_US.start(), |trip_us| {
        (trip_us / 2).clamp(*WAKE_COST_US.start(), *WAKE_COST_US.end())
    })
}

fn median_trip_us() -> std::io::Result<u64> {
    let (to, back) = (eventfd(0, EventfdFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
    let (to, back) = (Arc::new(to), Arc::new(back));
    let (asked, answers) = (to.clone(), back.clone());
    let other = std::thread::Builder::new().name("lats-wake".to_string()).spawn(move || {
        for _ in 0..WAKES_TRIED {
            let _ = wait(&asked).and_then(|()| ring(&answers));
        }
    })?;
    let mut trips = Vec::with_capacity(WAKES_TRIED);
    for _ in 0..WAKES_TRIED {
        let begun = clock::now();
        ring(&to)?;
        wait(&back)?;
        trips.push(clock::now().since(begun).as_nanos() / 1_000);
    }
    let _ = other.join();
    trips.sort_unstable();
    Ok(trips[WAKES_TRIED / 2])
}

fn ring(event: &OwnedFd) -> std::io::Result<()> {
    rustix::io::write(event, &1u64.to_ne_bytes())?;
    Ok(())
}

/// Sleeps until somebody has rung.
fn wait(event: &OwnedFd) -> std::io::Result<()> {
    rustix::io::read(event, &mut [0; 8])?;
    Ok(())
}

impl Spinner {
    pub(crate) fn new(method: SpinMethod, spin: Duration, wake_us: u64) -> Self {
        let spin_us = spin.as_nanos() / 1_000;
        let limit_us = match method {
            SpinMethod::Static => spin_us,
            // Without a limit of its own.
            _ if spin_us == 0 => 1 << LONGEST_LOG2,
            _ => spin_us,
        };
        let chosen_us = if method == SpinMethod::Static { spin_us } else { 0 };
        Self {
            method,
            spin_us: limit_us,
            chosen_us,
            gaps: [0; LONGEST_LOG2 + 2],
            count: 0,
            wake_us,
        }
    }

    /// How long to spin now.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_micros(self.chosen_us)
    }

    /// True if [`Self::note`] is of any use.
    pub(crate) fn learns(&self) -> bool {
        self.method != SpinMethod::Static
    }

    /// The thread had nothing to do for so long.
    pub(crate) fn note(&mut self, gap: Duration) {
        let micros = gap.as_nanos() / 1_000;
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.gaps[bucket.min(LONGEST_LOG2 + 1)] += 1;
        self.count += 1;
        if self.count == GAPS_PER_CHOICE {
            self.choose();
            // What was long ago counts less and less.
            self.gaps.iter_mut().for_each(|count| *count /= 2);
            self.count = 0;
        }
    }

    /// Chooses by the gaps that were noted.
    fn choose(&mut self) {
        // Of several that are as good the shortest: the one that `max_by_key` sees last.
        let times = (0..=LONGEST_LOG2).rev().filter(|log2| 1 << log2 <= self.spin_us);
        let weighed = times.map(|log2| (log2, self.saved_us(log2), self.spent_us(log2)));
        let best = match self.method {
            SpinMethod::Static => return,
            SpinMethod::CostBased => {
                let worth = weighed.filter(|(_, saved, spent)| saved > spent);
                worth.max_by_key(|(_, saved, spent)| saved - spent)
            }
            SpinMethod::LatencyOptimised => {
                let cheap = weighed.filter(|(_, saved, spent)| saved * LATENCY_FACTOR >= *spent);
                cheap.max_by_key(|(_, saved, _)| *saved)
            }
        };
        self.chosen_us =
            best.filter(|(_, saved, _)| *saved > 0).map_or(0, |(log2, _, _)| 1 << log2);
    }

    /// What spinning for 2 to the power of `log2` microseconds would have saved.
    fn saved_us(&self, log2: usize) -> u64 {
        self.gaps[..=log2].iter().sum::<u64>() * self.wake_us
    }

    /// What it would have cost: each gap to its end, or the whole time.
    fn spent_us(&self, log2: usize) -> u64 {
        let length = |bucket: usize| if bucket <= log2 { (1 << bucket) / 2 } else { 1 << log2 };
        self.gaps.iter().enumerate().map(|(bucket, count)| count * length(bucket)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(method: SpinMethod, gaps_us: &[u64]) -> u64 {
        let mut spinner = Spinner::new(method, Duration::from_micros(0), 10);
        for gap in gaps_us.iter().cycle().take(3 * GAPS_PER_CHOICE as usize) {
            spinner.note(Duration::from_micros(*gap));
        }
        spinner.time().as_nanos() / 1_000
    }

    #[test]
    fn short_gaps_are_worth_spinning_and_long_ones_are_not() {
        assert_eq!(after(SpinMethod::CostBased, &[3]), 4);
        assert_eq!(after(SpinMethod::CostBased, &[5_000]), 0);
        // One in three gaps is worth 10 us, and costs 3 times 4.
        assert_eq!(after(SpinMethod::CostBased, &[3, 5_000, 5_000]), 0);
        assert!(after(SpinMethod::LatencyOptimised, &[3, 5_000, 5_000]) >= 4);
        assert_eq!(after(SpinMethod::LatencyOptimised, &[5_000]), 0, "an idle node sleeps");
    }

    #[test]
    fn a_static_time_stays_and_a_load_that_ends_is_forgotten() {
        let mut fixed = Spinner::new(SpinMethod::Static, Duration::from_micros(50), 10);
        (0..10_000).for_each(|_| fixed.note(Duration::from_micros(5_000)));
        assert_eq!(fixed.time(), Duration::from_micros(50));
        let mut learns = Spinner::new(SpinMethod::CostBased, Duration::from_micros(20), 10);
        (0..10_000).for_each(|_| learns.note(Duration::from_micros(7)));
        assert_eq!(learns.time(), Duration::from_micros(8));
        (0..4 * GAPS_PER_CHOICE).for_each(|_| learns.note(Duration::from_micros(900)));
        assert_eq!(learns.time(), Duration::from_micros(0));
    }
}
