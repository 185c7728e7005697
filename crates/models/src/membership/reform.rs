//! Survivors without a majority form the group anew (REFORM-1 to REFORM-4; in stage 2 also, E-1).

use super::{
    Command, Config, Entry, Membership, Planted, Set, State,
    config::{each, era, has},
    state::{Being, Role},
};

/// What a new group begins with.
pub(crate) struct NewGroup {
    log: Vec<Entry>,
    /// Who is in it, and takes part now.
    takes_part: Set,
    /// Who has promised, and so knows of it.
    promised: Set,
    /// Who is struck out.
    gone: Set,
    /// Lives that stand for their disks (a planted error).
    disks: Set,
}

impl Membership {
    /// What this life could begin, if it proposes and may.
    pub(crate) fn reformed(&self, s: &State, life: usize) -> Option<NewGroup> {
        if self.errs(Planted::DisksAsVotes)
            && let Some(group) = self.of_disks(s, life)
        {
            return Some(group);
        }
        let witness = self.scenario.witness;
        let survivors = self.survivors(s, life);
        let is_newest = |other: usize| {
            let (mine, theirs) = (s.lives[life].newest(), s.lives[other].newest());
            (mine, life) >= (theirs, life) && (mine > theirs || life <= other)
        };
        if !has(survivors & !witness, life) || era(s.lives[life].term) >= self.scenario.eras {
            return None;
        }
        let is_newest = each(survivors & !witness).all(is_newest);
        let with_all = is_newest.then(|| self.with_everybody(s, life, survivors)).flatten();
        let by_testaments = || self.by_testaments(s, life, survivors);
        with_all.or_else(|| self.has_testaments().then(by_testaments).flatten())
    }

    /// Lives that wait with their memory, and that this one reaches.
    fn survivors(&self, s: &State, life: usize) -> Set {
        let waits = |x: &usize| {
            let other = &s.lives[*x];
            let is_member = has(other.config(self.founded()).members, *x);
            is_member && other.role != Role::Leader && s.leader_of(*x).is_none()
        };
        each(s.reached(life)).filter(waits).fold(0, |set, x| set | 1 << x)
    }

    /// REFORM-1: every data node is accounted for, and a full replica lives.
    fn with_everybody(&self, s: &State, life: usize, survivors: Set) -> Option<NewGroup> {
        let me = &s.lives[life];
        let disks = each(s.reached(life)).filter(|x| s.lives[*x].continues.is_some());
        let disks: Vec<usize> = disks.filter(|x| !has(survivors, *x)).collect();
        let age = |log: &[Entry]| (log.last().map_or(0, |e| era(e.term)), log.len());
        // REFORM-2: the newest log, or a disk that knows more than it.
        let newer = disks.iter().map(|x| s.lives[*x].on_disk()).max_by_key(|log| age(log));
        let newer = newer.filter(|log| age(log) > age(&me.log));
        let log = newer.unwrap_or(&me.log).to_vec();
        let state = self.founded().after(&log);
        let agreed = if newer.is_some() { state } else { me.config(self.founded()) };
        // Its next life certifies its end (DEATH-2).
        let has_disk = |x: usize| {
            s.is_certain(x) && disks.iter().any(|d| s.lives[*d].continues == Some(x as u8))
        };
        let witness = self.scenario.witness;
        // What a log takes out, and nobody may have agreed on, counts as in, though it lives.
        let taken_out = agreed.data(witness) & !state.data(witness);
        let is_complete = each(state.data(witness)).all(|x| has(survivors, x) || has_disk(x))
            && each(taken_out).all(has_disk)
            || self.errs(Planted::ReformWithoutAll);
        let takes_part = survivors & state.data(witness);
        let is_full = state.full & takes_part != 0 && has(state.members, life);
        let gone = state.members & !takes_part;
        (is_complete && is_full).then_some(NewGroup {
            log,
            takes_part,
            promised: takes_part,
            gone,
            disks: 0,
        })
    }

