//! What lives do by the rules: votes, logs, leases, views, acknowledgements.

use super::{
    Command, Config, Entry, Membership, Planted, Set, State,
    config::{each, era, has},
    properties,
    state::{Being, Role},
};

/// A lease, in steps of a right clock; a short one is a third.
const LEASE: u16 = 320;
/// The rule for half of the voters holds up to this size (VIEW-8).
const STAND_IN_VOTERS_MAX: u32 = 4;

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Time passes: to the next deadline, or half a lease.
    Tick,
    /// A life asks for votes.
    Campaign(u8),
    /// A life elects another one; the vote arrives at once, or later if at all.
    Vote {
        /// Who elects.
        by: u8,
        /// Whom.
        to: u8,
        /// At once.
        arrives: bool,
    },
    /// A vote that was under way arrives.
    LateVote {
        /// Who has elected.
        by: u8,
        /// Whom.
        to: u8,
    },
    /// A leader that nobody follows gives up.
    GiveUp(u8),
    /// A leader exchanges leases with all whom it reaches.
    Round(u8),
    /// A leader writes into its log.
    Propose(u8, Command),
    /// A leader's log comes to another life; the confirmation arrives at once, or later if at all.
    Sync {
        /// The leader.
        from: u8,
        /// Who gets it.
        to: u8,
        /// At once.
        confirmed: bool,
    },
    /// A confirmation that was under way arrives.
    LateConfirm {
        /// Who has confirmed.
        by: u8,
        /// The leader.
        to: u8,
    },
    /// A disk has what was agreed on; the view that waited for that is installed.
    Keep(u8),
    /// A primary acknowledges a commit that all data nodes of its view have.
    Acknowledge(u8),
    /// A life gets a certificate.
    Hear {
        /// Who.
        by: u8,
        /// Whose end it is.
        of: u8,
    },
    /// Survivors form the group anew; this one proposes.
    Reform(u8),
    /// A thread begins a round under its lease.
    BeginRound(u8),
    /// A process ends, in this way.
    Die(u8, Being),
    /// These lives are cut off from the others.
    Cut(Set),
    /// The network is whole again.
    Heal,
    /// A process stops for a while.
    Pause(u8),
    /// It goes on.
    Resume(u8),
    /// A guardian dies: the node goes on unguarded.
    GuardianDies(u8),
    /// The node has a new guardian.
    NewGuardian(u8),
    /// A node comes back with its disk, as another life.
    Return {
        /// Whose disk it is.
        of: u8,
        /// The new life.
        life: u8,
    },
}

impl Membership {
    /// What the founders begin with.
    pub(crate) fn founded(&self) -> Config {
        let founders = (1_u16 << self.scenario.founders()) - 1;
        Config::founded(founders as Set, founders as Set & !self.scenario.witness)
    }

    /// How long a lease of this length lasts on a clock of this rate.
    fn lasts(length: u16, rate: u16) -> u16 {
        (u32::from(length) * 1_000).div_ceil(u32::from(rate)) as u16
    }

    /// How long somebody with a clock of this rate waits for a lease of this length to end.
    fn waits(&self, length: u16, rate: u16) -> u16 {
        let with_margin = length + length / self.scenario.margin;
        (u32::from(with_margin) * 1_000 / u32::from(rate)) as u16
    }

    fn lease(config: &Config) -> u16 {
        if config.short { LEASE / 3 } else { LEASE }
    }

    /// More than half of the votes.
    pub(crate) fn is_majority(&self, config: &Config, of: Set) -> bool {
        let (votes, all) = (config.votes(of), config.votes(config.voters));
        let has_tie = self.errs(Planted::TieAsField)
            && 2 * votes == all
            && each(config.voters).next().is_some_and(|first| has(of, first));
        2 * votes > all || has_tie
    }

    /// VIEW-8: the gone voter that counts as agreeing.
    fn stand_in(&self, s: &State, life: usize) -> Set {
        let me = &s.lives[life];
        let config = me.config(self.founded());
        let gone = config.voters & me.ends;
        let inherits = me.log[usize::from(me.agreed)..].iter().any(|entry| {
            let own = me.role == Role::Leader && entry.term == me.term;
            let changes = !matches!(
                entry.command,
                Command::Begin | Command::Full(_) | Command::ShorterLease
            );
            let of_the_gone = matches!(entry.command, Command::Remove { life, .. } if has(me.ends, usize::from(life)));
            changes && !own && !of_the_gone
        });
        let half = 2 * gone.count_ones() == config.voters.count_ones();
        let is_small = config.voters.count_ones() <= STAND_IN_VOTERS_MAX;
        let may = !self.has_testaments() && half && is_small && !inherits;
        if may { each(gone).next().map_or(0, |first| 1 << first) } else { 0 }
    }

