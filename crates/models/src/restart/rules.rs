//! The rules of model B: commits, epochs, seals, views, restarts.

use super::{Being, NODES, Planted, Restarts, Set, State, Transaction, View, broken};

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The replicas of a group hold a part of a transaction.
    Hold {
        /// Which transaction.
        of: u8,
        /// Whose part.
        group: u8,
    },
    /// The next epoch begins.
    Advance,
    /// The next epoch is complete.
    Complete,
    /// A node hears which epoch is complete.
    Hear(u8),
    /// A node seals what it knows to be complete.
    Seal(u8),
    /// A node's disk has the newest view that it uses.
    Keep(u8),
    /// A view without this node.
    Remove(u8),
    /// A new life of a node is taken in, and is being filled.
    Join(u8),
    /// It has all rows.
    Fill(u8),
    /// It is full.
    Full(u8),
    /// A node dies; its next process waits with its disk.
    Die(u8),
    /// A node that was removed ends, and starts again.
    End(u8),
    /// A node is cut off.
    Cut(u8),
    /// It is reached again.
    Heal,
    /// A disk loses its log.
    Damage(u8),
    /// All begin again from memories and disks.
    Restart,
    /// Survivors form the group anew.
    Reform,
}

fn has(set: Set, at: usize) -> bool {
    set & 1 << at != 0
}

fn each(set: Set) -> impl Iterator<Item = usize> {
    (0..8).filter(move |at| has(set, *at))
}

/// The nodes of a group.
pub(super) fn nodes_of(group: usize) -> Set {
    0b11 << (2 * group)
}

impl Transaction {
    fn is_decided(&self, groups: Set) -> bool {
        each(groups).all(|group| self.epochs[group] > 0)
    }

    fn is_begun(&self) -> bool {
        self.epochs.iter().any(|epoch| *epoch > 0)
    }

    /// the largest epoch of its parts.
    fn epoch(&self) -> u8 {
        self.epochs[0].max(self.epochs[1])
    }
}

impl State {
    fn newest(&self) -> (u8, View) {
        let number = self.views.len() - 1;
        (number as u8, self.views[number])
    }

    /// It runs, and the others reach it.
    fn is_here(&self, node: usize) -> bool {
        self.nodes[node].being == Being::Alive && self.cut != Some(node as u8)
    }

    /// It is there, with its memory or its disk.
    fn is_present(&self, node: usize) -> bool {
        self.is_here(node) || self.nodes[node].being == Being::Waits
    }
}

impl Restarts {
    fn groups(&self, of: usize) -> Set {
        self.scenario.transactions[of]
    }

    /// All members of a group are there, and use the newest view: commits go on.
    fn commits(&self, s: &State, group: usize) -> bool {
        let (number, view) = s.newest();
        let members = (view.full | view.filled) & nodes_of(group);
        let uses = |node: usize| s.is_here(node) && s.nodes[node].view == number;
        view.full & members != 0 && each(members).all(uses)
    }

    pub(super) fn enabled(&self, s: &State, actions: &mut Vec<Action>) {
        if s.broken != 0 || s.restarts == 0 {
            return;
        }
        let (_, view) = s.newest();
        for of in 0..s.transactions.len() {
            self.enabled_of_transaction(s, of, actions);
        }
        // No one decides anything for a group that nobody lives of.
        let leads = (0..NODES).any(|node| has(view.full, node) && s.is_here(node));
        if leads && s.epoch < self.scenario.epochs {
            actions.push(Action::Advance);
        }
        if leads && self.may_complete(s) {
            actions.push(Action::Complete);
        }
        for node in 0..NODES {
            self.enabled_of_node(s, node, actions);
            self.faults_of_node(s, node, actions);
        }
        if s.cut.is_some() {
            actions.push(Action::Heal);
        }
        if s.restarts > 0 && self.is_complete(s) {
            if self.all_groups_live(s) && !self.errs(Planted::EpochForLivingGroups) {
                actions.push(Action::Reform);
            } else if self.restart_epoch(s).is_some() {
                actions.push(Action::Restart);
            }
        }
    }

