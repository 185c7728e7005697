//! Ports: how clients in the same process (SQL sessions) reach their node without a socket.

use crate::{
    attendance::Attendance,
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
    attendance: Arc<Attendance>,
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

/// A port; `wake_client` is called when something has come for the client that it does not look at itself ([`Port::ring`]), maybe
/// by a thread that is in the middle of its own [`Port::ring`]: it must only note that.
pub fn port(wake_client: Waker) -> (Port, NodeEnd) {
    let (to_node, from_client) = ring(PORT_BYTES);
    let (to_client, from_node) = ring(PORT_BYTES);
    let engine = EngineSlot::default();
    let attendance = Arc::new(Attendance::new());
    let port = Port {
        to_node: Mutex::new(to_node),
        from_node: Mutex::new(from_node),
        attendance: attendance.clone(),
        engine: engine.clone(),
    };
    let wake_client: Waker = Arc::new(move || {
        if attendance.must_wake() {
            wake_client();
        }
    });
    (port, NodeEnd { to_client, from_client, wake_client, engine })
}

impl Port {
    /// Sends whole signals; false if the node has too much work queued.
    pub fn send(&self, signal: &[u8]) -> bool {
        let Ok(mut producer) = self.to_node.lock() else { return false };
        producer.push(signal)
    }

    /// After sending: has the node work on it. That may be done before this returns, by this thread, with whatever else
    /// the node has to do just then, for some tens of microseconds. Appends what has come meanwhile, for which nobody is woken
    /// (THREAD-7).
    pub fn ring(&self, out: &mut Vec<u8>) {
        self.attendance.begin();
        // A node that is still starting looks at its ports by itself.
        if let Some(engine) = self.engine.get() {
            engine.help_from_outside();
        }
        self.attendance.end();
        self.receive(out);
    }

    /// Appends the signals that have come.
    pub fn receive(&self, out: &mut Vec<u8>) -> bool {
        self.from_node.lock().is_ok_and(|mut c| c.pop_all(out))
    }
}
