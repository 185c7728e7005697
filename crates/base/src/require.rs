//! Assertions that stay on in every build.

/// Stops the node when one of our own invariants does not hold.
///
/// Never reachable by what a client, a file or another version sends: such input is refused with a
/// [`crate::RefCode`] before it gets near one. The shell turns the panic into a crash report, shuts
/// the node's sockets first and ends the process, so that the peers take over at once.
#[macro_export]
macro_rules! require {
    ($cond:expr $(,)?) => {
        if !$cond {
            panic!(concat!("require!(", stringify!($cond), ")"));
        }
    };
    ($cond:expr, $($arg:tt)+) => {
        if !$cond {
            panic!("require!({}): {}", stringify!($cond), format_args!($($arg)+));
        }
    };
}
