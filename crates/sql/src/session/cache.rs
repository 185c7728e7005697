//! Plans by statement text.

use crate::plan::Prepared;
use lats_base::map::Map;
use std::sync::Arc;

/// Plans that one session keeps.
const PLANS_MAX: usize = 256;
/// Longer texts are rarely sent twice.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// A bounded cache; the plan that was not used for the longest time goes first.
#[derive(Default)]
pub struct PlanCache {
    plans: Map<Box<[u8]>, Entry>,
    clock: u64,
}

struct Entry {
    prepared: Arc<Prepared>,
    used: u64,
}

impl PlanCache {
    /// The plan for a text.
    pub fn get(&mut self, text: &[u8]) -> Option<Arc<Prepared>> {
        self.clock += 1;
        let entry = self.plans.get_mut(text)?;
        entry.used = self.clock;
        Some(Arc::clone(&entry.prepared))
    }

    /// Keeps a plan.
    pub fn insert(&mut self, text: &[u8], prepared: Arc<Prepared>) {
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        if self.plans.len() >= PLANS_MAX {
            self.drop_older_half();
        }
        self.clock += 1;
        self.plans.insert(text.into(), Entry { prepared, used: self.clock });
    }

    /// Forgets all plans.
    pub fn clear(&mut self) {
        self.plans.clear();
    }

    /// Half at once, so that a stream of new texts costs little for each.
    fn drop_older_half(&mut self) {
        let mut used: Vec<u64> = self.plans.values().map(|entry| entry.used).collect();
        used.sort_unstable();
        let middle = used.get(used.len() / 2).copied().unwrap_or(0);
        self.plans.retain(|_, entry| entry.used > middle);
    }
}
