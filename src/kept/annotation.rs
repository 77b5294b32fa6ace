//! An annotation: a note at a time or a span of time, such as a deploy.
//!
//! The name of an annotation in the store begins with its time, so that the annotations of a range
//! can be read without the others. Must never know: the storage of annotations, HTTP.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ObjectFault, check_line, check_text};
use crate::model::{HostEventEntry, HostEventKind, UnixMillis};

/// The longest time span of an annotation.
pub(super) const SPAN_MAX_MS: i64 = 31 * 86_400_000;
/// The maximum length of the text, in bytes.
const TEXT_BYTES_MAX: usize = 1024;
/// The maximum number of tags, and of bytes in their names and values.
const TAGS_MAX: usize = 8;
const TAG_BYTES_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 256;
/// The digits of a time in a name, and of the index among annotations with the same time.
const TIME_DIGITS: usize = 15;
const INDEX_DIGITS: usize = 6;

/// The origin of an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnnotationSource {
    /// A client posted it.
    User,
    /// An agent was restarted.
    AgentRestart,
    /// A host was rebooted.
    HostReboot,
    /// No agent of a host reported for a while.
    Gap,
}

/// A note on charts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// The identifier, for deletion.
    pub id: String,
    /// The time, or the start of the span.
    pub time: i64,
    /// The end of the span.
    pub end: Option<i64>,
    /// The text of the note.
    pub text: String,
    /// The tags of the series that the note concerns; a tag that is missing may have any value.
    pub tags: BTreeMap<String, String>,
    /// The origin.
    pub source: AnnotationSource,
    /// The name of the caller that made the note; empty without access control.
    #[serde(default)]
    pub author: String,
}

impl From<HostEventEntry> for Annotation {
    fn from(event: HostEventEntry) -> Self {
        let HostEventEntry { time, end, id, text, tags, source } = event;
        let source = match source {
            HostEventKind::AgentRestart => AnnotationSource::AgentRestart,
            HostEventKind::HostReboot => AnnotationSource::HostReboot,
            HostEventKind::Gap => AnnotationSource::Gap,
        };
        Self { id, time, end, text, tags, source, author: String::new() }
    }
}

/// The body of a request that creates an annotation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewAnnotation {
    #[serde(default)]
    time: Option<Value>,
    #[serde(default)]
    end: Option<Value>,
    text: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    /// The name of the caller, which the daemon sets.
    #[serde(skip)]
    pub author: String,
}

impl NewAnnotation {
    /// Checks the request; returns the annotation without its ID.
    pub(super) fn check(self, now: UnixMillis) -> Result<Annotation, ObjectFault> {
        let Self { time, end, text, tags, author } = self;
        let start = read_time("time", time)?.unwrap_or(now);
        let end = read_time("end", end)?;
        let duration_ms = end.map_or(0, |end| end.since(start));
        if !(0..=SPAN_MAX_MS).contains(&duration_ms) {
            let message = "end: use a time from `time` to 31 days later";
            return Err(ObjectFault::Invalid(message.to_owned()));
        }
        if text.trim().is_empty() {
            return Err(ObjectFault::Invalid("text: it is empty".to_owned()));
        }
        check_text("text", &text, TEXT_BYTES_MAX)?;
        if tags.len() > TAGS_MAX {
            let message = format!("tags: {} exceed the limit of {TAGS_MAX}", tags.len());
            return Err(ObjectFault::Invalid(message));
        }
        for (name, value) in &tags {
            check_line("tags: a name", name, TAG_BYTES_MAX)?;
            check_line(&format!("tags.{name}"), value, VALUE_BYTES_MAX)?;
        }
        Ok(Annotation {
            id: String::new(),
            time: start.0,
            end: end.map(|end| end.0),
            text,
            tags,
            source: AnnotationSource::User,
            author,
        })
    }
}

/// Reads a time as queries accept it: a number is Unix milliseconds or seconds.
fn read_time(location: &str, value: Option<Value>) -> Result<Option<UnixMillis>, ObjectFault> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    let read = UnixMillis::parse(&text).map(Some);
    read.map_err(|cause| ObjectFault::Invalid(format!("{location}: {cause}")))
}

