//! Graphite's plaintext and pickle protocols (graphite.readthedocs.io, "Feeding In Your Data"),
//! including tags, and templates that split dotted paths into a metric and tags.

use std::rc::Rc;

use granary_exposition::kind_of_name;

use super::{
    pickle::{self, Item},
    rows::{DescribedSeries, Rows, Target},
    series_cache::Fingerprint,
};
pub use crate::model::graphite::Template;
use crate::{
    model::{SeriesKey, SeriesLimits, UnixMillis},
    policy::RefusalReason,
};

const PROTOCOL: u8 = 5;

/// Decodes complete lines; a malformed line does not affect the others. `now` replaces times that
/// are missing or -1.
pub fn decode_lines(body: &[u8], templates: &[Template], now: UnixMillis, rows: &mut Rows<'_>) {
    for line in body.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        match read_line(line, now) {
            Some((path, value, at)) => {
                if let Some(target) = target(path, templates, rows) {
                    rows.push_finite(target, at, value);
                }
            }
            None => rows.refuse(RefusalReason::BadSample, 1, || {
                let shown = String::from_utf8_lossy(&line[..line.len().min(200)]);
                format!("{shown:?} is not `path value timestamp`")
            }),
        }
    }
}

fn read_line(line: &[u8], now: UnixMillis) -> Option<(&str, f64, UnixMillis)> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split_ascii_whitespace();
    let (path, value) = (words.next()?, words.next()?.parse().ok()?);
    let at = match words.next() {
        None | Some("-1" | "N") => now,
        Some(seconds) => time(seconds.parse().ok()?)?,
    };
    words.next().is_none().then_some((path, value, at))
}

fn time(seconds: f64) -> Option<UnixMillis> {
    let millis = seconds * 1000.0;
    (millis.is_finite() && millis.abs() < 1e15).then_some(UnixMillis(millis as i64))
}

/// Returns the series of a path; `None` when the path is too long and its sample refused.
fn target(path: &str, templates: &[Template], rows: &mut Rows<'_>) -> Option<Target> {
    rows.fits(path.len(), 1).then(|| {
        rows.series(Fingerprint::new(PROTOCOL, path.as_bytes()), |limits| {
            describe(path, templates, limits)
        })
    })
}

/// Returns the series of `path;name=value;...`; the first template that matches splits the path.
///
/// # Errors
/// The path is malformed; the error names the reason.
pub fn describe(
    path: &str,
    templates: &[Template],
    limits: &SeriesLimits,
) -> Result<DescribedSeries, String> {
    let mut parts = path.split(';');
    let path = parts.next().unwrap_or_default();
    let mut tags = Vec::new();
    for pair in parts {
        let found = pair.split_once('=');
        tags.push(found.ok_or_else(|| format!("tag {pair:?} of {path} is not name=value"))?);
    }
    let template = templates.iter().find(|template| template.fits(path));
    let metric = match template {
        Some(template) => template.split(path, &mut tags),
        None => path.to_owned(),
    };
    let key = SeriesKey::new(&metric, tags, limits).map_err(|cause| cause.to_string())?;
    Ok(DescribedSeries { key, kind: kind_of_name(&metric), unit: "".into(), is_declared: false })
}

/// Decodes one pickled list of `(path, (timestamp, value))`.
///
/// # Errors
/// The bytes are not such a list.
pub fn decode_pickle(
    body: &[u8],
    templates: &[Template],
    now: UnixMillis,
    rows: &mut Rows<'_>,
) -> Result<(), String> {
    let points = pickle::read_list(body)?;
    // Consecutive points often share a path, which is looked up once.
    let mut last: Option<(&Rc<str>, Option<Target>)> = None;
    for point in &points {
        match read_point(point, now) {
            Some((path, value, at)) => {
                let known = last.filter(|(before, _)| Rc::ptr_eq(before, path));
                let target = known.map_or_else(
                    || target(path, templates, rows),
                    |(_, target_of_path)| target_of_path,
                );
                last = Some((path, target));
                if let Some(target) = target {
                    rows.push_finite(target, at, value);
                }
            }
            None => rows.refuse(RefusalReason::BadSample, 1, || {
                "an entry of the pickle is not (path, (timestamp, value))".to_owned()
            }),
        }
    }
    Ok(())
}

