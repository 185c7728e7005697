//! Assignments to variables. A SET assigns all of its values or none.

use super::Session;
use crate::error::{self, Failure};
use crate::expr::RowSource;
use crate::set::{Scope, Setting, settled};
use crate::store::Store;
use crate::variables::Variables;
use lats_catalog::Change;
use lats_values::{Collation, EvalContext, Expr, SqlError, Value};

/// An assignment whose value is known; none for DEFAULT.
enum Assignment<'s> {
    User(&'s str, Value),
    System(Scope, &'s str, Option<Value>),
}

impl<S: Store> Session<S> {
    pub(super) async fn set(
        &mut self,
        settings: &[Setting],
        externals: &[Value],
    ) -> Result<(), Failure> {
        let mut assignments = Vec::with_capacity(settings.len());
        for setting in settings {
            match setting {
                Setting::User(name, expr) => {
                    assignments.push(Assignment::User(name, compute(expr, externals)?));
                }
                Setting::System(scope, name, expr) => {
                    let value = expr.as_ref().map(|e| compute(e, externals)).transpose()?;
                    let value = value.map(|value| settled(name, value)).transpose()?;
                    assignments.push(Assignment::System(*scope, name, value));
                }
                Setting::Names(charset, collation) => {
                    assignments.extend(names(charset.as_deref(), collation.as_deref())?);
                }
                Setting::CharacterSet(charset) => {
                    assignments.extend(self.character_set(charset.as_deref())?);
                }
            }
        }
        self.check(&assignments)?;
        for assignment in assignments {
            match assignment {
                Assignment::User(name, value) => {
                    self.set_user_variable(name, value)?;
                }
                Assignment::System(scope, name, value) => {
                    self.set_system(scope, name, value.as_ref()).await?;
                }
            }
        }
        Ok(())
    }

    /// Tries the assignments on copies of the variables.
    fn check(&self, assignments: &[Assignment<'_>]) -> Result<(), SqlError> {
        let mut own = self.variables.clone();
        for assignment in assignments {
            let Assignment::System(scope, name, value) = assignment else { continue };
            if *scope == Scope::NextTransaction && self.transaction_is_open() {
                let text = "Transaction characteristics can't be changed while a transaction is \
                            in progress";
                return Err(error::make(1568, "25001", text));
            }
            own.set(name, value.as_ref())?;
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
        scope: Scope,
        name: &str,
        value: Option<&Value>,
    ) -> Result<(), Failure> {
        match scope {
            Scope::Global => {
                self.shared.globals().set(name, value)?;
            }
            // No other is planned.
            Scope::Cluster => self.persist_durability(value).await?,
            Scope::NextTransaction => {
                let mut probe = self.variables.clone();
                let checked = probe.set(name, value)?;
                match name {
                    "transaction_read_only" | "tx_read_only" => {
                        self.next_read_only = Some(checked == Value::Int(1));
                    }
                    _ => self.isolation_next = Some(checked.to_display()),
                }
            }
            Scope::Session => {
                let (before, had) = (self.autocommit(), self.variables.get(name));
                self.variables.set(name, value)?;
                if value.is_none() {
                    self.variables.take_default(name, &self.shared.defaults());
                }
                if name == "autocommit" && !before && self.autocommit() {
                    self.commit().await?;
                }
                let shapes_plans = super::PLAN_VARIABLES.contains(&name);
                if shapes_plans && had != self.variables.get(name) {
                    self.forget_plans();
                }
            }
        }
        Ok(())
    }

    /// SET CHARACTER SET: texts are computed in the database's character set.
    fn character_set(&self, charset: Option<&str>) -> Result<[Assignment<'static>; 4], SqlError> {
        let client = Value::text(crate::variables::charset(charset.unwrap_or("utf8mb4"))?);
        let database = |name: &str| self.variables.get(name);
        Ok(assignments(client, database("character_set_database"), database("collation_database")))
    }
}

/// SET NAMES.
fn names(
    charset: Option<&str>,
    collation: Option<&str>,
) -> Result<[Assignment<'static>; 4], SqlError> {
    let charset = crate::variables::charset(charset.unwrap_or("utf8mb4"))?;
    if let Some(collation) = collation {
        let is_binary = crate::bind::collation_named(collation)? == Collation::Binary;
        if is_binary != (charset == "binary") {
            return Err(crate::ddl::wrong_collation(collation, charset));
        }
    }
    let default = match charset {
        "binary" => "binary",
        "utf8mb3" => "utf8_general_ci",
        _ => "utf8mb4_0900_ai_ci",
    };
    let collation = Value::text(collation.unwrap_or(default));
    Ok(assignments(Value::text(charset), Value::text(charset), collation))
}

fn assignments(client: Value, connection: Value, collation: Value) -> [Assignment<'static>; 4] {
    let set = |name, value| Assignment::System(Scope::Session, name, Some(value));
    [
        set("character_set_client", client.clone()),
        set("character_set_results", client),
        set("character_set_connection", connection),
        set("collation_connection", collation),
    ]
}

fn compute(expr: &Expr, externals: &[Value]) -> Result<Value, SqlError> {
    let mut context = EvalContext::new(true);
    lats_values::eval(expr, &RowSource::constant(externals), &mut context)
}
