//! The values of a JSON batch. Each value is parsed separately, so that an invalid value does not
//! affect the others.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::histogram::JsonNumber;

/// The maximum length of a quoted value or series.
const EXCERPT_BYTES_MAX: usize = 256;

/// A time: Unix milliseconds, or an RFC 3339 text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time(pub(super) i64);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        if let Ok(millis) = serde_json::from_str(raw.get()) {
            return Ok(Self(millis));
        }
        let text: Option<String> = serde_json::from_str(raw.get()).ok();
        let time = text.and_then(|text| text.parse::<jiff::Timestamp>().ok());
        time.map(|time| Self(time.as_millisecond())).ok_or_else(|| {
            let raw = excerpt(raw.get());
            D::Error::custom(format!(
                "{raw} is not a time; use Unix milliseconds or 2026-11-21T08:00:00Z"
            ))
        })
    }
}

/// An entry of a column; `None` when it is invalid.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<T>(pub(super) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entry<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(raw.get()).ok()))
    }
}

/// The names and values of an object as text; duplicate names are kept.
#[derive(Debug, Default)]
pub(super) struct ObjectFields<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Object<'a> {
            type Value = ObjectFields<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(ObjectFields(pairs))
            }
        }

        deserializer.deserialize_map(Object(PhantomData))
    }
}

impl ObjectFields<'_> {
    /// Converts the pairs to tags, in order. Numbers, true and false keep their text.
    pub(super) fn tags(&self) -> Result<Vec<(String, String)>, String> {
        let mut tags = Vec::with_capacity(self.0.len());
        for (name, raw) in &self.0 {
            if name.contains('\0') {
                return Err(format!("tag name {name:?} contains a NUL byte"));
            }
            let raw = raw.get();
            let value = match raw.as_bytes().first() {
                Some(b'"') => serde_json::from_str(raw).map_err(|cause| {
                    format!("tag {name:?} cannot be read: {}", without_location(&cause))
                })?,
                Some(b't' | b'f' | b'-' | b'0'..=b'9') => raw.to_owned(),
                _ => {
                    let raw = excerpt(raw);
                    return Err(format!(
                        "tag {name:?} is {raw}; use a text, a number, true or false"
                    ));
                }
            };
            tags.push((name.clone(), value));
        }
        tags.sort_unstable();
        Ok(tags)
    }
}

/// Parses the value of a sample: a number, `"NaN"`, `"+Inf"` or `"-Inf"`.
pub(super) fn number(raw: &RawValue) -> Result<f64, String> {
    serde_json::from_str(raw.get())
        .map(|JsonNumber(number)| number)
        .map_err(|_| format!("value {} is not a number", excerpt(raw.get())))
}

/// Visits the elements of an array one by one.
pub(super) fn for_each<'a>(
    array: &'a str,
    each: impl FnMut(usize, &'a RawValue),
) -> Result<(), serde_json::Error> {
    struct ElementVisitor<F>(F);

    impl<'de, F: FnMut(usize, &'de RawValue)> Visitor<'de> for ElementVisitor<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
            let mut index = 0;
            while let Some(raw) = seq.next_element()? {
                (self.0)(index, raw);
                index += 1;
            }
            Ok(())
        }
    }

    serde_json::Deserializer::from_str(array).deserialize_seq(ElementVisitor(each))
}

/// Formats a series for messages.
pub(super) fn series_name(metric: &str, tags: &[(String, String)]) -> String {
    let tags: Vec<_> = tags.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    let braced = if tags.is_empty() { String::new() } else { format!("{{{}}}", tags.join(",")) };
    excerpt(&format!("{metric}{braced}"))
}

/// Formats the series of an invalid sample, as far as its metric and tags are valid.
pub(super) fn name_in_sample(sample: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Names {
        metric: String,
        #[serde(default)]
        tags: Value,
    }
    let Names { metric, tags } = serde_json::from_str(sample).ok()?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let tags = tags.as_object().into_iter().flatten();
    let tags: Vec<_> = tags.map(|(name, value)| (name.clone(), text(value))).collect();
    Some(series_name(&metric, &tags))
}

/// Returns the beginning of a text, for messages.
pub(super) fn excerpt(text: &str) -> String {
    let mut text = text.to_owned();
    let end = text.char_indices().map(|(index, letter)| index + letter.len_utf8());
    let end = end.take_while(|end| *end <= EXCERPT_BYTES_MAX).last().unwrap_or(0);
    text.truncate(end);
    text
}

/// Removes line and column from a fault, because they count from the beginning of the value.
pub(super) fn without_location(cause: &serde_json::Error) -> String {
    let text = cause.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(problem, _)| problem.to_owned())
}