    /// Candidates that have enough votes lead, and leaders count confirmations.
    pub(crate) fn settle(&self, s: &mut State) {
        for life in each(s.acting()) {
            if s.lives[life].role == Role::Candidate {
                let votes = s.lives[life].votes | self.stand_in(s, life);
                if self.is_majority(&s.lives[life].config(self.founded()), votes) {
                    self.lead(s, life);
                }
            }
            if s.lives[life].role == Role::Leader {
                self.agree(s, life);
            }
        }
    }

    fn lead(&self, s: &mut State, life: usize) {
        let old = self.earlier_leases(s, life);
        let me = &mut s.lives[life];
        let (term, votes) = (me.term, me.votes);
        me.follow();
        me.role = Role::Leader;
        me.votes = votes & 1 << life;
        me.log.push(Entry { term, command: Command::Begin });
        me.old = old;
    }

    /// LEASE-6: what may be left of earlier leaders' leases, by what a majority of the voters has told.
    fn earlier_leases(&self, s: &State, life: usize) -> u16 {
        if self.errs(Planted::ForgetEarlierLeases) {
            return 0;
        }
        let me = &s.lives[life];
        let config = me.config(self.founded());
        let unknown = self.waits(LEASE, me.rate);
        let stand_in = self.stand_in(s, life);
        let mut heard: Vec<(u16, Set)> = each(config.voters)
            .map(|voter| match 1 << voter {
                set if set & stand_in != 0 => (0, set),
                set if set & (me.votes | 1 << life) != 0 && !s.is_over(voter) => {
                    (s.lives[voter].heard, set)
                }
                set => (unknown, set),
            })
            .collect();
        heard.sort_unstable();
        let mut set = 0;
        let by_majority = heard.iter().find(|(_, voter)| {
            set |= voter;
            self.is_majority(&config, set)
        });
        let old = by_majority.map_or(unknown, |(left, _)| *left);
        // L-5: a lease that was granted before it became shorter still runs.
        let forgets = self.errs(Planted::ShorterAtOnce) && config.short;
        let spared = self.waits(LEASE, me.rate) - self.waits(LEASE / 3, me.rate);
        if forgets { old.saturating_sub(spared) } else { old }
    }

    /// Leader: what a majority has is agreed on.
    fn agree(&self, s: &mut State, leader: usize) {
        loop {
            let me = &s.lives[leader];
            let config = me.config(self.founded());
            let stand_in = self.stand_in(s, leader);
            let confirmed = |at: usize| {
                let has_it = |life: &usize| {
                    let log = &s.lives[*life].log;
                    log.get(at) == Some(&me.log[at])
                        && (*life == leader || !has(me.unconfirmed, *life))
                };
                let all = each(config.voters).filter(has_it).fold(0, |set, life| set | 1 << life);
                let living = config.voters & !me.ends;
                if living & !all == 0 { all | stand_in } else { all }
            };
            let next = (usize::from(me.agreed)..me.log.len()).rev().find(|at| {
                me.log[*at].term == me.term && self.is_majority(&config, confirmed(*at))
            });
            let Some(at) = next else { return };
            s.lives[leader].agreed = at as u8 + 1;
            self.install(s, leader);
        }
    }

    /// FENCE-1: a view without an uncertified data node waits for the disk.
    pub(crate) fn install(&self, s: &mut State, life: usize) {
        let me = &mut s.lives[life];
        let new = usize::from(me.installed)..usize::from(me.agreed);
        let needs_fence = |at: &usize| match me.log[*at].command {
            Command::Remove { life, certified } => {
                !certified && !has(self.scenario.witness, usize::from(life))
            }
            _ => false,
        };
        let unfenced = new.rev().find(needs_fence).is_some_and(|at| usize::from(me.disk) <= at);
        let is_witness = has(self.scenario.witness, life);
        if !unfenced || is_witness || self.errs(Planted::UnfencedView) {
            me.installed = me.agreed;
        }
    }

