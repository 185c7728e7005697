//! Keywords: which words are special, and where each of them may also be a name.

mod list;

pub use list::Keyword;
use list::{ALL, CLASSES, NAMES};

/// What a keyword may be used for besides its own meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It is never a name without quotes.
    Reserved,
    /// It is special directly before a parenthesis only.
    Function,
    /// It may name anything but a role or a label.
    NeitherRoleNorLabel,
    /// It may name anything but a label.
    NotLabel,
    /// It may name anything but a role.
    NotRole,
    /// It may name anything, but before the name of a variable it is a scope.
    Scope,
    /// It may name anything.
    Free,
}

/// Makes the enumeration of keywords and the tables beside it.
macro_rules! keywords {
    ($($class:ident: $($word:ident)+;)+) => {
        use super::Class;

        /// A word with a meaning of its own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "they are written as in the manual")]
        #[repr(u16)]
        pub enum Keyword {
            /// Not a keyword.
            None,
            $($(#[doc = stringify!($word)] $word,)+)+
        }
        /// All keywords; the first is no keyword.
        pub(super) const ALL: &[Keyword] = &[Keyword::None, $($(Keyword::$word,)+)+];
        /// Their names.
        pub(super) const NAMES: &[&str] = &["", $($(stringify!($word),)+)+];
        /// Their classes.
        pub(super) const CLASSES: &[Class] = &[Class::Free, $($($crate::keyword::one!($word, Class::$class),)+)+];
    };
}
use keywords;

/// The second of two things, once for each of the first.
macro_rules! one {
    ($word:ident, $value:expr) => {
        $value
    };
}
use one;

const SLOTS: usize = 4_096;

/// Which keyword hashes to which place; a place that is taken sends the keyword to the next.
static TABLE: [u16; SLOTS] = table();

const fn hash(hash: u32, byte: u8) -> u32 {
    (hash ^ byte as u32).wrapping_mul(0x0100_0193)
}

const fn slot(hash: u32) -> usize {
    ((hash ^ (hash >> 15)) as usize) % SLOTS
}

const fn table() -> [u16; SLOTS] {
    let mut table = [0u16; SLOTS];
    let mut at = 1;
    while at < NAMES.len() {
        let name = NAMES[at].as_bytes();
        let mut key = 0x811c_9dc5;
        let mut byte = 0;
        while byte < name.len() {
            key = hash(key, name[byte]);
            byte += 1;
        }
        let mut place = slot(key);
        while table[place] != 0 {
            place = (place + 1) % SLOTS;
        }
        table[place] = at as u16;
        at += 1;
    }
    table
}

impl Keyword {
    /// The keyword with this spelling, in upper or lower case.
    #[must_use]
    pub fn find(word: &[u8]) -> Self {
        if word.len() > 40 {
            return Self::None;
        }
        let key = word.iter().fold(0x811c_9dc5, |key, byte| hash(key, byte.to_ascii_uppercase()));
        let mut place = slot(key);
        while TABLE[place] != 0 {
            let at = usize::from(TABLE[place]);
            if NAMES[at].as_bytes().eq_ignore_ascii_case(word) {
                return ALL[at];
            }
            place = (place + 1) % SLOTS;
        }
        Self::None
    }

    /// The spelling in upper case.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// What the keyword may be used for.
    #[must_use]
    pub fn class(self) -> Class {
        CLASSES[self as usize]
    }

    /// True if the word is a keyword that cannot be a name without quotes.
    #[must_use]
    pub fn is_reserved(self) -> bool {
        matches!(self.class(), Class::Reserved | Class::Function)
    }
}

#[test]
fn every_keyword_is_found_by_its_name() {
    assert_eq!(ALL.len(), NAMES.len());
    assert_eq!(ALL.len(), CLASSES.len());
    for (at, name) in NAMES.iter().enumerate().skip(1) {
        assert_eq!(Keyword::find(name.as_bytes()), ALL[at], "{name}");
        assert_eq!(Keyword::find(name.to_ascii_lowercase().as_bytes()), ALL[at], "{name}");
        assert_eq!(ALL[at].name(), *name);
        assert_eq!(ALL.iter().filter(|k| k.name() == *name).count(), 1, "{name}");
    }
    assert_eq!(Keyword::find(b"latsdb"), Keyword::None);
    assert!(Keyword::SELECT.is_reserved() && !Keyword::VALUE.is_reserved());
}
