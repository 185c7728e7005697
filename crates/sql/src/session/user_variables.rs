//! User variables: what a client keeps in them, and what they were before a statement that is run again.

use super::Session;
use crate::store::Store;
use lats_values::{SqlError, Value};
use std::collections::BTreeMap;

/// What variables were before a statement has assigned them; none: there was no such variable.
pub(super) type FormerVariables = BTreeMap<String, Option<Value>>;

/// What a user variable takes.
pub(super) fn variable_bytes(name: &str, value: &Value) -> usize {
    const OVERHEAD: usize = 96;
    let heap = match value {
        Value::Text(text, _) => text.capacity(),
        Value::Bytes(bytes) => bytes.capacity(),
        _ => 0,
    };
    OVERHEAD + name.len() + heap
}

impl<S: Store> Session<S> {
    /// `SET @name = value`, and its like.
    ///
    /// # Errors
    /// 4081, 4082: the client keeps too much in its variables.
    pub(crate) fn set_user_variable(&mut self, name: &str, value: Value) -> Result<(), SqlError> {
        let value = lats_values::kept_in_variable(value);
        let before = self.variable_bytes(name);
        let bytes = variable_bytes(name, &value);
        match bytes.checked_sub(before) {
            Some(more) => self.variables_kept.grow(more)?,
            None => self.variables_kept.shrink(before - bytes),
        }
        let before = self.user_variables.insert(name.to_owned(), value);
        if let Some(former) = &mut self.former_variables
            && !former.contains_key(name)
        {
            former.insert(name.to_owned(), before);
        }
        Ok(())
    }

    /// The variables are again what they were before a statement.
    pub(super) fn restore_variables(&mut self) {
        let Some(former) = self.former_variables.take() else { return };
        for (name, value) in former {
            match value {
                Some(value) => self.user_variables.insert(name, value),
                None => self.user_variables.remove(&name),
            };
        }
        let each = self.user_variables.iter().map(|(name, value)| variable_bytes(name, value));
        // They were within their limit then.
        self.variables_kept.is_now(each.sum());
    }

    /// What a user variable takes.
    pub(super) fn variable_bytes(&self, name: &str) -> usize {
        self.user_variables.get(name).map_or(0, |value| variable_bytes(name, value))
    }
}
