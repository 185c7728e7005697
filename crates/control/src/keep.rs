//! The control state on disk: written after each change, beside the work and never before it (RESTART-4). Protocol:
//! `docs/protocols/restart.md`.

#[cfg(test)]
mod tests;

use crate::{
    Control, TIMER_KEEP,
    restart::Phase,
    state::{ControlState, StateBeforeNonces, StateBeforeViews},
};
use lats_base::{Epoch, RefCode};
use lats_catalog::{EncodedCatalog, former::decode_before_views};
use lats_files::control::{self as file, Owner, Unreadable};
use lats_kernel::Ctx;
use lats_signals::{
    BlockRef, Signal,
    control::{STATUS_DISK_FAILED, StopOrd},
    io::{
        FILE_CONTROL, FileName, IO_FULL, IO_GONE, IoConf, IoRef, IoRemoveReq, IoWriteReq,
        ROOM_RETRY, WRITE_SYNC,
    },
};

/// What is on disk of the control state, and what is being written.
#[derive(Debug, Default)]
pub(crate) struct Keep {
    /// Whose files they are; none: nothing is kept.
    pub(crate) owner: Option<Owner>,
    /// The newest file, and those of former lives.
    number: u32,
    former: Vec<u32>,
    pub(crate) requests: u64,
    under_way: Option<Write>,
    /// A write found no room.
    stuck: bool,
    /// How many commands the newest state knows that is on disk and that this life is a member of; 0: there is none.
    kept: u64,
    /// The newest promise that is on disk (RESTART-3).
    pub(crate) promised: u32,
    /// What a former life has known to be durable, or this one when it wrote last.
    pub(crate) durable: Epoch,
    /// The catalog as it was written last.
    encoded: EncodedCatalog,
}

/// What a control file says.
#[derive(Debug)]
pub struct Kept {
    /// The newest restart that the node has promised to take part in (RESTART-3).
    pub promised: u32,
    /// The state.
    pub state: ControlState,
    /// What was known to be durable then (RESTART-2).
    pub durable: Epoch,
}

#[derive(Debug)]
struct Write {
    request: u64,
    commands: u64,
    promised: u32,
    bytes: Vec<u8>,
}

impl Keep {
    pub(crate) fn of(owner: Option<Owner>) -> Self {
        Self { owner, ..Self::default() }
    }

    /// These are the files of former lives.
    pub(crate) fn begin_behind(&mut self, former: Vec<u32>) {
        self.number = former.last().copied().unwrap_or_default();
        self.former = former;
    }

    /// GONE-2: none of its files can be found again.
    pub(crate) fn forget_files(&mut self) {
        (self.under_way, self.stuck, self.kept) = (None, false, 0);
        self.former.clear();
    }

    /// Writes a state that knows so many commands, and a promise. What is being written is overtaken.
    pub(crate) fn write(
        &mut self,
        state: &ControlState,
        commands: u64,
        promised: u32,
        ctx: &mut Ctx<'_>,
    ) {
        let Some(owner) = self.owner else { return };
        let content = state.encode_to_keep((promised, self.durable), &mut self.encoded);
        let bytes = file::encode(owner, &content);
        self.number += 1;
        self.requests += 1;
        self.under_way = Some(Write { request: self.requests, commands, promised, bytes });
        self.ask(ctx);
    }

    fn ask(&self, ctx: &mut Ctx<'_>) {
        let Some(write) = &self.under_way else { return };
        let file = FileName { kind: FILE_CONTROL, instance: 0, number: self.number };
        let (request, flags) = (write.request, WRITE_SYNC);
        let body = IoWriteReq { request, file, offset: 0, flags, waiting_kib: 0 };
        ctx.ask_io(&body, &[&write.bytes]);
    }

    /// FENCE-1: this command is not on disk, and will be. A full disk takes nothing: nobody waits for it.
    pub(crate) fn lacks(&self, command: u64) -> bool {
        self.owner.is_some() && self.kept < command && !self.stuck
    }

    /// RESTART-4: the disk knows that this life is a member.
    pub(crate) fn knows_this_life(&self) -> bool {
        self.owner.is_none() || self.kept > 0
    }
}

/// Reads what [`Keep::write`] has written.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(owner: Owner, bytes: &[u8]) -> Result<Kept, Unreadable> {
    decode(file::decode(owner, bytes)?)
}

