//! Benchmarks of a running cluster, through its own clients. A benchmark reports; it is no test.
#![forbid(unsafe_code)]

pub mod flex;
mod measure;

use lats_base::Instant;
use lats_client::net::ClientOptions;

/// Where the cluster is, and how to tell the time.
#[derive(Clone, Debug)]
pub struct Place {
    /// How its clients find it.
    pub options: ClientOptions,
    /// A monotonic clock.
    pub clock: fn() -> Instant,
}
