//! What an archive has, for people; and what of it nobody needs any more.

use super::{
    Archive,
    survey::{Segment, heads},
};
use crate::BackupError;
use lats_base::{Epoch, NodeId};
use lats_files::redo::Span;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// What is there of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Segments of its logs.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The newest epoch that its logs tell everything of.
    pub upto: Epoch,
    /// When it has noted the time for the last time, in ms since 1970.
    pub noted_ms: Option<u64>,
}

/// The clusters that have archived into these directories.
///
/// # Errors
/// If one of them, or a file there, cannot be read.
pub fn clusters(directories: &[PathBuf]) -> Result<BTreeSet<u64>, BackupError> {
    Ok(heads(directories)?.into_iter().map(|(_, head)| head.log.cluster).collect())
}

impl Archive {
    /// What is there of each node.
    pub fn shares(&self) -> BTreeMap<NodeId, Share> {
        let mut shares: BTreeMap<NodeId, Share> = BTreeMap::new();
        for segment in &self.segments {
            let share = shares.entry(segment.node).or_default();
            share.segments += 1;
            share.bytes += segment.bytes;
        }
        for (node, share) in &mut shares {
            let spans = self.spans.iter().filter(|((of, _), _)| of == node);
            let newest = spans.map(|(_, spans)| spans.iter().map(|span| span.upto).max());
            share.upto = newest.min().flatten().unwrap_or_default();
            let noted = self.times.files().iter().filter(|noted| noted.node == *node);
            share.noted_ms = noted.map(|noted| noted.last.at_ms).max();
        }
        shares
    }

    /// With a backup as of an epoch within one of these spans, or before its first one, rows can be restored as of any later moment
    /// of it.
    pub fn ranges(&self) -> Vec<Span> {
        let managers = self.managers().map(|(of, nodes)| joined(self.spans_of(nodes, of.1)));
        managers.reduce(|a, b| common(&a, &b)).unwrap_or_default()
    }

    /// The files that are of no use where all backups that are kept are of this epoch, or of later ones. States are small, and any
    /// may be the one that was known at a later moment: they stay.
    pub fn superfluous(&self, oldest: Epoch) -> Vec<PathBuf> {
        let logs = self.segments.chunk_by(|a, b| (a.node, a.instance) == (b.node, b.instance));
        let logs = logs.flat_map(|log| older_segments(log, oldest));
        // A time at which no later epoch was noted is one before the backup.
        let noted = self.times.files().iter().filter(|noted| noted.last.epoch < oldest);
        logs.chain(noted.map(|noted| noted.path.clone())).collect()
    }
}

/// ARCHIVE-3: what stands before the last segment that tells of later epochs without help.
fn older_segments(log: &[Segment], oldest: Epoch) -> impl Iterator<Item = PathBuf> {
    let is_enough = |segment: &Segment| segment.tells_after.is_some_and(|after| after <= oldest);
    let first = log.iter().rfind(|segment| is_enough(segment)).map(Segment::order);
    let older =
        log.iter().filter(move |segment| first.is_some_and(|first| segment.order() < first));
    older.map(|segment| segment.path.clone())
}

/// Spans that touch each other are one; those of no epoch say nothing here.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for span in spans.into_iter().filter(|span| span.after < span.upto) {
        match joined.last_mut() {
            Some(last) if span.after <= last.upto => last.upto = last.upto.max(span.upto),
            _ => joined.push(span),
        }
    }
    joined
}

/// The epochs that are in both.
fn common(a: &[Span], b: &[Span]) -> Vec<Span> {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    let both = pairs.map(|(a, b)| Span { after: a.after.max(b.after), upto: a.upto.min(b.upto) });
    both.filter(|span| span.after < span.upto).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(after: u64, upto: u64) -> Span {
        Span { after: Epoch::new(after), upto: Epoch::new(upto) }
    }

    #[test]
    fn what_all_data_managers_tell_is_what_can_be_restored() {
        let one = joined(vec![span(20, 30), span(1, 10), span(9, 12), span(12, 14), span(50, 50)]);
        assert_eq!(one, [span(1, 14), span(20, 30)]);
        assert_eq!(
            common(&one, &[span(5, 22), span(25, 40)]),
            [span(5, 14), span(20, 22), span(25, 30)]
        );
        assert_eq!(common(&one, &[span(14, 20)]), []);
    }
}
