//! WITH CHECK OPTION, row by row.

use crate::error::Failure;
use crate::exec::OnlyRow;
use crate::expr::{External, ValuesSource};
use crate::plan::check::{Check, CheckKind};
use crate::session::Session;
use crate::store::Store;
use lats_values::{EvalContext, Value};

impl<S: Store> Session<S> {
    /// True if a row, beside values of other tables, is one of the view's.
    pub(super) async fn passes(
        &mut self,
        check: &Check,
        row: &[Value],
        others: &[Value],
    ) -> Result<bool, Failure> {
        let mut externals = self.externals(&check.externals, &[])?;
        match &check.kind {
            CheckKind::Row(condition) => {
                let source = ValuesSource { row, externals: &externals };
                let mut context = EvalContext::new(false);
                Ok(lats_values::is_true(condition, &source, &mut context)?)
            }
            CheckKind::Query(plan) => {
                for (value, external) in externals.iter_mut().zip(&check.externals) {
                    if let External::OfRow(place) = external {
                        let place = *place as usize;
                        let found = row.get(place);
                        let found = found.or_else(|| others.get(place.checked_sub(row.len())?));
                        *value = found.cloned().unwrap_or(Value::Null);
                    }
                }
                let mut only = OnlyRow::default();
                self.produce(plan, &externals, &mut only, false).await?;
                let value = only.row.and_then(|row| row.into_iter().next());
                Ok(value.is_some_and(|value| value.truth() == Some(true)))
            }
        }
    }
}
