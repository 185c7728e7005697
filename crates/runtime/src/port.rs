//! Ports: how clients in the same process (SQL sessions) reach their node without a socket.

use crate::{
    engine::Engine,
    ring::{Consumer, Producer, ring},
};
use std::sync::{Arc, Mutex, OnceLock};

type Waker = Arc<dyn Fn() + Send + Sync>;
/// The node's engine, once it runs.
type EngineSlot = Arc<OnceLock<Arc<Engine>>>;

/// The client's end.
pub struct Port {
    to_node: Mutex<Producer>,
    from_node: Mutex<Consumer>,
    engine: EngineSlot,
}

/// The node's end.
pub struct NodeEnd {
    pub(crate) to_client: Producer,
    pub(crate) from_client: Consumer,
    pub(crate) wake_client: Waker,
    pub(crate) engine: EngineSlot,
}

impl std::fmt::Debug for NodeEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeEnd")
    }
}

/// Bytes that may be under way in each direction.
const PORT_BYTES: usize = 8 << 20;

/// A port; `wake_client` is called when something has come for the client, maybe by a thread that is in the middle of
/// its own [`Port::ring`]: it must only note that.
pub fn port(wake_client: Waker) -> (Port, NodeEnd) {
    let (to_node, from_client) = ring(PORT_BYTES);
    let (to_client, from_node) = ring(PORT_BYTES);
    let engine = EngineSlot::default();
    let port = Port {
        to_node: Mutex::new(to_node),
        from_node: Mutex::new(from_node),
        engine: engine.clone(),
    };
    (port, NodeEnd { to_client, from_client, wake_client, engine })
}

impl Port {
    /// Sends whole signals; false if the node has too much work queued.
    pub fn send(&self, signal: &[u8]) -> bool {
        let Ok(mut producer) = self.to_node.lock() else { return false };
        producer.push(signal)
    }

    /// After sending: has the node work on it. That may be done before this returns, by this thread, with whatever else
    /// the node has to do just then, for some tens of microseconds.
    pub fn ring(&self) {
        // A node that is still starting looks at its ports by itself.
        if let Some(engine) = self.engine.get() {
            engine.help_from_outside();
        }
    }

    /// Appends the signals that have come.
    pub fn receive(&self, out: &mut Vec<u8>) -> bool {
        self.from_node.lock().is_ok_and(|mut c| c.pop_all(out))
    }
}
