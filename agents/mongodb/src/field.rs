//! Access to fields of documents, whose structure differs by version and role. A missing field, or
//! a field of another type, is `None`.

use mongodb::bson::{Bson, Document};

/// Returns the value at a dotted path.
pub(crate) fn value<'a>(document: &'a Document, path: &str) -> Option<&'a Bson> {
    let (parents, name) = path.rsplit_once('.').map_or((None, path), |(a, b)| (Some(a), b));
    let mut document_at_path = document;
    for parent in parents.into_iter().flat_map(|parents| parents.split('.')) {
        document_at_path = document_at_path.get_document(parent).ok()?;
    }
    document_at_path.get(name)
}

/// Returns a number of any type at a path. A boolean is 0 or 1.
pub(crate) fn number(document: &Document, path: &str) -> Option<f64> {
    as_number(value(document, path)?)
}

/// Returns a number of any type. A boolean is 0 or 1.
pub(crate) fn as_number(value: &Bson) -> Option<f64> {
    let number = value
        .as_f64()
        .or_else(|| value.as_i32().map(f64::from))
        .or_else(|| value.as_i64().map(|number| number as f64))
        .or_else(|| value.as_bool().map(|flag| f64::from(u8::from(flag))))?;
    number.is_finite().then_some(number)
}

/// Returns a time at a path, in Unix milliseconds.
pub(crate) fn time_ms(document: &Document, path: &str) -> Option<i64> {
    let value = value(document, path)?;
    let date = value.as_datetime().map(|date| date.timestamp_millis());
    date.or_else(|| value.as_timestamp().map(|stamp| i64::from(stamp.time) * 1000))
}

/// Returns a text at a path.
pub(crate) fn text<'a>(document: &'a Document, path: &str) -> Option<&'a str> {
    value(document, path)?.as_str()
}

/// Returns true when the value at a path is true.
pub(crate) fn is_true(document: &Document, path: &str) -> bool {
    value(document, path).and_then(Bson::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{DateTime, Timestamp, doc};

    use super::*;

    #[test]
    fn only_numbers_and_booleans_are_read_as_numbers() {
        let document = doc! {
            "a": { "b": 3_i32, "c d": 4_i64, "e": 2.5, "f": true, "g": "5", "h": f64::NAN },
        };
        for (path, expected) in [
            ("a.b", Some(3.0)),
            ("a.c d", Some(4.0)),
            ("a.e", Some(2.5)),
            ("a.f", Some(1.0)),
            ("a.g", None),
            ("a.h", None),
            ("a", None),
            ("a.b.c", None),
            ("x.y", None),
            ("", None),
            (".", None),
        ] {
            assert_eq!(number(&document, path), expected, "{path}");
        }
    }

    #[test]
    fn a_time_is_a_date_or_the_seconds_of_a_timestamp() {
        let document = doc! {
            "date": DateTime::from_millis(1_500), "ts": Timestamp { time: 2, increment: 9 }, "n": 3,
        };
        assert_eq!(time_ms(&document, "date"), Some(1_500));
        assert_eq!(time_ms(&document, "ts"), Some(2_000));
        assert_eq!(time_ms(&document, "n"), None);
    }
}
