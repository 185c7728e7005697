//! Clients that scan all registers as they are, while these change and their primaries move
//! (HANDOVER-6).

use super::{Doing, Ledger, SimClient};
use lats_client::core::{Answer, ScanHandle, Ticket};
use std::collections::BTreeMap;

/// A scan of the registers that is under way.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    /// The fragments that are not at their end.
    open: Vec<ScanHandle>,
    /// By register: what was acknowledged or seen before it began.
    floors: Vec<i64>,
    /// What it has found.
    found: BTreeMap<i64, i64>,
}

impl SimClient {
    pub(super) fn start_survey(&mut self, ledger: &Ledger) {
        let floors = (0..ledger.register_count).map(|r| ledger.floor(r)).collect();
        let mut survey = Survey { open: Vec::new(), floors, found: BTreeMap::new() };
        let scan = ledger.registers.scan();
        for fragment in 0..self.core.fragment_count(scan.table) {
            let fragment = lats_base::FragmentId::new(fragment);
            match self.core.open_scan(&scan, fragment, None, None) {
                Ok((handle, _)) => survey.open.push(handle),
                Err(_) => return self.close_survey(&survey),
            }
        }
        self.doing = Doing::Surveying(survey);
    }

    fn close_survey(&mut self, survey: &Survey) {
        survey.open.iter().for_each(|handle| self.core.close_scan(*handle));
    }

    /// Every register is shown once, as it was when the scan began or later.
    pub(super) fn on_survey_answer(
        &mut self,
        mut survey: Survey,
        ticket: Ticket,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let Some(at) = survey.open.iter().position(|h| h.ticket() == ticket) else {
            self.doing = Doing::Surveying(survey);
            return;
        };
        let Answer::Batch { rows, done } = answer else {
            survey.open.swap_remove(at);
            self.close_survey(&survey);
            return self.check_answer(&Doing::Surveying(survey), answer, ledger);
        };
        for row in rows.iter() {
            let numbers = ledger.registers.numbers(row.row);
            if survey.found.insert(numbers[0], numbers[1]).is_some() {
                ledger.violate(format!("a scan shows register {} twice", numbers[0]));
            }
        }
        match done {
            true => drop(survey.open.swap_remove(at)),
            false => drop(self.core.next_batch(survey.open[at])),
        }
        if !survey.open.is_empty() {
            self.doing = Doing::Surveying(survey);
            return;
        }
        for (register, floor) in (0i64..).zip(&survey.floors) {
            let value = survey.found.get(&register).copied().unwrap_or(0);
            ledger.check_read(register, value, *floor);
        }
    }
}
