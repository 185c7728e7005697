//! PREPARE, EXECUTE and DEALLOCATE as statements: prepared statements with names.

use super::{Done, Outcome, Session, Sink};
use crate::error::{self, Failure};
use crate::store::Store;
use crate::syntax::name;
use lats_mysql_syntax::Tree;
use lats_mysql_syntax::tree::{PrepareSource, Text};
use lats_values::{SqlError, Value};

impl<S: Store> Session<S> {
    pub(super) async fn prepare_named(
        &mut self,
        tree: &Tree,
        statement: Text,
        source: PrepareSource,
    ) -> Result<Outcome, SqlError> {
        let statement = name(tree, statement)?.to_lowercase();
        // What had the name before is gone, also if the new one cannot be prepared.
        if let Some(id) = self.names.remove(&statement) {
            self.close_statement(id);
        }
        let text = match source {
            PrepareSource::Text(text) => tree.text(text).to_vec(),
            PrepareSource::Variable(variable) => {
                let variable = name(tree, variable)?.to_lowercase();
                let bytes = self.variable_bytes(&variable);
                let _reserved = self.shared.memory().reserve_copies(bytes)?;
                match self.user_variables.get(&variable) {
                    None | Some(Value::Null) => b"NULL".to_vec(),
                    Some(value) => value.to_text().unwrap_or_default(),
                }
            }
        };
        let prepared = self.prepare(&text).await?;
        self.names.insert(statement, prepared.id);
        let info = "Statement prepared".to_owned();
        Ok(Outcome::Done(Done { info, ..Done::default() }))
    }

    pub(super) async fn execute_named(
        &mut self,
        tree: &Tree,
        (statement, variables): (Text, &[Text]),
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Failure> {
        let id = self.named_statement(tree, statement, "EXECUTE")?;
        let mut parameters = Vec::with_capacity(variables.len());
        let mut bytes = 0_usize;
        for variable in variables {
            let variable = name(tree, *variable)?.to_lowercase();
            bytes = bytes.saturating_add(self.variable_bytes(&variable));
        }
        // Each is copied, however often it is named.
        let reserved = self.shared.memory().reserve_copies(bytes)?;
        for variable in variables {
            let variable = name(tree, *variable)?.to_lowercase();
            parameters.push(self.user_variables.get(&variable).cloned().unwrap_or(Value::Null));
        }
        drop(reserved);
        if self.parameter_count(id).map(usize::from) != Some(parameters.len()) {
            let text = "Incorrect arguments to EXECUTE";
            return Err(error::make(1210, "HY000", text).into());
        }
        // A statement that executes another one is refused when it is prepared: this goes one level down only.
        Box::pin(self.execute_known(id, &parameters, sink)).await
    }

    pub(super) fn deallocate(&mut self, tree: &Tree, statement: Text) -> Result<(), SqlError> {
        let id = self.named_statement(tree, statement, "DEALLOCATE PREPARE")?;
        let statement = name(tree, statement)?.to_lowercase();
        self.names.remove(&statement);
        self.close_statement(id);
        Ok(())
    }

    fn named_statement(&self, tree: &Tree, text: Text, to: &str) -> Result<u32, SqlError> {
        let statement = name(tree, text)?;
        let unknown = || {
            let text = format!("Unknown prepared statement handler ({statement}) given to {to}");
            error::make(1243, "HY000", &text)
        };
        self.names.get(&statement.to_lowercase()).copied().ok_or_else(unknown)
    }
}

/// 1295 for statements that cannot be prepared.
pub(super) fn check_preparable(statement: &lats_mysql_syntax::Statement) -> Result<(), SqlError> {
    use lats_mysql_syntax::Statement as S;
    match statement {
        S::Prepare { .. } | S::Execute { .. } | S::Deallocate(_) => {
            let text = "This command is not supported in the prepared statement protocol yet";
            Err(error::make(1295, "HY000", text))
        }
        _ => Ok(()),
    }
}
