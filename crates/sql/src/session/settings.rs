//! Assignments to variables.

use super::Session;
use crate::error::{self, Failure};
use crate::expr::RowSource;
use crate::set::{Scope, Setting};
use crate::store::Store;
use crate::variables::Variables;
use lats_catalog::Change;
use lats_values::{EvalContext, Expr, SqlError, Value};

impl<S: Store> Session<S> {
    pub(super) async fn set(
        &mut self,
        settings: &[Setting],
        externals: &[Value],
    ) -> Result<(), Failure> {
        for setting in settings {
            match setting {
                Setting::User(name, expr) => {
                    let value = compute(expr, externals)?;
                    self.user_variables.insert(name.clone(), value);
                }
                Setting::System(scope, name, expr) => {
                    let value = expr.as_ref().map(|e| compute(e, externals)).transpose()?;
                    self.set_system(scope, name, value.as_ref()).await?;
                }
                Setting::Names(charset, collation) => {
                    self.set_names(charset.as_deref(), collation.as_deref())?;
                }
                Setting::CharacterSet(charset) => self.set_names(charset.as_deref(), None)?,
            }
        }
        Ok(())
    }

    /// What commits wait for from now on, in sessions that begin later.
    async fn persist_durability(&mut self, value: Option<&Value>) -> Result<(), Failure> {
        let mut probe = Variables::default();
        probe.set("durability", value)?;
        let to_disk = probe.wants_disk();
        let changed = self.shared.store.change(Change::SetDurability { to_disk }).await?;
        changed.map_err(|e| error::change_error(&e, false))?;
        // What was said to this process alone holds no longer.
        self.shared.globals().set("durability", None)?;
        if to_disk || self.variables.wants_disk() {
            self.shared.store.all_durable().await?;
        }
        Ok(())
    }

    async fn set_system(
        &mut self,
        scope: &Scope,
        name: &str,
        value: Option<&Value>,
    ) -> Result<(), Failure> {
        match scope {
            Scope::Global => {
                self.shared.globals().set(name, value)?;
            }
            // No other is parsed.
            Scope::Cluster => self.persist_durability(value).await?,
            Scope::NextTransaction if self.in_transaction() && self.transaction_is_open() => {
                let text = "Transaction characteristics can't be changed while a transaction is \
                            in progress";
                return Err(error::make(1568, "25001", text).into());
            }
            Scope::NextTransaction => {
                let mut probe = self.variables.clone();
                let checked = probe.set(name, value)?;
                match name {
                    "transaction_read_only" => {
                        self.next_read_only = Some(checked == Value::Int(1));
                    }
                    _ => self.isolation_next = Some(checked.to_display()),
                }
            }
            Scope::Session => {
                let before = self.autocommit();
                self.variables.set(name, value)?;
                if value.is_none() {
                    self.variables.take_default(name, &self.shared.defaults());
                }
                if name == "autocommit" && !before && self.autocommit() {
                    self.commit().await?;
                }
                if name == "sql_mode" {
                    self.forget_plans();
                }
            }
        }
        Ok(())
    }

    fn set_names(
        &mut self,
        charset: Option<&str>,
        collation: Option<&str>,
    ) -> Result<(), SqlError> {
        let charset = crate::variables::charset(charset.unwrap_or("utf8mb4"))?;
        let value = Value::text(charset);
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.variables.set(name, Some(&value))?;
        }
        let default = match charset {
            "binary" => "binary",
            "utf8mb3" => "utf8_general_ci",
            _ => "utf8mb4_0900_ai_ci",
        };
        let collation = Value::text(collation.unwrap_or(default));
        self.variables.set("collation_connection", Some(&collation))?;
        Ok(())
    }
}

fn compute(expr: &Expr, externals: &[Value]) -> Result<Value, SqlError> {
    let mut context = EvalContext::new(true);
    lats_values::eval(expr, &RowSource::constant(externals), &mut context)
}
