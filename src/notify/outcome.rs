//! The outcome of a message that was sent, and the words of its receiver.
//!
//! Must never know: groups of alerts, when a message is sent again.

#[cfg(test)]
use crate::alerts::{LabelSet, MessageAlert};
use crate::alerts::{Message, MessageTemplates};

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it, and answered this.
    Confirmed(String),
    /// The receiver refuses the message, and would refuse it again.
    Refused(String),
    /// The receiver may take it later.
    Failed(String),
}

impl Outcome {
    /// The word of an outcome, and what was said.
    pub(super) fn shown(self) -> (&'static str, String) {
        match self {
            Self::Confirmed(said) => ("sent", said),
            Self::Refused(cause) => ("refused", one_line(&cause)),
            Self::Failed(cause) => ("failed", one_line(&cause)),
        }
    }
}

/// The answer of a receiver that has a message, or what else became of it.
pub(super) type Sent = Result<String, Outcome>;

/// Characters of an answer that are shown.
const SAID_MAX: usize = 500;

/// A text in one line, of bounded length.
pub(super) fn one_line(text: &str) -> String {
    let is_break = |c: char| c.is_whitespace() || c.is_control();
    let mut line = String::new();
    for word in text.split(is_break).filter(|word| !word.is_empty()) {
        if line.len() > 4 * SAID_MAX {
            break;
        }
        line.extend([if line.is_empty() { "" } else { " " }, word]);
    }
    line.chars().take(SAID_MAX).collect::<String>().trim_end_matches(':').to_owned()
}

/// The text of a template; one that cannot be expanded would not be the next time.
pub(super) fn expand(
    templates: &MessageTemplates,
    text: &str,
    message: &Message,
) -> Result<String, Outcome> {
    templates.expand(text, message).map_err(|cause| Outcome::Refused(format!("{text}: {cause}")))
}

/// Something of this machine's that may be mended.
pub(super) fn failed(cause: impl std::fmt::Display) -> Outcome {
    Outcome::Failed(cause.to_string())
}

/// A message of one alert that fires.
#[cfg(test)]
pub(super) fn message_of_tests() -> Message {
    let labels: LabelSet = [("alertname".to_owned(), "High".to_owned())].into();
    let alert = MessageAlert { labels: labels.clone(), ..MessageAlert::default() };
    Message {
        receiver: "team".to_owned(),
        alerts: vec![alert],
        group_labels: labels,
        group_key: "key".to_owned(),
        ..Message::default()
    }
}
