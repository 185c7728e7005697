//! Time as blocks see it: given to them, never asked for.

/// A point on the node's monotonic clock, in nanoseconds since an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    nanos: u64,
}

/// A span of monotonic time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration {
    nanos: u64,
}

impl Instant {
    /// The start of the clock.
    pub const ZERO: Self = Self { nanos: 0 };

    /// The instant `nanos` nanoseconds after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos }
    }

    /// Nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.nanos
    }

    /// The instant `span` later, saturating.
    #[must_use]
    pub const fn plus(self, span: Duration) -> Self {
        Self { nanos: self.nanos.saturating_add(span.nanos) }
    }

    /// How long ago `earlier` was; zero if it is in the future.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration { nanos: self.nanos.saturating_sub(earlier.nanos) }
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self { nanos: 0 };

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos }
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self { nanos: micros * 1_000 }
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self { nanos: millis * 1_000_000 }
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.nanos
    }

    /// The span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.nanos / 1_000_000
    }
}
