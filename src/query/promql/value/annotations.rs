//! Warnings and infos that go with an answer.
//!
//! Must never know: who gives them.

/// What a reader of the answer should know, each text once.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// What may be wrong with the answer.
    pub(crate) warnings: Vec<String>,
    /// What may be wrong with the expression.
    pub(crate) infos: Vec<String>,
    /// Where in the text that stands which is looked at now, if that is known.
    place: Option<String>,
}

/// Notes of an answer, at most, of either sort.
const NOTES_MAX: usize = 10;

impl Notes {
    /// Says where that stands which the next notes are about.
    pub(crate) fn at(&mut self, place: Option<String>) {
        self.place = place;
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, text: impl FnOnce() -> String) {
        note(&mut self.warnings, "PromQL warning: ", self.place.as_deref(), text);
    }

    /// Adds an info.
    pub(crate) fn inform(&mut self, text: impl FnOnce() -> String) {
        note(&mut self.infos, "PromQL info: ", self.place.as_deref(), text);
    }
}

fn note(notes: &mut Vec<String>, prefix: &str, place: Option<&str>, text: impl FnOnce() -> String) {
    if notes.len() < NOTES_MAX {
        let place = place.map_or_else(String::new, |place| format!(" ({place})"));
        let text = format!("{prefix}{}{place}", text());
        if !notes.contains(&text) {
            notes.push(text);
        }
    }
}
