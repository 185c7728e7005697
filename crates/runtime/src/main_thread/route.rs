//! Where signals go: to the own executor, another thread, another node, a client, the shell itself.

use super::{ClientAt, MainThread};
use crate::{Stopped, addresses};
use lats_catalog::View;
use lats_signals::{
    BlockKind, Signal, SignalNumber,
    control::{CloseLinkOrd, StopOrd},
};

impl MainThread {
    /// Takes what the executor has sent.
    pub(super) fn route_outgoing(&mut self) {
        let mut outgoing = core::mem::take(self.executor.outgoing());
        while let Some(signal) = outgoing.pop() {
            self.route(&signal);
        }
        outgoing.compact();
        *self.executor.outgoing() = outgoing;
    }

    /// Takes what has come into the node from outside.
    pub(super) fn enter(&mut self) {
        let mut entering = core::mem::take(&mut self.entering);
        while let Some(signal) = entering.pop() {
            self.route(&signal);
        }
        entering.compact();
        // Handling may have let more signals enter.
        if self.entering.is_empty() {
            self.entering = entering;
        }
    }

    fn route(&mut self, signal: &Signal<'_>) {
        let receiver = signal.header.receiver;
        if receiver.node != self.node && receiver.node.get() != 0 {
            return self.send_to_node(receiver.node.get(), signal);
        }
        match receiver.kind() {
            Some(BlockKind::Client) => self.send_to_client(receiver.instance, signal),
            Some(BlockKind::Shell) => self.on_shell_signal(signal),
            Some(kind) if self.executor.hosts(kind, receiver.instance) => {
                self.executor.mailbox().push_signal(signal);
            }
            Some(_) => {
                if let Some(thread) = self.placement.thread_of(receiver) {
                    self.ends.send(thread, signal);
                }
            }
            None => {}
        }
    }

    fn send_to_node(&mut self, node: u16, signal: &Signal<'_>) {
        // Without a link the signal is lost, as with a link that breaks: control hears of both.
        let Some(id) = self.links.link(node) else { return };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.queue(signal.bytes()) {
            self.dirty.insert(id);
        } else {
            tracing::warn!(node, "a node does not take its signals: closing the link");
            self.close(id, false);
        }
    }

    fn send_to_client(&mut self, slot: u32, signal: &Signal<'_>) {
        match self.clients.get(&slot).copied() {
            Some(ClientAt::Connection(id)) => {
                let Some(connection) = self.connections.get_mut(&id) else { return };
                if connection.queue(signal.bytes()) {
                    self.dirty.insert(id);
                } else {
                    tracing::warn!("a client does not read its answers: closing its connection");
                    self.close(id, false);
                }
            }
            Some(ClientAt::Port(at)) => {
                let port = &mut self.ports[at];
                port.fresh = true;
                if !port.backlog.is_empty() || !port.end.to_client.push(signal.bytes()) {
                    port.backlog.extend_from_slice(signal.bytes());
                }
            }
            None => {}
        }
    }

    fn on_shell_signal(&mut self, signal: &Signal<'_>) {
        match signal.number() {
            Some(SignalNumber::CloseLinkOrd) => {
                let body = signal.body::<CloseLinkOrd>();
                self.close_link(body.node as u16, body.incarnation as u32);
            }
            Some(SignalNumber::AddressesOrd) => {
                if let Ok(view) = lats_catalog::decode::<View>(signal.payload()) {
                    self.set_addresses(&addresses(&view));
                    (self.on_view)(&view);
                }
            }
            Some(SignalNumber::StopOrd) => {
                let status = signal.body::<StopOrd>().status as i32;
                let why = String::from_utf8_lossy(signal.payload()).into_owned();
                // Nobody listens any more only if the process is ending already.
                let _ = self.tell_stopped.send(Stopped { status, why });
            }
            _ => {}
        }
    }
}