impl Annotation {
    /// Returns true when the annotation overlaps a range and concerns series with these tags.
    pub(super) fn is_about(
        &self,
        start: UnixMillis,
        end: UnixMillis,
        tags: &[(String, String)],
    ) -> bool {
        let until = self.end.unwrap_or(self.time);
        let fits = |(name, value): &(String, String)| {
            self.tags.get(name).is_none_or(|known| known == value)
        };
        self.time < end.0 && until >= start.0 && tags.iter().all(fits)
    }
}

/// Returns an ID, which is also the name in the store: the time, and the index among the
/// annotations with this time.
pub(super) fn id(time: UnixMillis, index: u32) -> String {
    format!("{:0TIME_DIGITS$}-{index:0INDEX_DIGITS$}", time.0)
}

/// Returns a text that precedes the IDs of all annotations at a time or later.
pub(super) fn first_id(time: UnixMillis) -> String {
    format!("{:0TIME_DIGITS$}", time.0)
}

/// Parses the time and the index of an ID.
pub(super) fn parse_id(id: &str) -> Option<(UnixMillis, u32)> {
    let (time, index) = id.split_once('-')?;
    let is_digits =
        |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_id = is_digits(time, TIME_DIGITS) && is_digits(index, INDEX_DIGITS);
    is_id.then_some((UnixMillis(time.parse().ok()?), index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_763_712_000_000);

    fn check(json: Value) -> Result<Annotation, String> {
        let new =
            serde_json::from_value::<NewAnnotation>(json).map_err(|cause| cause.to_string())?;
        new.check(NOW).map_err(|fault| fault.to_string())
    }

    #[test]
    fn posted_annotations_are_checked() {
        let smallest = check(json!({ "text": "deployed\n2.1" })).unwrap();
        assert_eq!((smallest.time, smallest.end), (NOW.0, None));
        let largest = check(json!({ "text": "x".repeat(1024), "time": NOW.0 - 60_000,
            "end": "2025-11-21T08:00:00Z", "tags": { "host": "web1" } }));
        let largest = largest.unwrap();
        assert_eq!((largest.time, largest.end), (NOW.0 - 60_000, Some(NOW.0)));
        let seconds = check(json!({ "text": "x", "time": NOW.0 / 1000, "end": null })).unwrap();
        assert_eq!(seconds.time, NOW.0);
        let nine_tags: BTreeMap<_, _> = (0..9).map(|i| (i.to_string(), "x")).collect();
        for (posted, expected) in [
            (json!({ "text": " \n" }), "text: it is empty"),
            (json!({}), "missing field `text`"),
            (json!({ "text": "x".repeat(1025) }), "text: 1025 bytes exceed the limit of 1024"),
            (json!({ "text": "a\u{0}" }), "text: it has a control character"),
            (json!({ "text": "x", "id": "1" }), "unknown field `id`"),
            (json!({ "text": "x", "time": "soon" }), "time: \"soon\" is not a time"),
            (json!({ "text": "x", "time": [1] }), "time: "),
            (json!({ "text": "x", "time": -1 }), "time: "),
            (json!({ "text": "x", "end": NOW.0 - 1 }), "end: use a time from"),
            (json!({ "text": "x", "end": NOW.0 + SPAN_MAX_MS + 1 }), "end: use a time from"),
            (json!({ "text": "x", "tags": nine_tags }), "tags: 9 exceed the limit of 8"),
            (json!({ "text": "x", "tags": { "": "x" } }), "tags: a name: it is empty"),
            (json!({ "text": "x", "tags": { "a": "x\ny" } }), "tags.a: it has more than one line"),
            (json!({ "text": "x", "tags": { "a": 1 } }), "invalid type"),
        ] {
            let message = check(posted.clone()).unwrap_err();
            assert!(message.starts_with(expected), "{posted}: {message}");
        }
    }

    #[test]
    fn names_are_in_the_order_of_times() {
        let ids: Vec<_> = [(5, 0), (5, 1), (5, 10), (40, 0), (UnixMillis::MAX.0, 999_999)]
            .map(|(time, index)| id(UnixMillis(time), index))
            .into();
        assert!(ids.is_sorted());
        assert_eq!(parse_id(&ids[2]), Some((UnixMillis(5), 10)));
        assert!(first_id(UnixMillis(40)) < ids[3] && first_id(UnixMillis(40)) > ids[2]);
        for other in ["", "5-0", "000000000000005-00000a", "+00000000000005-000000", "gap-1"] {
            assert_eq!(parse_id(other), None, "{other}");
        }
    }
}
