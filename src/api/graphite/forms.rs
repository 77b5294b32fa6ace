//! The forms of lines in answers to `/render`.
//!
//! Must never know: how lines were computed.

use std::io::Write;

use jiff::tz::TimeZone;

use crate::query::{Line, civil_text};

/// Appends the line at an index of the answer.
pub(super) type LineFormat = fn(usize, &Line, &TimeZone, &mut Vec<u8>);

/// Writing to memory cannot fail.
fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    drop(out.write_fmt(text));
}

fn points(line: &Line) -> impl Iterator<Item = (i64, Option<f64>)> {
    let time = |index: usize| line.start + line.step * index as i64;
    let value = |value: &f64| Some(*value).filter(|value| value.is_finite());
    line.values.iter().enumerate().map(move |(index, number)| (time(index), value(number)))
}

/// Appends `{"target": ..., "tags": ..., "datapoints": [[value, seconds], ...]}`.
pub(super) fn json(index: usize, line: &Line, _: &TimeZone, out: &mut Vec<u8>) {
    out.push(if index == 0 { b'[' } else { b',' });
    let text = |text: &str| serde_json::Value::from(text);
    write(out, format_args!("{{\"target\":{},\"tags\":", text(&line.name)));
    let tags = line.tags.iter().map(|(name, value)| (name.clone(), text(value))).collect();
    write(out, format_args!("{},\"datapoints\":[", serde_json::Value::Object(tags)));
    for (position, (at, value)) in points(line).enumerate() {
        if position > 0 {
            out.push(b',');
        }
        match value {
            Some(value) => write(out, format_args!("[{},{at}]", serde_json::Value::from(value))),
            None => write(out, format_args!("[null,{at}]")),
        }
    }
    out.extend_from_slice(b"]}");
}

/// Appends `name,time,value` for each point.
pub(super) fn csv(_: usize, line: &Line, zone: &TimeZone, out: &mut Vec<u8>) {
    let needs_quotes = line.name.contains([',', '"', '\n', '\r']);
    let name = if needs_quotes {
        format!("\"{}\"", line.name.replace('"', "\"\""))
    } else {
        line.name.clone()
    };
    for (at, value) in points(line) {
        write(out, format_args!("{name},{},", civil_text(at, zone)));
        if let Some(value) = value {
            write(out, format_args!("{value}"));
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends `name,start,end,step|value,...`.
pub(super) fn raw(_: usize, line: &Line, _: &TimeZone, out: &mut Vec<u8>) {
    let name = line.name.replace(['\n', '\r'], " ");
    write(out, format_args!("{name},{},{},{}|", line.start, line.end(), line.step));
    for (position, (_, value)) in points(line).enumerate() {
        if position > 0 {
            out.push(b',');
        }
        match value {
            Some(value) => write(out, format_args!("{value:?}")),
            None => out.extend_from_slice(b"None"),
        }
    }
    out.push(b'\n');
}
