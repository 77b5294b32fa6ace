//! Changes of the stored texts of rules and receivers: each is checked like a file, durable, and in
//! use when it is answered.
//!
//! Must never know: HTTP, the content of a text.

use super::{
    KnownRules,
    fault::fault_lines,
    loading::LoadedRules,
    routing::read_receivers,
    set::{check_added, count_rules},
    texts::{AlertText, StoredVersion, read_groups},
};
use crate::{
    alerts::FileFault,
    kept::{ObjectFault, check_object_name},
    model::{ProjectName, UnixMillis},
};

mod answers;

use answers::TextCounts;
pub use answers::{CheckedText, SavedText, TextAnswer, TextFaultAnswer, TextsAnswer};

/// The maximum size of a text, in bytes.
pub const TEXT_BYTES_MAX: usize = 256 << 10;
/// The maximum number of texts of rules in a project.
const TEXTS_MAX: usize = 100;

/// The reason why a text is not changed.
#[derive(Debug, thiserror::Error)]
pub enum TextFault {
    /// The text cannot be used.
    #[error("{}", fault_lines(.0))]
    Unusable(Vec<FileFault>),
    /// The text is too large.
    #[error("{0} bytes of text exceed the limit of {TEXT_BYTES_MAX}: split the text")]
    TooLarge(usize),
    /// Another source takes precedence.
    #[error("{0}")]
    NotEditable(String),
    /// The object cannot be changed.
    #[error(transparent)]
    Object(#[from] ObjectFault),
}

impl KnownRules {
    /// Checks a text like a change of it, without changing anything.
    ///
    /// # Errors
    /// The change of the text would be refused.
    pub fn check_text(&self, changed: AlertText<'_>, text: &str) -> Result<CheckedText, TextFault> {
        let _changes = self.0.text_changes.lock();
        match self.usable(changed, text) {
            Ok(counts) => Ok(CheckedText { counts, faults: Vec::new() }),
            Err(TextFault::Unusable(faults)) => {
                let faults = TextFaultAnswer::all(&faults);
                Ok(CheckedText { counts: TextCounts::none(changed), faults })
            }
            Err(fault) => Err(fault),
        }
    }

    /// Creates a text (`expected` is `None`), or changes the text of version `expected`, durably,
    /// and uses it.
    ///
    /// # Errors
    /// The text is unusable or has changed since that version, the store has no room for it, or
    /// cannot be written.
    pub fn put_text(
        &self,
        changed: AlertText<'_>,
        expected: Option<u64>,
        text: &str,
        now: UnixMillis,
    ) -> Result<SavedText, TextFault> {
        let _changes = self.0.text_changes.lock();
        let counts = self.usable(changed, text)?;
        let loaded = self.loaded();
        let is_new = matches!(changed, AlertText::Rules(name) if !has_text(&loaded, name));
        if is_new && loaded.parts.texts.rules.len() >= TEXTS_MAX {
            let message = format!("there are {TEXTS_MAX} texts of rules: merge or delete some");
            return Err(ObjectFault::Invalid(message).into());
        }
        let (kind, name) = (changed.kind(), changed.name());
        let outcome = self.0.store.put_object(kind, name, expected, text.as_bytes(), now);
        // After an error, the change may be stored or not.
        let used = self.read_texts();
        let version = outcome.map_err(ObjectFault::from)?.map_err(ObjectFault::from)?;
        used.map_err(ObjectFault::from)?;
        Ok(SavedText { name: name.to_owned(), version, counts })
    }

    /// Deletes the text of version `expected`, durably; a damaged text has no version. The alerts
    /// of its rules end.
    ///
    /// # Errors
    /// There is no such text, it has changed since that version, or the store cannot be written.
    pub fn delete_text(
        &self,
        changed: AlertText<'_>,
        expected: Option<u64>,
    ) -> Result<(), TextFault> {
        let _changes = self.0.text_changes.lock();
        if self.stored_version(changed).is_none() {
            return Err(not_found(changed).into());
        }
        let outcome = self.0.store.delete_object(changed.kind(), changed.name(), expected);
        let used = self.read_texts();
        outcome.map_err(ObjectFault::from)?.map_err(ObjectFault::from)?;
        Ok(used.map_err(ObjectFault::from)?)
    }

    /// Checks a text with everything else that is in use.
    fn usable(&self, changed: AlertText<'_>, text: &str) -> Result<TextCounts, TextFault> {
        let loaded = self.loaded();
        check_object_name("text", changed.name()).map_err(ObjectFault::Invalid)?;
        if let Some(reason) =
            self.fixed_receivers(&loaded).filter(|_| changed == AlertText::Receivers)
        {
            return Err(TextFault::NotEditable(reason));
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(TextFault::TooLarge(text.len()));
        }
        let (file, parts) = (changed.file(), &loaded.parts);
        let AlertText::Rules(name) = changed else {
            let routing = read_receivers(&file, text).map_err(TextFault::Unusable)?;
            return Ok(TextCounts::Receivers { receivers: routing.receivers.len() });
        };
        let groups = read_groups(&file, text, &parts.sources, &parts.promql);
        let groups = groups.map_err(TextFault::Unusable)?;
        let others = parts.files.groups.iter().chain(parts.texts.groups_without(name));
        let others: Vec<_> = others.cloned().collect();
        check_added(&others, &groups).map_err(TextFault::Unusable)?;
        Ok(TextCounts::Rules { groups: groups.len(), rules: count_rules(&groups) })
    }

    /// Returns the reason why the receivers cannot be edited as a text, if there is one.
    fn fixed_receivers(&self, loaded: &LoadedRules) -> Option<String> {
        if let Some(path) = &loaded.parts.sources.notifications {
            let path = path.display();
            let setting = "alerts.notifications";
            return Some(format!("{setting} names the file {path}: edit the file, and reload"));
        }
        // Receivers send requests from the daemon's machine, whose operator is not the
        // administrator of another project.
        (*self.0.store.project() != ProjectName::default()).then(|| {
            "only the project default has receivers that are edited on the page: name a file in \
             the settings of this project"
                .to_owned()
        })
    }

    /// Returns the stored version of a text; `None` without such a text.
    fn stored_version(&self, text: AlertText<'_>) -> Option<StoredVersion> {
        let texts = self.loaded().parts.texts;
        match text {
            AlertText::Rules(name) => texts.rules.get(name).map(|text| text.stored),
            AlertText::Receivers => texts.receivers.as_ref().map(|text| text.stored),
        }
    }
}

fn has_text(loaded: &LoadedRules, name: &str) -> bool {
    loaded.parts.texts.rules.contains_key(name)
}

fn not_found(text: AlertText<'_>) -> ObjectFault {
    ObjectFault::NotFound(match text {
        AlertText::Rules(name) => format!("there is no text of rules {name:?}"),
        AlertText::Receivers => "there is no text of receivers".to_owned(),
    })
}

#[cfg(test)]
mod tests;
