//! Clients that scan all registers as they are, while these change and their primaries move (HANDOVER-6): in one range or several,
//! whose numbers come with the rows. And clients that ask what the index is like (READ-5).

use super::{Doing, Ledger, SimClient, sweep::Sweep};
use lats_catalog::statistics::Sample;
use lats_client::{
    api::{KeyRange, Scan},
    batch::ScanBatch,
    core::{Answer, Ticket},
};
use std::collections::{BTreeMap, BTreeSet};

/// A scan of the registers that is under way.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    sweep: Sweep,
    /// By register: what was acknowledged or seen before it began.
    floors: Vec<i64>,
    /// What it has found.
    found: BTreeMap<i64, i64>,
    /// Where the second range begins, and each one behind it.
    bounds: Vec<i64>,
    /// It asks for samples of the index.
    samples: bool,
    /// It asks for the first register of each range (READ-8).
    firsts: bool,
}

/// Ranges of a survey at most.
const RANGES_MAX: u64 = 4;

impl SimClient {
    pub(super) fn start_survey(&mut self, ledger: &Ledger) {
        let floors: Vec<i64> = (0..ledger.register_count).map(|r| ledger.floor(r)).collect();
        let samples = self.random.chance(1, 4);
        let count = if samples { 0 } else { self.random.below(RANGES_MAX) };
        let registers = ledger.register_count.unsigned_abs().max(1);
        let mut bounds: Vec<i64> =
            (0..count).map(|_| self.random.below(registers) as i64).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let firsts = !samples && floors.iter().sum::<i64>() % 3 == 1;
        let ranges = ranges(ledger, &bounds);
        let scan = Scan { ranges, first_of_range: firsts, ..ledger.registers.scan() };
        let opened = match samples {
            true => self.start_samples(&Scan { limit: Some(SAMPLES), ..scan }),
            false => self.start_sweep(&scan, None),
        };
        if let Some(sweep) = opened {
            let found = BTreeMap::new();
            self.doing = Doing::Surveying(Survey { sweep, floors, found, bounds, samples, firsts });
        }
    }

    /// Every register is shown once, as it was when the scan began or later.
    pub(super) fn on_survey_answer(
        &mut self,
        mut survey: Survey,
        ticket: Ticket,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let Some(at) = survey.sweep.position(ticket) else {
            self.doing = Doing::Surveying(survey);
            return;
        };
        let Answer::Batch { rows, done } = answer else {
            self.give_up_sweep(core::mem::take(&mut survey.sweep), at);
            return self.check_answer(&Doing::Surveying(survey), answer, ledger);
        };
        match survey.samples {
            true => check_samples(rows, ledger),
            false => survey.take(rows, ledger),
        }
        self.sweep_on(&mut survey.sweep, at, *done);
        if !survey.sweep.is_over() {
            self.doing = Doing::Surveying(survey);
            return;
        }
        if survey.samples {
            return;
        }
        if survey.firsts {
            return survey.check_firsts(ledger);
        }
        for (register, floor) in (0i64..).zip(&survey.floors) {
            let value = survey.found.get(&register).copied().unwrap_or(0);
            ledger.check_read(register, value, *floor);
        }
    }
}

/// Places of a fragment that are asked for.
const SAMPLES: u64 = 4;

/// Ranges that meet at the bounds, and have all registers.
fn ranges(ledger: &Ledger, bounds: &[i64]) -> Vec<KeyRange> {
    let keys: Vec<Vec<u8>> = bounds.iter().map(|bound| ledger.registers.key(*bound)).collect();
    let lower = std::iter::once(Vec::new()).chain(keys.iter().cloned());
    let upper = keys.iter().cloned().map(Some).chain(std::iter::once(None));
    lower.zip(upper).map(|(lower, upper)| KeyRange { lower, upper }).collect()
}

impl Survey {
    /// The range of a register.
    fn range_of(&self, register: i64) -> usize {
        self.bounds.partition_point(|bound| *bound <= register)
    }

    /// Each range in which there was a register for certain shows one; what is shown is as it was when the scan began, or later.
    fn check_firsts(&self, ledger: &mut Ledger) {
        let shown: BTreeSet<usize> = self.found.keys().map(|r| self.range_of(*r)).collect();
        for (register, floor) in (0i64..).zip(&self.floors) {
            if *floor > 0 && !shown.contains(&self.range_of(register)) {
                ledger.violate(format!("nothing is shown of the range with register {register}"));
            }
            if let Some(value) = self.found.get(&register) {
                ledger.check_read(register, *value, *floor);
            }
        }
    }

    fn take(&mut self, rows: &ScanBatch, ledger: &mut Ledger) {
        for row in rows.iter() {
            let numbers = ledger.registers.numbers(row.row);
            let range = self.range_of(numbers[0]);
            if row.range as usize != range {
                let (register, told) = (numbers[0], row.range);
                ledger.violate(format!("register {register} is in range {range}, not in {told}"));
            }
            if self.found.insert(numbers[0], numbers[1]).is_some() {
                ledger.violate(format!("a scan shows register {} twice", numbers[0]));
            }
        }
    }
}

/// Samples are entries of the index in its order, each with what its neighbours are like: registers differ by their keys.
fn check_samples(rows: &ScanBatch, ledger: &mut Ledger) {
    let mut before: Option<Vec<u8>> = None;
    let (mut total, mut places) = (0, 0);
    for row in rows.iter() {
        let Some(sample) = Sample::decode(row.row) else {
            return ledger.violate("a sample that cannot be read".to_string());
        };
        places += 1;
        total = sample.entries;
        let known = (0..ledger.register_count).any(|r| ledger.registers.key(r) == row.index_key);
        let sorted = before.as_deref().is_none_or(|before| before < row.index_key);
        let differ = sample.changes == [sample.pairs];
        let image = sample.image.is_empty()
            || ledger.registers.key(ledger.registers.numbers(&sample.image)[0]) == row.index_key;
        if !(known && sorted && differ && image) {
            return ledger.violate(format!("a sample of registers: {sample:?}"));
        }
        before = Some(row.index_key.to_vec());
    }
    // Each place stands for an entry, and no register has two.
    if places > SAMPLES || places > total || total > ledger.register_count.unsigned_abs() {
        ledger.violate(format!("{places} places of an index with {total} entries"));
    }
}