/// Reads the content of a control file. Earlier versions had no views, and before that did not write down what was durable.
///
/// # Errors
/// Another version has written it, or it holds something else.
pub fn decode(content: &[u8]) -> Result<Kept, Unreadable> {
    let why = match content.first() {
        Some(format) if *format > lats_catalog::FORMAT => {
            "a newer version of LatsDB has written it"
        }
        _ => {
            "its checksums are right, but its content is no control state that this version of LatsDB knows"
        }
    };
    let found = lats_catalog::decode(content);
    let found = found.or_else(|_| before_nonces(content)).or_else(|_| before_views(content));
    let (promised, state, durable) = found.map_err(|_| Unreadable::Wrong(why))?;
    Ok(Kept { promised, state, durable })
}

fn before_nonces(content: &[u8]) -> Result<(u32, ControlState, Epoch), RefCode> {
    let (promised, state, durable) =
        lats_catalog::decode::<(u32, StateBeforeNonces, Epoch)>(content)?;
    Ok((promised, state.into(), durable))
}

fn before_views(content: &[u8]) -> Result<(u32, ControlState, Epoch), RefCode> {
    let all = decode_before_views::<(u32, StateBeforeViews, Epoch)>(content);
    let earlier = |_| {
        let found = decode_before_views::<(u32, StateBeforeViews)>(content);
        found.map(|(promised, state)| (promised, state, Epoch::default()))
    };
    let (promised, state, durable) = all.or_else(earlier)?;
    Ok((promised, state.into(), durable))
}

impl Control {
    /// Writes the state down if the disk does not have it yet, or if it does not know that anything is durable.
    pub(crate) fn keep_state(&mut self, ctx: &mut Ctx<'_>) {
        let is_member = self.restart.phase == Phase::Running && self.joined && self.me_alive(ctx);
        let is_new = self.state.commands > self.keep.kept || self.is_first_durable();
        let may = is_member && !self.has_no_directory();
        if may && self.keep.under_way.is_none() && is_new {
            let promised = self.keep.promised.max(self.state.restarts());
            self.keep.durable = self.epochs.disk.durable;
            self.keep.write(&self.state, self.state.commands, promised, ctx);
        }
    }

    /// RESTART-2: since the last restart nothing was durable when the state was written down, and something is now: from then on
    /// logs that have nothing are known to have lost it.
    fn is_first_durable(&self) -> bool {
        let restored = self.state.restored_at();
        self.keep.durable <= restored && self.epochs.disk.durable > restored
    }

    /// True if this node has a disk for what it knows.
    pub(crate) fn keeps_on_disk(&self) -> bool {
        self.keep.owner.is_some()
    }

    /// DURABLE-5: what was committed under a state that is not on disk would not be understood after a restart.
    pub(crate) fn state_is_kept(&self) -> bool {
        let needed = self.state.commands.max(self.epochs.disk.commands);
        self.keep.owner.is_none() || self.keep.kept >= needed
    }

    pub(crate) fn on_io_conf(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let request = signal.body::<IoConf>().request;
        let Some(done) = self.keep.under_way.take_if(|w| w.request == request) else { return };
        self.keep.kept = done.commands;
        // A survivor may have promised more since (REFORM-3): numbers are never used again.
        self.keep.promised = self.keep.promised.max(done.promised);
        let newest = self.keep.number;
        for number in core::mem::replace(&mut self.keep.former, vec![newest]) {
            let file = FileName { kind: FILE_CONTROL, instance: 0, number };
            ctx.ask_io(&IoRemoveReq { request: 0, file }, &[]);
        }
        if self.restart.phase != Phase::Running {
            return self.confirm_promise(ctx);
        }
        self.keep_state(ctx);
        self.install_what_waits(ctx);
        self.report_durable(ctx);
        self.tell_lease(ctx);
    }

    pub(crate) fn on_io_ref(&mut self, signal: &Signal<'_>, ctx: &mut Ctx<'_>) {
        let body = signal.body::<IoRef>();
        if self.keep.under_way.as_ref().is_none_or(|w| w.request != body.request) {
            return self.on_read_ref(&body, ctx);
        }
        if body.code == IO_GONE {
            // Whoever has the files says so.
            return self.keep.forget_files();
        }
        if body.code == IO_FULL {
            self.keep.stuck = true;
            return ctx.after(ROOM_RETRY, TIMER_KEEP);
        }
        // DURABLE-4.
        let stop = StopOrd { status: STATUS_DISK_FAILED };
        let why = "its disk has failed while the control state was written; see the kernel's log, and replace it";
        ctx.send_with(BlockRef::shell(ctx.node()), &stop, &[why.as_bytes()]);
    }

    /// There may be room again.
    pub(crate) fn keep_again(&mut self, ctx: &mut Ctx<'_>) {
        if core::mem::take(&mut self.keep.stuck) {
            self.keep.ask(ctx);
        }
    }
}