    /// Who may answer: in sync in its view, with a lease, or the only replica (LEASE-3).
    pub(crate) fn serves(&self, s: &State, life: usize) -> bool {
        let me = &s.lives[life];
        let is_full = has(me.view(self.founded()).full, life);
        let agreed = me.config(self.founded());
        let is_alone = agreed.data(self.scenario.witness) == 1 << life && has(agreed.full, life);
        let read_under_lease = self.errs(Planted::CheckBeforeRead) && me.in_round;
        s.acts(life) && is_full && (me.lease > 0 || is_alone || read_under_lease)
    }

    /// Whoever may answer has everything that was acknowledged.
    pub(crate) fn answers_are_new(&self, s: &State) -> bool {
        (0..s.lives.len()).all(|x| !self.serves(s, x) || s.lives[x].rows == s.acknowledged)
    }

    /// A commit of this primary would be confirmed by all data nodes of its view.
    pub(crate) fn may_acknowledge(&self, s: &State, life: usize) -> bool {
        let me = &s.lives[life];
        let view = me.view(self.founded());
        let confirms = |other: usize| {
            let theirs = &s.lives[other];
            s.acts(other)
                && s.are_linked(life, other)
                && theirs.log[..usize::from(theirs.installed)]
                    == me.log[..usize::from(me.installed)]
        };
        each(view.full).next() == Some(life)
            && self.serves(s, life)
            && each(view.data(self.scenario.witness)).all(confirms)
    }

    fn acknowledge(&self, s: &mut State, life: usize) {
        let me = &s.lives[life];
        let view = me.log[..usize::from(me.installed)].to_vec();
        let descends = view.starts_with(&s.acknowledged_in) && me.rows == s.acknowledged;
        let data = me.view(self.founded()).data(self.scenario.witness);
        s.two_branches |= !descends;
        s.acknowledged += 1;
        s.acknowledged_in = view;
        for holder in each(data) {
            s.lives[holder].rows = s.acknowledged;
        }
    }

    /// All that the rules allow now.
    pub(crate) fn protocol_actions(&self, s: &State, actions: &mut Vec<Action>) {
        for life in each(s.acting()) {
            self.actions_of(s, life, actions);
        }
        if s.lives.iter().any(super::Life::waits) {
            actions.push(Action::Tick);
        }
    }

    fn actions_of(&self, s: &State, life: usize, actions: &mut Vec<Action>) {
        let (me, id) = (&s.lives[life], life as u8);
        match me.role {
            Role::Leader => self.leaders_actions(s, life, actions),
            Role::Candidate => self.votes_for(s, life, actions),
            Role::Follower => {}
        }
        if self.may_campaign(s, life) && me.term & 15 < self.scenario.terms {
            actions.push(Action::Campaign(id));
        }
        let lags = self.scenario.returns > 0 && me.disk < me.agreed;
        if me.installed < me.agreed || lags && !has(self.scenario.witness, life) {
            actions.push(Action::Keep(id));
        }
        if s.acknowledged < self.scenario.acks && self.may_acknowledge(s, life) {
            actions.push(Action::Acknowledge(id));
        }
        for of in 0..s.lives.len() {
            if of != life && !has(me.ends, of) && self.is_told_of_end(s, life, of) {
                actions.push(Action::Hear { by: id, of: of as u8 });
            }
        }
        if s.leader_of(life).is_none() && self.reformed(s, life).is_some() {
            actions.push(Action::Reform(id));
        }
        let begins = self.errs(Planted::CheckBeforeRead) && me.lease > 0 && !me.in_round;
        if begins && s.pauses > 0 {
            actions.push(Action::BeginRound(id));
        }
    }

    /// DEATH-1 to DEATH-3.
    fn is_told_of_end(&self, s: &State, by: usize, of: usize) -> bool {
        let is_linked = s.are_linked(by, of);
        let refuses = self.errs(Planted::RefusalAsProof) && s.acts(of) && !is_linked;
        let wrong_guardian =
            self.errs(Planted::GuardianWithoutNonce) && s.lives[of].is_reguarded && s.acts(of);
        is_linked && (s.is_certain(of) || wrong_guardian) || refuses
    }

