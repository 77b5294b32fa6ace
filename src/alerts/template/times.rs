//! Times in templates, which are texts in Go's format: parsing, time zones, and Go's layouts.
//!
//! Must never know: which methods and functions they are for.

use gotmpl::Value;
use jiff::{Timestamp, Zoned, tz::TimeZone};

use super::{
    fault,
    functions::{argument, string},
    text,
};

/// The parts of Go's layouts and of jiff's formats; longer ones first.
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
/// Go's format of a time, before the name of its zone.
const SHOWN: &str = "%Y-%m-%d %H:%M:%S%.f %z";
/// Go's zero time.
pub(super) const NO_TIME: &str = "0001-01-01 00:00:00 +0000 UTC";

/// Parses a time and the short name of its zone; `None` for Go's zero time.
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
    read().map(Some).ok_or_else(|| fault("this is no time"))
}

/// Formats a time as Go does.
pub(super) fn shown(at: &Zoned) -> String {
    at.strftime(&format!("{SHOWN} %Z")).to_string()
}

/// A time in a zone.
pub(super) fn in_zone(args: &[Value], zone: TimeZone) -> gotmpl::Result<Value> {
    let Some((at, _)) = time(args)? else { return argument(args, 0) };
    Ok(text(&shown(&at.with_time_zone(zone))))
}

/// The function with a zone's name and a time: the time in that zone.
pub(super) fn tz(args: &[Value]) -> gotmpl::Result<Value> {
    let zone = TimeZone::get(&string(args, 0)?).map_err(|cause| fault(format!("tz: {cause}")))?;
    in_zone(args.get(1..).unwrap_or_default(), zone)
}

/// The function with a layout and a time: the formatted time.
pub(super) fn date(args: &[Value]) -> gotmpl::Result<Value> {
    formatted(&[argument(args, 1)?, argument(args, 0)?])
}

/// The method with a time and a layout: the formatted time.
pub(super) fn formatted(args: &[Value]) -> gotmpl::Result<Value> {
    let utc = || (Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC), "UTC".to_owned());
    let (at, zone) = time(args)?.unwrap_or_else(utc);
    let layout = string(args, 1)?;
    let mut rest = layout.as_str();
    let mut own = String::new();
    while let Some(next) = rest.chars().next() {
        let found = LAYOUT.iter().find_map(|(go, word)| Some((rest.strip_prefix(go)?, *word)));
        (rest, own) = match found {
            // An offset alone has no name of a zone.
            Some((after, "%Z")) => (after, own + &zone),
            Some((after, word)) => (after, own + word),
            None => {
                own.push(next);
                (rest.strip_prefix(next).unwrap_or_default(), own)
            }
        };
    }
    let shown = jiff::fmt::strtime::format(&own, &at);
    shown.map(|own| text(&own)).map_err(|cause| fault(format!("Format: {cause}")))
}
