//! Answers about the texts and files of rules and receivers.
//!
//! Must never know: HTTP.

use serde::Serialize;

use super::{AlertText, KnownRules, LoadedRules, ObjectFault, not_found};
use crate::{
    alerts::FileFault,
    kept::rules::{loading::RuleParts, set::count_rules, texts::StoredVersion},
};

/// The maximum number of faults of a file or text in an answer.
const FAULTS_ANSWERED_MAX: usize = 100;

/// All rule files and texts, and the receivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextsAnswer {
    files: Vec<TextEntry>,
    notifications: TextEntry,
    /// The reason why the last reload failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

/// A file or a text in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct TextEntry {
    name: String,
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    editable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    version: Option<u64>,
    changed: Option<i64>,
    #[serde(flatten)]
    counts: TextCounts,
    faults: Vec<TextFaultAnswer>,
}

/// A text, with the version that a change must quote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextAnswer {
    name: String,
    version: u64,
    changed: i64,
    text: String,
    #[serde(flatten)]
    counts: TextCounts,
    faults: Vec<TextFaultAnswer>,
}

/// A saved text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SavedText {
    pub(super) name: String,
    pub(super) version: u64,
    #[serde(flatten)]
    pub(super) counts: TextCounts,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedText {
    #[serde(flatten)]
    pub(super) counts: TextCounts,
    pub(super) faults: Vec<TextFaultAnswer>,
}

/// The content of a file or text in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum TextCounts {
    Rules { groups: usize, rules: usize },
    Receivers { receivers: usize },
}

impl TextCounts {
    /// Returns the numbers of an unusable text.
    pub(super) fn none(text: AlertText<'_>) -> Self {
        match text {
            AlertText::Rules(_) => Self::Rules { groups: 0, rules: 0 },
            AlertText::Receivers => Self::Receivers { receivers: 0 },
        }
    }
}

/// A fault in a file or text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextFaultAnswer {
    location: String,
    line: Option<u64>,
    problem: String,
}

impl TextFaultAnswer {
    /// Returns the faults, at most `FAULTS_ANSWERED_MAX` and their number.
    pub fn all(faults: &[FileFault]) -> Vec<Self> {
        let first = faults.iter().take(FAULTS_ANSWERED_MAX).map(|fault| {
            let FileFault { location, line, problem, file: _ } = fault.clone();
            Self { location, line, problem }
        });
        let left = faults.len().saturating_sub(FAULTS_ANSWERED_MAX);
        let problem = format!("{left} more faults are not listed");
        let rest = Self { location: String::new(), line: None, problem };
        first.chain((left > 0).then_some(rest)).collect()
    }

    fn of_file(faults: &[FileFault], file: &str) -> Vec<Self> {
        let of_file = faults.iter().filter(|fault| fault.file == file).cloned();
        Self::all(&of_file.collect::<Vec<_>>())
    }
}

impl KnownRules {
    /// Lists the rule files and the texts, without their content.
    pub fn texts(&self) -> TextsAnswer {
        let loaded = self.loaded();
        let RuleParts { files, texts, .. } = &loaded.parts;
        let of_files = files.files.iter().map(|path| {
            let path = path.to_string_lossy();
            let of_file = || files.groups.iter().filter(|group| group.file == path);
            let (groups, rules) = (of_file().count(), count_rules(of_file()));
            let reason = "a file of alerts.rules: edit the file, and reload".to_owned();
            let counts = TextCounts::Rules { groups, rules };
            TextEntry {
                faults: TextFaultAnswer::of_file(&files.faults, &path),
                ..TextEntry::file(&path, reason, counts)
            }
        });
        let of_texts = texts.rules.iter().map(|(name, text)| {
            let (groups, rules) = text.counts();
            let counts = TextCounts::Rules { groups, rules };
            TextEntry::text(AlertText::Rules(name), text.stored, counts, &loaded.faults)
        });
        TextsAnswer {
            files: of_files.chain(of_texts).collect(),
            notifications: self.receivers_entry(&loaded),
            fault: self.file_fault(),
        }
    }

    fn receivers_entry(&self, loaded: &LoadedRules) -> TextEntry {
        let RuleParts { sources, files, texts, .. } = &loaded.parts;
        let reason = self.fixed_receivers(loaded);
        let name = AlertText::Receivers.name().to_owned();
        if let (Some(path), Some(reason)) = (&sources.notifications, &reason) {
            let path = path.to_string_lossy();
            let faults = TextFaultAnswer::of_file(&files.faults, &path);
            let routing = files.routing.as_ref();
            let receivers = routing.map_or(0, |routing| routing.receivers.len());
            let counts = TextCounts::Receivers { receivers };
            return TextEntry { name, faults, ..TextEntry::file(&path, reason.clone(), counts) };
        }
        let text = texts.receivers.as_ref();
        let stored = text.map_or(StoredVersion::NONE, |text| text.stored);
        let receivers = text.map_or(0, |text| text.count());
        let counts = TextCounts::Receivers { receivers };
        let faults = text.map_or(&[][..], |text| text.faults());
        let entry = TextEntry::text(AlertText::Receivers, stored, counts, faults);
        TextEntry { editable: reason.is_none(), reason, ..entry }
    }

    /// Returns a text.
    ///
    /// # Errors
    /// There is no such text, or the store cannot be read.
    pub fn text(&self, text: AlertText<'_>) -> Result<TextAnswer, ObjectFault> {
        let object = self.0.store.object(text.kind(), text.name())?;
        let object = object.ok_or_else(|| not_found(text))?;
        let loaded = self.loaded();
        let texts = &loaded.parts.texts;
        let (counts, faults) = match text {
            AlertText::Rules(name) => {
                let counts = texts.rules.get(name).map(|text| text.counts());
                let counts = counts.map(|(groups, rules)| TextCounts::Rules { groups, rules });
                (counts, &loaded.faults[..])
            }
            // While a file is in use instead, the faults of the text are not those of the load.
            AlertText::Receivers => {
                let found = texts.receivers.as_ref();
                let counts = found.map(|text| TextCounts::Receivers { receivers: text.count() });
                (counts, found.map_or(&[][..], |text| text.faults()))
            }
        };
        Ok(TextAnswer {
            name: text.name().to_owned(),
            version: object.version,
            changed: object.changed_at.0,
            text: String::from_utf8_lossy(&object.bytes).into_owned(),
            counts: counts.unwrap_or_else(|| TextCounts::none(text)),
            faults: TextFaultAnswer::of_file(faults, &text.file()),
        })
    }
}

impl TextEntry {
    fn file(path: &str, reason: String, counts: TextCounts) -> Self {
        Self {
            name: path.to_owned(),
            origin: "file",
            path: Some(path.to_owned()),
            editable: false,
            reason: Some(reason),
            version: None,
            changed: None,
            counts,
            faults: Vec::new(),
        }
    }

    fn text(
        text: AlertText<'_>,
        stored: StoredVersion,
        counts: TextCounts,
        faults: &[FileFault],
    ) -> Self {
        Self {
            name: text.name().to_owned(),
            origin: "page",
            path: None,
            editable: true,
            reason: None,
            version: stored.version,
            changed: stored.changed.map(|time| time.0),
            counts,
            faults: TextFaultAnswer::of_file(faults, &text.file()),
        }
    }
}
