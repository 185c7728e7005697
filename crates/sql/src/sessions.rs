//! The sessions of a process's MySQL clients: what each of them runs, and how it is ended by others
//! (`docs/protocols/sessions.md`).

mod handle;

pub use handle::{Handle, Why};

use crate::session::NodeMemory;
use lats_base::NodeId;
use lats_client::api::SessionCall;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits of a session's number that its node counts.
const COUNTER_BITS: u32 = 24;

/// What a session does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Doing {
    /// Waits for its client.
    #[default]
    Rests,
    /// Runs a statement's text.
    Queries,
    /// Runs a prepared statement.
    Executes,
}

/// What others see of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its number.
    pub id: u32,
    /// Its account.
    pub user: String,
    /// Where its client connects from.
    pub host: String,
    /// Its current database.
    pub database: Option<String>,
    /// What it does.
    pub doing: Doing,
    /// For so many seconds it has done what it does.
    pub seconds: u64,
    /// The beginning of the statement that it runs.
    pub statement: Option<String>,
}

/// The open sessions of a process.
#[derive(Debug, Default)]
pub struct Sessions {
    node: u8,
    counter: AtomicU32,
    open: Mutex<BTreeMap<u32, Arc<Handle>>>,
}

/// A session that is open; it is not any more when this is dropped.
#[derive(Debug)]
pub struct Entry {
    sessions: Arc<Sessions>,
    id: u32,
    handle: Arc<Handle>,
}

impl Entry {
    /// What the session is ended by.
    pub fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut open = self.sessions.lock();
        if open.get(&self.id).is_some_and(|handle| Arc::ptr_eq(handle, &self.handle)) {
            open.remove(&self.id);
        }
    }
}

impl Sessions {
    /// The sessions of a node.
    pub fn of_node(node: u16) -> Arc<Self> {
        // No cluster has more nodes than these bits count.
        let node = u8::try_from(node).unwrap_or(u8::MAX);
        Arc::new(Self { node, ..Self::default() })
    }

    /// The node of a session.
    pub fn node_of(id: u32) -> u16 {
        (id >> COUNTER_BITS) as u16
    }

    /// True if these are the sessions of that node.
    pub(crate) fn is_of(&self, node: NodeId) -> bool {
        node.get() == u16::from(self.node)
    }

