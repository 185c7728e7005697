//! Plans by statement text, which all sessions of a process share.
//!
//! A plan is found again by its text, or by that of its shape, in the same database and with the same settings; it is used
//! while the catalog is the one that it was made from. Short texts are known by their skeletons, without being read. A query's plan is made for the types of its values from outside: a
//! text has a plan for each of the kinds of values that came last.

use crate::plan::Prepared;
use crate::skeleton::Known;
use lats_base::map::Map;
use lats_base::planted::{QueryBug, errs};
use lats_values::ColumnType;
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts with a lock each, so that threads seldom meet.
const PARTS: usize = 16;
/// Plans and bytes that all parts keep together.
const PLANS_MAX: usize = 4_096;
const BYTES_MAX: usize = 64 << 20;
/// Longer texts are rarely sent twice.
pub(super) const TEXT_BYTES_MAX: usize = 4 << 10;
/// Plans of a text, for values of other types each.
const VARIANTS_MAX: usize = 4;
/// What a plan takes, about: for itself, and for each byte of its text.
const PLAN_BYTES: usize = 4 << 10;
const BYTES_PER_TEXT_BYTE: usize = 48;
/// Skeletons, and bytes of what is known of them, that all parts keep together.
const SKELETONS_MAX: usize = 4_096;
const SKELETON_BYTES_MAX: usize = 8 << 20;
/// Settings that are told apart; when there are more, all is forgotten.
const SETTINGS_MAX: usize = 1_024;

/// The plans of a process.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    parts: [Mutex<Part>; PARTS],
    /// What settings plans were made with, and a number for each.
    settings: Mutex<BTreeMap<Vec<u8>, u64>>,
    next_settings: AtomicU64,
}

/// A bounded part of it; the plans that were not used for the longest time go first.
#[derive(Debug, Default)]
struct Part {
    texts: Map<Box<[u8]>, Entry>,
    plans: usize,
    bytes: usize,
    skeletons: Map<Box<[u8]>, Skeleton>,
    skeleton_bytes: usize,
    clock: u64,
}

/// What is known of texts with one skeleton.
#[derive(Debug)]
struct Skeleton {
    known: Arc<Known>,
    plan: Arc<Prepared>,
    used: u64,
}

impl Skeleton {
    fn bytes(&self, key: &[u8]) -> usize {
        size_of::<Self>() + size_of::<Known>() + self.known.bytes() + key.len()
    }
}

#[derive(Debug)]
struct Entry {
    /// The plan that was made last comes last.
    variants: Vec<Arc<Prepared>>,
    /// The catalog that all of them were made from.
    version: u64,
    used: u64,
}

impl Entry {
    fn bytes(&self, text: &[u8]) -> usize {
        self.variants.len() * plan_bytes(text)
    }
}

fn plan_bytes(text: &[u8]) -> usize {
    PLAN_BYTES + text.len() * BYTES_PER_TEXT_BYTE
}

