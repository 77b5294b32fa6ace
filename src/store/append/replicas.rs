//! The choice of one sender among several that send the same samples, series by series.
//!
//! Samples of the other senders are removed before the group's record is written, so a replay needs
//! no picks. A start has no picks: the first sender of a sample that is newer than the latest one
//! of its series is picked. Must never know: the names of senders.

use std::{borrow::Cow, collections::HashMap};

use foldhash::fast::RandomState;

use crate::model::{
    AcceptedBatch, BatchVerdict, SeriesId, UnixMillis,
    replica::{Replica, ReplicaVerdict, SelectedSender},
};

type Key = (SeriesId, u16);
type Picks = HashMap<Key, SelectedSender, RandomState>;

/// The picked sender of each series and group of replicas.
#[derive(Debug, Default)]
pub(crate) struct ReplicaPicks(Picks);

/// The batches of a group, without samples of senders that are not picked.
pub(crate) struct Picked<'a> {
    pub(crate) batches: Cow<'a, [AcceptedBatch]>,
    /// The number of samples left out of each batch; empty when no batch is of a replica.
    pub(crate) left_out: Vec<u64>,
    pub(crate) failovers: u64,
    moved: Picks,
}

impl ReplicaPicks {
    /// Removes the samples of senders that are not picked from the accepted batches. `latest`
    /// returns the time of the latest sample of a series.
    pub(crate) fn pick<'a>(
        &self,
        batches: &'a [AcceptedBatch],
        verdicts: &[BatchVerdict],
        latest: impl Fn(SeriesId) -> Option<UnixMillis>,
    ) -> Picked<'a> {
        let (left_out, moved) = (Vec::new(), Picks::default());
        let mut picked = Picked { batches: Cow::Borrowed(batches), left_out, failovers: 0, moved };
        if batches.iter().all(|batch| batch.replica.is_none()) {
            return picked;
        }
        picked.left_out.resize(batches.len(), 0);
        for (index, batch) in batches.iter().enumerate() {
            let Some(replica) = batch.replica.filter(|_| verdicts[index].is_accepted()) else {
                continue;
            };
            let mut counts = |(sample, series): (usize, &SeriesId)| {
                let verdict = self.verdict(
                    &mut picked.moved,
                    (*series, replica),
                    batch.time(sample),
                    &latest,
                );
                picked.failovers += u64::from(verdict == ReplicaVerdict::Failover);
                verdict != ReplicaVerdict::OfAnother
            };
            let kept: Vec<bool> = batch.series.iter().enumerate().map(&mut counts).collect();
            let left_out = kept.iter().filter(|counts| !**counts).count();
            if left_out > 0 {
                picked.left_out[index] = left_out as u64;
                picked.batches.to_mut()[index].retain_samples(&kept);
            }
        }
        picked
    }

    fn verdict(
        &self,
        moved: &mut Picks,
        (series, Replica { group, failover_ms, sender }): (SeriesId, Replica),
        at: UnixMillis,
        latest: impl Fn(SeriesId) -> Option<UnixMillis>,
    ) -> ReplicaVerdict {
        let key = (series, group);
        let known = moved.get(&key).or_else(|| self.0.get(&key)).copied();
        let Some(mut pick) = known else {
            let Some(pick) = SelectedSender::first(sender, at, latest(series)) else {
                return ReplicaVerdict::OfAnother;
            };
            moved.insert(key, pick);
            return ReplicaVerdict::Counts;
        };
        let verdict = pick.accept(sender, at, i64::from(failover_ms));
        moved.insert(key, pick);
        verdict
    }

    /// Stores the picks of a durable group. When there would be more than `picks_max`, all earlier
    /// picks are forgotten, as by a restart.
    pub(crate) fn settle(&mut self, moved: Picks, picks_max: usize) {
        if self.0.len().saturating_add(moved.len()) > picks_max {
            self.0.clear();
        }
        self.0.extend(moved);
    }
}

impl Picked<'_> {
    /// The new picks, to be stored when the group is durable.
    pub(crate) fn into_moved(self) -> Picks {
        self.moved
    }
}
