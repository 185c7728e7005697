//! Model C: numbers of lives, nonces, and directories that are empty, old, copied or used twice.
//!
//! A node's processes ask to be taken in; the group agrees on (number, nonce); a process may act once the group has taken it in.
//! The rules are LIFE-1 to LIFE-3, DEATH-2 to DEATH-4 and REFORM-5; N-1 to N-5 and X-3 of the design for the command `IssueLife`.
//!
//! Left out:
//! - The group is one log: what a majority has agreed on, and what a new group of survivors knows of it.
//! - Links and greetings: a process reaches the group or does not exist for it.
//! - Rows: a directory is the newest life that it names, a promise, and the machine that it lies on.
//! - Times: removal for silence happens at any moment to a life that is not heard.

use crate::check::{Told, always};
use stateright::{Model, Property};

/// Processes that may be started.
const PROCESSES: usize = 4;

/// A mistake that somebody might make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A life is its number; nonces are not compared.
    NumberWithoutNonce,
    /// A process that asks displaces a member that lives.
    NewerDisplacesLiving,
    /// The lock of a copied directory certifies the end of the life that it names.
    CopyCertifies,
    /// A person's word may be used again.
    WordTwice,
}

impl Planted {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::NumberWithoutNonce,
        Self::NewerDisplacesLiving,
        Self::CopyCertifies,
        Self::WordTwice,
    ];

    /// As a person writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NumberWithoutNonce => "number-without-nonce",
            Self::NewerDisplacesLiving => "newer-displaces-living",
            Self::CopyCertifies => "copy-certifies",
            Self::WordTwice => "word-twice",
        }
    }
}

/// A node's directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Directory {
    /// The newest life that it names; 0: it is empty.
    pub number: u8,
    /// The process of that life.
    pub nonce: u8,
    /// It lies on another machine than the first one.
    pub is_copy: bool,
    /// The life that it names wrote it there.
    pub was_copy: bool,
}

/// A process of the node; its nonce is its place in the list, plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// It runs.
    pub is_alive: bool,
    /// The others hear it.
    pub is_heard: bool,
    /// Its number, which is on its disk before it says anything.
    pub number: u8,
    /// Its directory named this process before.
    pub former: Option<u8>,
    /// Its directory lies on another machine.
    pub is_copy: bool,
    /// Its directory lies where the former life had it.
    pub is_in_place: bool,
    /// It has been told that it is a member.
    pub is_member: bool,
    /// It was told that it is over, or has found that out.
    pub is_over: bool,
}

/// What the group has agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Agreed {
    /// The life of the node that is a member: number and nonce.
    pub member: Option<(u8, u8)>,
    /// The largest number that was ever agreed on.
    pub number: u8,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The first machine's directory.
    pub directory: Directory,
    /// Copies of it, as they were made.
    pub copies: Vec<Directory>,
    /// Processes, in the order in which they were started.
    pub processes: Vec<Process>,
    /// What the majority has agreed on.
    pub agreed: Agreed,
    /// What the survivors know of it; an agreement may be lost with its majority.
    pub known: Agreed,
    /// The life that a person's word names, once it was given.
    pub word: Option<u8>,
    /// The word was used.
    pub word_used: bool,
    /// Majorities that may be lost, copies, empty disks, cuts, words that may be used again.
    pub events: [u8; 5],
    /// Two processes have had the same number at the group.
    pub ambiguous: bool,
    /// A member that lives and is heard was displaced.
    pub displaced: bool,
    /// A word ended a life that it does not name.
    pub misused: bool,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A process starts in the first directory, or in a copy.
    Start(Option<u8>),
    /// A process ends.
    End(u8),
    /// A process asks to be taken in, and the majority agrees.
    Issue(u8),
    /// A process hears that it was taken in.
    Hear(u8),
    /// The survivors hear of what was agreed on.
    Learn,
    /// The majority that has agreed is gone; the group goes on with what survivors know.
    LoseMajority,
    /// The member is not heard any more.
    Cut(u8),
    /// It is heard again.
    Heal(u8),
    /// A member that is not heard is removed when its leases are over.
    Remove,
    /// The directory is copied to another machine.
    Copy,
    /// The disk is replaced by an empty one.
    Empty,
    /// An older copy is put back.
    PutBack(u8),
    /// A person says that the member's life is over.
    GiveWord,
    /// The word is used.
    UseWord,
}

/// Model C.
#[derive(Clone, Copy, Debug)]
pub struct Lives {
    /// Majorities lost, copies, empty disks, cuts, second uses of a word.
    pub events: [u8; 5],
    /// A mistake in the rules.
    pub planted: Option<Planted>,
}

impl Lives {
    /// The run that all tests make.
    pub const ALL_EVENTS: [u8; 5] = [1, 1, 1, 1, 1];

