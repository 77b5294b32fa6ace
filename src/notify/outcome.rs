//! The outcome of a message, and the receiver's response.
//!
//! Must never know: groups of alerts, when a message is sent again.

#[cfg(test)]
use crate::alerts::{LabelSet, MessageAlert};
use crate::alerts::{Message, MessageTemplates};

/// The outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The receiver accepted the message, with this response.
    Confirmed(String),
    /// The receiver rejected the message and would reject it again.
    Refused(String),
    /// The delivery failed; the receiver may accept the message later.
    Failed(String),
}

impl DeliveryOutcome {
    /// Returns the name of the outcome and the response.
    pub(super) fn label_and_response(self) -> (&'static str, String) {
        match self {
            Self::Confirmed(response) => ("sent", response),
            Self::Refused(cause) => ("refused", one_line(&cause)),
            Self::Failed(cause) => ("failed", one_line(&cause)),
        }
    }
}

/// The response of a receiver that accepted the message, or another outcome.
pub(super) type SendResult = Result<String, DeliveryOutcome>;

/// The maximum number of characters of a response that are shown.
const RESPONSE_CHARACTERS_MAX: usize = 500;

/// Returns a text in one line, limited in length.
pub(super) fn one_line(text: &str) -> String {
    let is_break = |c: char| c.is_whitespace() || c.is_control();
    let mut line = String::new();
    for word in text.split(is_break).filter(|word| !word.is_empty()) {
        if line.len() > 4 * RESPONSE_CHARACTERS_MAX {
            break;
        }
        line.extend([if line.is_empty() { "" } else { " " }, word]);
    }
    line.chars().take(RESPONSE_CHARACTERS_MAX).collect::<String>().trim_end_matches(':').to_owned()
}

/// Expands a template; one that cannot be expanded counts as refused, because it would fail again.
pub(super) fn expand(
    templates: &MessageTemplates,
    text: &str,
    message: &Message,
) -> Result<String, DeliveryOutcome> {
    templates
        .expand(text, message)
        .map_err(|cause| DeliveryOutcome::Refused(format!("{text}: {cause}")))
}

/// Returns the outcome of a local fault that may be fixed later.
pub(super) fn failed(cause: impl std::fmt::Display) -> DeliveryOutcome {
    DeliveryOutcome::Failed(cause.to_string())
}

/// Returns a message with one firing alert.
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
