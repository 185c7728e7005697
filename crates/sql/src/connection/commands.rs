//! What a client asks for, command by command.

use super::sink::{SEND_BYTES, WireSink};
use super::statements::{Piece, Statements};
use super::{Bound, Connection, Received, account};
use crate::error::{self, Failure};
use crate::plan::ColumnMeta;
use crate::session::{Kept, Kind, Outcome, Session, Sink};
use crate::store::Store;
use lats_mysql_wire::command::ChangeUser;
use lats_mysql_wire::{
    AuthOutcome, Authentication, AuthenticationRequest, Command, ExecuteRequest, OkPacket,
    StatementParameters, StatusFlags, WireError,
};
use lats_values::{Collation, SqlError, Value};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes of parameters sent ahead that a statement may hold.
const LONG_DATA_BYTES_MAX: usize = 64 << 20;

/// A statement to run: its text, or a prepared statement's number and parameters.
enum Request<'a> {
    Text(&'a [u8]),
    Prepared(u32, Vec<Value>),
}

impl<S, T> Connection<S, T>
where
    S: Store,
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    pub(super) async fn command(&mut self, command: Command<'_>) -> io::Result<()> {
        match command {
            Command::Query(bytes) => return self.query(bytes).await,
            Command::StmtExecute(request) => return self.execute(&request).await,
            Command::StmtPrepare(bytes) => self.prepare(bytes).await,
            Command::StmtSendLongData { statement_id, parameter, data } => {
                self.long_data(statement_id, parameter, data);
            }
            Command::StmtClose(id) => {
                self.session.close_statement(id);
                self.statements.remove(&id);
            }
            Command::StmtReset(id) => self.reset_statement(id),
            Command::InitDb(name) => match self.session.use_database(name) {
                Ok(()) => self.ok(),
                Err(error) => self.err(&error),
            },
            Command::FieldList { table, .. } => return self.field_list(table).await,
            Command::Ping => self.ok(),
            Command::Statistics => self.wire.writer.statistics("LatsDB is serving"),
            Command::ChangeUser(change) => return self.change_user(&change).await,
            Command::ResetConnection => {
                self.session.rollback().await;
                let database = self.session.database().map(str::to_owned);
                self.fresh_session(database.as_deref());
            }
            Command::SetOption(option) => {
                self.multi_statements = option == 0;
                let status = self.status();
                self.wire.writer.eof(status, 0);
            }
            Command::Debug => {
                let status = self.status();
                self.wire.writer.eof(status, 0);
            }
            Command::ProcessKill(id) => match self.session.kill(u64::from(id), true).await {
                Ok(_) => self.ok(),
                Err(failure) => self.err(&failure.into_sql()),
            },
            Command::StmtFetch { statement_id, rows } => {
                return self.fetch(statement_id, rows).await;
            }
            Command::Quit | Command::Unknown(_) => {
                self.err(&error::make(1047, "08S01", "Unknown command"));
            }
        }
        Ok(())
    }

    async fn query(&mut self, text: &[u8]) -> io::Result<()> {
        let mut statements = Statements::new(text);
        if !self.multi_statements || statements.only().is_some() {
            return self.statement(Request::Text(text), false).await.map(drop);
        }
        let mut has_run = false;
        loop {
            // A client that does not read its answers waits for itself, not for memory.
            if self.wire.writer.bytes().len() >= SEND_BYTES {
                self.wire.send().await?;
            }
            let bytes_max = self.shared.memory().tree_max() / 3 * 2;
            match statements.next(self.session.syntax_mode(), bytes_max) {
                Ok(Some(Piece { text, more })) => {
                    if !self.statement(Request::Text(text), more).await? || !more {
                        return Ok(());
                    }
                    has_run = true;
                }
                // Nothing but blanks: the parser says so.
                Ok(None) if !has_run => {
                    return self.statement(Request::Text(b""), false).await.map(drop);
                }
                Ok(None) => return Ok(()),
                // The session says it once more, so that it is among its warnings.
                Err(_) => {
                    let rest = statements.rest();
                    return self.statement(Request::Text(rest), false).await.map(drop);
                }
            }
        }
    }

    /// Runs a statement and writes its answer; false if it failed.
    async fn statement(&mut self, request: Request<'_>, more: bool) -> io::Result<bool> {
        let status = self.status().with(StatusFlags::MORE_RESULTS, more);
        let handle = Arc::clone(&self.client.handle);
        let result = {
            let mut sink = WireSink {
                io: &mut self.wire.output,
                writer: &mut self.wire.writer,
                binary: matches!(request, Request::Prepared(..)),
                status,
                columns: None,
                handle: &handle,
                is_sending: false,
            };
            let session = &mut self.session;
            let run = std::pin::pin!(async {
                match &request {
                    Request::Text(text) => session.query(text, &mut sink).await,
                    Request::Prepared(id, parameters) => {
                        session.execute(*id, parameters, &mut sink).await
                    }
                }
            });
            self.wire.input.with_end_watched(&handle, run).await
        };
        let status = self.status().with(StatusFlags::MORE_RESULTS, more);
        let warnings = self.session.new_warning_count();
        match result {
            Ok(Outcome::Rows) => self.wire.writer.result_end(status, warnings),
            Ok(Outcome::Done(done)) => self.wire.writer.ok(&OkPacket {
                affected_rows: done.affected_rows,
                last_insert_id: done.told_insert_id,
                status,
                warnings,
                info: &done.info,
            }),
            Err(Failure::Gone(error)) => return Err(error),
            Err(failure) => {
                self.err(&failure.into_sql());
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn prepare(&mut self, bytes: &[u8]) {
        let handle = Arc::clone(&self.client.handle);
        let prepared = {
            let run = std::pin::pin!(self.session.prepare_for_client(bytes));
            self.wire.input.with_end_watched(&handle, run).await
        };
        match prepared {
            Err(error) => self.err(&error),
            Ok(info) => {
                let parameters = StatementParameters::new(info.parameters, Collation::default());
                let kept = self.kept(Kind::LongData);
                let bound = Bound { parameters, failure: None, kept, cursor: None };
                self.statements.insert(info.id, bound);
                let columns: Vec<_> = info.columns.iter().map(ColumnMeta::info).collect();
                let status = self.status();
                self.wire.writer.prepare_ok(info.id, info.parameters, &columns, status, 0);
            }
        }
    }

    async fn execute(&mut self, request: &ExecuteRequest<'_>) -> io::Result<()> {
        let id = request.statement_id;
        let Some(bound) = self.statements.get_mut(&id) else {
            self.err(&unknown_statement(id));
            return Ok(());
        };
        bound.cursor = None;
        let values = match bound.failure.take() {
            None => bound.parameters.bind(request.bindings).map_err(|error| of_wire(&error)),
            Some(failure) => {
                bound.parameters.reset();
                Err(failure)
            }
        };
        let kept = bound.kept.take();
        // What was sent ahead is in the values until the statement is through.
        let done = match values {
            Ok(values) if request.cursor.any() && self.session.is_query(id) => {
                self.open_cursor(id, &values).await
            }
            Ok(values) => self.statement(Request::Prepared(id, values), false).await.map(drop),
            Err(error) => {
                self.err(&error);
                Ok(())
            }
        };
        drop(kept);
        done
    }

    pub(super) fn kept(&self, kind: Kind) -> Kept {
        Kept::nothing(self.shared.memory(), &self.client.handle, kind)
    }

    fn long_data(&mut self, id: u32, parameter: u16, data: &[u8]) {
        let Some(bound) = self.statements.get_mut(&id) else { return };
        if bound.failure.is_some() {
            return;
        }
        let parameters = &mut bound.parameters;
        let appended = bound.kept.grow(data.len()).and_then(|()| {
            let appended = parameters.append_long_data(parameter, data, LONG_DATA_BYTES_MAX);
            appended.map_err(|error| of_wire(&error))
        });
        if let Err(failure) = appended {
            bound.fail(failure);
        }
    }

    fn reset_statement(&mut self, id: u32) {
        match self.statements.get_mut(&id) {
            None => self.err(&unknown_statement(id)),
            Some(bound) => {
                bound.parameters.reset();
                bound.kept.shrink_to(0);
                bound.failure = None;
                bound.cursor = None;
                self.ok();
            }
        }
    }

    fn fresh_session(&mut self, database: Option<&str>) {
        self.session = Session::new(Arc::clone(&self.shared), self.client.clone());
        self.statements.clear();
        self.client.handle.describe(&self.client.user, None);
        match database.map(|name| self.session.use_database(name)) {
            Some(Err(error)) => self.err(&error),
            _ => self.ok(),
        }
    }

    async fn change_user(&mut self, change: &ChangeUser<'_>) -> io::Result<()> {
        self.session.rollback().await;
        let host = self.client.host.clone();
        let request = AuthenticationRequest {
            user: change.user,
            host: &host,
            plugin: change.plugin,
            response: change.auth_response,
            account: account(change.user),
        };
        let (mut exchange, mut outcome) =
            Authentication::start(self.nonce, &request, &mut self.wire.writer);
        while outcome == AuthOutcome::Continue {
            let expected = self.wire.writer.next_sequence();
            self.wire.send().await?;
            self.wire.input.decoder.expect_sequence(expected);
            let Some(Received { packet, .. }) = self.wire.receive().await? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            self.wire.writer.start_reply(packet.sequence);
            outcome = exchange.on_answer(&packet.payload, &mut self.wire.writer);
        }
        if outcome != AuthOutcome::Accepted {
            self.wire.send().await?;
            return Err(io::Error::other("the client's new login was refused"));
        }
        self.client.user = change.user.to_owned();
        self.fresh_session(change.database);
        Ok(())
    }

    async fn field_list(&mut self, table: &str) -> io::Result<()> {
        let text = format!("SELECT * FROM `{}` LIMIT 0", table.replace('`', "``"));
        let mut columns = OnlyColumns::default();
        match self.session.query(text.as_bytes(), &mut columns).await {
            Err(Failure::Gone(error)) => return Err(error),
            Err(failure) => self.err(&failure.into_sql()),
            Ok(_) => {
                for column in columns.0.iter().flat_map(|columns| columns.iter()) {
                    self.wire.writer.field_list_column(&column.info(), None);
                }
                let status = self.status();
                self.wire.writer.result_end(status, 0);
            }
        }
        Ok(())
    }
}

/// Takes the columns of a result without its rows.
#[derive(Default)]
struct OnlyColumns(Option<crate::plan::Columns>);

impl Sink for OnlyColumns {
    fn begin(&mut self, columns: &crate::plan::Columns) {
        self.0 = Some(columns.clone());
    }

    fn row(&mut self, _: &[Value]) -> Result<(), SqlError> {
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.0.is_some()
    }
}

fn of_wire(error: &WireError) -> SqlError {
    SqlError::new(error.errno(), error.sqlstate(), error.to_string())
}

fn unknown_statement(id: u32) -> SqlError {
    let text = format!("Unknown prepared statement handler ({id}) given to mysqld_stmt_execute");
    error::make(1243, "HY000", &text)
}
