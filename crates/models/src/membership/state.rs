//! A state of model A: every life with what it knows, the network, and what is left of the faults.

use super::{
    Command, Config, Entry, Scenario, Set,
    config::{each, era, has},
};

/// How a process has ended, or that it has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Being {
    /// It was never started.
    Unborn,
    /// It runs.
    Alive,
    /// It is descheduled, or its machine suspended: it does nothing, and time passes.
    Paused,
    /// It has ended, and nobody can say so.
    Silent,
    /// It has ended, and that is certified.
    Certified,
    /// The same, and its testament can be read (stage 2).
    Testified,
}

/// What a voter is for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It follows.
    Follower,
    /// It asks for votes.
    Candidate,
    /// It leads.
    Leader,
}

/// One process. Times are what is left, on a clock that is right.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Life {
    /// Does it run?
    pub being: Being,
    /// A guardian watches it.
    pub is_guarded: bool,
    /// It had another guardian before.
    pub is_reguarded: bool,
    /// Its clock's rate against a right one, in thousandths.
    pub rate: u16,
    /// Its term; the upper half is the number of its group.
    pub term: u8,
    /// Whom it has elected in this term.
    pub voted: Option<u8>,
    /// Who has elected it.
    pub votes: Set,
    /// What it is.
    pub role: Role,
    /// Its log.
    pub log: Vec<Entry>,
    /// How much of that is agreed on.
    pub agreed: u8,
    /// The view that its blocks use.
    pub installed: u8,
    /// What its disk knows.
    pub disk: u8,
    /// Which ends it holds certificates of.
    pub ends: Set,
    /// Its lease.
    pub lease: u16,
    /// What may be left of leases of the leader that it has heard last.
    pub heard: u16,
    /// Leader: its own lease.
    pub led: u16,
    /// Leader: what may be left of earlier leaders' leases.
    pub old: u16,
    /// Leader: what may be left of the leases that it has granted.
    pub granted: Vec<u16>,
    /// Leader: whose newest confirmation has not come.
    pub unconfirmed: Set,
    /// How many acknowledgements its rows have.
    pub rows: u8,
    /// It is in a round that began under a lease.
    pub in_round: bool,
    /// The life whose disk it has, if it came back with one.
    pub continues: Option<u8>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The lives.
    pub lives: Vec<Life>,
    /// Lives that the others do not reach.
    pub apart: Set,
    /// How many commits were acknowledged.
    pub acknowledged: u8,
    /// The log up to the view of the newest acknowledgement.
    pub acknowledged_in: Vec<Entry>,
    /// Deaths that may happen yet.
    pub deaths: u8,
    /// Cuts that may happen yet.
    pub cuts: u8,
    /// Pauses that may happen yet.
    pub pauses: u8,
    /// Guardians that may die yet.
    pub guardians: u8,
    /// Disks that may come back yet.
    pub returns: u8,
    /// Something was acknowledged beside what had been acknowledged before.
    pub two_branches: bool,
    /// A group was formed anew by survivors that did not know of an acknowledging view.
    pub ignorant: bool,
    /// A leader has overwritten what was agreed on.
    pub overwritten: bool,
}

impl State {
    /// Everybody lives, and life 0 leads.
    pub fn first(scenario: &Scenario, rates: &[u16]) -> Self {
        let all = scenario.founders() + scenario.spares;
        let founder = |life: usize| life < scenario.founders();
        let lives = (0..all)
            .map(|life| Life {
                being: if founder(life) { Being::Alive } else { Being::Unborn },
                is_guarded: true,
                is_reguarded: false,
                rate: rates.get(life).copied().unwrap_or(1_000),
                term: u8::from(founder(life)),
                voted: founder(life).then_some(0),
                votes: 0,
                role: if life == 0 { Role::Leader } else { Role::Follower },
                log: Vec::new(),
                agreed: 0,
                installed: 0,
                disk: 0,
                ends: 0,
                lease: 0,
                heard: 0,
                led: 0,
                old: 0,
                granted: vec![0; all],
                unconfirmed: 0,
                rows: 0,
                in_round: false,
                continues: None,
            })
            .collect();
        Self {
            lives,
            apart: 0,
            acknowledged: 0,
            acknowledged_in: Vec::new(),
            deaths: scenario.deaths,
            cuts: scenario.cuts,
            pauses: scenario.pauses,
            guardians: scenario.guardians,
            returns: scenario.returns,
            two_branches: false,
            ignorant: false,
            overwritten: false,
        }
    }

    /// It runs, and is not paused.
    pub fn acts(&self, life: usize) -> bool {
        self.lives[life].being == Being::Alive
    }

