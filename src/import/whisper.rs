//! Whisper files (graphite.readthedocs.io, "The Whisper Database"): a header, then archives from
//! the finest to the coarsest, each a ring buffer of points.
//!
//! All numbers are big-endian. The header has the aggregation method u32, longest retention u32,
//! minimum share of known points f32, number of archives u32, then for each archive its offset,
//! seconds per point and number of points, u32 each. A point is a time in Unix seconds, u32, and a
//! value, f64; an unused point has time 0.
//!
//! A point of a coarse archive aggregates finer points, which the finer archive may still have.
//! Therefore each time is read from the finest archive that covers it, relative to the latest point
//! of the file, and no point counts twice. Points of an earlier round in a ring buffer are outside
//! of its time range and skipped.

use super::{Location, Source, SourceFault};
use crate::{
    ingest::{
        graphite::{Template, describe},
        rows::Rows,
        series_cache::Fingerprint,
    },
    model::{Kind, UnixMillis},
};

const PROTOCOL: u8 = 65;
const HEAD_BYTES: usize = 16;
const ARCHIVE_BYTES: usize = 12;
const POINT_BYTES: usize = 12;
/// The maximum number of archives in a file; real files have a handful.
const ARCHIVES_MAX: usize = 64;
/// The number of points that are passed on at once.
const CHUNK_POINTS: usize = 4096;

/// The aggregation method of sums, whose points are numbers of events.
const AGGREGATION_SUM: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    /// The time in Unix seconds.
    at_seconds: i64,
    value: f64,
}

#[derive(Debug, Clone, Copy)]
struct Archive {
    offset: usize,
    step: i64,
    points: usize,
}

/// A whisper file that was read completely.
#[derive(Debug)]
pub struct Whisper<'a> {
    path: &'a str,
    templates: &'a [Template],
    is_sum: bool,
    points: std::vec::IntoIter<Point>,
}

impl<'a> Whisper<'a> {
    /// Reads the points of a file whose metric is `path`, which the templates split.
    ///
    /// # Errors
    /// When the bytes are not a whisper file; the message names the location.
    pub fn new(
        bytes: &[u8],
        path: &'a str,
        templates: &'a [Template],
    ) -> Result<Self, SourceFault> {
        let (aggregation, archives) = read_header(bytes).map_err(SourceFault::Damaged)?;
        let points = select(bytes, &archives).into_iter();
        Ok(Self { path, templates, is_sum: aggregation == AGGREGATION_SUM, points })
    }
}

impl Source for Whisper<'_> {
    fn read(&mut self, rows: &mut Rows<'_>) -> Result<Option<Location>, SourceFault> {
        if self.points.as_slice().is_empty() {
            return Ok(None);
        }
        let target = rows.series(Fingerprint::new(PROTOCOL, self.path.as_bytes()), |limits| {
            let mut described = describe(self.path, self.templates, limits)?;
            if self.is_sum && described.kind == Kind::Gauge {
                described.kind = Kind::Delta;
            }
            Ok(described)
        });
        for point in self.points.by_ref().take(CHUNK_POINTS) {
            rows.push_finite(target, UnixMillis(point.at_seconds * 1000), point.value);
        }
        Ok(Some(0))
    }
}

