//! SQL_CALC_FOUND_ROWS: the LIMIT of the whole statement is left to who sends its rows, so that all of them can be counted.

use super::Binder;
use crate::error;
use lats_engine::ir::Scalar;
use lats_mysql_syntax::tree::{Body, BodyId, QueryId, SelectOptions};
use lats_values::SqlError;

/// A LIMIT that is not in the plan: count and offset.
pub(crate) type Counted = (Option<Scalar>, Option<Scalar>);

impl Binder<'_> {
    /// The options of the first SELECT of a query.
    fn first_options(&self, mut body: BodyId) -> SelectOptions {
        loop {
            body = match self.tree().body(body) {
                Body::Select(select) => return select.options,
                Body::Set { left, .. } => *left,
                Body::Nested(query) => self.tree().query(*query).body,
                Body::Values(_) | Body::Table(_) => return SelectOptions::default(),
            };
        }
    }

    /// True for the query that is the statement, if it counts all of its rows. Of a query in parentheses, those that it gives are
    /// counted.
    pub(super) fn counts_rows(&self, query: QueryId) -> bool {
        let body = self.tree().query(query).body;
        let is_outermost = self.depth == 1 && self.blocks.len() == 1;
        let is_own = matches!(self.tree().body(body), Body::Select(_) | Body::Set { .. });
        is_outermost && is_own && self.first_options(body).calc_found_rows
    }

    /// Options of a SELECT that is not the first of its statement.
    ///
    /// # Errors
    /// 1234 for those that are about the whole result.
    pub(super) fn refuse_options_of_result(&self, body: BodyId) -> Result<(), SqlError> {
        let options = self.first_options(body);
        let misplaced = [
            (options.calc_found_rows, "SQL_CALC_FOUND_ROWS"),
            (options.buffer_result, "SQL_BUFFER_RESULT"),
        ];
        match misplaced.iter().find(|(is_there, _)| *is_there) {
            Some((_, name)) => {
                let text = format!("Incorrect usage/placement of '{name}'");
                Err(error::make(1234, "42000", &text))
            }
            None => Ok(()),
        }
    }
}
