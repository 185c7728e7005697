//! The aggregate functions and their names.

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    /// `COUNT(*)`.
    CountStar,
    /// `COUNT(x)`, `COUNT(DISTINCT x, y, …)`: rows in which no argument is NULL.
    Count,
    /// `SUM(x)`.
    Sum,
    /// `MIN(x)`.
    Min,
    /// `MAX(x)`.
    Max,
    /// `AVG(x)`.
    Avg,
    /// `STDDEV_POP(x)`, also called STD and STDDEV.
    StdPop,
    /// `STDDEV_SAMP(x)`.
    StdSamp,
    /// `VAR_POP(x)`, also called VARIANCE.
    VarPop,
    /// `VAR_SAMP(x)`.
    VarSamp,
    /// `BIT_AND(x)`.
    BitAnd,
    /// `BIT_OR(x)`.
    BitOr,
    /// `BIT_XOR(x)`.
    BitXor,
    /// `ANY_VALUE(x)`: that of the first row, NULL or not.
    AnyValue,
    /// `GROUP_CONCAT(x, y, … ORDER BY … SEPARATOR '…')`.
    GroupConcat,
}

/// The names in SQL; the first one of a kind is the one that is shown.
static NAMES: &[(&str, AggregateKind)] = &[
    ("COUNT", AggregateKind::Count),
    ("SUM", AggregateKind::Sum),
    ("MIN", AggregateKind::Min),
    ("MAX", AggregateKind::Max),
    ("AVG", AggregateKind::Avg),
    ("STD", AggregateKind::StdPop),
    ("STDDEV", AggregateKind::StdPop),
    ("STDDEV_POP", AggregateKind::StdPop),
    ("STDDEV_SAMP", AggregateKind::StdSamp),
    ("VAR_POP", AggregateKind::VarPop),
    ("VARIANCE", AggregateKind::VarPop),
    ("VAR_SAMP", AggregateKind::VarSamp),
    ("BIT_AND", AggregateKind::BitAnd),
    ("BIT_OR", AggregateKind::BitOr),
    ("BIT_XOR", AggregateKind::BitXor),
    ("ANY_VALUE", AggregateKind::AnyValue),
    ("GROUP_CONCAT", AggregateKind::GroupConcat),
];

impl AggregateKind {
    /// The aggregate of this name, in any case; `COUNT` for `COUNT(*)`, too.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
    }

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        let of = if self == Self::CountStar { Self::Count } else { self };
        NAMES.iter().find(|(_, kind)| *kind == of).map_or("", |(name, _)| name)
    }

    /// Whether DISTINCT may stand before its arguments.
    pub fn takes_distinct(self) -> bool {
        use AggregateKind::*;
        matches!(self, Count | Sum | Min | Max | Avg | GroupConcat)
    }

    /// Whether it takes more than one argument: COUNT does with DISTINCT only.
    pub fn takes_several(self, distinct: bool) -> bool {
        self == Self::GroupConcat || (self == Self::Count && distinct)
    }
}
