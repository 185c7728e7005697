//! Answers that tell of rows leave only under a lease that still holds when the rows have been read (LEASE-7). Protocol:
//! `docs/protocols/membership.md`.

use lats_base::{NodeSet, RefCode};
use lats_kernel::{Ctx, Fault};
use lats_signals::{
    BlockRef, Signal, SignalNumber,
    commit::{PrepareConf, PrepareRef},
    query::{ReadConf, ReadRef, ScanCloseOrd, ScanConf, ScanRef},
};

/// Sends a refusal in the place of an answer that rested on a lease, which was over before the answer could leave; false for all
/// other signals. (Who reads beside a data manager has its number.)
pub fn withdraw(signal: &Signal<'_>, ctx: &mut Ctx<'_>) -> bool {
    if ctx.fault(Fault::BugCheckBeforeRead) || ctx.fault(Fault::BugIgnoreLease) {
        return false;
    }
    let to = signal.header.receiver;
    let code = u32::from(RefCode::NotServing.number());
    match signal.number() {
        Some(SignalNumber::ReadConf) => {
            let request = signal.body::<ReadConf>().request;
            ctx.send(to, &ReadRef { request, code, errno: 0 });
        }
        Some(SignalNumber::ScanConf) => {
            let scan = signal.body::<ScanConf>().scan;
            ctx.send(to, &ScanRef { scan, code, errno: 0 });
            let close = ScanCloseOrd { scan, reply_to: to };
            ctx.send(BlockRef::ldm(ctx.node(), ctx.me().instance), &close);
        }
        Some(SignalNumber::PrepareConf) => {
            let conf = signal.body::<PrepareConf>();
            // One with changes needs no lease: its transaction commits only if all backups of the view have confirmed them, so
            // no other primary was there before that.
            if conf.change_count > 0 {
                return false;
            }
            let PrepareConf { transaction, batch, .. } = conf;
            let backups = NodeSet::EMPTY;
            let body = PrepareRef { transaction, batch, code, backups, errno: 0, reserved: 0 };
            ctx.send(to, &body);
        }
        _ => return false,
    }
    true
}
