//! What the matches of one call take together (3699). A search alone takes time linear in the text, or so many steps; a call that looks
//! for all matches searches again and again, and each search may look at all that is left of the text.

use super::{CHARS_PER_WORK, Compiled, STEPS_MAX, failed};
use crate::{Ends, EvalContext, SqlError};
use alloc::sync::Arc;
use regex_automata::{
    Input,
    hybrid::dfa::{Cache, DFA},
    nfa::thompson,
    util::syntax,
};

/// Bytes that the searches of a call may look at.
const LOOKED_MAX: u64 = 64 << 20;
/// As long as searches cannot have looked at more than this, nobody counts.
const UNCOUNTED_MAX: u64 = 4 << 20;
/// Steps that the searches of a call may take, of patterns that need steps.
const CALL_STEPS_MAX: u64 = 16 * STEPS_MAX as u64;
/// Steps that cost as much as looking at a byte, about.
const STEPS_PER_BYTE: u64 = 8;

/// Bytes that are looked at until it is asked whether the statement is to end, and what a step counts as.
const ASK_BYTES: u64 = 1 << 20;
const BYTES_PER_STEP: u64 = 16;

/// What the searches of a call have done.
#[derive(Debug, Default)]
pub(super) struct Effort {
    looked: u64,
    steps: u64,
    /// Who says whether the statement is to end, and what was done since it was asked.
    ends: Option<Arc<dyn Ends>>,
    since: u64,
    /// Looks at the text as a search does, byte by byte.
    walker: Option<Walker>,
}

#[derive(Debug)]
enum Walker {
    Dfa(alloc::boxed::Box<(DFA, Cache)>),
    /// The pattern is too large to be walked.
    None,
}

impl Effort {
    /// Of a call that nothing was done for yet.
    pub(super) fn new(ctx: &EvalContext) -> Self {
        Self { ends: ctx.ends.clone(), ..Self::default() }
    }

    /// Asks now and then whether the statement is to end.
    fn ask(&mut self, bytes: u64) -> Result<(), SqlError> {
        self.since = self.since.saturating_add(bytes);
        if self.since < ASK_BYTES {
            return Ok(());
        }
        self.since = 0;
        self.ends.as_ref().and_then(|ends| ends.error()).map_or(Ok(()), Err)
    }

    /// A search through the text from a place on begins.
    pub(super) fn begin(
        &mut self,
        pattern: &Compiled,
        text: &str,
        from: usize,
    ) -> Result<(), SqlError> {
        let has_steps = !pattern.quick.is_empty();
        let left = text.len().saturating_sub(from) as u64;
        let before = self.looked;
        let at_most = before.saturating_add(left);
        if at_most <= UNCOUNTED_MAX || has_steps {
            self.looked = at_most;
        } else {
            let walker = self.walker.get_or_insert_with(|| Walker::of(pattern));
            let looked = walker.walk(text.as_bytes(), from).map_or(left, |bytes| bytes as u64);
            self.looked = self.looked.saturating_add(looked);
        }
        if !has_steps {
            self.ask(self.looked - before)?;
        }
        // Searches of patterns that need steps are counted by these.
        if self.looked > LOOKED_MAX && !has_steps { Err(failed()) } else { Ok(()) }
    }

    /// A search that may take so many steps begins.
    pub(super) fn step(&mut self, steps: usize) -> Result<(), SqlError> {
        self.steps += steps as u64;
        self.ask(steps as u64 * BYTES_PER_STEP)?;
        if self.steps > CALL_STEPS_MAX { Err(failed()) } else { Ok(()) }
    }

    /// Counts as work what was done, so that operators pause.
    pub(super) fn charge(self, ctx: &mut EvalContext) -> Result<(), SqlError> {
        ctx.charge(self.looked / CHARS_PER_WORK + self.steps / STEPS_PER_BYTE)
    }
}

impl Walker {
    fn of(pattern: &Compiled) -> Self {
        let limit = super::PATTERN_BYTES_MAX;
        let built = DFA::builder()
            .syntax(syntax::Config::new().case_insensitive(pattern.ignores_case))
            .thompson(thompson::Config::new().nfa_size_limit(Some(limit)))
            .configure(
                DFA::config()
                    .cache_capacity(limit)
                    .skip_cache_capacity_check(true)
                    .unicode_word_boundary(true),
            )
            .build(pattern.regex.as_str());
        built.map_or(Self::None, |dfa| {
            let cache = dfa.create_cache();
            Self::Dfa(alloc::boxed::Box::new((dfa, cache)))
        })
    }

    /// How many bytes a search from this place on looks at; none if that cannot be told.
    fn walk(&mut self, text: &[u8], from: usize) -> Option<usize> {
        let Self::Dfa(walker) = self else { return None };
        let (dfa, cache) = &mut **walker;
        let input = Input::new(text).range(from..);
        let mut state = dfa.start_state_forward(cache, &input).ok()?;
        for (at, byte) in text.iter().enumerate().skip(from) {
            state = dfa.next_state(cache, state, *byte).ok()?;
            if state.is_dead() {
                return Some(at - from);
            }
            if state.is_quit() {
                return None;
            }
        }
        Some(text.len() - from)
    }
}

/// True if a pattern needs steps: it has what an automaton cannot do, such as back-references.
pub(super) fn needs_steps(regex: &str, ignores_case: bool) -> bool {
    let config = syntax::Config::new().case_insensitive(ignores_case);
    syntax::parse_with(regex, &config).is_err()
}
