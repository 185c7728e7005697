//! The list of an IN: long lists of constants are searched, not walked.

use super::Expr;
use crate::{Collation, Value, collation};
use alloc::{boxed::Box, vec::Vec};
use serde::{Deserialize, Serialize};

/// Shorter lists are walked.
const SEARCHED_MIN: usize = 8;

/// The expressions of an IN's list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<Expr>", into = "Vec<Expr>")]
pub struct InList {
    items: Vec<Expr>,
    constants: Constants,
}

/// The constants of a list that has nothing else, sorted.
#[derive(Clone, Debug)]
enum Constants {
    /// It has something else, or is short.
    Mixed,
    Integers(Vec<i128>),
    /// Keys of texts under the default collation.
    Texts(Vec<Box<[u8]>>),
}

/// What a search in a list's constants finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    Found,
    Missing,
    /// The list must be walked.
    Walk,
}

impl InList {
    /// Sorts the constants, if there are many: it pays when the list is searched for many rows.
    pub(crate) fn sort(&mut self) {
        self.constants = constants_of(&self.items);
    }

    /// The expressions, to be changed: what was sorted is no longer known.
    pub(super) fn items_mut(&mut self) -> &mut [Expr] {
        self.constants = Constants::Mixed;
        &mut self.items
    }

    /// Looks for a value that an expression other than a constant gave.
    pub(super) fn search(&self, value: &Value) -> Search {
        let found = match (&self.constants, value) {
            (Constants::Integers(sorted), Value::Int(n)) => {
                sorted.binary_search(&i128::from(*n)).is_ok()
            }
            (Constants::Integers(sorted), Value::UInt(n)) => {
                sorted.binary_search(&i128::from(*n)).is_ok()
            }
            // A column's collation is stronger than a constant's.
            (Constants::Texts(sorted), Value::Text(text, of)) if *of == Collation::default() => {
                sorted.binary_search(&key(text)).is_ok()
            }
            _ => return Search::Walk,
        };
        if found { Search::Found } else { Search::Missing }
    }
}

/// Sorts the lists within an expression.
pub(crate) fn sort_lists(expr: &mut Expr) {
    let mut left = Vec::from([expr]);
    while let Some(expr) = left.pop() {
        if let Expr::In { arg, list, .. } = expr {
            list.sort();
            left.push(arg);
        } else {
            left.extend(expr.children_mut());
        }
    }
}

fn key(text: &str) -> Box<[u8]> {
    let mut key = Vec::new();
    collation::append_key(Collation::default(), text, &mut key);
    key.into()
}

fn constants_of(items: &[Expr]) -> Constants {
    if items.len() < SEARCHED_MIN {
        return Constants::Mixed;
    }
    let integer = |item: &Expr| match item {
        Expr::Literal(Value::Int(n)) => Some(i128::from(*n)),
        Expr::Literal(Value::UInt(n)) => Some(i128::from(*n)),
        _ => None,
    };
    if let Some(mut integers) = items.iter().map(integer).collect::<Option<Vec<_>>>() {
        integers.sort_unstable();
        return Constants::Integers(integers);
    }
    let text = |item: &Expr| match item {
        Expr::Literal(Value::Text(text, _)) => Some(key(text)),
        _ => None,
    };
    match items.iter().map(text).collect::<Option<Vec<_>>>() {
        Some(mut texts) => {
            texts.sort_unstable();
            Constants::Texts(texts)
        }
        None => Constants::Mixed,
    }
}

impl From<Vec<Expr>> for InList {
    fn from(items: Vec<Expr>) -> Self {
        Self { constants: Constants::Mixed, items }
    }
}

impl FromIterator<Expr> for InList {
    fn from_iter<I: IntoIterator<Item = Expr>>(items: I) -> Self {
        Self::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl From<InList> for Vec<Expr> {
    fn from(list: InList) -> Self {
        list.items
    }
}

impl core::ops::Deref for InList {
    type Target = [Expr];

    fn deref(&self) -> &[Expr] {
        &self.items
    }
}

impl PartialEq for InList {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<'a> IntoIterator for &'a InList {
    type Item = &'a Expr;
    type IntoIter = core::slice::Iter<'a, Expr>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}
