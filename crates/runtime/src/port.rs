//! Ports: how clients in the same process (SQL sessions) reach their node without a socket.

use crate::{
    doorbell::Doorbell,
    ring::{Consumer, Producer, ring},
};
use std::sync::{Arc, Mutex};

type Waker = Arc<dyn Fn() + Send + Sync>;

/// The client's end.
pub struct Port {
    to_node: Mutex<Producer>,
    from_node: Mutex<Consumer>,
    bell: Arc<Doorbell>,
}

/// The node's end.
pub struct NodeEnd {
    pub(crate) to_client: Producer,
    pub(crate) from_client: Consumer,
    pub(crate) wake_client: Waker,
    pub(crate) bell: Arc<Doorbell>,
}

impl std::fmt::Debug for NodeEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeEnd")
    }
}

/// Bytes that may be under way in each direction.
const PORT_BYTES: usize = 16 << 20;

/// A port; `wake_client` is called when something has come for the client.
///
/// # Errors
/// When the machine refuses a doorbell.
pub fn port(wake_client: Waker) -> std::io::Result<(Port, NodeEnd)> {
    let bell = Arc::new(Doorbell::new()?);
    let (to_node, from_client) = ring(PORT_BYTES);
    let (to_client, from_node) = ring(PORT_BYTES);
    let port =
        Port { to_node: Mutex::new(to_node), from_node: Mutex::new(from_node), bell: bell.clone() };
    Ok((port, NodeEnd { to_client, from_client, wake_client, bell }))
}

impl Port {
    /// Sends whole signals; false if the node has too much work queued.
    pub fn send(&self, signal: &[u8]) -> bool {
        let Ok(mut producer) = self.to_node.lock() else { return false };
        producer.push(signal)
    }

    /// Wakes the node, after sending.
    pub fn ring(&self) {
        self.bell.ring();
    }

    /// Appends the signals that have come.
    pub fn receive(&self, out: &mut Vec<u8>) -> bool {
        self.from_node.lock().is_ok_and(|mut c| c.pop_all(out))
    }
}
