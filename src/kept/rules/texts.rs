//! Stored texts of rules and receivers: objects of the store, parsed.
//!
//! Must never know: who changes texts, rule files.

use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Range},
    sync::Arc,
};

use super::{routing::read_receivers, set::count_rules, sources::RuleSources};
use crate::{
    alerts::{FileFault, Routing, RuleGroup, read_rules},
    model::UnixMillis,
    query::{Budget, PromqlSettings},
    store::{Object, ObjectKind, Store, StoreError},
};

/// The range of all names: none begins with this character.
const ALL_NAMES: Range<&str> = "".."\u{10ffff}";
/// The name of the text of receivers.
const RECEIVERS: &str = "notifications";
/// The prefix that distinguishes the names of texts from the paths of files.
const PREFIX: &str = "page:";

/// The identity of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertText<'a> {
    /// Rules, by the text's name.
    Rules(&'a str),
    /// The receivers and routes.
    Receivers,
}

impl<'a> AlertText<'a> {
    /// Returns the name of the object.
    pub fn name(self) -> &'a str {
        match self {
            Self::Rules(name) => name,
            Self::Receivers => RECEIVERS,
        }
    }

    pub(super) fn kind(self) -> ObjectKind {
        match self {
            Self::Rules(_) => ObjectKind::RuleText,
            Self::Receivers => ObjectKind::ReceiversText,
        }
    }

    /// Returns the name that takes the place of a file's path, in groups and in faults.
    pub(super) fn file(self) -> String {
        match self {
            Self::Rules(name) => format!("{PREFIX}{name}"),
            // No name of a text of rules contains a slash.
            Self::Receivers => format!("{PREFIX}/{RECEIVERS}"),
        }
    }
}

/// All texts of a store.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadTexts {
    /// The texts of rules, by name.
    pub(super) rules: BTreeMap<String, Arc<RuleText>>,
    pub(super) receivers: Option<Arc<ReceiversText>>,
}

/// The version and the time of a stored text; a damaged text has neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredVersion {
    pub(super) version: Option<u64>,
    pub(super) changed: Option<UnixMillis>,
}

/// A text of rules.
#[derive(Debug)]
pub(super) struct RuleText {
    pub(super) stored: StoredVersion,
    pub(super) groups: Result<Vec<RuleGroup>, Vec<FileFault>>,
}

/// The text of the receivers.
#[derive(Debug)]
pub(super) struct ReceiversText {
    pub(super) stored: StoredVersion,
    pub(super) routing: Result<Routing, Vec<FileFault>>,
}

impl ReadTexts {
    /// Reads and parses all texts. A text that has not changed since `before` is not parsed again.
    pub(super) fn read(
        store: &Store,
        sources: &RuleSources,
        promql: &PromqlSettings,
        before: &Self,
    ) -> Result<Self, StoreError> {
        let mut texts = Self::default();
        let rules = ObjectKind::RuleText;
        store.visit_objects_backwards(rules, ALL_NAMES, &mut |name, object| {
            let stored = StoredVersion::of(object.as_ref());
            let unchanged = before.rules.get(name).filter(|text| text.stored == stored).cloned();
            let text = unchanged.unwrap_or_else(|| {
                let file = AlertText::Rules(name).file();
                let text = text_of(&file, object);
                let groups = text.and_then(|text| read_groups(&file, &text, sources, promql));
                Arc::new(RuleText { stored, groups })
            });
            texts.rules.insert(name.to_owned(), text);
            ControlFlow::Continue(())
        })?;
        let receivers = ObjectKind::ReceiversText;
        store.visit_objects_backwards(receivers, ALL_NAMES, &mut |_, object| {
            let stored = StoredVersion::of(object.as_ref());
            let unchanged = before.receivers.as_ref().filter(|text| text.stored == stored).cloned();
            texts.receivers = Some(unchanged.unwrap_or_else(|| {
                let file = AlertText::Receivers.file();
                let routing = text_of(&file, object).and_then(|text| read_receivers(&file, &text));
                Arc::new(ReceiversText { stored, routing })
            }));
            ControlFlow::Continue(())
        })?;
        Ok(texts)
    }

    /// Returns the groups of all usable texts but one.
    pub(super) fn groups_without(&self, left_out: &str) -> impl Iterator<Item = &RuleGroup> {
        let others = self.rules.iter().filter(move |(name, _)| *name != left_out);
        others.filter_map(|(_, text)| text.groups.as_ref().ok()).flatten()
    }
}

impl RuleText {
    /// Returns the numbers of groups and rules.
    pub(super) fn counts(&self) -> (usize, usize) {
        self.groups.as_ref().map_or((0, 0), |groups| (groups.len(), count_rules(groups)))
    }
}

impl ReceiversText {
    /// Returns the number of receivers.
    pub(super) fn count(&self) -> usize {
        self.routing.as_ref().map_or(0, |routing| routing.receivers.len())
    }

    /// Returns the reasons why the text cannot be used, if there are some.
    pub(super) fn faults(&self) -> &[FileFault] {
        self.routing.as_ref().err().map_or(&[], |faults| faults)
    }
}

impl StoredVersion {
    /// The version of a text that does not exist.
    pub(super) const NONE: Self = Self { version: None, changed: None };

    pub(super) fn of(object: Option<&Object>) -> Self {
        let version = object.map(|object| object.version);
        Self { version, changed: object.map(|object| object.changed_at) }
    }
}

/// Parses a text of rules.
pub(super) fn read_groups(
    file: &str,
    text: &str,
    sources: &RuleSources,
    promql: &PromqlSettings,
) -> Result<Vec<RuleGroup>, Vec<FileFault>> {
    read_rules(file, text, sources.interval_ms, &promql.limits(&Budget::UNLIMITED))
}

/// Returns the text of an object; `None` stands for a damaged one.
fn text_of(file: &str, object: Option<Object>) -> Result<String, Vec<FileFault>> {
    let text = object.and_then(|object| String::from_utf8(object.bytes).ok());
    text.ok_or_else(|| {
        vec![FileFault::of_file(file, "its object is damaged: delete it, or save it again")]
    })
}