fn read_point(point: &Item, now: UnixMillis) -> Option<(&Rc<str>, f64, UnixMillis)> {
    let Item::Pair(point, _) = point else { return None };
    let (Item::Text(path), Item::Pair(sample, _)) = &**point else { return None };
    let seconds = number(&sample.0)?;
    let at = if seconds < 0.0 { now } else { time(seconds)? };
    Some((path, number(&sample.1)?, at))
}

fn number(item: &Item) -> Option<f64> {
    match item {
        Item::Number(number) => Some(*number),
        Item::Text(text) => text.trim().parse().ok(),
        Item::Pair(..) | Item::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, SeriesId};

    fn series(path: &str, templates: &[&str]) -> Result<String, String> {
        let templates: Vec<_> = templates.iter().map(|t| Template::parse(t).unwrap()).collect();
        let described = describe(path, &templates, &SeriesLimits::default())?;
        let tags: Vec<_> =
            described.key.tags().map(|(name, value)| format!("{name}={value}")).collect();
        Ok(format!("{} {}", described.key.metric(), tags.join(",")))
    }

    #[test]
    fn paths_become_metrics_and_tags() {
        let check = |path: &str, templates: &[&str], expected: &str| {
            assert_eq!(series(path, templates).unwrap(), expected);
        };
        check("servers.web1.cpu.idle", &[], "servers.web1.cpu.idle ");
        check("disk.used;host=a;mount=/", &[], "disk.used host=a,mount=/");
        let servers = "servers.* _.host.metric*";
        check("servers.web1.cpu.idle", &[servers], "cpu.idle host=web1");
        check("other.web1.cpu", &[servers, "* dc.metric.metric"], "web1.cpu dc=other");
        check("servers.web1.load;az=b", &[servers], "load az=b,host=web1");
        assert!(series("servers.web1", &[servers]).unwrap_err().contains("empty"));
        assert!(series("a;b", &[]).unwrap_err().contains("name=value"));
        assert!(Template::parse("servers").is_err());
        assert!(Template::parse("a.* host.dc").unwrap_err().contains("metric"));
    }

    #[test]
    fn lines_are_read_and_malformed_lines_are_refused() {
        assert_eq!(
            read_line(b"a.b 1.5 1795264496", UnixMillis(0)),
            Some(("a.b", 1.5, UnixMillis(1_795_264_496_000)))
        );
        assert_eq!(read_line(b"a.b 1 -1", UnixMillis(7)), Some(("a.b", 1.0, UnixMillis(7))));
        assert_eq!(read_line(b"a.b 1", UnixMillis(7)), Some(("a.b", 1.0, UnixMillis(7))));
        for line in ["a.b", "a.b x 1", "a.b 1 x", "a.b 1 2 3", "a.b 1 1e300"] {
            assert_eq!(read_line(line.as_bytes(), UnixMillis(0)), None, "{line}");
        }
        let limits = SeriesLimits::default();
        let mut cache = super::super::series_cache::SeriesCache::default();
        let known = |_: &SeriesKey| Some((SeriesId(1), Kind::Gauge));
        let mut rows = Rows::new(&mut cache, &known, &limits, "");
        decode_lines(b"a 1 5\nbad\n\nb 2 6\r\nc 3 7", &[], UnixMillis(0), &mut rows);
        assert_eq!(rows.finish().len(), 3);
    }

    #[test]
    fn pickles_of_python_are_read() {
        // pickle.dumps([("a.b", (1795264496, 1.5)), (b"c", (5, 2)), ("bad", 1)], protocol=2)
        let pickle =
            b"\x80\x02]q\x00(X\x03\x00\x00\x00a.bq\x01J0\x8f\x01kG?\xf8\x00\x00\x00\x00\x00\x00\
\x86q\x02\x86q\x03X\x03\x00\x00\x00badq\x04K\x01\x86q\x05e.";
        let limits = SeriesLimits::default();
        let mut cache = super::super::series_cache::SeriesCache::default();
        let known = |_: &SeriesKey| Some((SeriesId(1), Kind::Gauge));
        let mut rows = Rows::new(&mut cache, &known, &limits, "");
        decode_pickle(pickle, &[], UnixMillis(0), &mut rows).unwrap();
        assert_eq!(rows.finish().len(), 1);
        let mut rows = Rows::new(&mut cache, &known, &limits, "");
        assert!(decode_pickle(b"nonsense", &[], UnixMillis(0), &mut rows).is_err());
    }
}
