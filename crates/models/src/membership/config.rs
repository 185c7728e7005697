//! Commands that the group agrees on, and what a log of them says: who votes, who is a full replica.

use super::Set;

/// What the group agrees on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// A new leader's first entry.
    Begin,
    /// This life is no member any more.
    Remove {
        /// Who.
        life: u8,
        /// Its end was certified.
        certified: bool,
    },
    /// This life is filled, and will vote (stage 2).
    Announce(u8),
    /// This life votes; in stage 1 it is a member from here on.
    Add(u8),
    /// This life is a full replica.
    Full(u8),
    /// This life carries a second vote, or nobody does (stage 2).
    Second(Option<u8>),
    /// Leases are short from here on.
    ShorterLease,
    /// A new group begins without these.
    Reform(Set),
}

/// An entry of a log; the group's number is in the upper half of the term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// When it was proposed.
    pub term: u8,
    /// What it says.
    pub command: Command,
}

/// How often the group was formed anew.
pub fn era(term: u8) -> u8 {
    term >> 4
}

/// What a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Members that hold rows or will, and the witness.
    pub members: Set,
    /// Who votes.
    pub voters: Set,
    /// Full replicas.
    pub full: Set,
    /// Who will vote.
    pub announced: Set,
    /// Who has a second vote.
    pub second: Option<u8>,
    /// Leases are short.
    pub short: bool,
}

/// True if the set has this life.
pub fn has(set: Set, life: usize) -> bool {
    set & 1 << life != 0
}

/// The lives of a set.
pub fn each(set: Set) -> impl Iterator<Item = usize> {
    (0..8).filter(move |life| has(set, *life))
}

impl Config {
    /// The founders: all vote, those with data are full.
    pub fn founded(members: Set, full: Set) -> Self {
        Self { members, voters: members, full, announced: 0, second: None, short: false }
    }

    /// After these entries.
    pub fn after(mut self, log: &[Entry]) -> Self {
        log.iter().for_each(|entry| self.apply(entry.command));
        self
    }

    fn apply(&mut self, command: Command) {
        match command {
            Command::Begin => {}
            Command::Remove { life, .. } => self.strike(1 << life),
            Command::Announce(life) => {
                self.members |= 1 << life;
                self.announced |= 1 << life;
            }
            Command::Add(life) => {
                self.members |= 1 << life;
                self.voters |= 1 << life;
                self.announced &= !(1 << life);
            }
            Command::Full(life) => self.full |= 1 << life,
            Command::Second(holder) => self.second = holder,
            Command::ShorterLease => self.short = true,
            Command::Reform(gone) => self.strike(gone),
        }
    }

    fn strike(&mut self, gone: Set) {
        self.members &= !gone;
        self.voters &= !gone;
        self.full &= !gone;
        self.announced &= !gone;
        self.second = self.second.filter(|holder| !has(gone, usize::from(*holder)));
    }

    /// The votes that these lives have.
    pub fn votes(&self, of: Set) -> u32 {
        let second = self.second.is_some_and(|holder| has(of, usize::from(holder)));
        (self.voters & of).count_ones() + u32::from(second)
    }

    /// Who holds rows or will.
    pub fn data(&self, witness: Set) -> Set {
        self.members & !witness
    }
}