    /// certified ends, testaments, and votes of the living.
    fn by_testaments(&self, s: &State, life: usize, survivors: Set) -> Option<NewGroup> {
        let ends = each(survivors).fold(0, |set, x| set | s.lives[x].ends);
        let tells = |x: &usize| s.lives[*x].being == Being::Testified;
        let mut told = each(ends).filter(tells).fold(0, |set, x| set | 1 << x);
        let newest = each(survivors | told).max_by_key(|x| s.lives[*x].newest())?;
        let log = &s.lives[newest].log;
        let known = each(survivors | told)
            .filter(|x| s.lives[*x].log == log[..s.lives[*x].log.len().min(log.len())])
            .map(|x| s.lives[x].agreed)
            .max()?;
        if self.errs(Planted::BareCertificates) {
            told = ends;
        }
        let founded = self.founded();
        let may = (usize::from(known)..=log.len()).all(|to| {
            let mut config = founded.after(&log[..to]);
            // Announced counts as in.
            config.voters |= config.announced;
            self.is_enough(&config, survivors, ends, told)
        });
        // The newest log of those who live, a witness's too.
        let base = each(survivors).max_by_key(|x| s.lives[*x].newest())?;
        let state = s.lives[base].with_log(founded);
        let takes_part = survivors & state.members;
        let is_full = state.full & takes_part != 0 && has(state.members, life);
        let gone = state.members & ends;
        let log = s.lives[base].log.clone();
        // Whoever has a majority elects a leader instead.
        let agreed = founded.after(&log[..usize::from(known).min(log.len())]);
        let may = may && !self.is_majority(&agreed, survivors);
        (may && is_full).then_some(NewGroup {
            log,
            takes_part,
            promised: survivors,
            gone,
            disks: 0,
        })
    }

    /// More than half of those whose end is not certified, and half of those who do not testify.
    fn is_enough(&self, config: &Config, survivors: Set, ends: Set, told: Set) -> bool {
        let all = config.voters;
        let votes = config.votes(survivors);
        let future = 2 * votes > config.votes(all & !ends);
        let past = 2 * votes >= config.votes(all & !told);
        let holds_none_of_the_gone = config.votes(survivors & ends) == 0;
        future && past && holds_none_of_the_gone
    }

    /// The planted error: disks of dead lives have their votes.
    fn of_disks(&self, s: &State, life: usize) -> Option<NewGroup> {
        s.lives[life].continues?;
        let config = self.founded().after(s.lives[life].on_disk());
        let is_member = |x: usize| has(s.lives[x].config(self.founded()).members, x);
        let disks: Vec<usize> = each(s.reached(life))
            .filter(|x| s.lives[*x].continues.is_some() && !is_member(*x))
            .collect();
        let former = disks.iter().filter_map(|x| s.lives[*x].continues);
        let votes = former.fold(0, |set, of| set | 1 << of);
        let is_newest = |x: &usize| s.lives[*x].disk <= s.lives[life].disk;
        let may = disks.contains(&life)
            && disks.iter().all(is_newest)
            && era(s.lives[life].term) < self.scenario.eras
            && self.is_majority(&config, votes);
        let takes_part = disks.iter().fold(0, |set, x| set | 1 << x);
        let (log, gone) = (s.lives[life].on_disk().to_vec(), config.members);
        may.then_some(NewGroup { log, takes_part, promised: 0, gone, disks: takes_part })
    }

    /// REFORM-2 to REFORM-4: the new group begins.
    pub(crate) fn reform(&self, s: &mut State, life: usize) {
        let Some(group) = self.reformed(s, life) else { return };
        let groups = each(s.reached(life)).map(|x| era(s.lives[x].term)).max().unwrap_or_default();
        let term = (groups + 1) << 4;
        s.ignorant |= !group.log.starts_with(&s.acknowledged_in);
        let mut log = group.log;
        log.push(Entry { term, command: Command::Reform(group.gone) });
        for disk in each(group.disks) {
            log.push(Entry { term, command: Command::Add(disk as u8) });
            log.push(Entry { term, command: Command::Full(disk as u8) });
        }
        for x in each(group.takes_part | group.promised) {
            let survivor = &mut s.lives[x];
            survivor.follow();
            survivor.term = term;
            survivor.voted = None;
            survivor.log.clone_from(&log);
            survivor.agreed = log.len() as u8;
            survivor.installed = survivor.agreed;
        }
    }
}
