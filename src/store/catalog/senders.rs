//! The senders that number their batches: the accepted batches of each sender, and the removal of
//! idle senders.
//!
//! Like the catalog, the list of senders is a pure function of the journal: the record of a group
//! contains its batches and the senders that were removed to make room. Must never know: files,
//! samples.

use std::{
    collections::{BTreeSet, HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use crate::{
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, SenderWindow, SequenceVerdict, UnixMillis,
        is_own_sender, split_stored_name,
    },
    store::limits::StoreLimits,
};

/// When the number of senders reaches its limit, the store removes this fraction (1/128) of them at
/// once, so that it rarely has to search for idle senders.
const FORGOTTEN_SHARE: usize = 128;

/// A sender and its window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderInfo {
    /// The name.
    pub name: Arc<str>,
    /// The batches that were accepted.
    pub window: SenderWindow,
    /// The number of series that the sender defined.
    pub series: usize,
}

/// The windows of all senders, by their stored names.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    windows: HashMap<Arc<str>, SenderWindow>,
    /// The number of senders of each project.
    counts: HashMap<Box<str>, usize>,
    changed: BTreeSet<Arc<str>>,
}

/// The time before which no sender of a project can be idle, by project.
pub(crate) type NoneIdle = HashMap<Box<str>, UnixMillis>;

/// The verdicts on the batches of a group.
#[derive(Debug, Default)]
pub(crate) struct GroupVerdicts {
    /// The verdict on each batch.
    pub(crate) verdicts: Vec<BatchVerdict>,
    /// Senders that are removed to make room for new senders; none of them is in the group.
    pub(crate) forgotten: Vec<Arc<str>>,
}

impl Senders {
    /// Restores the windows that an earlier checkpoint wrote. A sender without a time counts as
    /// heard at `now`. Batches of a sender without a window are refused unless their epoch is later
    /// than `ran_until`.
    pub(crate) fn restore(
        &mut self,
        windows: impl IntoIterator<Item = (Arc<str>, Option<SenderWindow>)>,
        ran_until: UnixMillis,
        now: UnixMillis,
    ) {
        for (sender, window) in windows {
            let mut window = window.unwrap_or_else(|| {
                self.changed.insert(sender.clone());
                SenderWindow::unknown_until(ran_until)
            });
            if window.last_batch_at() == UnixMillis(0) {
                window.touch(now);
            }
            *self.window(&sender) = window;
        }
    }

