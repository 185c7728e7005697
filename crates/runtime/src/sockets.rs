//! Sockets whose other end may vanish without a word: the system asks for signs of life.

use lats_base::Duration;
use rustix::{fd::AsFd, io, net::sockopt};

/// How long a socket waits for a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// After so long without a word the other end is asked for a sign of life.
    pub idle: Duration,
    /// So long after a question without an answer it is asked again.
    pub again: Duration,
    /// The connection ends when nothing that was sent is confirmed for so long.
    pub unanswered: Duration,
}

/// For native clients, who answer at once while they live, and for nodes until they have greeted.
pub const LINK: Patience = Patience {
    idle: Duration::from_millis(5_000),
    again: Duration::from_millis(2_000),
    unanswered: Duration::from_millis(15_000),
};

/// For MySQL clients, who may stop reading a result for a while: the system takes that for silence, too.
pub const SQL: Patience = Patience {
    idle: Duration::from_millis(10_000),
    again: Duration::from_millis(5_000),
    unanswered: Duration::from_millis(45_000),
};

/// What was sent may remain unconfirmed for as long as the system's default is.
///
/// # Errors
/// When it is no such socket.
pub fn wait_for_ever(socket: impl AsFd) -> io::Result<()> {
    sockopt::set_tcp_user_timeout(&socket, 0)
}

/// Has the system end a connection whose other end has vanished; what a listener has, the connections have that it takes.
///
/// # Errors
/// When it is no such socket.
pub fn notice_the_vanished(socket: impl AsFd, patience: Patience) -> io::Result<()> {
    let span = |span: Duration| std::time::Duration::from_nanos(span.as_nanos());
    let ms = u32::try_from(patience.unanswered.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, span(patience.idle))?;
    sockopt::set_tcp_keepintvl(&socket, span(patience.again))?;
    sockopt::set_tcp_user_timeout(&socket, ms)
}
