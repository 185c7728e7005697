//! Planted bugs of queries: mistakes that somebody might make, of which the comparison of generated statements must find each one
//! (`tests/differ/planted`). A checker that never failed is not trusted (`docs/testing.md`).
//!
//! Without the feature `planted`, [`errs`] is always false, and the compiler leaves nothing of them. With it, a process has at most one
//! of them, which its start-up hands over once: places that compare values have no context that could carry it.

macro_rules! bugs {
    ($($(#[$about:meta])* $bug:ident = $name:literal,)*) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum QueryBug {
            $($(#[$about])* $bug,)*
        }

        impl QueryBug {
            /// All of them, with what the command line calls them.
            pub const ALL: &[(Self, &str)] = &[$((Self::$bug, $name),)*];
        }
    };
}

bugs! {
    /// NOT IN becomes an anti-join although its condition may be unknown.
    AntiJoinOfUnknown = "anti-join-of-unknown",
    /// A semi-join gives a row for each partner.
    SemiJoinGivesPairs = "semi-join-gives-pairs",
    /// Conditions of a subquery are taken out past its LIMIT.
    LiftPastLimit = "lift-past-limit",
    /// A condition of WHERE about the right side of a left join moves into that side.
    WhereIntoOuterSide = "where-into-outer-side",
    /// A term of ON about the left side of a left join leaves rows out.
    OnLeavesLeftRowsOut = "on-leaves-left-rows-out",
    /// What ON says of the right side is implied for the left side of a left join, and leaves rows out.
    ImpliedLeavesLeftRowsOut = "implied-leaves-left-rows-out",
    /// A condition on the result of a query with windows moves below them.
    PushBelowWindow = "push-below-window",
    /// A condition on a key moves below groups with totals.
    PushBelowRollup = "push-below-rollup",
    /// A condition on a text moves below groups, in which texts are equal but not the same.
    PushTextKeyBelowGroups = "push-text-key-below-groups",
    /// A condition moves below LIMIT.
    PushBelowLimit = "push-below-limit",
    /// A left join becomes an inner join when one alternative of an OR leaves rows without partners out.
    OneAlternativeRejectsNulls = "one-alternative-rejects-nulls",
    /// A left join becomes an inner join with IS NULL.
    IsNullRejectsNulls = "is-null-rejects-nulls",
    /// A left join becomes an inner join with `<=>`.
    NullSafeRejectsNulls = "null-safe-rejects-nulls",
    /// Functions are taken to be NULL for NULL, IFNULL and COALESCE too.
    CallsRejectNulls = "calls-reject-nulls",
    /// What is said of a column is said of an equal column of another type.
    EqualColumnsOfOtherTypes = "equal-columns-of-other-types",
    /// What two alternatives have in common is taken for common to all.
    CommonToTwoAlternatives = "common-to-two-alternatives",
    /// Rows of a table are left out though an alternative says nothing about it.
    AboutSomeAlternatives = "about-some-alternatives",
    /// COUNT of a subquery without rows is NULL.
    CountWithoutGroup = "count-without-group",
    /// HAVING of a subquery that becomes a join with groups is forgotten.
    GroupedWithoutHaving = "grouped-without-having",
    /// Where tables are put in order, a condition of WHERE goes into ON of a left join.
    DueTermsIntoOn = "due-terms-into-on",
    /// Conditions that name no table are lost where tables are put in order.
    ConstantTermsLost = "constant-terms-lost",
    /// A hash join takes NULL for equal to NULL.
    HashJoinsNulls = "hash-joins-nulls",
    /// A hash join by `<=>` finds no NULL.
    HashForgetsNullSafe = "hash-forgets-null-safe",
    /// A hash join keeps one row of each key.
    HashKeepsOneOfEach = "hash-keeps-one-of-each",
    /// A row counts as joined before the rest of the condition was looked at.
    HashFindsTooEarly = "hash-finds-too-early",
    /// A row's further partners are lost when the chunk is full.
    HashDropsBehindFullChunk = "hash-drops-behind-full-chunk",
    /// A whole number and a decimal with the same value have other bytes in a hash join.
    HashWholeBesideDecimal = "hash-whole-beside-decimal",
    /// Texts are joined by their bytes.
    HashTextsByBytes = "hash-texts-by-bytes",
    /// A date is not joined with midnight of its day.
    HashDateBesideMoment = "hash-date-beside-moment",
    /// A lookup join takes one row for each request.
    LookupTakesOne = "lookup-takes-one",
    /// A row of a lookup join counts as joined before the rest of the condition was looked at.
    LookupFindsTooEarly = "lookup-finds-too-early",
    /// An anti-join by index looks at the index alone.
    LookupForgetsAntiResidual = "lookup-forgets-anti-residual",
    /// A row without a partner counts as joined when the row before it was.
    NestedRemembersPartner = "nested-remembers-partner",
    /// An anti-join with an empty right side gives no rows.
    NestedAntiWithoutRows = "nested-anti-without-rows",
    /// The result of a subquery is kept for texts that are equal but not the same.
    ApplyCacheByCollation = "apply-cache-by-collation",
    /// NULL IN (SELECT …) is false.
    NullInIsFalse = "null-in-is-false",
    /// IN (SELECT …) is false where it is unknown.
    MarkIsNeverUnknown = "mark-is-never-unknown",
    /// A subquery with two rows as a value gives the last one.
    SecondRowOverwrites = "second-row-overwrites",
    /// A column of USING shows the left side of a right join.
    UsingShowsLeftOfRightJoin = "using-shows-left-of-right-join",
    /// Columns of USING come in the order of its list.
    UsingInListedOrder = "using-in-listed-order",
    /// Columns of an outer join's right side are taken to be NOT NULL, as declared.
    OuterSideKeepsNotNull = "outer-side-keeps-not-null",
    /// GROUP BY takes a name of the select list before a column.
    GroupByAliasFirst = "group-by-alias-first",
    /// HAVING takes a column before a name of the select list.
    HavingColumnFirst = "having-column-first",
    /// A name in a subquery means a column of the query around it, if there is one.
    OutermostNameFirst = "outermost-name-first",
    /// `< ALL` takes `>` for the opposite of `<`.
    AllWithWrongOpposite = "all-with-wrong-opposite",
    /// UNION has the types of its first part.
    UnionOfFirstType = "union-of-first-type",
    /// A window with an order has the whole part as its frame.
    WindowFrameOfWholePart = "window-frame-of-whole-part",
    /// GROUPING gives its bits in the wrong order.
    GroupingBitsTurned = "grouping-bits-turned",
    /// A range that begins between two values of an index begins behind the larger one.
    IndexGapLosesRow = "index-gap-loses-row",
    /// A range of an index that has no lower end begins with NULL.
    IndexRangeHasNulls = "index-range-has-nulls",
    /// Rows in two ranges of an OR come twice.
    OverlappingRangesTwice = "overlapping-ranges-twice",
    /// A plan is used for values of other types.
    PlanOfOtherTypes = "plan-of-other-types",
    /// Statements that differ in the case of letters share a plan.
    PlanOfOtherCase = "plan-of-other-case",
    /// Of the constants that are taken out of a statement, those behind the third are read as the third.
    ConstantOfFirstUse = "constant-of-first-use",
    /// AND is NULL as soon as a term is, though a later one is false.
    AndStopsAtNull = "and-stops-at-null",
    /// BETWEEN with one NULL is NULL though the other end decides.
    BetweenWithNullIsNull = "between-with-null-is-null",
    /// IN with NULL in its list is false where it is unknown.
    InForgetsNull = "in-forgets-null",
    /// XOR takes NULL for false.
    XorOfNull = "xor-of-null",
    /// A constant's collation is stronger than a column's.
    LiteralDecidesCollation = "literal-decides-collation",
    /// LIKE tells upper case from lower case in each collation.
    LikeByBytes = "like-by-bytes",
    /// CASE NULL WHEN NULL takes the branch.
    CaseFindsNull = "case-finds-null",
    /// Large unsigned numbers are compared as negative ones.
    UnsignedComparedSigned = "unsigned-compared-signed",
    /// Of two collations the weaker one is used.
    WeakerCollationWins = "weaker-collation-wins",
    /// GROUP BY and DISTINCT tell 0 from -0.
    GroupsTellZerosApart = "groups-tell-zeros-apart",
    /// NULL sorts behind all values.
    NullsSortLast = "nulls-sort-last",
    /// Negative decimals are rounded half up instead of away from zero.
    NegativeRoundsUp = "negative-rounds-up",
    /// A quotient holds no more digits than it shows.
    QuotientsCutAsShown = "quotients-cut-as-shown",
    /// The remainder has the sign of the divisor.
    ModuloHasDivisorsSign = "modulo-has-divisors-sign",
    /// DIV of negative numbers rounds down.
    DivRoundsDown = "div-rounds-down",
    /// A month after 31 January is a day of March.
    MonthsRunOver = "months-run-over",
    /// TIMESTAMPDIFF of months does not look at the time of day.
    MonthsBetweenForgetTime = "months-between-forget-time",
    /// The last days of a year are never in week 1 of the next one.
    WeekOfNextYear = "week-of-next-year",
    /// COUNT(x) counts NULL.
    CountCountsNulls = "count-counts-nulls",
    /// COUNT(DISTINCT a, b) leaves out rows in which a is NULL, but not those in which b is.
    CountLooksAtFirst = "count-looks-at-first",
    /// SUM(DISTINCT) and AVG(DISTINCT) add up all values.
    SumForgetsDistinct = "sum-forgets-distinct",
    /// The variance of a sample of one value is 0.
    SampleOfOne = "sample-of-one",
    /// GROUP_CONCAT orders by its second key in ascending order only.
    ConcatForgetsDescending = "concat-forgets-descending",
    /// A group whose key is NULL counts as a total for GROUPING.
    TotalOfNullKey = "total-of-null-key",
    /// Aggregate functions over no rows give no row.
    NoGroupOfNoRows = "no-group-of-no-rows",
    /// RANK numbers peers on.
    RankOfPlace = "rank-of-place",
    /// A frame by RANGE ends at the row, not at its last peer.
    RangeEndsAtRow = "range-ends-at-row",
    /// A frame that ends before the part begins has its first row.
    FrameIsNeverEmpty = "frame-is-never-empty",
    /// What has left a frame still counts.
    FrameForgetsToShrink = "frame-forgets-to-shrink",
    /// LAG and LEAD give NULL where there is a default.
    LagForgetsDefault = "lag-forgets-default",
    /// NTILE gives the last pieces one row more, not the first ones.
    NtileEndsLarger = "ntile-ends-larger",
    /// The frame by RANGE of a row without a value begins with the part.
    NullRangeOfAll = "null-range-of-all",
    /// A sort below LIMIT keeps as many rows as LIMIT says, without OFFSET.
    TopForgetsOffset = "top-forgets-offset",
    /// All keys of ORDER BY have the direction of the first one.
    FirstDirectionForAll = "first-direction-for-all",
    /// A query of one table counts rows for LIMIT that DISTINCT leaves out.
    DistinctBehindLimit = "distinct-behind-limit",
    /// EXCEPT ALL and INTERSECT ALL count each row of the right side once.
    ExceptAllCountsOnce = "except-all-counts-once",
    /// EXCEPT gives a row as often as the left side has it.
    ExceptGivesTwice = "except-gives-twice",
    /// WITH RECURSIVE with UNION looks for rows of the anchor alone.
    RecursionFindsTwice = "recursion-finds-twice",
}

#[cfg(not(feature = "planted"))]
/// True if the process has this bug: never.
#[inline(always)]
pub const fn errs(_: QueryBug) -> bool {
    false
}

#[cfg(feature = "planted")]
pub use chosen::{choose, errs};

#[cfg(feature = "planted")]
mod chosen {
    use super::QueryBug;
    use core::sync::atomic::{AtomicU8, Ordering};

    /// One more than the number of the bug; 0 for none.
    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    /// From now on the process has this bug.
    pub fn choose(bug: QueryBug) {
        CHOSEN.store(bug as u8 + 1, Ordering::Relaxed);
    }

    /// True if the process has this bug.
    pub fn errs(bug: QueryBug) -> bool {
        CHOSEN.load(Ordering::Relaxed) == bug as u8 + 1
    }
}