    fn errs(self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }

    fn nonce(at: usize) -> u8 {
        at as u8 + 1
    }

    /// The process may act for the node: links and blocks take what it sends.
    fn acts(self, s: &State, at: usize) -> bool {
        let process = &s.processes[at];
        let is_named = s.agreed.member.is_some_and(|(number, nonce)| {
            let same = nonce == Self::nonce(at) || self.errs(Planted::NumberWithoutNonce);
            number == process.number && same
        });
        // Who hears that it is over ends itself.
        process.is_alive && process.is_member && !process.is_over && is_named
    }

    /// DEATH-2: its directory is where it was, and the lock is free: the former process has ended.
    fn certifies(self, s: &State, at: usize, nonce: u8) -> bool {
        let process = &s.processes[at];
        let is_named = process.former == Some(nonce);
        let is_sure = process.is_in_place || self.errs(Planted::CopyCertifies);
        is_named && is_sure
    }

    /// The former member is out of the way.
    fn may_take_in(self, s: &State, at: usize) -> bool {
        let process = &s.processes[at];
        let is_free = s.agreed.member.is_none_or(|(_, nonce)| {
            self.certifies(s, at, nonce) || self.errs(Planted::NewerDisplacesLiving)
        });
        let is_newer = process.number > s.agreed.number;
        process.is_alive && process.is_heard && !process.is_over && is_newer && is_free
    }

    fn start(s: &mut State, copy: Option<u8>) {
        let nonce = Self::nonce(s.processes.len());
        let directory = match copy {
            Some(at) => &mut s.copies[usize::from(at)],
            None => &mut s.directory,
        };
        // LIFE-2: one more than the directory knows; an empty one asks the others.
        let number = if directory.number == 0 { s.agreed.number } else { directory.number } + 1;
        let former = (directory.number > 0).then_some(directory.nonce);
        let is_copy = directory.is_copy;
        let is_in_place = directory.was_copy == is_copy;
        directory.was_copy = is_copy;
        (directory.number, directory.nonce) = (number, nonce);
        s.processes.push(Process {
            is_alive: true,
            is_heard: true,
            number,
            former,
            is_copy,
            is_in_place,
            is_member: false,
            is_over: false,
        });
    }

    fn issue(self, s: &mut State, at: usize) {
        if let Some((_, nonce)) = s.agreed.member {
            let former = &s.processes[usize::from(nonce) - 1];
            s.displaced |= former.is_alive && former.is_heard;
        }
        let number = s.processes[at].number;
        s.agreed = Agreed { member: Some((number, Self::nonce(at))), number };
    }
}

