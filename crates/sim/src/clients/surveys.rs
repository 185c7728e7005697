//! Clients that scan all registers as they are, while these change and their primaries move
//! (HANDOVER-6).

use super::{Doing, Ledger, SimClient, sweep::Sweep};
use lats_client::core::{Answer, Ticket};
use std::collections::BTreeMap;

/// A scan of the registers that is under way.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    sweep: Sweep,
    /// By register: what was acknowledged or seen before it began.
    floors: Vec<i64>,
    /// What it has found.
    found: BTreeMap<i64, i64>,
}

impl SimClient {
    pub(super) fn start_survey(&mut self, ledger: &Ledger) {
        let floors = (0..ledger.register_count).map(|r| ledger.floor(r)).collect();
        if let Some(sweep) = self.start_sweep(&ledger.registers.scan(), None) {
            self.doing = Doing::Surveying(Survey { sweep, floors, found: BTreeMap::new() });
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
        for row in rows.iter() {
            let numbers = ledger.registers.numbers(row.row);
            if survey.found.insert(numbers[0], numbers[1]).is_some() {
                ledger.violate(format!("a scan shows register {} twice", numbers[0]));
            }
        }
        self.sweep_on(&mut survey.sweep, at, *done);
        if !survey.sweep.is_over() {
            self.doing = Doing::Surveying(survey);
            return;
        }
        for (register, floor) in (0i64..).zip(&survey.floors) {
            let value = survey.found.get(&register).copied().unwrap_or(0);
            ledger.check_read(register, value, *floor);
        }
    }
}
