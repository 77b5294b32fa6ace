//! The names and values of fields that come from metrics and tags.
//!
//! Must never know: the forms of documents.

use bson::Bson;

/// The fixed fields of documents of all forms. No field of a metric or tag has one of these names.
const OWN_FIELDS: [&str; 25] = [
    "_id",
    "metric",
    "type",
    "kind",
    "unit",
    "resolution",
    "through",
    "replaced",
    "date",
    "timestamp",
    "timestamp_minute",
    "timestamp_hour",
    "timestamp_day",
    "timestamp_month",
    "start_date",
    "end_date",
    "num_samples",
    "total_samples",
    "transaction_count",
    "measurements",
    "values",
    "days",
    "hours",
    "minutes",
    "seconds",
];

/// Returns a name without dots and without a leading `$`, which have a meaning in MongoDB's
/// queries.
fn plain_name(name: &str) -> String {
    let name = name.replace('.', "_");
    name.strip_prefix('$').map_or_else(|| name.clone(), |rest| format!("_{rest}"))
}

/// Returns the field of a metric.
pub(crate) fn metric_field(metric: &str) -> String {
    let name = plain_name(metric);
    if OWN_FIELDS.contains(&&*name) { format!("metric_{name}") } else { name }
}

/// Returns the field of a tag, which differs from all fixed and taken fields. A tag `type` keeps
/// its name, because only one form has such a field, and leaves it out then.
pub(crate) fn tag_field(tag: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = plain_name(tag);
    while (name != "type" && OWN_FIELDS.contains(&&*name)) || is_taken(&name) {
        name = format!("tag_{name}");
    }
    name
}

/// Returns the value of a tag: a number when the text is exactly the printed form of that number.
pub(crate) fn tag_value(text: &str) -> Bson {
    if let Ok(number) = text.parse::<i64>()
        && number.to_string() == text
    {
        return whole(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number.to_string() == text => Bson::Double(number),
        _ => Bson::String(text.to_owned()),
    }
}

/// Returns a whole number in the shortest type.
pub(crate) fn whole(number: i64) -> Bson {
    i32::try_from(number).map_or(Bson::Int64(number), Bson::Int32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_a_number_when_it_is_spelled_like_one() {
        for (text, expected) in [
            ("1", Bson::Int32(1)),
            ("-7", Bson::Int32(-7)),
            ("99999999999", Bson::Int64(99_999_999_999)),
            ("2.5", Bson::Double(2.5)),
            ("007", Bson::String("007".into())),
            ("1e3", Bson::String("1e3".into())),
            ("NaN", Bson::String("NaN".into())),
            ("web1", Bson::String("web1".into())),
        ] {
            assert_eq!(tag_value(text), expected);
        }
    }

    #[test]
    fn fields_are_plain_and_replace_no_others() {
        assert_eq!(metric_field("system.load.1m"), "system_load_1m");
        assert_eq!(metric_field("date"), "metric_date");
        assert_eq!(metric_field("$sum"), "_sum");
        let field = |tag: &str| tag_field(tag, |name| name == "host");
        assert_eq!(field("a.b"), "a_b");
        assert_eq!(field("host"), "tag_host");
        assert_eq!(field("values"), "tag_values");
        assert_eq!(field("type"), "type");
    }
}
