//! The invariants of the protocol.

use std::collections::{BTreeMap, BTreeSet};

use super::state::{SHARDS, ToyShard};
use crate::replication::{
    entry::{Entry, NodeName},
    medium::{Command, memory::Memory},
    roles::Replica,
    shard::Shard,
};

/// The acknowledged records, and the first violated invariant.
#[derive(Debug, Default)]
pub(super) struct Checks {
    pub(super) violation: Option<String>,
    pub(super) takes: u32,
    pub(super) seeds: u32,
    /// The acknowledged batches.
    acked: BTreeSet<u32>,
    /// The numbers of acknowledged records with their epochs.
    records: BTreeMap<(u16, u64), u64>,
    /// The fences by shard and epoch.
    fences: BTreeMap<(u16, u64), u64>,
    cuts: [u64; SHARDS as usize],
    last_acked: [u64; SHARDS as usize],
}

impl Checks {
    pub(super) fn fail(&mut self, violation: String) {
        self.violation.get_or_insert(violation);
    }

    pub(super) fn is_acked(&self, batch: u32) -> bool {
        self.acked.contains(&batch)
    }

    pub(super) fn acked(&self) -> usize {
        self.acked.len()
    }

    pub(super) fn note_known(&mut self, batch: u32) {
        self.acked.insert(batch);
    }

    /// Notes an acknowledged record: no fence of a higher epoch precedes it.
    pub(super) fn note_acked(
        &mut self,
        shard: u16,
        number: u64,
        epoch: u64,
        batches: impl Iterator<Item = u32>,
    ) {
        self.acked.extend(batches);
        self.records.insert((shard, number), epoch);
        let last = &mut self.last_acked[usize::from(shard)];
        *last = number.max(*last);
        self.check_fences();
    }

    /// Notes a fence whose epoch a node holds. A taker that gave up may leave a fence among deleted
    /// numbers, which ends nothing.
    pub(super) fn note_took(&mut self, shard: u16, epoch: u64, fence: u64) {
        self.takes += 1;
        if self.fences.insert((shard, epoch), fence).is_some() {
            self.fail(format!("SHARED epoch {epoch} of shard {shard}"));
        }
        self.check_fences();
    }

    /// A node that may answer has every acknowledged record, and no later epoch has begun.
    pub(super) fn check_leases<'a>(
        &mut self,
        now_ms: u64,
        memory: &Memory,
        replicas: impl Iterator<Item = (&'a Replica, &'a ToyShard)>,
    ) {
        let mut stale = None;
        for (shard, (replica, state)) in (0..SHARDS).zip(replicas) {
            let (last, epoch) = (self.last_acked[usize::from(shard)], replica.epoch());
            let begun = memory.shard(shard).map(|row| row.epoch);
            if replica.may_answer(now_ms) && (state.applied() < last || epoch < begun) {
                stale = Some(format!("STALE answers of epoch {epoch:?} after {begun:?}, {last}"));
            }
        }
        if let Some(violation) = stale {
            self.fail(violation);
        }
    }

    /// A cut never falls.
    pub(super) fn check_rows(&mut self, memory: &Memory) {
        for shard in 0..SHARDS {
            let cut = memory.shard(shard).map_or(0, |row| row.cut);
            let last = self.cuts[usize::from(shard)];
            if cut < last {
                self.fail(format!("LOWER cut {cut} after {last}"));
            }
            self.cuts[usize::from(shard)] = cut;
        }
    }

    /// A majority has an acknowledged record, unless all members have it durably.
    pub(super) fn check_acked(&mut self, shard: u16, number: u64, epoch: u64, memory: &Memory) {
        let is_there = |entry: &Entry| entry.id.number == number && entry.epoch == epoch;
        let is_cut = memory.shard(shard).is_some_and(|row| row.cut >= number);
        if !is_cut && !memory.entries(shard).any(is_there) {
            self.fail(format!("MINORITY has record {number} of epoch {epoch}"));
        }
    }

    /// The fence of each epoch stays.
    pub(super) fn check_kept(&mut self, memory: &Memory) {
        let is_kept = |((shard, epoch), fence): &(&(u16, u64), &u64)| {
            let mut entries = memory.entries(*shard);
            entries.any(|entry| entry.id.number == **fence && entry.epoch == *epoch)
        };
        if let Some(lost) = self.fences.iter().find(|fence| !is_kept(fence)) {
            let violation = format!("MISSING fence {lost:?}");
            self.violation.get_or_insert(violation);
        }
    }

    /// The cut of a holder is on the disk of each member that it knows.
    pub(super) fn check_cut(&mut self, command: &Command, member: &NodeName, disk: u64) {
        if let Command::RaiseCut { cut, .. } = command
            && *cut > disk
        {
            self.fail(format!("EARLY cut {cut}, but {member} has entries up to {disk}"));
        }
    }

    /// Only records up to the cut are deleted.
    pub(super) fn check_command(&mut self, command: &Command, memory: &Memory) {
        if let Command::Delete { shard, through, .. } = command {
            let cut = memory.shard(*shard).map_or(0, |row| row.cut);
            if *through > cut {
                self.fail(format!("DELETED through {through} above the cut {cut}"));
            }
        }
    }

    /// No acknowledged record of an epoch is behind a fence of a higher one.
    fn check_fences(&mut self) {
        for ((shard, number), epoch) in &self.records {
            let mut higher = self.fences.range((*shard, epoch + 1)..(shard + 1, 0));
            if let Some((fence, _)) = higher.find(|(_, fence)| *fence < number) {
                let violation = format!("LATE record {number} of epoch {epoch} behind {fence:?}");
                self.violation.get_or_insert(violation);
            }
        }
    }
}
