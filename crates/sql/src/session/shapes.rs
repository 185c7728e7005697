//! Texts that differ in constants only, and their plan.

use super::Session;
use crate::plan::Prepared;
use crate::shape::Shape;
use crate::skeleton::{self, Known, Spans};
use crate::store::Store;
use lats_values::Value;
use std::sync::Arc;

/// A text as one that was planned, and the constants that make it this one.
pub(super) struct Shaped {
    pub(super) template: Arc<[u8]>,
    pub(super) values: Vec<Value>,
}

impl<S: Store> Session<S> {
    /// A statement's shape and its plan, if it has one: what is wrong with a statement is said of its own text.
    pub(super) async fn shape_of(&mut self, text: &[u8]) -> Option<(Shaped, Arc<Prepared>)> {
        let spans = self.skeleton_of(text);
        if let Some(spans) = &spans {
            if spans.is_empty() {
                return None;
            }
            if let Some(found) = self.known_shape(text, spans) {
                return Some(found);
            }
        }
        let shape = Shape::of(text, self.syntax_mode)?;
        let planned = self.lookup(&shape.template, None).await.ok()?;
        if planned.reads_constants {
            return None;
        }
        if planned.is_kept() && spans.is_some() {
            self.keep_shape(text, &shape, &planned);
        }
        Some((Shaped { template: shape.template, values: shape.values }, planned))
    }

    /// Makes the key of a text's skeleton, and tells where its constants are.
    fn skeleton_of(&mut self, text: &[u8]) -> Option<Spans> {
        let mut key = std::mem::take(&mut self.key);
        self.begin_key(&mut key, self.database.as_deref(), self.syntax_mode);
        let spans = skeleton::read(text, &mut key);
        self.key = key;
        spans
    }

    /// What is known of texts with this key's skeleton, and their plan.
    fn known_shape(&self, text: &[u8], spans: &Spans) -> Option<(Shaped, Arc<Prepared>)> {
        let (known, plan) = self.shared.plans().known(&self.key)?;
        let values = known.values(text, spans)?;
        let is_right = self.is_right(&plan, self.shared.store.catalog().version);
        is_right.then(|| (Shaped { template: Arc::clone(&known.template), values }, plan))
    }

    fn keep_shape(&mut self, text: &[u8], shape: &Shape, planned: &Arc<Prepared>) {
        // Another text's key has been made since.
        let Some(spans) = self.skeleton_of(text) else { return };
        if let Some(known) = Known::of(text, &spans, shape) {
            self.shared.plans().keep_known(&self.key, known, planned);
        }
    }
}
