//! Actions and states of model B, for a person.

use super::{Action, Being, Restarts, Set, State};
use crate::check::Told;

fn list(set: Set) -> String {
    let all: Vec<String> =
        (0..8).filter(|at| set & 1 << at != 0).map(|at: u8| at.to_string()).collect();
    format!("{{{}}}", all.join(", "))
}

impl Told for Restarts {
    fn words(&self, action: &Action) -> String {
        match *action {
            Action::Hold { of, group } => {
                format!("group {group} holds its part of transaction {of}")
            }
            Action::Advance => "the next epoch begins".to_string(),
            Action::Complete => "the next epoch is complete".to_string(),
            Action::Hear(node) => format!("{node} hears which epoch is complete"),
            Action::Seal(node) => format!("{node} seals what is complete"),
            Action::Keep(node) => format!("the disk of {node} knows its view"),
            Action::Remove(node) => format!("a view without {node}"),
            Action::Join(node) => format!("a new life of {node} is taken in"),
            Action::Fill(node) => format!("{node} has all rows"),
            Action::Full(node) => format!("{node} is full"),
            Action::Die(node) => format!("{node} dies"),
            Action::End(node) => format!("{node} hears that it was removed, and starts again"),
            Action::Cut(node) => format!("{node} is cut off"),
            Action::Heal => "the network is whole again".to_string(),
            Action::Damage(node) => format!("the log of {node} is lost"),
            Action::Restart => "the cluster restarts".to_string(),
            Action::Reform => "the survivors form the group anew".to_string(),
        }
    }

    fn picture(&self, s: &State) -> String {
        let mut lines =
            vec![format!("then epoch {}, {} complete, {} durable", s.epoch, s.complete, s.durable)];
        for (at, view) in s.views.iter().enumerate() {
            let (full, filled, void) = (list(view.full), list(view.filled), list(view.void));
            lines.push(format!("  view {at}: full {full}, filled {filled}, void {void}"));
        }
        for (at, transaction) in s.transactions.iter().enumerate() {
            let told =
                if transaction.is_acknowledged { "acknowledged" } else { "not acknowledged" };
            lines.push(format!("  transaction {at}: epochs {:?}, {told}", transaction.epochs));
        }
        for (at, node) in s.nodes.iter().enumerate() {
            let being = match node.being {
                Being::Alive => "lives",
                Being::Waits => "waits",
            };
            let (memory, log) = (list(node.memory), list(node.log));
            lines.push(format!(
                "  {at}: {being}, view {}, memory {memory}, knows {} complete; disk: log {log}, sealed {}, view {}",
                node.view, node.complete, node.sealed, node.kept
            ));
        }
        lines.join("\n")
    }
}
