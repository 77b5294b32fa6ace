//! The loads of rules: at the start, at reloads, and when a text changes.
//!
//! A reload reads the files first, and replaces the rules later; texts that change in between stay.
//! Must never know: the times of reloads, evaluation.

use std::sync::Arc;

use super::{
    KnownRules, RuleSet, RuleSources, SourceFault,
    fault::fault_lines,
    set::{check_added, count_rules},
    sources::FileRules,
    texts::{AlertText, ReadTexts},
};
use crate::{
    alerts::FileFault,
    clock::{Clock, SystemClock},
    kept::ObjectFault,
    model::{UnixMillis, with_causes},
    query::PromqlSettings,
    store::{ObjectRefusal, Store, StoreError},
};

/// Rules that were read and can be used.
#[derive(Debug)]
pub struct ReadRules {
    parts: RuleParts,
    rules: usize,
}

impl ReadRules {
    /// Returns the number of rules.
    pub fn count(&self) -> usize {
        self.rules
    }
}

/// The parts from which the rules in use are composed. Clones are cheap.
#[derive(Debug, Clone)]
pub(super) struct RuleParts {
    pub(super) sources: Arc<RuleSources>,
    pub(super) promql: PromqlSettings,
    pub(super) files: Arc<FileRules>,
    pub(super) texts: Arc<ReadTexts>,
}

impl RuleParts {
    /// Adds the usable texts to the rules of the files; returns the faults of the others.
    fn compose(&self) -> (RuleSet, Vec<FileFault>) {
        let Self { sources, files, texts, .. } = self;
        let (mut groups, mut unread) = (files.groups.clone(), files.unread.clone());
        let mut faults = Vec::new();
        for (name, text) in &texts.rules {
            let added = text.groups.as_ref().map_err(Clone::clone);
            match added.and_then(|added| check_added(&groups, added).map(|()| added)) {
                Ok(added) => groups.extend(added.iter().cloned()),
                Err(text_faults) => {
                    faults.extend(text_faults);
                    unread.push(AlertText::Rules(name).file().into());
                }
            }
        }
        let of_text = texts.receivers.as_ref().filter(|_| sources.notifications.is_none());
        let routing = match of_text.map(|text| &text.routing) {
            None => files.routing.clone(),
            Some(Ok(routing)) => Some(routing.clone().linking_to(&sources.external.url)),
            Some(Err(text_faults)) => {
                faults.extend_from_slice(text_faults);
                None
            }
        };
        (RuleSet { groups, routing: routing.map(Arc::new), unread }, faults)
    }
}

/// The rules of the last load.
#[derive(Debug, Clone)]
pub(crate) struct LoadedRules {
    pub(crate) set: Arc<RuleSet>,
    pub(super) parts: RuleParts,
    /// The faults of texts that are not in use.
    pub(super) faults: Arc<Vec<FileFault>>,
    /// A number that changes with each load.
    pub(crate) generation: u64,
    /// The time of the load.
    pub(super) read_at: UnixMillis,
}

impl LoadedRules {
    fn new(parts: RuleParts, generation: u64) -> Self {
        let (set, faults) = parts.compose();
        let (set, faults) = (Arc::new(set), Arc::new(faults));
        Self { set, parts, faults, generation, read_at: SystemClock.now() }
    }

    /// Loads the usable files and texts; returns the first fault of the files.
    pub(super) fn open(
        store: &Store,
        sources: RuleSources,
        promql: &PromqlSettings,
    ) -> Result<(Self, Option<SourceFault>), StoreError> {
        let (files, fault) = sources.read_files(promql);
        let texts = ReadTexts::read(store, &sources, promql, &ReadTexts::default())?;
        let (sources, files, texts) = (Arc::new(sources), Arc::new(files), Arc::new(texts));
        let loaded = Self::new(RuleParts { sources, promql: *promql, files, texts }, 1);
        if let Some(cause) = &fault {
            let cause: &dyn std::error::Error = cause;
            tracing::error!(cause, "cannot use all rule files; the others are used");
        }
        if let Some(faults) = loaded.text_fault() {
            tracing::error!(faults, "cannot use all saved texts of rules; the others are used");
        }
        Ok((loaded, fault))
    }

    /// Returns the number of rules.
    pub(super) fn count(&self) -> usize {
        count_rules(&self.set.groups)
    }

    /// Returns the faults of texts that are not in use, in lines.
    fn text_fault(&self) -> Option<String> {
        (!self.faults.is_empty()).then(|| fault_lines(&self.faults))
    }
}

