//! Ports: are they free, and which node gets which.

use anyhow::Context;
use lats_runtime::sockets::{self, Patience};
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Connections that may wait to be taken: whom the system turns away comes again after a second at the soonest.
const BACKLOG: i32 = 4_096;

/// A port that nobody else gets, and that refuses connections until it listens.
pub(crate) struct Held {
    socket: Socket,
    address: SocketAddr,
}

impl Held {
    /// Holds a port.
    ///
    /// # Errors
    /// When the port is in use.
    pub(crate) fn new(address: SocketAddr, patience: Patience) -> std::io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        // A former process of the node may have connections there that are ending.
        socket.set_reuse_address(true)?;
        sockets::notice_the_vanished(&socket, patience)?;
        socket.bind(&address.into())?;
        Ok(Self { socket, address })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on connections are taken.
    ///
    /// # Errors
    /// When another process has begun to listen there.
    pub(crate) fn listen(self) -> std::io::Result<TcpListener> {
        self.socket.listen(BACKLOG)?;
        Ok(self.socket.into())
    }
}

/// Holds the port for MySQL clients, and says what is wrong if that fails.
pub(crate) fn hold(address: SocketAddr) -> anyhow::Result<Held> {
    let held = || Held::new(address, sockets::SQL);
    // Two may hold a port before one of them listens.
    let held = held().and_then(Held::listen).and_then(|listener| {
        drop(listener);
        held()
    });
    held.with_context(|| in_use(address, "MySQL clients"))
}

/// Listens for nodes and native clients, or looks whether one could.
pub(crate) fn bind(address: SocketAddr, what: &str) -> anyhow::Result<TcpListener> {
    let held = Held::new(address, sockets::LINK);
    held.and_then(Held::listen).with_context(|| in_use(address, what))
}

fn in_use(address: SocketAddr, what: &str) -> String {
    format!("cannot listen on {address} for {what}; is the port in use? choose another")
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
