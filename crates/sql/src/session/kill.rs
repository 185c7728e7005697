//! KILL, and the list of sessions: at whichever node they are.

use super::{Done, Outcome, Session};
use crate::bind::Binder;
use crate::error::{self, Failure};
use crate::expr::{External, RowSource};
use crate::plan::Plan;
use crate::sessions::{Listed, Sessions, Why, decode_list, decode_statement};
use crate::store::Store;
use crate::syntax::Context;
use lats_base::{ErrorClass, NodeId};
use lats_client::api::{SessionCall, StoreError};
use lats_mysql_syntax::tree::{ExprId, KillWhat};
use lats_values::{ColumnType, EvalContext, Expr, SqlError, Value};
use std::sync::Arc;

/// The plan of KILL.
pub(super) fn plan(
    what: KillWhat,
    id: ExprId,
    context: &Context<'_>,
    external_types: &[ColumnType],
) -> Result<(Plan, Vec<External>, u16), SqlError> {
    let mut binder = Binder::new(context).with_external_types(external_types);
    let id = binder.bind_in("field list", id)?;
    if binder.needs_query() {
        let what = "Usage of subqueries or stored function calls as part of this statement";
        return Err(error::not_supported(what));
    }
    let parameters = binder.parameters();
    Ok((Plan::Kill(what != KillWhat::Query, id), binder.externals, parameters))
}

impl<S: Store> Session<S> {
    /// KILL.
    pub(super) async fn run_kill(
        &mut self,
        whole: bool,
        id: &Expr,
        externals: &[Value],
    ) -> Result<Outcome, Failure> {
        let source = RowSource::constant(externals);
        let id = match lats_values::eval(id, &source, &mut EvalContext::new(false))? {
            Value::Int(id) => id as u64,
            Value::UInt(id) => id,
            // As MySQL reads numbers: what is none is 0.
            other => other.to_display().trim().parse().unwrap_or(0),
        };
        self.kill(id, whole).await
    }

    /// Ends what a session runs, and with `whole` the session.
    ///
    /// # Errors
    /// 1094 if there is none; 1317 if it is this one.
    pub async fn kill(&mut self, id: u64, whole: bool) -> Result<Outcome, Failure> {
        let why = if whole { Why::Connection } else { Why::Query };
        let unknown = || error::make(1094, "HY000", &format!("Unknown thread id: {id}"));
        let number = u32::try_from(id).map_err(|_| unknown())?;
        if number == self.client.connection_id {
            self.ends_itself |= whole;
            self.client.handle.end(why);
            return Err(error::interrupted().into());
        }
        let sessions = Arc::clone(self.shared.sessions());
        let found = match sessions.is_own(number) {
            true => sessions.end(number, why),
            false => self.kill_elsewhere(number, whole).await?,
        };
        if found { Ok(Done::nothing()) } else { Err(unknown().into()) }
    }

    /// SESSION-3: a request may come twice, so it names the statement that is to end.
    async fn kill_elsewhere(&mut self, id: u32, whole: bool) -> Result<bool, StoreError> {
        let node = NodeId::new(Sessions::node_of(id));
        if whole {
            return Ok(self.call_node(node, id, SessionCall::Kill).await?.0);
        }
        let (_, statement) = self.call_node(node, id, SessionCall::Statement).await?;
        match decode_statement(&statement) {
            Some(statement) => {
                Ok(self.call_node(node, id, SessionCall::KillQuery(statement)).await?.0)
            }
            None => Ok(false),
        }
    }

    /// SESSION-5: a node that does not live has no sessions.
    async fn call_node(
        &mut self,
        node: NodeId,
        id: u32,
        call: SessionCall,
    ) -> Result<(bool, Vec<u8>), StoreError> {
        let store = &self.shared.store;
        if !store.nodes().contains(&node) {
            return Ok((false, Vec::new()));
        }
        self.client.handle.unless_ended(store.sessions(node, id, call)).await?
    }

    /// The sessions of all nodes; those of a node that does not answer are left out with a warning.
    pub(crate) async fn all_sessions(&mut self) -> Result<Vec<Listed>, Failure> {
        let sessions = Arc::clone(self.shared.sessions());
        let mut all = sessions.list((self.shared.now_micros)());
        for node in self.shared.store.nodes() {
            if sessions.is_of(node) {
                continue;
            }
            match self.call_node(node, 0, SessionCall::List).await {
                Ok((_, list)) => all.extend(decode_list(&list)),
                Err(error) if error.class() == ErrorClass::Temporary => {
                    let text = format!("Sessions of node {node} are not shown: it does not answer");
                    self.add_warnings(vec![error::make(1105, "HY000", &text)]);
                }
                Err(error) => return Err(error.into()),
            }
        }
        all.sort_by_key(|listed| listed.id);
        Ok(all)
    }
}