impl Model for Lives {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let agreed = Agreed { member: None, number: 0 };
        vec![State {
            directory: Directory::default(),
            copies: Vec::new(),
            processes: Vec::new(),
            agreed,
            known: agreed,
            word: None,
            word_used: false,
            events: self.events,
            ambiguous: false,
            displaced: false,
            misused: false,
        }]
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        let [majorities, copies, empties, cuts, _] = s.events;
        if s.processes.len() < PROCESSES {
            // The lock: one process at a time in a directory.
            let is_locked =
                |copy: bool| s.processes.iter().any(|p| p.is_alive && p.is_copy == copy);
            if !is_locked(false) {
                actions.push(Action::Start(None));
            }
            let all = 0..s.copies.len() as u8;
            actions.extend(all.filter(|_| !is_locked(true)).map(|at| Action::Start(Some(at))));
        }
        for (at, process) in s.processes.iter().enumerate() {
            let id = at as u8;
            if process.is_alive {
                actions.push(Action::End(id));
            }
            if self.may_take_in(s, at) {
                actions.push(Action::Issue(id));
            }
            let is_named = s.agreed.member == Some((process.number, Self::nonce(at)));
            let takes_it = is_named
                || self.errs(Planted::NumberWithoutNonce)
                    && s.agreed.member.is_some_and(|(number, _)| number == process.number);
            if process.is_alive && process.is_heard && takes_it && !process.is_member {
                actions.push(Action::Hear(id));
            }
            match process.is_heard {
                true if cuts > 0 && process.is_alive => actions.push(Action::Cut(id)),
                false => actions.push(Action::Heal(id)),
                true => {}
            }
        }
        let member = s.agreed.member.map(|(_, nonce)| &s.processes[usize::from(nonce) - 1]);
        if member.is_some_and(|p| !p.is_alive || !p.is_heard) {
            actions.push(Action::Remove);
            if s.word.is_none() {
                actions.push(Action::GiveWord);
            }
        }
        let again = self.errs(Planted::WordTwice) && s.events[4] > 0;
        if s.word.is_some() && s.agreed.member.is_some() && (!s.word_used || again) {
            actions.push(Action::UseWord);
        }
        if s.known != s.agreed {
            actions.push(Action::Learn);
            if majorities > 0 {
                actions.push(Action::LoseMajority);
            }
        }
        if copies > 0 && s.directory.number > 0 {
            actions.push(Action::Copy);
        }
        let is_free = !s.processes.iter().any(|p| p.is_alive && !p.is_copy);
        if is_free && empties > 0 && s.directory.number > 0 {
            actions.push(Action::Empty);
        }
        if is_free {
            actions.extend((0..s.copies.len() as u8).map(Action::PutBack));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut s = state.clone();
        let n = usize::from;
        match action {
            Action::Start(copy) => Self::start(&mut s, copy),
            Action::End(at) => s.processes[n(at)].is_alive = false,
            Action::Issue(at) => self.issue(&mut s, n(at)),
            Action::Hear(at) => s.processes[n(at)].is_member = true,
            Action::Learn => s.known = s.agreed,
            Action::LoseMajority => {
                s.events[0] -= 1;
                // N-4: numbers begin above all that anyone present has seen.
                let present = s.processes.iter().filter(|p| p.is_alive && p.is_heard);
                let seen = present.map(|p| p.number).max().unwrap_or_default();
                let known = s.known;
                s.agreed = Agreed { number: known.number.max(seen), ..known };
                s.known = s.agreed;
            }
            Action::Cut(at) => {
                s.events[3] -= 1;
                s.processes[n(at)].is_heard = false;
            }
            Action::Heal(at) => s.processes[n(at)].is_heard = true,
            Action::Remove => s.agreed.member = None,
            Action::Copy => {
                s.events[1] -= 1;
                s.copies.push(Directory { is_copy: true, ..s.directory });
            }
            Action::Empty => {
                s.events[2] -= 1;
                s.directory = Directory::default();
            }
            Action::PutBack(at) => s.directory = Directory { is_copy: false, ..s.copies[n(at)] },
            Action::GiveWord => s.word = s.agreed.member.map(|(_, nonce)| nonce),
            Action::UseWord => {
                let meant = s.agreed.member.map(|(_, nonce)| nonce);
                if meant == s.word || self.errs(Planted::WordTwice) {
                    s.misused |= meant != s.word;
                    s.agreed.member = None;
                }
                s.events[4] -= u8::from(s.word_used);
                s.word_used = true;
            }
        }
        // A process that is heard, and whose life is not the agreed one, is told so.
        for at in 0..s.processes.len() {
            let process = s.processes[at];
            let is_named = s.agreed.member == Some((process.number, Self::nonce(at)));
            let is_late = process.number <= s.agreed.number && !is_named;
            let spared = self.errs(Planted::NumberWithoutNonce)
                && s.agreed.member.is_some_and(|(number, _)| number == process.number);
            s.processes[at].is_over |= process.is_heard && is_late && !spared;
        }
        let acting = (0..s.processes.len()).filter(|at| self.acts(&s, *at)).count();
        s.ambiguous |= acting > 1;
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            always("one process at most acts for a node", |_, s: &State| !s.ambiguous),
            always("a member that is heard is displaced by nobody", |_, s: &State| !s.displaced),
            always("a person's word ends the life that it names, and no other", |_, s: &State| {
                !s.misused
            }),
        ]
    }
}

impl Told for Lives {
    fn words(&self, action: &Action) -> String {
        match *action {
            Action::Start(None) => "a process starts".to_string(),
            Action::Start(Some(at)) => format!("a process starts in copy {at} of the directory"),
            Action::End(at) => format!("process {at} ends"),
            Action::Issue(at) => format!("the group agrees on the life of process {at}"),
            Action::Hear(at) => format!("process {at} hears that it is a member"),
            Action::Learn => "the others learn what was agreed on".to_string(),
            Action::LoseMajority => "the majority is gone; survivors go on".to_string(),
            Action::Cut(at) => format!("process {at} is not heard any more"),
            Action::Heal(at) => format!("process {at} is heard again"),
            Action::Remove => "the member is removed for silence".to_string(),
            Action::Copy => "the directory is copied to another machine".to_string(),
            Action::Empty => "the disk is replaced".to_string(),
            Action::PutBack(at) => format!("copy {at} is put back"),
            Action::GiveWord => "a person says that the member's life is over".to_string(),
            Action::UseWord => "the word is used".to_string(),
        }
    }

    fn picture(&self, s: &State) -> String {
        let mut lines = vec![format!("then member {:?}, word {:?}", s.agreed.member, s.word)];
        let all = s.processes.iter().enumerate();
        lines.extend(all.map(|(at, p)| format!("  {at} (nonce {}): {p:?}", at + 1)));
        lines.join("\n")
    }
}
