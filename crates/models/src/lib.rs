//! Models of the protocols that decide who is in the cluster: small machines of which every state is looked at.
//!
//! Model A ([`membership`]) has lives, leases, certificates, votes and groups that are formed anew.
//! Model B ([`restart`]) has memories, logs, epochs, and the restart of the whole cluster.
//! Model C ([`lives`]) has numbers of lives, nonces, and directories that are copied, old or empty.
//! `docs/models.md` tells how many states were looked at, and which planted errors each model finds.
#![forbid(unsafe_code)]

pub mod check;
pub mod lives;
pub mod membership;
pub mod restart;

#[cfg(test)]
mod tests;
