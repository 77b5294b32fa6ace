//! Changes of retention while the store is open.
//!
//! Must never know: who changes a retention, and when partitions are dropped.

use super::Store;
use crate::{
    model::{Granularity, GranularityIndex, GranularitySet, Moment, RetentionRule},
    store::{classes::ClassIndex, error::StoreError},
};

impl Store {
    /// Applies the retentions of a set of the same granularities, and of the same rules, from now
    /// on. Returns the number of changed levels.
    ///
    /// A longer retention covers slots whose samples were already refused; these slots count as
    /// incomplete.
    ///
    /// # Errors
    /// When the journal cannot be written; the store then uses the old retentions.
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
        let mut wanted = self.wanted_levels(set, rules);
        wanted.retain(|(index, level)| self.granularity(*index).retention() != level.retention());
        if wanted.is_empty() {
            return Ok(0);
        }
        // In this order, as in a snapshot: sealing may take long, and checkpoints continue meanwhile.
        let _no_sealing = inner.sealing.lock();
        let _no_checkpoint = inner.checkpointing.lock();
        let mut changes = Vec::new();
        for (index, wanted) in wanted {
            let ours = self.granularity(index);
            let kept_since = ours.retention().before(now).plus(1);
            changes.push((index, ours, wanted.retention(), kept_since));
        }
        let rows = changes
            .iter()
            .map(|(_, ours, retention, kept_since)| (&*ours.name, *retention, *kept_since));
        inner.journal.note_retentions(rows)?;
        // A record is applied under this lock, with the same retentions.
        let _no_batch = inner.catalog.write();
        let mut gaps = inner.gaps.write();
        for (index, ours, retention, kept_since) in &changes {
            let since = &mut gaps[index.0].complete_since;
            *since = (*kept_since).max(*since);
            ours.change_retention(*retention);
        }
        Ok(changes.len())
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
