//! Times in templates, which are texts in Go's format: parsed, converted to time zones, and
//! formatted by Go's layouts.
//!
//! Must never know: the methods and functions that use them.

use gotmpl::Value;
use jiff::{Timestamp, Zoned, tz::TimeZone};

use super::{
    fault,
    functions::{argument, string},
    text_value,
};

/// Go's layout elements and jiff's counterparts; longer ones come first.
const LAYOUT: [(&str, &str); 26] = [
    ("2006", "%Y"),
    ("January", "%B"),
    ("Monday", "%A"),
    ("-07:00", "%:z"),
    ("Z07:00", "%:Q"),
    ("-0700", "%z"),
    (".000000", ".%6f"),
    (".000", ".%3f"),
    (".999", "%.f"),
    ("Jan", "%b"),
    ("Mon", "%a"),
    ("MST", "%Z"),
    ("01", "%m"),
    ("02", "%d"),
    ("03", "%I"),
    ("04", "%M"),
    ("05", "%S"),
    ("06", "%y"),
    ("15", "%H"),
    ("PM", "%p"),
    ("pm", "%P"),
    ("_2", "%e"),
    ("1", "%-m"),
    ("2", "%-d"),
    ("3", "%-I"),
    ("%", "%%"),
];
/// The format in which Go shows a time, without the name of its zone.
const SHOWN: &str = "%Y-%m-%d %H:%M:%S%.f %z";
/// The text of Go's zero time.
pub(super) const NO_TIME: &str = "0001-01-01 00:00:00 +0000 UTC";

/// Returns the time in the first argument and the short name of its zone; `None` for Go's zero
/// time.
pub(super) fn time(args: &[Value]) -> gotmpl::Result<Option<(Zoned, String)>> {
    let shown = string(args, 0)?;
    if shown == NO_TIME {
        return Ok(None);
    }
    let read = || {
        let (shown, name) = shown.rsplit_once(' ')?;
        let read = jiff::fmt::strtime::parse(SHOWN, shown).ok()?;
        let zone = TimeZone::fixed(read.offset()?);
        Some((read.to_timestamp().ok()?.to_zoned(zone), name.to_owned()))
    };
    read().map(Some).ok_or_else(|| fault("the argument is not a time"))
}

/// Returns a time in Go's format.
pub(super) fn go_time_text(at: &Zoned) -> String {
    at.strftime(&format!("{SHOWN} %Z")).to_string()
}

/// Converts the time in the first argument to a zone.
pub(super) fn in_zone(args: &[Value], zone: TimeZone) -> gotmpl::Result<Value> {
    let Some((at, _)) = time(args)? else { return argument(args, 0) };
    Ok(text_value(&go_time_text(&at.with_time_zone(zone))))
}

/// Converts a time to a zone; the arguments are the zone's name and the time.
pub(super) fn tz(args: &[Value]) -> gotmpl::Result<Value> {
    let zone = TimeZone::get(&string(args, 0)?).map_err(|cause| fault(format!("tz: {cause}")))?;
    in_zone(args.get(1..).unwrap_or_default(), zone)
}

/// Formats a time; the arguments are the layout and the time.
pub(super) fn date(args: &[Value]) -> gotmpl::Result<Value> {
    formatted(&[argument(args, 1)?, argument(args, 0)?])
}

/// Formats a time; the arguments are the time and the layout.
pub(super) fn formatted(args: &[Value]) -> gotmpl::Result<Value> {
    let utc = || (Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC), "UTC".to_owned());
    let (at, zone) = time(args)?.unwrap_or_else(utc);
    let layout = string(args, 1)?;
    let mut rest = layout.as_str();
    let mut format = String::new();
    while let Some(next) = rest.chars().next() {
        let found = LAYOUT.iter().find_map(|(go, word)| Some((rest.strip_prefix(go)?, *word)));
        (rest, format) = match found {
            // An offset does not imply the zone's name.
            Some((after, "%Z")) => (after, format + &zone),
            Some((after, word)) => (after, format + word),
            None => {
                format.push(next);
                (rest.strip_prefix(next).unwrap_or_default(), format)
            }
        };
    }
    let shown = jiff::fmt::strtime::format(&format, &at);
    shown.map(|formatted| text_value(&formatted)).map_err(|cause| fault(format!("Format: {cause}")))
}