    /// Those who run.
    pub fn acting(&self) -> Set {
        (0..self.lives.len()).filter(|life| self.acts(*life)).fold(0, |set, life| set | 1 << life)
    }

    /// Packets pass between them.
    pub fn are_linked(&self, one: usize, other: usize) -> bool {
        has(self.apart, one) == has(self.apart, other)
    }

    /// Those who run and whom this one reaches, itself included.
    pub fn reached(&self, by: usize) -> Set {
        each(self.acting())
            .filter(|life| self.are_linked(by, *life))
            .fold(0, |set, life| set | 1 << life)
    }

    /// Its end is a fact that can be certified.
    pub fn is_certain(&self, life: usize) -> bool {
        matches!(self.lives[life].being, Being::Certified | Being::Testified)
    }

    /// It has ended.
    pub fn is_over(&self, life: usize) -> bool {
        self.is_certain(life) || self.lives[life].being == Being::Silent
    }

    /// A leader that this life can hear.
    pub fn leader_of(&self, life: usize) -> Option<usize> {
        each(self.reached(life)).find(|other| {
            let leader = &self.lives[*other];
            leader.role == Role::Leader && leader.term >= self.lives[life].term
        })
    }

    /// What was agreed on in one era is the same in all lives' logs.
    pub fn logs_agree(&self) -> bool {
        if self.overwritten {
            return false;
        }
        let agreed = |life: &Life| life.log[..usize::from(life.agreed)].to_vec();
        let logs: Vec<Vec<Entry>> = self.lives.iter().map(agreed).collect();
        let newest_era = |log: &Vec<Entry>| log.last().map_or(0, |entry| era(entry.term));
        logs.iter().enumerate().all(|(at, one)| {
            logs[at + 1..].iter().filter(|other| newest_era(one) == newest_era(other)).all(
                |other| {
                    let both = one.len().min(other.len());
                    one[..both] == other[..both]
                },
            )
        })
    }
}

impl Life {
    /// Term and length of its log: the larger one is newer.
    pub fn newest(&self) -> (u8, usize) {
        (self.log.last().map_or(0, |entry| entry.term), self.log.len())
    }

    /// What is agreed on, as it knows.
    pub fn config(&self, founded: Config) -> Config {
        founded.after(&self.log[..usize::from(self.agreed)])
    }

    /// The view that its blocks use.
    pub fn view(&self, founded: Config) -> Config {
        founded.after(&self.log[..usize::from(self.installed)])
    }

    /// With everything in its log.
    pub fn with_log(&self, founded: Config) -> Config {
        founded.after(&self.log)
    }

    /// What its disk says, if it came back with one.
    pub fn on_disk(&self) -> &[Entry] {
        &self.log[..usize::from(self.disk)]
    }

    /// All of its log is agreed on.
    pub fn has_settled(&self) -> bool {
        usize::from(self.agreed) == self.log.len()
            && self.log.last().is_none_or(|entry| entry.term == self.term)
    }

    /// Its log has a removal of this life that it has not seen agreed on.
    pub fn is_removing(&self, life: usize) -> bool {
        self.log[usize::from(self.agreed)..].iter().any(
            |entry| matches!(entry.command, Command::Remove { life: gone, .. } if usize::from(gone) == life),
        )
    }

    /// It is a follower from here on.
    pub fn follow(&mut self) {
        self.role = Role::Follower;
        self.votes = 0;
        self.led = 0;
        self.old = 0;
        self.unconfirmed = 0;
        self.granted.fill(0);
    }
}

impl Life {
    fn clocks(&self) -> impl Iterator<Item = u16> {
        let own = [self.lease, self.heard, self.led, self.old];
        own.into_iter().chain(self.granted.iter().copied())
    }

    /// Time changes something for it.
    pub fn waits(&self) -> bool {
        self.clocks().any(|left| left > 0)
    }

    /// Its next deadline.
    pub fn next_deadline(&self) -> Option<u16> {
        self.clocks().filter(|left| *left > 0).min()
    }

    /// So much time passes.
    pub fn pass(&mut self, step: u16) {
        let own = [&mut self.lease, &mut self.heard, &mut self.led, &mut self.old];
        for left in own.into_iter().chain(&mut self.granted) {
            *left = left.saturating_sub(step);
        }
        self.in_round &= self.being == Being::Paused;
    }

    /// It is dead: nothing is left but what disks and testaments tell.
    pub fn end(&mut self, being: Being) {
        self.follow();
        (self.being, self.lease, self.heard, self.ends) = (being, 0, 0, 0);
        (self.in_round, self.is_guarded, self.is_reguarded) = (false, false, false);
    }
}
