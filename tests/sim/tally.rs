//! Counts of events over many histories.

use std::{collections::BTreeMap, fmt};

use crate::faulty::{Call, ENOSPC, Effect};

/// The kinds of events, each of which a default run must reach.
const KINDS: &[&str] = &[
    "accepted",
    "duplicates",
    "duplicates in one group",
    "stale numbers",
    "batches without samples",
    "jumps of a thousand",
    "new epochs",
    "late epochs",
    "groups of several batches",
    "foreign batches",
    "repeated foreign times",
    "stale markers",
    "refused samples",
    "histories with hundreds of series",
    "histories with random granularities",
    "granularities changed",
    "histories with rules of retention",
    "rules of retention changed",
    "spans changed",
    "clock ahead",
    "clock far ahead",
    "clock back",
    "clock right again",
    "doubted clocks",
    "increases checked",
    "ends checked",
    "checkpoints",
    "failed checkpoints",
    "failed sends",
    "failed definitions",
    "failed views",
    "failed opens",
    "failed upkeep",
    "restarts",
    "kills",
    "power cuts",
    "disk full",
    "failed reads",
    "failed writes",
    "failed set_len",
    "failed allocations",
    "reserves",
    "failed syncs",
    "failed to open a file",
    "failed lists",
    "failed removes",
    "failed renames",
    "dropped partitions",
    "sealed partitions",
    "preallocations",
    "shells checked",
    "deleted series",
    "forgotten series",
    "renamed series",
    "changed kinds",
    "erasures",
    "refused erasures",
    "failed erasures",
    "erasures held",
    "replaced readings",
    "added readings",
    "refused replacements",
    "failed replacements",
    "reloads",
    "reloads that open the store again",
    "failed reloads",
    "retentions changed",
    "retentions of rules changed",
    "snapshots",
    "snapshots compared",
    "snapshots cut short",
    "expired snapshots",
    "failed snapshots",
    "beside snapshots",
    "held by snapshots",
    "restores",
    "lost files",
    "lost heads",
    "damaged heads",
    "damaged numbers",
    "numbers that no file contains",
    "flipped bits",
    "damaged partitions",
    "holes",
    "changed objects",
    "conflicts of objects",
    "failed changes of objects",
    "objects checked",
    "evaluations",
    "checks",
    "histograms sent",
    "totals of histograms checked",
    "failed, yet present",
    "meanwhile: held",
    "meanwhile: sends",
    "meanwhile: checks",
    "meanwhile: kills",
];

/// The number of events of each kind.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    /// Counts an event.
    pub(crate) fn note(&mut self, kind: &'static str) {
        self.count(kind, 1);
    }

    /// Counts several events of a kind.
    pub(crate) fn count(&mut self, kind: &'static str, times: u64) {
        assert!(KINDS.contains(&kind), "{kind} is not in the list");
        *self.0.entry(kind).or_default() += times;
    }

    /// Counts the faults that occurred.
    pub(crate) fn note_faults(&mut self, hits: &[(Call, Effect)]) {
        for (call, effect) in hits {
            self.note(match (call, effect) {
                (_, Effect::PowerCut) => "power cuts",
                (Call::Read, _) => "failed reads",
                (Call::Write, Effect::Error(ENOSPC)) => "disk full",
                (Call::Write, _) => "failed writes",
                (Call::SetLen, _) => "failed set_len",
                (Call::Allocate, _) => "failed allocations",
                (Call::Sync, _) => "failed syncs",
                (Call::Open, _) => "failed to open a file",
                (Call::List, _) => "failed lists",
                (Call::Remove, _) => "failed removes",
                (Call::Rename, _) => "failed renames",
            });
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (kind, times) in &other.0 {
            *self.0.entry(kind).or_default() += times;
        }
    }

    /// Returns the number of events of a kind.
    pub(crate) fn number(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// Returns the kinds without any event.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        KINDS.iter().filter(|kind| !self.0.contains_key(*kind)).copied().collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        KINDS.iter().try_for_each(|kind| {
            writeln!(f, "{:>10}  {kind}", self.0.get(kind).copied().unwrap_or(0))
        })
    }
}