    /// The window of a sender, which is added if it is new.
    fn window(&mut self, sender: &Arc<str>) -> &mut SenderWindow {
        let counts = &mut self.counts;
        self.windows.entry(sender.clone()).or_insert_with(|| {
            *counts.entry(split_stored_name(sender).0.into()).or_default() += 1;
            SenderWindow::default()
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.windows.len()
    }

    /// The number of senders of a project.
    pub(crate) fn count_of(&self, project: &str) -> usize {
        self.counts.get(project).copied().unwrap_or(0)
    }

    /// The number of senders of the project that has most.
    pub(crate) fn count_max(&self) -> usize {
        self.counts.values().copied().max().unwrap_or(0)
    }

    pub(crate) fn has(&self, sender: &str) -> bool {
        self.windows.contains_key(sender)
    }

    /// Returns the latest epoch of a sender, and its highest number.
    pub(crate) fn latest(&self, sender: &str) -> Option<(i64, u64)> {
        self.windows.get(sender)?.epochs().next_back()
    }

    /// Returns the time of the last accepted batch of a sender.
    pub(crate) fn heard(&self, sender: &str) -> Option<UnixMillis> {
        self.windows.get(sender).map(SenderWindow::last_batch_at)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &SenderWindow)> {
        self.windows.iter()
    }

    /// Records an accepted batch, or removes its sender when the batch demands that.
    pub(crate) fn apply(&mut self, number: &BatchNumber, now: UnixMillis) {
        self.changed.insert(number.sender.clone());
        if number.forgets() {
            let is_known = self.windows.remove(&number.sender).is_some();
            let count = self.counts.get_mut(split_stored_name(&number.sender).0);
            if let Some(count) = count.filter(|_| is_known) {
                *count -= 1;
            }
            return;
        }
        let window = self.window(&number.sender);
        window.mark(number.epoch, number.seq);
        window.touch(now);
    }

    /// Returns the senders that changed since the last call; a removed sender has no window.
    pub(crate) fn take_changed(&mut self) -> Vec<(Arc<str>, Option<SenderWindow>)> {
        let changed = std::mem::take(&mut self.changed);
        let window = |sender: Arc<str>| {
            let window = self.windows.get(&sender).cloned();
            (sender, window)
        };
        changed.into_iter().map(window).collect()
    }

    /// Decides on the batches of a group with copies of their senders' windows, in the order in
    /// which the batches will be applied. The limit applies to each project, and a new sender
    /// replaces one of its own project.
    pub(crate) fn verdicts(
        &self,
        batches: &[AcceptedBatch],
        limits: &StoreLimits,
        now: UnixMillis,
        none_idle: &mut NoneIdle,
    ) -> GroupVerdicts {
        let mut group_verdicts = GroupVerdicts::default();
        let mut copies: HashMap<&str, SenderWindow> = HashMap::new();
        // The room for senders of each project, and whether idle ones were searched.
        let mut rooms: HashMap<&str, (usize, bool)> = HashMap::new();
        for batch in batches {
            let verdict = match batch.number() {
                _ if batch.values.is_empty() => self.judge_empty(batch, &copies),
                None => BatchVerdict::ACCEPTED,
                Some(number) => {
                    let window = match copies.entry(&number.sender) {
                        Entry::Occupied(known) => Some(known.into_mut()),
                        Entry::Vacant(free) => {
                            let known = self.windows.get(&number.sender).cloned();
                            let is_new = known.is_none();
                            let project = split_stored_name(&number.sender).0;
                            let (room, has_searched) = rooms.entry(project).or_insert_with(|| {
                                (limits.senders_max.saturating_sub(self.count_of(project)), false)
                            });
                            if is_new && *room == 0 && !*has_searched {
                                *has_searched = true;
                                let idle = self.idle(project, batches, (limits, now), none_idle);
                                *room = idle.len();
                                group_verdicts.forgotten.extend(idle);
                            }
                            // Other senders that use up the limit must not block the daemon's own
                            // senders.
                            let has_room = !is_new || *room > 0 || is_own_sender(&number.sender);
                            *room = room.saturating_sub(usize::from(is_new));
                            has_room.then(|| free.insert(known.unwrap_or_default()))
                        }
                    };
                    window.map_or(BatchVerdict::SenderLimit, |window| {
                        verdict(window.accept(number.epoch, number.seq))
                    })
                }
            };
            group_verdicts.verdicts.push(verdict);
        }
        group_verdicts
    }

    /// Decides on a batch without samples. The batch claims no number, but it may be a retry whose
    /// samples have become too old.
    fn judge_empty(
        &self,
        batch: &AcceptedBatch,
        copies: &HashMap<&str, SenderWindow>,
    ) -> BatchVerdict {
        let known = batch.number().and_then(|number| {
            let window = copies.get(&*number.sender).or_else(|| self.windows.get(&number.sender));
            Some(window?.check(number.epoch, number.seq))
        });
        if known == Some(SequenceVerdict::Duplicate) {
            return BatchVerdict::Duplicate;
        }
        BatchVerdict::Empty
    }

    /// Returns the senders of a project to remove: those that were idle for longest, and longer
    /// than the limit.
    fn idle(
        &self,
        project: &str,
        batches: &[AcceptedBatch],
        (limits, now): (&StoreLimits, UnixMillis),
        none_idle: &mut NoneIdle,
    ) -> Vec<Arc<str>> {
        if none_idle.get(project).is_some_and(|none_before| now < *none_before) {
            return Vec::new();
        }
        let numbers = batches.iter().filter_map(AcceptedBatch::number);
        let in_group: HashSet<&str> = numbers.map(|number| &*number.sender).collect();
        let is_other =
            |sender: &str| split_stored_name(sender).0 == project && !in_group.contains(sender);
        let others = self.windows.iter().filter(|(sender, _)| is_other(sender));
        let mut all: Vec<_> =
            others.map(|(sender, window)| (window.last_batch_at(), sender)).collect();
        all.sort_unstable();
        let before = now.plus(limits.sender_idle_ms.saturating_neg());
        let share = limits.senders_max / FORGOTTEN_SHARE + 1;
        let idle = all.iter().take_while(|(heard, _)| *heard < before).take(share);
        let idle: Vec<_> = idle.map(|(_, sender)| Arc::clone(sender)).collect();
        if let (true, Some((oldest, _))) = (idle.is_empty(), all.first()) {
            none_idle.insert(project.into(), oldest.plus(limits.sender_idle_ms));
        }
        idle
    }
}

fn verdict(sequence: SequenceVerdict) -> BatchVerdict {
    match sequence {
        SequenceVerdict::New => BatchVerdict::ACCEPTED,
        SequenceVerdict::Duplicate => BatchVerdict::Duplicate,
        SequenceVerdict::TooOld => BatchVerdict::StaleNumber,
        SequenceVerdict::TooFar => BatchVerdict::FarNumber,
    }
}