    fn may_campaign(&self, s: &State, life: usize) -> bool {
        let me = &s.lives[life];
        let votes = has(me.config(self.founded()).voters, life);
        votes && me.role != Role::Leader && s.leader_of(life).is_none()
    }

    fn votes_for(&self, s: &State, candidate: usize, actions: &mut Vec<Action>) {
        let me = &s.lives[candidate];
        let voters = me.config(self.founded()).voters;
        let to = candidate as u8;
        for by in each(voters & s.reached(candidate)).filter(|by| *by != candidate) {
            let voter = &s.lives[by];
            let is_free = voter.term < me.term && era(voter.term) == era(me.term);
            let knows_less = voter.newest() <= me.newest();
            if is_free && knows_less && s.leader_of(by).is_none() {
                actions.push(Action::Vote { by: by as u8, to, arrives: true });
                if self.scenario.late {
                    actions.push(Action::Vote { by: by as u8, to, arrives: false });
                }
            }
        }
        for by in each(voters & !me.votes).filter(|_| self.scenario.late) {
            let voter = &s.lives[by];
            // C-7: what comes behind the certificate changes nothing.
            if voter.voted == Some(to) && voter.term == me.term && !has(me.ends, by) {
                actions.push(Action::LateVote { by: by as u8, to });
            }
        }
    }

    fn leaders_actions(&self, s: &State, life: usize, actions: &mut Vec<Action>) {
        let (me, id) = (&s.lives[life], life as u8);
        let config = me.config(self.founded());
        let reached = s.reached(life);
        let is_followed = self.is_majority(&config, reached | self.stand_in(s, life));
        let is_voter = has(config.voters, life);
        if me.led == 0 && !is_followed || !is_voter && me.has_settled() {
            actions.push(Action::GiveUp(id));
        }
        if me.has_settled() && is_voter {
            actions.push(Action::Round(id));
        }
        for to in each(config.members & reached).filter(|to| *to != life) {
            let theirs = &s.lives[to];
            let lacks = theirs.log != me.log || theirs.agreed < me.agreed;
            let may = theirs.term <= me.term && self.is_of_group(s, life, to);
            if may && (lacks || theirs.term < me.term || has(me.unconfirmed, to)) {
                actions.push(Action::Sync { from: id, to: to as u8, confirmed: true });
                if self.scenario.late && theirs.log != me.log {
                    actions.push(Action::Sync { from: id, to: to as u8, confirmed: false });
                }
            }
        }
        for by in each(me.unconfirmed & !me.ends) {
            if s.lives[by].log == me.log {
                actions.push(Action::LateConfirm { by: by as u8, to: id });
            }
        }
        if me.has_settled() && is_voter && me.log.len() < usize::from(self.scenario.log) {
            self.proposals(s, life, actions);
        }
    }

    /// Messages of a former group are dropped; in stage 2 its members are taken along (E-1).
    fn is_of_group(&self, s: &State, leader: usize, other: usize) -> bool {
        let (group, theirs) = (era(s.lives[leader].term), era(s.lives[other].term));
        group == theirs || s.lives[other].log.is_empty() || self.has_testaments()
    }

    fn round(&self, s: &mut State, leader: usize) {
        let me = &s.lives[leader];
        let (config, term, rate) = (me.config(self.founded()), me.term, me.rate);
        let may = |x: &usize| s.lives[*x].term <= term && self.is_of_group(s, leader, *x);
        let hears = config.members & s.reached(leader);
        let hears = each(hears).filter(may).fold(1 << leader, |set: Set, x| set | 1 << x);
        let length = Self::lease(&config);
        let is_led = self.is_majority(&config, hears | self.stand_in(s, leader));
        let led = if is_led { Self::lasts(length, rate) } else { me.led };
        // LEASE-6: no lease outlasts the leader's own.
        let granted = length.min((u32::from(led) * u32::from(rate) / 1_000) as u16);
        let unsettled: Set = each(hears).filter(|x| me.is_removing(*x)).fold(0, |r, x| r | 1 << x);
        for x in each(hears) {
            let theirs = &mut s.lives[x];
            if theirs.term < term {
                theirs.follow();
                theirs.term = term;
                theirs.voted = Some(leader as u8);
            }
            theirs.heard = self.waits(LEASE, theirs.rate);
            let holds = !has(self.scenario.witness | unsettled, x);
            if holds && led > 0 {
                theirs.lease = theirs.lease.max(Self::lasts(granted, theirs.rate));
                s.lives[leader].granted[x] =
                    s.lives[leader].granted[x].max(self.waits(granted, rate));
            }
        }
        s.lives[leader].led = led;
        s.lives[leader].granted[leader] = 0;
    }

