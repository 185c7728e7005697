//! The operands of an expression.

use super::Expr;
use alloc::vec::Vec;

impl Expr {
    /// Its operands, in their order.
    pub fn children(&self) -> Vec<&Self> {
        match self {
            Self::Literal(_) | Self::Column(_) => Vec::new(),
            Self::Unary { arg, .. }
            | Self::IsNull { arg, .. }
            | Self::Cast { arg, .. }
            | Self::Collate { arg, .. } => Vec::from([&**arg]),
            Self::Binary { left, right, .. } | Self::Compare { left, right, .. } => {
                Vec::from([&**left, right])
            }
            Self::Like { arg, pattern, .. } => Vec::from([&**arg, pattern]),
            Self::Between { arg, low, high, .. } => Vec::from([&**arg, low, high]),
            Self::In { arg, list, .. } => core::iter::once(&**arg).chain(list).collect(),
            Self::Case { operand, branches, otherwise } => {
                let pairs = branches.iter().flat_map(|(when, then)| [when, then]);
                operand.as_deref().into_iter().chain(pairs).chain(otherwise.as_deref()).collect()
            }
            Self::Call { args, .. } => args.iter().collect(),
        }
    }

    /// True for a text that was given the collation of others beside it, and holds to it no more than they do: it has it twice.
    pub fn is_converted(&self) -> bool {
        let Self::Collate { arg, collation } = self else { return false };
        matches!(&**arg, Self::Collate { collation: inner, .. } if inner == collation)
    }

    /// Its operands, to be changed; an IN's list is no longer searched, but walked.
    pub fn children_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::Literal(_) | Self::Column(_) => Vec::new(),
            Self::Unary { arg, .. }
            | Self::IsNull { arg, .. }
            | Self::Cast { arg, .. }
            | Self::Collate { arg, .. } => Vec::from([&mut **arg]),
            Self::Binary { left, right, .. } | Self::Compare { left, right, .. } => {
                Vec::from([&mut **left, right])
            }
            Self::Like { arg, pattern, .. } => Vec::from([&mut **arg, pattern]),
            Self::Between { arg, low, high, .. } => Vec::from([&mut **arg, low, high]),
            Self::In { arg, list, .. } => {
                core::iter::once(&mut **arg).chain(list.items_mut()).collect()
            }
            Self::Case { operand, branches, otherwise } => {
                let pairs = branches.iter_mut().flat_map(|(when, then)| [when, then]);
                let rest = otherwise.as_deref_mut();
                operand.as_deref_mut().into_iter().chain(pairs).chain(rest).collect()
            }
            Self::Call { args, .. } => args.iter_mut().collect(),
        }
    }
}
