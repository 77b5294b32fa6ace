//! A time in an answer: RFC 3339 in UTC.
//!
//! Must never know: what a time refers to.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::model::UnixMillis;

/// A time that serializes as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub UnixMillis);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let at: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
        Ok(Self(UnixMillis(at.as_millisecond())))
    }
}
