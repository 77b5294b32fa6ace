//! Changes of retention while the store is open.
//!
//! Must never know: who changes a retention, and when partitions are dropped.

use super::Store;
use crate::{
    model::{
        Granularity, GranularityIndex, GranularitySet, Moment, RetentionRule, Span, UnixMillis,
    },
    store::{classes::ClassIndex, error::StoreError, journal::granularity_rows::NewRetention},
};

/// A changed retention of a level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetentionChange {
    index: GranularityIndex,
    retention: Span,
    /// The time before which slots lack samples that the old retention refused.
    kept_since: UnixMillis,
}

impl Store {
    /// Applies the retentions of a set of the same granularities, and of the same rules, from now
    /// on. Returns the number of changed levels.
    ///
    /// A longer retention covers slots whose samples were already refused; these slots count as
    /// incomplete.
    ///
    /// # Errors
    /// When the journal cannot be written; the store then uses the old retentions. A replica changes
    /// its retentions with the leader's [`crate::store::Appender::change_retentions`].
    ///
    /// # Panics
    /// When the granularities or the rules differ in more, so that the store must be opened again.
    pub fn change_retentions(
        &self,
        set: &GranularitySet,
        rules: &[RetentionRule],
        now: impl Into<Moment>,
    ) -> Result<usize, StoreError> {
        let (inner, now) = (&*self.inner, now.into().earliest());
        let wanted = self.wanted_retentions(set, rules);
        if wanted.is_empty() {
            return Ok(0);
        }
        if self.record_time().is_some() {
            return Err(Self::of_all_replicas("change its retentions"));
        }
        // In this order, as in a snapshot: sealing may take long, and checkpoints continue meanwhile.
        let _no_sealing = inner.sealing.lock();
        let _no_checkpoint = inner.checkpointing.lock();
        let changes = self.changed_retentions(&wanted, now);
        inner.journal.note_retentions(self.rows_of(&changes))?;
        self.set_retentions(&changes);
        Ok(changes.len())
    }

    /// Returns the levels whose retention differs, at `now`. Unknown names have no effect.
    pub(crate) fn changed_retentions(
        &self,
        wanted: &[(String, Span)],
        now: UnixMillis,
    ) -> Vec<RetentionChange> {
        let all = self.all_granularities();
        let change = |(name, retention): &(String, Span)| {
            let index = all.iter().position(|level| level.name == *name)?;
            let before = all[index].retention();
            let kept_since = before.before(now).plus(1);
            let index = GranularityIndex(index);
            (before != *retention).then_some(RetentionChange {
                index,
                retention: *retention,
                kept_since,
            })
        };
        wanted.iter().filter_map(change).collect()
    }

    /// Returns changed retentions as the journal stores them.
    pub(crate) fn rows_of<'a>(
        &'a self,
        changes: &'a [RetentionChange],
    ) -> impl Iterator<Item = NewRetention<'a>> {
        let name = |index: GranularityIndex| &*self.granularity(index).name;
        changes.iter().map(move |change| (name(change.index), change.retention, change.kept_since))
    }

    /// Applies durable retentions. The caller holds the locks of sealing and of checkpoints.
    pub(crate) fn set_retentions(&self, changes: &[RetentionChange]) {
        let inner = &*self.inner;
        // A record is applied under this lock, with the same retentions.
        let _no_batch = inner.catalog.write();
        let mut gaps = inner.gaps.write();
        for RetentionChange { index, retention, kept_since } in changes {
            let since = &mut gaps[index.0].complete_since;
            *since = (*kept_since).max(*since);
            self.granularity(*index).change_retention(*retention);
        }
    }

    /// Returns true if the levels of the settings, and of as many rules, differ from the levels of
    /// the store only in their retentions.
    pub fn has_levels_of(&self, set: &GranularitySet, rules: &[RetentionRule]) -> bool {
        let inner = &*self.inner;
        inner.granularities.differs_in_retention_only(set)
            && inner.rules.last_classes().count() == rules.len()
    }

    /// Returns the names of the levels whose retention differs from the settings and the rules, with
    /// the wanted retentions.
    pub(crate) fn wanted_retentions(
        &self,
        set: &GranularitySet,
        rules: &[RetentionRule],
    ) -> Vec<(String, Span)> {
        let wanted = self.wanted_levels(set, rules).into_iter();
        let differs = |(index, wanted): (GranularityIndex, &Granularity)| {
            let ours = self.granularity(index);
            (ours.retention() != wanted.retention())
                .then(|| (ours.name.clone(), wanted.retention()))
        };
        wanted.filter_map(differs).collect()
    }

    /// Returns the levels of the settings and of the rules, with their indexes in the store.
    fn wanted_levels<'a>(
        &self,
        set: &'a GranularitySet,
        rules: &'a [RetentionRule],
    ) -> Vec<(GranularityIndex, &'a Granularity)> {
        let inner = &*self.inner;
        let classes: Vec<_> = inner.rules.last_classes().collect();
        let is_same = inner.granularities.differs_in_retention_only(set);
        assert!(is_same && classes.len() == rules.len(), "the store must be opened again");
        let of_rules = classes.into_iter().zip(rules.iter().map(|rule| &rule.levels));
        let mut wanted = Vec::new();
        for (class, levels) in std::iter::once((ClassIndex::DEFAULT, set)).chain(of_rules) {
            let class = inner.classes.get(class);
            let widths = |set: &GranularitySet| set.iter().map(|level| level.width_ms).collect();
            let (ours, theirs): (Vec<_>, Vec<_>) = (widths(&class.levels), widths(levels));
            assert_eq!(ours, theirs, "the store must be opened again");
            wanted.extend(class.range().map(GranularityIndex).zip(levels));
        }
        wanted
    }
}
