//! What goes wrong: deaths, cuts, pauses, guardians, disks that come back.

use super::{
    Action, Membership, State,
    config::{each, has},
    state::Being,
};

impl Membership {
    /// All that may still go wrong.
    pub(crate) fn fault_actions(&self, s: &State, actions: &mut Vec<Action>) {
        for life in 0..s.lives.len() {
            self.faults_of(s, life, actions);
        }
        if s.apart != 0 {
            actions.push(Action::Heal);
        } else if s.cuts > 0 {
            actions.extend(self.scenario.parts.iter().map(|part| Action::Cut(*part)));
        }
    }

    fn faults_of(&self, s: &State, life: usize, actions: &mut Vec<Action>) {
        let (me, id) = (&s.lives[life], life as u8);
        match me.being {
            Being::Alive if s.deaths > 0 && has(self.scenario.mortal, life) => {
                let ends = self.scenario.ends.iter();
                let ends = ends.filter(|end| me.is_guarded || **end == Being::Silent);
                actions.extend(ends.map(|end| Action::Die(id, *end)));
            }
            _ => {}
        }
        match me.being {
            Being::Alive if s.pauses > 0 && has(self.scenario.pausable, life) => {
                actions.push(Action::Pause(id));
            }
            Being::Paused => actions.push(Action::Resume(id)),
            _ => {}
        }
        if s.acts(life) && self.scenario.guardians > 0 {
            match me.is_guarded {
                true if s.guardians > 0 => actions.push(Action::GuardianDies(id)),
                false => actions.push(Action::NewGuardian(id)),
                true => {}
            }
        }
        let is_back = s.lives.iter().any(|other| other.continues == Some(id));
        let place =
            (self.scenario.founders()..s.lives.len()).find(|x| s.lives[*x].being == Being::Unborn);
        let has_disk = !has(self.scenario.witness, life);
        if let Some(place) = place.filter(|_| s.is_over(life) && !is_back && has_disk)
            && s.returns > 0
        {
            actions.push(Action::Return { of: id, life: place as u8 });
        }
    }

    /// A fault happens.
    pub(crate) fn suffer(&self, s: &mut State, fault: Action) {
        let n = usize::from;
        match fault {
            Action::Die(life, being) => {
                s.deaths -= 1;
                s.lives[n(life)].end(being);
            }
            Action::Cut(part) => {
                s.cuts -= 1;
                s.apart = part;
            }
            Action::Heal => s.apart = 0,
            Action::Pause(life) => {
                s.pauses -= 1;
                s.lives[n(life)].being = Being::Paused;
            }
            Action::Resume(life) => s.lives[n(life)].being = Being::Alive,
            Action::GuardianDies(life) => {
                s.guardians -= 1;
                s.lives[n(life)].is_guarded = false;
            }
            Action::NewGuardian(life) => {
                let me = &mut s.lives[n(life)];
                (me.is_guarded, me.is_reguarded) = (true, true);
            }
            Action::Return { of, life } => Self::come_back(s, n(of), n(life)),
            _ => {}
        }
    }

    /// The next process of a node: it has its disk, and certifies the former one's end (DEATH-2).
    fn come_back(s: &mut State, of: usize, life: usize) {
        s.returns -= 1;
        let former = &mut s.lives[of];
        if former.being == Being::Silent {
            former.being = Being::Certified;
        }
        let (log, disk, rows) = (former.on_disk().to_vec(), former.disk, former.rows);
        let term = log.last().map_or(0, |entry| entry.term);
        let me = &mut s.lives[life];
        (me.being, me.continues) = (Being::Alive, Some(of as u8));
        (me.log, me.agreed, me.disk, me.installed) = (log, disk, disk, disk);
        (me.rows, me.term, me.ends) = (rows, term, 1 << of);
    }

    /// By the table, somebody should serve if nothing else fails.
    ///
    /// Judged is only a part in which all know the newest agreed state, nothing is under way, and nobody is paused.
    pub(crate) fn should_serve(&self, s: &State) -> bool {
        let newest = s.lives.iter().map(|life| life.newest()).max().unwrap_or_default();
        let is_quiet = |x: usize| {
            let life = &s.lives[x];
            life.newest() == newest && usize::from(life.agreed) == life.log.len()
        };
        let paused = s.lives.iter().any(|life| life.being == Being::Paused);
        let parts = [s.acting() & s.apart, s.acting() & !s.apart];
        !paused && parts.into_iter().any(|part| self.part_should_serve(s, part, is_quiet))
    }

