//! Actions and states of model A, for a person.

use super::{
    Action, Command, Life, Membership, Set, State,
    config::{each, era},
    state::{Being, Role},
};
use crate::check::Told;

fn list(set: Set) -> String {
    let all: Vec<String> = each(set).map(|x| x.to_string()).collect();
    format!("{{{}}}", all.join(", "))
}

fn command(command: Command) -> String {
    match command {
        Command::Begin => "a leader begins".to_string(),
        Command::Remove { life, certified: true } => format!("{life} is out, its end is certified"),
        Command::Remove { life, certified: false } => format!("{life} is out, it was silent"),
        Command::Announce(life) => format!("{life} is filled, and will vote"),
        Command::Add(life) => format!("{life} votes"),
        Command::Full(life) => format!("{life} is full"),
        Command::Second(Some(life)) => format!("{life} has a second vote"),
        Command::Second(None) => "nobody has a second vote".to_string(),
        Command::ShorterLease => "leases are short".to_string(),
        Command::Reform(gone) => format!("a new group without {}", list(gone)),
    }
}

fn end(being: Being) -> &'static str {
    match being {
        Being::Silent => "ends, and nobody can say so",
        Being::Certified => "ends, and its guardian can say so",
        Being::Testified => "ends, and its guardian has its testament",
        Being::Unborn | Being::Alive | Being::Paused => "goes on",
    }
}

fn line(at: usize, life: &Life) -> Option<String> {
    let being = match life.being {
        Being::Unborn => return None,
        Being::Alive => "lives",
        Being::Paused => "is paused",
        Being::Silent => "dead, silent",
        Being::Certified => "dead, certified",
        Being::Testified => "dead, with testament",
    };
    let role = match life.role {
        Role::Follower => "",
        Role::Candidate => ", asks for votes",
        Role::Leader => ", leads",
    };
    let log: Vec<String> = life.log.iter().map(|entry| command(entry.command)).collect();
    Some(format!(
        "  {at}: {being}{role}; era {}, term {}; log [{}], {} agreed, {} in use, {} on disk; lease {}, rows {}, knows the ends of {}",
        era(life.term),
        life.term & 15,
        log.join(" | "),
        life.agreed,
        life.installed,
        life.disk,
        life.lease,
        life.rows,
        list(life.ends)
    ))
}

impl Told for Membership {
    fn words(&self, action: &Action) -> String {
        match *action {
            Action::Tick => "time passes".to_string(),
            Action::Campaign(life) => format!("{life} asks for votes"),
            Action::Vote { by, to, arrives: true } => format!("{by} elects {to}"),
            Action::Vote { by, to, .. } => format!("{by} elects {to}, and its vote is under way"),
            Action::LateVote { by, to } => format!("the vote of {by} reaches {to}"),
            Action::GiveUp(life) => format!("{life} leads no more"),
            Action::Round(life) => format!("{life} grants leases to all whom it reaches"),
            Action::Propose(life, what) => format!("{life} proposes: {}", command(what)),
            Action::Sync { from, to, confirmed: true } => {
                format!("{to} has the log of {from}, and says so")
            }
            Action::Sync { from, to, .. } => {
                format!("{to} has the log of {from}, and its word is under way")
            }
            Action::LateConfirm { by, to } => format!("the word of {by} reaches {to}"),
            Action::Keep(life) => format!("the disk of {life} has what was agreed on"),
            Action::Acknowledge(life) => format!("{life} acknowledges a commit"),
            Action::Hear { by, of } => format!("{by} hears that {of} has ended"),
            Action::Reform(life) => format!("{life} forms the group anew"),
            Action::BeginRound(life) => format!("{life} begins a round under its lease"),
            Action::Die(life, being) => format!("{life} {}", end(being)),
            Action::Cut(part) => format!("{} are cut off", list(part)),
            Action::Heal => "the network is whole again".to_string(),
            Action::Pause(life) => format!("{life} is paused"),
            Action::Resume(life) => format!("{life} goes on"),
            Action::GuardianDies(life) => format!("the guardian of {life} dies"),
            Action::NewGuardian(life) => format!("{life} has a new guardian"),
            Action::Return { of, life } => format!("{life} starts with the disk of {of}"),
        }
    }

    fn picture(&self, s: &State) -> String {
        let mut lines: Vec<String> =
            s.lives.iter().enumerate().filter_map(|(at, life)| line(at, life)).collect();
        lines
            .insert(0, format!("then {} acknowledged, cut off: {}", s.acknowledged, list(s.apart)));
        let serving: Vec<String> =
            (0..s.lives.len()).filter(|x| self.serves(s, *x)).map(|x| x.to_string()).collect();
        lines.push(format!("  may answer: {}", serving.join(", ")));
        lines.join("\n")
    }
}