    fn enabled_of_transaction(&self, s: &State, of: usize, actions: &mut Vec<Action>) {
        let (_, view) = s.newest();
        let transaction = &s.transactions[of];
        let groups = self.groups(of);
        if has(view.void, of) {
            return;
        }
        for group in each(groups) {
            if transaction.epochs[group] == 0 && self.commits(s, group) {
                actions.push(Action::Hold { of: of as u8, group: group as u8 });
            }
        }
    }

    /// EPOCH-4: all live data nodes have reported it, and no part of it is undecided.
    fn may_complete(&self, s: &State) -> bool {
        let next = s.complete + 1;
        let (number, view) = s.newest();
        let undecided = |(of, transaction): (usize, &Transaction)| {
            let parts = transaction.epochs.iter().filter(|epoch| **epoch > 0);
            let is_old = parts.min().is_some_and(|first| *first <= next);
            is_old && !transaction.is_decided(self.groups(of)) && !has(view.void, of)
        };
        let all = each(view.full | view.filled);
        let reports = |node: usize| s.is_here(node) && s.nodes[node].view == number;
        next < s.epoch
            && all.into_iter().all(reports)
            && !s.transactions.iter().enumerate().any(undecided)
    }

    fn enabled_of_node(&self, s: &State, node: usize, actions: &mut Vec<Action>) {
        let (me, id) = (&s.nodes[node], node as u8);
        let (number, view) = s.newest();
        if me.being != Being::Alive {
            return;
        }
        let is_full = has(view.full, node) && me.view == number;
        let has_rows = has(view.filled, node) && self.has_all(s, node);
        // only who is in sync in its view notes it; who is filled does when it has the rows.
        let overhears = self.errs(Planted::SealOfOverheardEpoch) && has(view.filled, node);
        let may_note = is_full || has_rows || overhears;
        if may_note && s.is_here(node) && me.complete < s.complete {
            actions.push(Action::Hear(id));
        }
        let is_slow = has(self.scenario.slow, node);
        if me.complete > me.sealed && !is_slow && !me.is_damaged {
            actions.push(Action::Seal(id));
        }
        if me.kept < me.view && !is_slow {
            actions.push(Action::Keep(id));
        }
        if has(view.filled, node) && s.is_here(node) {
            let group = nodes_of(node / 2);
            let source = each(view.full & group).any(|other| s.is_here(other));
            if !self.has_all(s, node) && source {
                actions.push(Action::Fill(id));
            }
            // REDO-2: it has the rows, and what was complete when it came is durable.
            let is_durable = me.sealed >= s.complete && s.complete > 0 && me.kept == number;
            if is_durable {
                actions.push(Action::Full(id));
            }
        }
    }

    /// It has every part that its group holds.
    fn has_all(&self, s: &State, node: usize) -> bool {
        let held = self.held(s, node / 2);
        held & !s.nodes[node].memory == 0
    }

    fn held(&self, s: &State, group: usize) -> Set {
        let (_, view) = s.newest();
        let held = |of: &usize| s.transactions[*of].epochs[group] > 0 && !has(view.void, *of);
        (0..s.transactions.len()).filter(held).fold(0, |set, of| set | 1 << of)
    }

