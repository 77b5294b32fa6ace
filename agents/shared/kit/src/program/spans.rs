//! Lengths of time in settings, such as `10s`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// A length of time, for serde.
///
/// # Errors
/// When the text is none.
pub fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|cause| de::Error::custom(format!("{cause}; use 10s")))
}

/// As [`span`], of a setting that may be left out.
///
/// # Errors
/// When the text is none.
pub fn some_span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    span(deserializer).map(Some)
}