    fn proposals(&self, s: &State, leader: usize, actions: &mut Vec<Action>) {
        let me = &s.lives[leader];
        let config = me.config(self.founded());
        let mut propose = |command| actions.push(Action::Propose(leader as u8, command));
        for x in each(config.members).filter(|x| *x != leader) {
            let is_last = config.full == 1 << x;
            let holds_two = config.second == Some(x as u8);
            let certified = has(me.ends, x);
            if !is_last && !holds_two && (certified || self.is_silent(s, leader, x)) {
                propose(Command::Remove { life: x as u8, certified });
            }
        }
        if self.has_testaments() && !self.errs(Planted::TieAsField) {
            let is_even = config.voters.count_ones().is_multiple_of(2);
            let holder = Some(leader).filter(|x| has(config.full & config.voters, *x));
            let holder = holder.or_else(|| each(config.full & config.voters).next());
            let lost = config
                .second
                .map(usize::from)
                .is_some_and(|x| x != leader && (has(me.ends, x) || self.is_silent(s, leader, x)));
            match config.second {
                None if is_even => propose(Command::Second(holder.map(|x| x as u8))),
                Some(_) if !is_even || lost => propose(Command::Second(None)),
                _ => {}
            }
        }
        if self.scenario.shorter && !config.short {
            propose(Command::ShorterLease);
        }
        self.propose_new_lives(s, leader, actions);
    }

    /// VIEW-2, VIEW-9: every lease that it may believe in is over, and the leader itself is followed.
    fn is_silent(&self, s: &State, leader: usize, x: usize) -> bool {
        let me = &s.lives[leader];
        let is_witness = has(self.scenario.witness, x);
        // As built a witness keeps its vote; Q-5 replaces it.
        (self.has_testaments() || !is_witness)
            && !has(s.reached(leader), x)
            && me.led >= Self::lease(&me.config(self.founded())) / 2
            && me.old == 0
            && me.granted[x] == 0
    }

    fn propose_new_lives(&self, s: &State, leader: usize, actions: &mut Vec<Action>) {
        let me = &s.lives[leader];
        let config = me.config(self.founded());
        let data = config.data(self.scenario.witness);
        let is_with_all = |x: usize| s.acts(x) && s.are_linked(leader, x);
        let all_reached = each(data).all(is_with_all);
        let announces = self.has_testaments() && !self.errs(Planted::AddWithoutAnnouncing);
        let mut propose = |command| actions.push(Action::Propose(leader as u8, command));
        for x in self.scenario.founders()..s.lives.len() {
            let life = &s.lives[x];
            let former_is_out = life.continues.is_none_or(|of| !has(config.members, of.into()));
            let comes = life.being == Being::Unborn && self.scenario.joins
                || is_with_all(x) && former_is_out;
            let installed = |other: usize| {
                s.lives[other].log.len() == me.log.len() && s.lives[other].installed == me.installed
            };
            if !has(config.members, x) {
                let waits = announces && !all_reached;
                match (comes && !waits, announces) {
                    (true, true) => propose(Command::Announce(x as u8)),
                    (true, false) => propose(Command::Add(x as u8)),
                    (false, _) => {}
                }
            } else if !has(config.full, x) && all_reached && each(data).all(installed) {
                propose(Command::Full(x as u8));
            } else if has(config.announced & config.full, x) && all_reached {
                // every data voter's log has the announcement.
                propose(Command::Add(x as u8));
            }
        }
    }

    fn propose(&self, s: &mut State, leader: usize, command: Command) {
        let term = s.lives[leader].term;
        if let Command::Announce(x) | Command::Add(x) = command
            && s.lives[usize::from(x)].being == Being::Unborn
        {
            s.lives[usize::from(x)].being = Being::Alive;
        }
        if let Command::Full(x) = command {
            // REDO-2: it has the rows, and an epoch of its view is durable everywhere.
            let config = s.lives[leader].config(self.founded());
            let rows = each(config.full).map(|f| s.lives[f].rows).max().unwrap_or_default();
            s.lives[usize::from(x)].rows = rows;
            for holder in each(config.data(self.scenario.witness)) {
                s.lives[holder].disk = s.lives[holder].agreed;
            }
        }
        s.lives[leader].log.push(Entry { term, command });
    }