    fn faults_of_node(&self, s: &State, node: usize, actions: &mut Vec<Action>) {
        let (me, id) = (&s.nodes[node], node as u8);
        let (_, view) = s.newest();
        let is_member = has(view.full | view.filled, node);
        let [cuts, damages, joins] = s.events;
        let others = view.full & nodes_of(node / 2) & !(1 << node);
        let replaced = each(others).any(|other| s.is_here(other));
        if is_member && !s.is_here(node) && (replaced || has(view.filled, node)) {
            actions.push(Action::Remove(id));
        }
        match me.being {
            Being::Alive => {
                if s.deaths > 0 && has(self.scenario.mortal, node) {
                    actions.push(Action::Die(id));
                }
                if cuts > 0 && s.cut.is_none() && has(self.scenario.cuttable, node) {
                    actions.push(Action::Cut(id));
                }
                if !is_member && s.is_here(node) && replaced && joins > 0 {
                    actions.push(Action::End(id));
                }
            }
            Being::Waits if joins > 0 && !is_member && replaced => actions.push(Action::Join(id)),
            Being::Waits => {}
        }
        if damages > 0 && me.sealed > 0 && me.being != Being::Alive {
            actions.push(Action::Damage(id));
        }
    }

    /// RESTART-1, REFORM-1: the newest state that is present, and whether all its data nodes are.
    fn is_complete(&self, s: &State) -> bool {
        let view = self.newest_present(s);
        let all = s.views[usize::from(view)];
        let decides = |node: usize| s.is_here(node) && s.nodes[node].view == view;
        // While the living are all there is, nothing is to be formed anew.
        let goes_on = each(all.full | all.filled).all(decides);
        !goes_on && each(all.full | all.filled).all(|node| s.is_present(node))
    }

    fn newest_present(&self, s: &State) -> u8 {
        let known = (0..NODES).filter(|node| s.is_present(*node)).map(|node| {
            let me = &s.nodes[node];
            if me.being == Being::Alive { me.view } else { me.kept }
        });
        known.max().unwrap_or_default()
    }

    /// E-1: every group has a full replica that lives.
    fn all_groups_live(&self, s: &State) -> bool {
        let view = s.views[usize::from(self.newest_present(s))];
        (0..2).all(|group| self.living(s, view, group).is_some())
    }

    fn living(&self, s: &State, view: View, group: usize) -> Option<usize> {
        each(view.full & nodes_of(group)).find(|node| s.is_here(*node))
    }

    /// what each group can give, and from where; the least of them is the restart epoch.
    fn restart_epoch(&self, s: &State) -> Option<(u8, [usize; 2])> {
        let view = s.views[usize::from(self.newest_present(s))];
        let fact = (0..NODES)
            .filter(|node| s.is_present(*node))
            .map(|node| {
                let me = &s.nodes[node];
                let known = if me.being == Being::Alive { me.complete } else { 0 };
                known.max(me.sealed)
            })
            .max()?;
        let trusts =
            |node: &usize| self.errs(Planted::TrustDamagedLog) || !s.nodes[*node].is_damaged;
        let best = |group: usize| match self.living(s, view, group) {
            Some(node) => Some((fact, node)),
            None => {
                let disks = each(view.full & nodes_of(group)).filter(|n| s.is_present(*n));
                disks.filter(trusts).map(|node| (s.nodes[node].sealed, node)).max()
            }
        };
        let ((one, first), (other, second)) = (best(0)?, best(1)?);
        Some((one.min(other), [first, second]))
    }

    /// What a node gives back of the epochs up to this one.
    fn gives(&self, s: &State, node: usize, epoch: u8) -> Set {
        let me = &s.nodes[node];
        let group = node / 2;
        let all = if me.being == Being::Alive { me.memory } else { me.log };
        let in_time = |of: &usize| {
            let transaction = &s.transactions[*of];
            let one_part = self.errs(Planted::EpochOfOnePart);
            let at = if one_part { transaction.epochs[group] } else { transaction.epoch() };
            transaction.is_decided(self.groups(*of)) && at <= epoch
        };
        each(all).filter(in_time).fold(0, |set, of| set | 1 << of)
    }