impl KnownRules {
    /// Reads the rules of the sources without using them.
    ///
    /// # Errors
    /// The rules of the files are unusable. An unusable text is skipped; [`Self::fault`] names it.
    pub fn read(
        &self,
        sources: RuleSources,
        promql: &PromqlSettings,
    ) -> Result<ReadRules, SourceFault> {
        let (files, fault) = sources.read_files(promql);
        if let Some(fault) = fault {
            return Err(fault);
        }
        // The settings may have changed, so all texts are parsed again.
        let texts = ReadTexts::read(&self.0.store, &sources, promql, &ReadTexts::default())?;
        let (sources, files, texts) = (Arc::new(sources), Arc::new(files), Arc::new(texts));
        let parts = RuleParts { sources, promql: *promql, files, texts };
        let rules = count_rules(&parts.compose().0.groups);
        Ok(ReadRules { parts, rules })
    }

    /// Notes the outcome of the last reload: the reason why it failed, if it did.
    pub fn note_reload(&self, fault: Option<String>) {
        *self.0.fault.lock() = fault;
        self.count_faults();
    }

    /// Replaces the rules with those that were read, and with the present texts. Waits for the
    /// disk.
    pub fn replace(&self, read: ReadRules) {
        let mut are_unsure = self.0.text_changes.lock();
        let RuleParts { sources, promql, files, texts } = read.parts;
        let texts = match ReadTexts::read(&self.0.store, &sources, &promql, &texts) {
            Ok(texts) => texts.into(),
            Err(cause) => {
                let cause: &dyn std::error::Error = &cause;
                tracing::warn!(cause, "cannot read the saved texts of rules; trying again");
                *are_unsure = true;
                self.loaded().parts.texts
            }
        };
        self.install(RuleParts { sources, promql, files, texts });
        drop(are_unsure);
        self.warn_without_destination();
        if let Some(faults) = self.loaded().text_fault() {
            tracing::warn!(faults, "cannot use all saved texts of rules; the others are used");
        }
    }

    /// Uses the stored texts after a change, whose outcome may be unknown. `are_unsure` is the
    /// value of the lock of changes.
    pub(super) fn use_changed<T>(
        &self,
        are_unsure: &mut bool,
        outcome: Result<Result<T, ObjectRefusal>, StoreError>,
    ) -> Result<T, ObjectFault> {
        let before = if *are_unsure { Arc::default() } else { self.loaded().parts.texts };
        let read = self.read_texts(&before);
        // After an error, the change may be stored or not, now or later.
        *are_unsure = outcome.is_err() || read.is_err();
        let changed = outcome??;
        read?;
        Ok(changed)
    }

    /// Uses the stored texts if they may differ from those in use, because the outcome of a change
    /// was unknown or the texts could not be read. Waits for the disk, but not for a change that is
    /// being made.
    pub fn settle_texts(&self) {
        let Some(mut are_unsure) = self.0.text_changes.try_lock() else { return };
        if !*are_unsure || self.0.store.settle_objects().is_err() {
            return;
        }
        // The settings may have changed, so all texts are parsed again.
        *are_unsure = self.read_texts(&ReadTexts::default()).is_err();
    }

    /// Reads the stored texts, and uses them. A text is not parsed again if `before` contains it.
    fn read_texts(&self, before: &ReadTexts) -> Result<(), StoreError> {
        let parts = self.loaded().parts;
        let texts = ReadTexts::read(&self.0.store, &parts.sources, &parts.promql, before)?.into();
        self.install(RuleParts { texts, ..parts });
        Ok(())
    }

    /// Uses new rules; the caller holds the lock of changes.
    fn install(&self, parts: RuleParts) {
        let mut loaded = self.0.loaded.write();
        let next = LoadedRules::new(parts, loaded.generation + 1);
        let (groups, rules) = (next.set.groups.len(), next.count());
        *loaded = next;
        drop(loaded);
        self.0.metrics.rules.set(rules as i64);
        tracing::info!(groups, rules, "loaded the rules");
        self.count_faults();
        self.note_change();
    }

    fn count_faults(&self) {
        self.0.metrics.rules_reload_failed.set(i64::from(self.fault().is_some()));
    }

    /// Returns the reason why some rule files or texts are not in use, if there is one.
    pub fn fault(&self) -> Option<String> {
        let of_files = self.0.fault.lock().clone();
        let of_texts = self.0.loaded.read().text_fault();
        match (of_files, of_texts) {
            (Some(files), Some(texts)) => Some(format!("{files}\n{texts}")),
            (files, texts) => files.or(texts),
        }
    }

    /// Returns the fault of the last reload, or of the files at the start.
    pub(super) fn file_fault(&self) -> Option<String> {
        self.0.fault.lock().clone()
    }

    /// Returns the time at which the current rules were loaded.
    pub fn read_at(&self) -> UnixMillis {
        self.0.loaded.read().read_at
    }

    pub(crate) fn loaded(&self) -> LoadedRules {
        self.0.loaded.read().clone()
    }
}

/// Returns the text of the fault of files at the start.
pub(super) fn fault_text(fault: Option<SourceFault>) -> Option<String> {
    fault.map(|cause| with_causes(&cause))
}