/// Returns the metric's path for a file's path below the root: folders are parts of the name.
/// Tagged series are in `_tagged`, below two folders of their hash, with `_DOT_` instead of dots.
pub fn metric_path(file: &str) -> String {
    let name = file.strip_suffix(".wsp").unwrap_or(file);
    match name.strip_prefix("_tagged/").map(|rest| rest.splitn(3, '/').nth(2)) {
        Some(Some(tagged)) => tagged.replace("_DOT_", "."),
        _ => name.replace('/', "."),
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_header(bytes: &[u8]) -> Result<(u32, Vec<Archive>), String> {
    let cut = |at: usize| format!("not a whisper file: it ends within its header, at byte {at}");
    let aggregation = read_u32(bytes, 0).ok_or_else(|| cut(0))?;
    let count = read_u32(bytes, 12).ok_or_else(|| cut(12))? as usize;
    if !(1..=8).contains(&aggregation) || !(1..=ARCHIVES_MAX).contains(&count) {
        return Err(format!(
            "not a whisper file: byte 0 has aggregation {aggregation}, byte 12 has {count} archives"
        ));
    }
    let mut archives: Vec<Archive> = Vec::with_capacity(count);
    for index in 0..count {
        let at = HEAD_BYTES + index * ARCHIVE_BYTES;
        let part = |part: usize| read_u32(bytes, at + part * 4).ok_or_else(|| cut(at));
        let (offset, step, points) = (part(0)? as usize, part(1)?, part(2)? as usize);
        let end = points.checked_mul(POINT_BYTES).and_then(|length| length.checked_add(offset));
        let coarser = archives.last().is_none_or(|finer| i64::from(step) > finer.step);
        if step == 0 || points == 0 || !coarser || end.is_none_or(|end| end > bytes.len()) {
            return Err(format!(
                "damaged whisper file: archive {index} at byte {at} has {points} points of {step} s \
                 from byte {offset}, but the file has {} bytes",
                bytes.len()
            ));
        }
        archives.push(Archive { offset, step: i64::from(step), points });
    }
    Ok((aggregation, archives))
}

/// Returns the used points of an archive, sorted by time.
fn read_archive(bytes: &[u8], archive: &Archive) -> Vec<Point> {
    let ring = bytes.get(archive.offset..).unwrap_or_default();
    let mut points: Vec<_> = ring
        .as_chunks::<POINT_BYTES>()
        .0
        .iter()
        .take(archive.points)
        .filter_map(|point| {
            let (at, value) = point.split_first_chunk::<4>()?;
            let value = f64::from_be_bytes(*value.first_chunk()?);
            let at = i64::from(u32::from_be_bytes(*at));
            (at != 0).then_some(Point { at_seconds: at, value })
        })
        .collect();
    points.sort_by_key(|point| point.at_seconds);
    points.dedup_by_key(|point| point.at_seconds);
    points
}

/// Returns the points of each time from the finest archive that covers it, sorted by time.
fn select(bytes: &[u8], archives: &[Archive]) -> Vec<Point> {
    let all: Vec<_> = archives.iter().map(|archive| read_archive(bytes, archive)).collect();
    let latest = all.iter().filter_map(|points| points.last()).map(|point| point.at_seconds).max();
    let Some(latest) = latest else { return Vec::new() };
    let mut chosen: Vec<Point> = Vec::new();
    // Times from here on are covered by a finer archive.
    let mut covered_from = i64::MAX;
    for (archive, points) in archives.iter().zip(&all) {
        let newest = latest.div_euclid(archive.step) * archive.step;
        let covers_from = newest - archive.step * (archive.points as i64 - 1);
        // A coarse point that overlaps the covered range replaces the finer points within it.
        let overlaps = |point: &&Point| {
            point.at_seconds < covered_from && point.at_seconds + archive.step > covered_from
        };
        if let Some(overlapping) = points.iter().find(overlaps) {
            chosen.retain(|finer| finer.at_seconds >= overlapping.at_seconds + archive.step);
            covered_from = overlapping.at_seconds + archive.step;
        }
        chosen.extend(
            points
                .iter()
                .filter(|point| point.at_seconds >= covers_from && point.at_seconds < covered_from),
        );
        covered_from = covered_from.min(covers_from);
    }
    chosen.sort_by_key(|point| point.at_seconds);
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::{
        intake::{read_all, testing},
        selection::Selection,
    };

    /// The step, the length of the ring buffer, and the points.
    type BuiltArchive<'a> = (u32, usize, &'a [(u32, f64)]);

    fn file(aggregation: u32, archives: &[BuiltArchive<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |numbers: &[u32]| {
            for number in numbers {
                out.extend_from_slice(&number.to_be_bytes());
            }
        };
        put(&[aggregation, 0, 0, archives.len() as u32]);
        let mut offset = HEAD_BYTES + archives.len() * ARCHIVE_BYTES;
        for (step, length, _) in archives {
            put(&[offset as u32, *step, *length as u32]);
            offset += length * POINT_BYTES;
        }
        for (_, length, points) in archives {
            let unused = std::iter::repeat(&(0, 0.0));
            // The ring buffer may start anywhere.
            for (at, value) in points.iter().rev().chain(unused).take(*length) {
                out.extend_from_slice(&at.to_be_bytes());
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
        out
    }

    fn points(bytes: &[u8]) -> Vec<(i64, f64)> {
        let (_, archives) = read_header(bytes).unwrap();
        select(bytes, &archives).iter().map(|point| (point.at_seconds, point.value)).collect()
    }

    #[test]
    fn coarse_points_are_used_only_without_finer_ones() {
        // The fine archive covers 1060 to 1090.
        let fine = [(1060, 1.0), (1070, 2.0), (1080, 3.0), (1090, 4.0)];
        let coarse = [(1000, 10.0), (1020, 20.0), (1040, 30.0), (1060, 1.5), (1080, 3.5)];
        let bytes = file(1, &[(10, 4, &fine), (20, 8, &coarse)]);
        let mut expected = vec![(1000, 10.0), (1020, 20.0), (1040, 30.0)];
        expected.extend(fine.map(|(at, value)| (i64::from(at), value)));
        assert_eq!(points(&bytes), expected);
        // A fine archive that covers 1070 to 1100: the point at 1060 replaces 1060 and 1070.
        let fine = [(1070, 2.0), (1080, 3.0), (1090, 4.0), (1100, 5.0)];
        let bytes = file(1, &[(10, 4, &fine), (20, 8, &coarse)]);
        let mut expected = coarse[..4].to_vec();
        expected.extend(&fine[1..]);
        let expected: Vec<_> =
            expected.iter().map(|(at, value)| (i64::from(*at), *value)).collect();
        assert_eq!(points(&bytes), expected);
    }

    #[test]
    fn points_of_an_earlier_round_are_skipped() {
        let fine = [(500, 9.0), (1090, 4.0)];
        let coarse = [(480, 7.0), (1080, 4.0)];
        let bytes = file(2, &[(10, 4, &fine), (60, 100, &coarse)]);
        assert_eq!(points(&bytes), [(480, 7.0), (1090, 4.0)]);
        let source = &mut Whisper::new(&bytes, "a.b", &[]).unwrap();
        let (kept, _) = testing::read(source);
        assert_eq!(kept.samples, ["a.b delta  480000 7", "a.b delta  1090000 4"]);
    }

    #[test]
    fn paths_become_metrics() {
        assert_eq!(metric_path("servers/web1/cpu.wsp"), "servers.web1.cpu");
        let tagged = "_tagged/0f3/a21/disk_DOT_used;host=a_DOT_b.wsp";
        assert_eq!(metric_path(tagged), "disk.used;host=a.b");
        let template = [Template::parse("servers.* _.host.metric*").unwrap()];
        let bytes = file(1, &[(1, 4, &[(7, 1.0)])]);
        let (kept, _) =
            testing::read(&mut Whisper::new(&bytes, "servers.w.cpu", &template).unwrap());
        assert_eq!(kept.samples, [r#"cpu{host="w"} gauge  7000 1"#]);
    }

    #[test]
    fn the_error_of_a_damaged_file_names_the_location() {
        let bytes = file(1, &[(10, 4, &[(1090, 4.0)])]);
        let fault = |bytes: &[u8]| Whisper::new(bytes, "a", &[]).unwrap_err().to_string();
        assert!(fault(&bytes[..bytes.len() - 1]).contains("archive 0 at byte 16"));
        assert!(fault(&bytes[..14]).contains("at byte 12"));
        assert!(fault(b"something else entirely").contains("not a whisper file"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            archives in prop::collection::vec((1_u32..50, 1_usize..9, any::<u32>()), 1..4),
        ) {
            let points = archives.iter().map(|archive| [(archive.2, 1.0), (archive.2 / 2, f64::NAN)]);
            let points: Vec<_> = points.collect();
            let archives: Vec<_> = archives.iter().zip(&points)
                .map(|(archive, points)| (archive.0, archive.1, &points[..])).collect();
            let built = file(1, &archives);
            for input in [&bytes[..], &built[..], &built[..built.len() / 2]] {
                if let Ok(mut source) = Whisper::new(input, "a", &[]) {
                    let mut kept = testing::RecordedOutput::default();
                    drop(read_all(&mut source, "a".into(), &Selection::default(), &mut kept));
                }
            }
        }
    }
}