    fn sync(&self, s: &mut State, from: usize, to: usize, confirmed: bool) {
        let leader = s.lives[from].clone();
        let life = &mut s.lives[to];
        let is_new_group = era(life.newest().0) < era(leader.newest().0);
        if life.term < leader.term {
            life.follow();
            life.term = leader.term;
            life.voted = Some(from as u8);
        }
        let had = usize::from(life.agreed);
        s.overwritten |= !is_new_group && !leader.log.starts_with(&life.log[..had]);
        life.log = leader.log;
        life.agreed = if is_new_group { leader.agreed } else { life.agreed.max(leader.agreed) };
        let all = life.log.len() as u8;
        life.agreed = life.agreed.min(all);
        life.installed = life.installed.min(life.agreed);
        life.disk = life.disk.min(life.agreed);
        let set = 1 << to;
        let unconfirmed = &mut s.lives[from].unconfirmed;
        *unconfirmed = if confirmed { *unconfirmed & !set } else { *unconfirmed | set };
        self.install(s, to);
    }

    fn campaign(&self, s: &mut State, life: usize) {
        let me = &mut s.lives[life];
        me.follow();
        me.role = Role::Candidate;
        me.term += 1;
        me.voted = Some(life as u8);
        me.votes = 1 << life;
    }

    fn vote(&self, s: &mut State, (by, to): (usize, usize), arrives: bool) {
        let term = s.lives[to].term;
        let voter = &mut s.lives[by];
        voter.follow();
        voter.term = term;
        voter.voted = Some(to as u8);
        if arrives {
            s.lives[to].votes |= 1 << by;
        }
    }

    fn give_up(&self, s: &mut State, life: usize) {
        let heard = self.waits(LEASE, s.lives[life].rate);
        s.lives[life].follow();
        s.lives[life].heard = heard;
    }

    fn tick(&self, s: &mut State) {
        let next = s.lives.iter().filter_map(super::Life::next_deadline).min();
        let most = if self.scenario.half_leases { LEASE / 2 } else { LEASE };
        let step = next.unwrap_or(most).min(most);
        for life in &mut s.lives {
            life.pass(step);
        }
    }

    /// The state after an action that may happen.
    pub(crate) fn after(&self, state: &State, action: Action) -> Option<State> {
        let mut s = state.clone();
        let n = usize::from;
        match action {
            Action::Tick => self.tick(&mut s),
            Action::Campaign(life) => self.campaign(&mut s, n(life)),
            Action::Vote { by, to, arrives } => self.vote(&mut s, (n(by), n(to)), arrives),
            Action::LateVote { by, to } => s.lives[n(to)].votes |= 1 << by,
            Action::GiveUp(life) => self.give_up(&mut s, n(life)),
            Action::Round(life) => self.round(&mut s, n(life)),
            Action::Propose(life, command) => self.propose(&mut s, n(life), command),
            Action::Sync { from, to, confirmed } => self.sync(&mut s, n(from), n(to), confirmed),
            Action::LateConfirm { by, to } => s.lives[n(to)].unconfirmed &= !(1 << by),
            Action::Keep(life) => {
                let me = &mut s.lives[n(life)];
                (me.disk, me.installed) = (me.agreed, me.agreed);
            }
            Action::Acknowledge(life) => self.acknowledge(&mut s, n(life)),
            Action::Hear { by, of } => s.lives[n(by)].ends |= 1 << of,
            Action::Reform(life) => self.reform(&mut s, n(life)),
            Action::BeginRound(life) => s.lives[n(life)].in_round = true,
            fault => self.suffer(&mut s, fault),
        }
        self.settle(&mut s);
        Some(s)
    }

    /// Whoever should serve by the table does, after a while without faults.
    pub(crate) fn serves_again(&self, s: &State) -> bool {
        debug_assert!(self.scenario.judges_service, "{}", properties::SERVES);
        !self.should_serve(s) || self.comes_to_serve(s.clone())
    }
}
