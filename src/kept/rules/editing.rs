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
    texts::{AlertText, read_groups},
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

impl TextFault {
    /// Returns the refusal to change the receivers of another project than `default`.
    pub fn of_other_project() -> Self {
        let reason = "only the project default has receivers that are edited on the page: name a \
                      file in the settings of this project";
        Self::NotEditable(reason.to_owned())
    }
}

impl KnownRules {
    /// Checks a text like a change of it, without changing anything.
    ///
    /// # Errors
    /// The change of the text would be refused.
    pub fn check_text(&self, changed: AlertText<'_>, text: &str) -> Result<CheckedText, TextFault> {
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
        let mut are_unsure = self.0.text_changes.lock();
        let counts = self.usable(changed, text)?;
        let loaded = self.loaded();
        let is_new = matches!(changed, AlertText::Rules(name) if !has_text(&loaded, name));
        if is_new && loaded.parts.texts.rules.len() >= TEXTS_MAX {
            let message = format!("there are {TEXTS_MAX} texts of rules: merge or delete some");
            return Err(ObjectFault::Invalid(message).into());
        }
        let (kind, name) = (changed.kind(), changed.name());
        let outcome = self.0.store.put_object(kind, name, expected, text.as_bytes(), now);
        let version = self.use_changed(&mut are_unsure, outcome)?;
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
        let (kind, name) = (changed.kind(), changed.name());
        let mut are_unsure = self.0.text_changes.lock();
        let outcome = self.0.store.delete_object(kind, name, expected);
        let is_absent = || matches!(self.0.store.object(kind, name), Ok(None));
        match self.use_changed(&mut are_unsure, outcome) {
            Err(ObjectFault::Refused(_)) if is_absent() => Err(not_found(changed).into()),
            outcome => Ok(outcome?),
        }
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
        let is_other = *self.0.store.project() != ProjectName::default();
        is_other.then(|| TextFault::of_other_project().to_string())
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