    fn restart(&self, s: &mut State) {
        let Some((epoch, sources)) = self.restart_epoch(s) else { return };
        let view = self.newest_present(s);
        let lived = self.all_groups_live(s);
        let void = s.views[usize::from(view)].void;
        let rows = sources.map(|node| self.gives(s, node, epoch) & !void);
        self.judge(s, Some(epoch), rows, (lived, void));
        self.begin(s, rows, 1 << sources[0] | 1 << sources[1]);
    }

    /// E-1: everything that is decided is committed, the rest is rolled back.
    fn reform(&self, s: &mut State) {
        let view = s.views[usize::from(self.newest_present(s))];
        let full = each(view.full).filter(|n| s.is_here(*n)).fold(0, |set: Set, n| set | 1 << n);
        let decided = |of: &usize| s.transactions[*of].is_decided(self.groups(*of));
        let decided =
            (0..s.transactions.len()).filter(decided).fold(0, |set: Set, of| set | 1 << of);
        let rows = [0, 1].map(|group| {
            let node = self.living(s, view, group);
            node.map_or(0, |node| s.nodes[node].memory & decided & !view.void)
        });
        self.judge(s, None, rows, (true, view.void));
        self.begin(s, rows, full);
    }

    /// What must hold of what is there now.
    fn judge(&self, s: &mut State, epoch: Option<u8>, rows: [Set; 2], (lived, void): (bool, Set)) {
        for of in 0..s.transactions.len() {
            let transaction = s.transactions[of];
            let groups = self.groups(of);
            let there = each(groups).filter(|group| has(rows[*group], of)).count();
            let is_whole = there == groups.count_ones() as usize;
            if there > 0 && !is_whole {
                s.broken |= broken::HALF;
            }
            let counts = transaction.is_decided(groups) && !has(void, of);
            let in_time = epoch.is_none_or(|epoch| transaction.epoch() <= epoch);
            if counts && is_whole != in_time {
                s.broken |= broken::EPOCH;
            }
            let is_lost = transaction.is_acknowledged && !has(void, of) && !is_whole;
            if is_lost && lived {
                s.broken |= broken::ACKNOWLEDGED;
            }
            if is_lost && transaction.epoch() <= s.durable {
                s.broken |= broken::DURABLE;
            }
        }
    }

    /// The cluster begins with these rows and full replicas; the others are filled anew.
    fn begin(&self, s: &mut State, rows: [Set; 2], full: Set) {
        let void = (0..s.transactions.len())
            .filter(|of| s.transactions[*of].is_begun())
            .filter(|of| !each(self.groups(*of)).all(|group| has(rows[group], *of)))
            .fold(0, |set: Set, of| set | 1 << of);
        // Views of before that only the dead may have known have lower numbers.
        let known = s.views[usize::from(self.newest_present(s))].void;
        s.views.push(View { full, filled: 0, void: void | known });
        let number = s.views.len() as u8 - 1;
        s.restarts -= 1;
        for node in 0..NODES {
            let takes_part = has(full, node);
            let me = &mut s.nodes[node];
            if takes_part {
                (me.being, me.memory, me.view) = (Being::Alive, rows[node / 2], number);
                // RESTART-3: what was promised is on disk first; here the state comes later (`Keep`).
                me.complete = me.complete.max(me.sealed);
            }
        }
        s.epoch += 1;
    }