    /// True if this node numbers sessions so.
    pub(crate) fn is_own(&self, id: u32) -> bool {
        Self::node_of(id) == u16::from(self.node)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Handle>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a new session (SESSION-1).
    pub(crate) fn number(&self) -> u32 {
        let open = self.lock();
        loop {
            let count = self.counter.fetch_add(1, Ordering::Relaxed) % (1 << COUNTER_BITS);
            let id = (u32::from(self.node) << COUNTER_BITS) | count;
            // There are fewer sessions than numbers.
            if count != 0 && !open.contains_key(&id) {
                return id;
            }
        }
    }

    /// A session begins.
    pub(crate) fn enter(
        self: &Arc<Self>,
        id: u32,
        (host, now_micros): (&str, i64),
        memory: Option<&Arc<NodeMemory>>,
    ) -> Entry {
        let handle = Arc::new(Handle::new(host, now_micros).within(memory));
        self.lock().insert(id, Arc::clone(&handle));
        Entry { sessions: Arc::clone(self), id, handle }
    }

    /// What a node is asked to do with its sessions: whether there is this one, and the list if it is asked for.
    pub fn call(&self, id: u32, call: SessionCall, now_micros: i64) -> (bool, Vec<u8>) {
        match call {
            SessionCall::List => (true, lats_catalog::encode(&self.list(now_micros))),
            SessionCall::Kill => (self.end(id, Why::Connection), Vec::new()),
            SessionCall::KillQuery(statement) => {
                let handle = self.handle(id);
                if let Some(handle) = &handle {
                    handle.end_statement(statement);
                }
                (handle.is_some(), Vec::new())
            }
            SessionCall::Statement => match self.handle(id) {
                Some(handle) => (true, handle.statement().to_le_bytes().to_vec()),
                None => (false, Vec::new()),
            },
        }
    }

    fn handle(&self, id: u32) -> Option<Arc<Handle>> {
        self.lock().get(&id).cloned()
    }

    /// Ends what a session runs; false if there is no such session.
    pub(crate) fn end(&self, id: u32, why: Why) -> bool {
        let handle = self.handle(id);
        if let Some(handle) = &handle {
            handle.end(why);
        }
        handle.is_some()
    }

    /// Ends the sessions that have rested for longer than they may (SESSION-6).
    pub fn end_idle(&self, now_micros: i64) {
        let open: Vec<Arc<Handle>> = self.lock().values().cloned().collect();
        open.iter().for_each(|handle| handle.end_if_idle(now_micros));
    }

    /// All sessions.
    pub(crate) fn list(&self, now_micros: i64) -> Vec<Listed> {
        let open = self.lock();
        open.iter().map(|(id, handle)| handle.listed(*id, now_micros)).collect()
    }
}

/// The list of another node.
pub(crate) fn decode_list(bytes: &[u8]) -> Vec<Listed> {
    // Of another version: nothing is known of its sessions.
    lats_catalog::decode(bytes).unwrap_or_default()
}

/// The number of a statement, as another node tells it.
pub(crate) fn decode_statement(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_tell_the_node_and_are_not_given_twice() {
        let sessions = Sessions::of_node(3);
        let (first, second) = (sessions.number(), sessions.number());
        assert_eq!((Sessions::node_of(first), Sessions::node_of(second)), (3, 3));
        assert_ne!(first, second);
        let entry = sessions.enter(first, ("localhost", 0), None);
        // The counter comes round.
        sessions.counter.store(first & 0xFF_FFFF, Ordering::Relaxed);
        assert_eq!(sessions.number(), second);
        drop(entry);
        sessions.counter.store(first & 0xFF_FFFF, Ordering::Relaxed);
        assert_eq!(sessions.number(), first);
    }

    #[test]
    fn who_rests_for_too_long_is_ended_and_who_works_is_not() {
        let sessions = Sessions::of_node(1);
        let id = sessions.number();
        let entry = sessions.enter(id, ("localhost", 1_000_000), None);
        let handle = entry.handle();
        sessions.end_idle(9_000_000_000);
        assert_eq!(handle.why(), None, "nobody has limited it");
        handle.limit_rest(2);
        handle.begin(Doing::Queries, b"SELECT SLEEP(9)", 2_000_000);
        sessions.end_idle(9_000_000);
        assert_eq!(handle.why(), None);
        handle.rest(10_000_000);
        sessions.end_idle(11_900_000);
        assert_eq!(handle.why(), None);
        sessions.end_idle(12_000_000);
        assert_eq!(handle.why(), Some(Why::Idle));
    }

    #[test]
    fn sessions_are_listed_and_ended_while_they_are_open() {
        let sessions = Sessions::of_node(1);
        let id = sessions.number();
        let entry = sessions.enter(id, ("localhost", 4_000_000), None);
        entry.handle().describe("root", Some("test"));
        entry.handle().begin(Doing::Queries, &b"SELECT 'x'".repeat(100), 5_000_000);
        let (found, list) = sessions.call(0, SessionCall::List, 7_500_000);
        assert!(found);
        let [listed] = &decode_list(&list)[..] else { panic!("one session") };
        assert_eq!((listed.id, listed.seconds, listed.doing), (id, 2, Doing::Queries));
        assert_eq!(listed.database.as_deref(), Some("test"));
        assert!(listed.statement.as_ref().is_some_and(|text| text.len() == 600));
        assert_eq!(entry.handle().why(), None);
        let (found, number) = sessions.call(id, SessionCall::Statement, 0);
        assert!(found);
        let number = decode_statement(&number).unwrap();
        assert!(sessions.call(id, SessionCall::KillQuery(number), 0).0);
        assert_eq!(entry.handle().why(), Some(Why::Query));
        // The next statement is not meant, even if the same request comes again.
        entry.handle().begin(Doing::Executes, b"SELECT 2", 0);
        assert_eq!(entry.handle().why(), None);
        assert!(sessions.call(id, SessionCall::KillQuery(number), 0).0);
        assert_eq!(entry.handle().why(), None);
        assert!(sessions.call(id, SessionCall::Kill, 0).0);
        entry.handle().begin(Doing::Queries, b"SELECT 3", 0);
        assert_eq!(entry.handle().why(), Some(Why::Connection));
        drop(entry);
        assert!(!sessions.call(id, SessionCall::Kill, 0).0);
        assert_eq!(sessions.call(id, SessionCall::Statement, 0), (false, Vec::new()));
        // Another life of the session's number counts other statements.
        let later = sessions.enter(id, ("localhost", 4_000_001), None);
        assert_ne!(later.handle().statement(), 4_000_000);
    }
}
