//! The door for clients: what they send gets its true sender and reply address here, and nothing
//! that only nodes may send comes through.

use crate::{
    BlockRef, Malformed, Scope, Signal, SignalBuffer, SignalNumber,
    buffer::Route,
    query::ReadReq,
    query::{ScanCloseOrd, ScanNextReq, ScanReq},
};

/// Who a client is, as its greeting has proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Principal {
    /// It reads and writes rows.
    Client,
    /// It administers the cluster; the node's own SQL sessions may do that, too.
    Admin,
}

/// Puts a client's signal, which was checked already, into `out` for the blocks of `node`.
///
/// # Errors
/// [`Malformed`] if such clients may not send this signal: close the connection.
pub fn admit(
    signal: &Signal<'_>,
    principal: Principal,
    client: BlockRef,
    incarnation: u32,
    out: &mut SignalBuffer,
) -> Result<(), Malformed> {
    let number = signal.number().ok_or(Malformed("unknown number"))?;
    match (number.scope(), principal) {
        (Scope::Client, _) | (Scope::Admin, Principal::Admin) => {}
        (Scope::Admin, Principal::Client) => {
            return Err(Malformed("only clients that administer the cluster may send this signal"));
        }
        (Scope::Local | Scope::Node, _) => {
            return Err(Malformed("clients may not send this signal"));
        }
    }
    let mut receiver = signal.header.receiver;
    receiver.node = client.node;
    let route = Route { sender: client, receiver, incarnation };
    match number {
        SignalNumber::ReadReq => {
            let body = ReadReq { reply_to: client, hops: 0, ..signal.body::<ReadReq>() };
            out.push(route, &body, &[signal.payload()]);
        }
        SignalNumber::ScanReq => {
            let body = ScanReq { reply_to: client, ..signal.body::<ScanReq>() };
            out.push(route, &body, &[signal.payload()]);
        }
        SignalNumber::ScanNextReq => {
            let body = ScanNextReq { reply_to: client, ..signal.body::<ScanNextReq>() };
            out.push(route, &body, &[]);
        }
        SignalNumber::ScanCloseOrd => {
            let body = ScanCloseOrd { reply_to: client, ..signal.body::<ScanCloseOrd>() };
            out.push(route, &body, &[]);
        }
        _ => out.push_rerouted(signal, route),
    }
    Ok(())
}