    /// The state after an action that may happen.
    pub(super) fn after(&self, state: &State, action: Action) -> State {
        let mut s = state.clone();
        let n = usize::from;
        match action {
            Action::Hold { of, group } => {
                s.transactions[n(of)].epochs[n(group)] = s.epoch;
                let (_, view) = s.newest();
                for node in each((view.full | view.filled) & nodes_of(n(group))) {
                    s.nodes[node].memory |= 1 << of;
                }
                // The client is told at once: what is told later is lost no sooner.
                let decided = s.transactions[n(of)].is_decided(self.groups(n(of)));
                s.transactions[n(of)].is_acknowledged = decided;
            }
            Action::Advance => s.epoch += 1,
            Action::Complete => s.complete += 1,
            Action::Hear(node) => s.nodes[n(node)].complete = s.complete,
            Action::Seal(node) => self.seal(&mut s, n(node)),
            Action::Keep(node) => s.nodes[n(node)].kept = s.nodes[n(node)].view,
            Action::Remove(node) => self.change(
                &mut s,
                |v| {
                    v.full &= !(1 << node);
                    v.filled &= !(1 << node);
                },
                state.nodes[n(node)].being == Being::Alive,
            ),
            Action::Join(node) => {
                s.events[2] -= 1;
                let me = &mut s.nodes[n(node)];
                (me.being, me.memory, me.complete) = (Being::Alive, 0, 0);
                // RESTART-4: what it writes takes nothing away from its former log, and proves nothing yet.
                (me.log, me.sealed, me.is_damaged) = (0, 0, false);
                self.change(&mut s, |v| v.filled |= 1 << node, false);
            }
            Action::Fill(node) => s.nodes[n(node)].memory |= self.held(state, n(node) / 2),
            Action::Full(node) => self.change(
                &mut s,
                |v| {
                    v.filled &= !(1 << node);
                    v.full |= 1 << node;
                },
                false,
            ),
            Action::Reform => self.reform(&mut s),
            Action::Restart => self.restart(&mut s),
            fault => Self::suffer(&mut s, fault),
        }
        self.count_durable(&mut s);
        s
    }

    fn suffer(s: &mut State, fault: Action) {
        let n = usize::from;
        match fault {
            Action::Die(node) => {
                s.deaths -= 1;
                let me = &mut s.nodes[n(node)];
                (me.being, me.memory, me.complete, me.view) = (Being::Waits, 0, 0, 0);
                s.cut = s.cut.filter(|cut| *cut != node);
            }
            Action::End(node) => {
                let me = &mut s.nodes[n(node)];
                (me.being, me.memory, me.complete, me.view) = (Being::Waits, 0, 0, 0);
            }
            Action::Cut(node) => {
                s.events[0] -= 1;
                s.cut = Some(node);
            }
            Action::Heal => s.cut = None,
            Action::Damage(node) => {
                s.events[1] -= 1;
                (s.nodes[n(node)].log, s.nodes[n(node)].is_damaged) = (0, true);
            }
            _ => {}
        }
    }

    /// DURABLE-1, R-5: what is decided, up to the complete epoch; the epoch that counts is the largest of the parts.
    fn seal(&self, s: &mut State, node: usize) {
        let (_, view) = s.newest();
        let me = &s.nodes[node];
        let written = self.gives(s, node, me.complete) & !view.void;
        let me = &mut s.nodes[node];
        me.log |= written;
        me.sealed = me.complete;
    }

    /// A new view, which all that are reached use; FENCE-1: one without a node that lives is on their disks first.
    fn change(&self, s: &mut State, with: impl Fn(&mut View), needs_fence: bool) {
        let (_, mut view) = s.newest();
        with(&mut view);
        s.views.push(view);
        let number = s.views.len() as u8 - 1;
        for node in each(view.full | view.filled).collect::<Vec<_>>() {
            if s.is_here(node) {
                s.nodes[node].view = number;
                if needs_fence && !self.errs(Planted::UnfencedView) {
                    s.nodes[node].kept = number;
                }
            }
        }
    }

    /// DURABLE-3, DURABLE-5: all live data nodes of the newest view have sealed it, and their disks know the view.
    fn count_durable(&self, s: &mut State) {
        let (number, view) = s.newest();
        let all: Vec<usize> = each(view.full | view.filled).collect();
        let reports = |node: &usize| {
            s.is_here(*node) && s.nodes[*node].view == number && s.nodes[*node].kept == number
        };
        if all.iter().all(reports) {
            let least = all.iter().map(|node| s.nodes[*node].sealed).min().unwrap_or_default();
            s.durable = s.durable.max(least);
        }
    }
}
