//! Durations in settings, such as `10s`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// Deserializes a duration.
///
/// # Errors
/// The text is not a duration.
pub fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|cause| de::Error::custom(format!("{cause}; use 10s")))
}

/// Deserializes an optional duration, see [`span`].
///
/// # Errors
/// The text is not a duration.
pub fn some_span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    span(deserializer).map(Some)
}
