//! How a process tells its node that a person wants it to end (CLOSE-1).

use crate::{doorbell::Doorbell, thread::News};
use lats_base::NodeId;
use lats_signals::{BlockRef, SignalBuffer, buffer::Route, control::CloseOrd};
use std::sync::Arc;

/// Reaches control of the node in this process.
#[derive(Clone)]
pub struct Closer {
    pub(crate) node: NodeId,
    pub(crate) life: u32,
    pub(crate) news: Arc<[News]>,
    /// Of the thread that control lives in: the first one.
    pub(crate) bell: Arc<Doorbell>,
}

impl std::fmt::Debug for Closer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Closer")
    }
}

impl Closer {
    /// Tells it. The node stops when it has nothing to lose any more; [`crate::Running::wait`] says so.
    pub fn close(&self) {
        let (sender, receiver) = (BlockRef::shell(self.node), BlockRef::control(self.node));
        let mut buffer = SignalBuffer::new();
        let route = Route { sender, receiver, incarnation: self.life };
        buffer.push(route, &CloseOrd { reserved: 0 }, &[]);
        if let (Some(signal), Some(news)) = (buffer.pop(), self.news.first()) {
            news.signal(&signal);
            self.bell.ring();
        }
    }
}