    fn part_should_serve(&self, s: &State, part: u8, is_quiet: impl Fn(usize) -> bool) -> bool {
        let members = each(part).find(|x| is_quiet(*x)).map(|x| s.lives[x].config(self.founded()));
        let Some(config) = members.filter(|config| config.full & part != 0) else { return false };
        let here = part & config.members;
        if !each(here).all(&is_quiet) || here == 0 {
            return false;
        }
        // The other part's guardians are not heard.
        let is_certified =
            |x: usize| s.is_certain(x) && each(here).next().is_some_and(|y| s.are_linked(x, y));
        let certified = (0..s.lives.len()).filter(|x| is_certified(*x));
        let certified = certified.fold(0, |set, x| set | 1 << x);
        let is_majority = self.is_majority(&config, here);
        let rest = config.voters & !here;
        let is_half = 2 * here.count_ones() == config.voters.count_ones()
            && config.voters.count_ones() <= 4
            && rest & !certified == 0
            && !self.has_testaments();
        let stands = |x: usize| {
            has(here, x)
                || has(certified, x) && each(part).any(|y| s.lives[y].continues == Some(x as u8))
        };
        let all_here = each(config.data(self.scenario.witness)).all(stands);
        let testified = each(certified).filter(|x| s.lives[*x].being == Being::Testified);
        let testified = testified.fold(0, |set, x| set | 1 << x);
        let is_minority_sure = self.has_testaments()
            && 2 * config.votes(here) > config.votes(config.voters & !certified)
            && 2 * config.votes(here) >= config.votes(config.voters & !testified);
        is_majority || is_half || all_here || is_minority_sure
    }

    /// Runs without faults, everybody having a turn: does somebody serve?
    pub(crate) fn comes_to_serve(&self, mut s: State) -> bool {
        // What the scenario limits is no limit here.
        let mut free = self.clone();
        (free.scenario.terms, free.scenario.log, free.scenario.joins) = (15, 40, false);
        (free.scenario.late, free.scenario.acks, free.scenario.returns) = (false, 0, 0);
        free.scenario.shorter = false;
        (0..24).any(|_| free.turn(&mut s))
    }

    /// Everything that can happen happens once: certificates, disks, votes, logs, removals, leases; then time passes.
    /// True if somebody serves on the way.
    pub(crate) fn turn(&self, s: &mut State) -> bool {
        let kinds: [fn(&Action) -> bool; 8] = [
            |a| matches!(a, Action::Hear { .. } | Action::Keep(_) | Action::GiveUp(_)),
            |a| matches!(a, Action::Sync { .. }),
            |a| matches!(a, Action::Campaign(_)),
            |a| matches!(a, Action::Vote { .. }),
            |a| matches!(a, Action::Reform(_)),
            |a| matches!(a, Action::Round(_)),
            |a| matches!(a, Action::Propose(..)),
            |a| matches!(a, Action::Tick),
        ];
        let mut serves = false;
        for kind in kinds {
            // One that has happened may make another one impossible, so each looks again.
            let mut done: Vec<Action> = Vec::new();
            while let Some(action) = self.next_of_kind(s, kind, &done) {
                done.push(action);
                if let Some(after) = self.after(s, action) {
                    *s = after;
                }
            }
            serves |= (0..s.lives.len()).any(|x| self.may_acknowledge(s, x));
        }
        serves
    }

    fn next_of_kind(
        &self,
        s: &State,
        kind: fn(&Action) -> bool,
        done: &[Action],
    ) -> Option<Action> {
        let mut all = Vec::new();
        self.protocol_actions(s, &mut all);
        let may = |action: &Action| match action {
            // Only the life with the newest log can win; one asks at a time.
            Action::Campaign(life) => {
                let me = &s.lives[usize::from(*life)];
                let others = each(s.reached(usize::from(*life)));
                let best = others.map(|x| (s.lives[x].newest(), 7 - x)).max();
                let is_best = best == Some((me.newest(), 7 - usize::from(*life)));
                is_best && !done.iter().any(|a| matches!(a, Action::Campaign(_)))
            }
            _ => true,
        };
        all.into_iter().find(|action| kind(action) && !done.contains(action) && may(action))
    }
}