/// What a prepared statement takes, about. The plan of a short text is here anyway, and others have it, too.
pub(super) fn statement_bytes(text: &[u8], prepared: &Prepared) -> usize {
    let is_shared = text.len() <= TEXT_BYTES_MAX && prepared.is_kept();
    let plan = if is_shared { PLAN_BYTES } else { prepared.bytes.max(PLAN_BYTES) };
    text.len() + plan
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PlanCache {
    /// The number of what plans depend on beside the text.
    pub(super) fn settings(&self, bytes: Vec<u8>) -> u64 {
        let mut known = locked(&self.settings);
        if let Some(number) = known.get(&bytes) {
            return *number;
        }
        if known.len() >= SETTINGS_MAX {
            // Numbers are not used again: sessions that have one keep it.
            known.clear();
        }
        let number = self.new_number();
        known.insert(bytes, number);
        number
    }

    /// A number that nobody has had yet.
    pub(super) fn new_number(&self) -> u64 {
        self.next_settings.fetch_add(1, Ordering::Relaxed)
    }

    /// The plan for a key that is still right; with types, the one for values of these.
    pub(super) fn get(
        &self,
        key: &[u8],
        types: Option<&[ColumnType]>,
        is_right: impl Fn(&Prepared) -> bool,
    ) -> Option<Arc<Prepared>> {
        let lower = errs(QueryBug::PlanOfOtherCase).then(|| key.to_ascii_lowercase());
        let key = lower.as_deref().unwrap_or(key);
        let mut part = locked(self.part(key));
        part.clock += 1;
        let now = part.clock;
        let entry = part.texts.get_mut(key)?;
        entry.used = now;
        let fits = |plan: &&Arc<Prepared>| match (types, plan.external_types()) {
            (Some(types), Some(made_for)) => types == made_for || errs(QueryBug::PlanOfOtherTypes),
            _ => true,
        };
        let found = entry.variants.iter().rev().find(fits).map(Arc::clone);
        drop(part);
        found.filter(|plan| is_right(plan))
    }

    /// Keeps a plan.
    pub(super) fn insert(&self, key: &[u8], prepared: Arc<Prepared>) {
        if key.len() > TEXT_BYTES_MAX {
            return;
        }
        let lower = errs(QueryBug::PlanOfOtherCase).then(|| key.to_ascii_lowercase());
        let key = lower.as_deref().unwrap_or(key);
        let mut part = locked(self.part(key));
        let full = part.plans >= PLANS_MAX / PARTS || part.bytes >= BYTES_MAX / PARTS;
        if full {
            part.drop_older_half();
        }
        part.insert(key, prepared);
    }

    /// What is known of the texts with a skeleton, and the plan for them.
    pub(super) fn known(&self, key: &[u8]) -> Option<(Arc<Known>, Arc<Prepared>)> {
        let mut part = locked(self.part(key));
        part.clock += 1;
        let now = part.clock;
        let found = part.skeletons.get_mut(key)?;
        found.used = now;
        Some((Arc::clone(&found.known), Arc::clone(&found.plan)))
    }

    /// Keeps what is known of the texts with a skeleton, in place of what was known.
    pub(super) fn keep_known(&self, key: &[u8], known: Known, plan: &Arc<Prepared>) {
        let mut part = locked(self.part(key));
        let full = part.skeletons.len() >= SKELETONS_MAX / PARTS
            || part.skeleton_bytes >= SKELETON_BYTES_MAX / PARTS;
        if full {
            part.drop_older_skeletons();
        }
        part.keep(key, Arc::new(known), Arc::clone(plan));
    }

    fn part(&self, key: &[u8]) -> &Mutex<Part> {
        let hash = Map::<(), ()>::default().hasher().hash_one(key);
        &self.parts[usize::from(hash.to_be_bytes()[0]) % PARTS]
    }
}

impl Part {
    fn insert(&mut self, key: &[u8], prepared: Arc<Prepared>) {
        self.clock += 1;
        let mut entry = match self.texts.remove(key) {
            Some(entry) => {
                self.plans -= entry.variants.len();
                self.bytes -= entry.bytes(key);
                entry
            }
            None => Entry { variants: Vec::new(), version: 0, used: 0 },
        };
        if entry.version != prepared.catalog_version {
            entry.variants.clear();
            entry.version = prepared.catalog_version;
        }
        entry.variants.retain(|plan| plan.external_types() != prepared.external_types());
        if entry.variants.len() >= VARIANTS_MAX {
            entry.variants.remove(0);
        }
        entry.variants.push(prepared);
        entry.used = self.clock;
        self.plans += entry.variants.len();
        self.bytes += entry.bytes(key);
        self.texts.insert(key.into(), entry);
    }

    fn keep(&mut self, key: &[u8], known: Arc<Known>, plan: Arc<Prepared>) {
        self.clock += 1;
        let skeleton = Skeleton { known, plan, used: self.clock };
        self.skeleton_bytes += skeleton.bytes(key);
        if let Some(former) = self.skeletons.insert(key.into(), skeleton) {
            self.skeleton_bytes -= former.bytes(key);
        }
    }

    fn drop_older_skeletons(&mut self) {
        let mut used: Vec<u64> = self.skeletons.values().map(|skeleton| skeleton.used).collect();
        used.sort_unstable();
        let middle = used.get(used.len() / 2).copied().unwrap_or(0);
        self.skeletons.retain(|_, skeleton| skeleton.used > middle);
        self.skeleton_bytes = self.skeletons.iter().map(|(key, of)| of.bytes(key)).sum();
    }

    /// Half at once, so that a stream of new texts costs little for each.
    fn drop_older_half(&mut self) {
        let mut used: Vec<u64> = self.texts.values().map(|entry| entry.used).collect();
        used.sort_unstable();
        let middle = used.get(used.len() / 2).copied().unwrap_or(0);
        self.texts.retain(|_, entry| entry.used > middle);
        self.plans = self.texts.values().map(|entry| entry.variants.len()).sum();
        self.bytes = self.texts.iter().map(|(key, entry)| entry.bytes(key)).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    fn plan(version: u64) -> Arc<Prepared> {
        Arc::new(Prepared {
            plan: Plan::Set(Vec::new()),
            externals: Vec::new(),
            parameters: 0,
            catalog_version: version,
            reads_constants: false,
            time_limit_ms: 0,
            bytes: 0,
        })
    }

    fn get(cache: &PlanCache, key: &[u8], version: u64) -> Option<Arc<Prepared>> {
        cache.get(key, None, |plan| plan.catalog_version == version)
    }

    #[test]
    fn a_plan_is_found_while_the_catalog_is_the_same() {
        let cache = PlanCache::default();
        let first = plan(1);
        cache.insert(b"a", Arc::clone(&first));
        let found = get(&cache, b"a", 1).unwrap();
        assert!(Arc::ptr_eq(&found, &first));
        assert!(get(&cache, b"a", 2).is_none());
        assert!(get(&cache, b"b", 1).is_none());
        let second = plan(2);
        cache.insert(b"a", Arc::clone(&second));
        assert!(Arc::ptr_eq(&get(&cache, b"a", 2).unwrap(), &second));
        assert!(get(&cache, b"a", 1).is_none());
    }

    #[test]
    fn plans_and_their_bytes_are_bounded() {
        let cache = PlanCache::default();
        let last = 40_000_u32;
        for number in 0..=last {
            cache.insert(format!("{number:0100}").as_bytes(), plan(1));
        }
        let kept: usize = cache.parts.iter().map(|part| locked(part).plans).sum();
        assert!(kept <= PLANS_MAX && kept > PLANS_MAX / 4, "{kept}");
        assert!(get(&cache, format!("{last:0100}").as_bytes(), 1).is_some());
        for number in 0..10_000 {
            cache.insert(format!("{number:04000}").as_bytes(), plan(1));
        }
        let bytes: usize = cache.parts.iter().map(|part| locked(part).bytes).sum();
        assert!(bytes <= BYTES_MAX + PARTS * plan_bytes(&[0; 4_000]), "{bytes}");
        let plans: usize = cache.parts.iter().map(|part| locked(part).plans).sum();
        assert!(plans < 1_000, "{plans}");
        cache.insert(&[b'x'; TEXT_BYTES_MAX + 1], plan(1));
        assert!(get(&cache, &[b'x'; TEXT_BYTES_MAX + 1], 1).is_none());
    }

    #[test]
    fn skeletons_and_their_bytes_are_bounded() {
        let cache = PlanCache::default();
        let known = |text: &str| {
            let (mut key, mode) = (Vec::new(), lats_mysql_syntax::Mode::default());
            let spans = crate::skeleton::read(text.as_bytes(), &mut key).unwrap();
            let shape = crate::shape::Shape::of(text.as_bytes(), mode).unwrap();
            Known::of(text.as_bytes(), &spans, &shape).unwrap()
        };
        let kept = |cache: &PlanCache| -> (usize, usize) {
            cache.parts.iter().fold((0, 0), |(skeletons, bytes), part| {
                let part = locked(part);
                (skeletons + part.skeletons.len(), bytes + part.skeleton_bytes)
            })
        };
        let plan = plan(1);
        for number in 0..20_000_u32 {
            cache.keep_known(&number.to_be_bytes(), known("SELECT a FROM t WHERE a = 1"), &plan);
        }
        let (skeletons, _) = kept(&cache);
        assert!(skeletons <= SKELETONS_MAX && skeletons > SKELETONS_MAX / 4, "{skeletons}");
        assert!(cache.known(&19_999_u32.to_be_bytes()).is_some());
        let long = format!("SELECT a FROM t WHERE a = 1 AND b = -{}", "1".repeat(3_900));
        for number in 0..5_000_u32 {
            cache.keep_known(&number.to_be_bytes(), known(&long), &plan);
        }
        let (_, bytes) = kept(&cache);
        assert!(bytes <= SKELETON_BYTES_MAX + PARTS * 10_000, "{bytes}");
        assert!(bytes > SKELETON_BYTES_MAX / 4, "{bytes}");
        // The same again takes nothing more.
        cache.keep_known(&4_999_u32.to_be_bytes(), known(&long), &plan);
        assert!(kept(&cache).1 <= bytes, "{bytes}");
    }

    #[test]
    fn settings_have_numbers_that_are_never_used_again() {
        let cache = PlanCache::default();
        let first = cache.settings(vec![1]);
        assert_eq!(cache.settings(vec![1]), first);
        assert_ne!(cache.settings(vec![2]), first);
        for number in 0..5_000_u32 {
            cache.settings(number.to_be_bytes().to_vec());
        }
        assert!(locked(&cache.settings).len() <= SETTINGS_MAX);
        assert!(cache.settings(vec![1]) > 5_000);
    }
}
