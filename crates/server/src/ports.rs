//! Ports: are they free, and which node gets which.

use anyhow::Context;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Binds a port on the loopback interface.
pub(crate) fn bind(address: SocketAddr, what: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).with_context(|| {
        format!("cannot listen on {address} for {what}; is the port in use? choose another")
    })
}

/// Makes sure that all these ports are free, before anything is started.
pub(crate) fn check_free(addresses: &[(SocketAddr, &str)]) -> anyhow::Result<()> {
    let mut held = Vec::new();
    for (address, what) in addresses {
        held.push(bind(*address, what)?);
    }
    Ok(())
}

/// A loopback address.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
