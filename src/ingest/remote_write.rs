//! Prometheus remote write 1.0 and 2.0 (prometheus.io/docs/specs/prw), decoded without an
//! allocation for series that are known.

use std::collections::HashMap;

use super::{
    protobuf::{Fields, Value, WireFault, packed_varints},
    rows::{Described, Rows, kind_of_name},
    series_cache::Fingerprint,
};
use crate::{
    model::{Kind, SeriesKey, SeriesLimits},
    pipeline::RefusalReason,
};

const PROTOCOL_1: u8 = 1;
const PROTOCOL_2: u8 = 2;
/// Kept apart from the series itself: the fingerprints of what a native histogram becomes.
const HISTOGRAM_COUNT: u8 = 16;
const HISTOGRAM_SUM: u8 = 32;
const NAME: &str = "__name__";
/// Symbols of a 2.0 request: as many as its series may need.
const SYMBOLS_MAX: usize = 1 << 20;

/// Which message a body holds, as its `Content-Type` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `prometheus.WriteRequest`
    V1,
    /// `io.prometheus.write.v2.Request`
    V2,
}

/// What was in a body besides samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Contents {
    /// Plain samples.
    pub samples: u64,
    /// Native histograms.
    pub histograms: u64,
    /// Exemplars, which are not kept.
    pub exemplars: u64,
}

/// What a sender told of its metrics' types, by family name. Prometheus 1.0 sends it apart from
/// the samples, about once a minute.
#[derive(Debug, Default)]
pub struct Families(HashMap<Box<str>, Type>);

/// Families remembered; with more, the rest goes by name.
const FAMILIES_MAX: usize = 100_000;

/// Type of a metric family, by its code in both versions (`MetricMetadata.MetricType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Counter,
    Gauge,
    /// Histograms and summaries: the suffix of the name tells.
    ByName,
}

impl Type {
    fn from_code(code: i64) -> Option<Self> {
        match code {
            1 => Some(Self::Counter),
            2 | 6 | 7 => Some(Self::Gauge),
            3..=5 => Some(Self::ByName),
            _ => None,
        }
    }

    fn kind(self, metric: &str) -> Kind {
        match self {
            Self::Counter => Kind::Counter,
            Self::Gauge => Kind::Gauge,
            Self::ByName => kind_of_name(metric),
        }
    }
}

/// Decodes a body.
///
/// # Errors
/// When it is no such message; what was read before is in `rows` all the same.
pub fn decode(
    version: Version,
    body: &[u8],
    families: &mut Families,
    rows: &mut Rows<'_>,
) -> Result<Contents, WireFault> {
    match version {
        Version::V1 => decode_1(body, families, rows),
        Version::V2 => decode_2(body, rows),
    }
}

fn decode_1(
    body: &[u8],
    families: &mut Families,
    rows: &mut Rows<'_>,
) -> Result<Contents, WireFault> {
    let mut contents = Contents::default();
    let mut request = Fields::of(body);
    while let Some((field, value)) = request.next_field()? {
        match field {
            1 => series_1(value.bytes(), families, rows, &mut contents)?,
            3 => families.learn(value.bytes())?,
            _ => {}
        }
    }
    Ok(contents)
}

/// `TimeSeries` of 1.0: the labels come first, and equal series have equal bytes there.
fn series_1(
    message: &[u8],
    families: &Families,
    rows: &mut Rows<'_>,
    contents: &mut Contents,
) -> Result<(), WireFault> {
    let labels = &message[..labels_end(message)];
    if labels.len() > rows.limits.series_bytes_max() {
        rows.fits(labels.len(), entries(message, [2, 4])?);
        return Ok(());
    }
    let mut fields = Fields::of(&message[labels.len()..]);
    let describe = |name: &str| Labels::read_1(labels).map(|found| found.renamed(name));
    let mut target = None;
    while let Some((field, value)) = fields.next_field()? {
        match field {
            2 => {
                let target = *target.get_or_insert_with(|| {
                    rows.series(Fingerprint::of(PROTOCOL_1, labels), |limits| {
                        let labels = describe("")?;
                        let kind = families.kind(labels.metric);
                        labels.described(kind, "", limits)
                    })
                });
                let (at, value, start) = sample(value.bytes())?;
                contents.samples += 1;
                rows.push(target, at, value, start);
            }
            3 => contents.exemplars += 1,
            4 => {
                contents.histograms += 1;
                let fingerprint = |part| Fingerprint::of(PROTOCOL_1 | part, labels);
                histogram(value.bytes(), 0, rows, fingerprint, |suffix, limits| {
                    describe(suffix)?.described(Kind::Counter, "", limits)
                })?;
            }
            // Labels behind the samples: no sender writes them so.
            _ => {}
        }
    }
    Ok(())
}

/// How many fields of these numbers a message has.
fn entries(message: &[u8], numbers: [u32; 2]) -> Result<u64, WireFault> {
    let (mut fields, mut count) = (Fields::of(message), 0);
    while let Some((field, _)) = fields.next_field()? {
        count += u64::from(numbers.contains(&field));
    }
    Ok(count)
}

/// Where the labels at the start of a series end: nothing is read but their lengths. Labels of
/// 128 bytes and more are left to the general reader.
fn labels_end(message: &[u8]) -> usize {
    const LABEL: u8 = 1 << 3 | 2;
    let mut at = 0;
    while let Some([LABEL, length]) = message.get(at..at + 2) {
        let end = at + 2 + usize::from(*length);
        if *length >= 0x80 || end > message.len() {
            return long_labels_end(message, at);
        }
        at = end;
    }
    at
}

fn long_labels_end(message: &[u8], from: usize) -> usize {
    let mut ahead = Fields::of(&message[from..]);
    let mut end = from;
    while let Ok(Some((1, _))) = ahead.next_field() {
        end = from + ahead.position();
    }
    end
}

/// `Sample` of both versions: value 1, timestamp 2, and in 2.0 start timestamp 3.
fn sample(message: &[u8]) -> Result<(i64, f64, i64), WireFault> {
    let (mut at, mut number, mut start) = (0, 0.0, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match field {
            1 => number = value.double(),
            2 => at = value.int(),
            3 => start = value.int(),
            _ => {}
        }
    }
    Ok((at, number, start))
}

/// A native histogram: its count and sum become counters, its buckets are counted as refused.
fn histogram(
    message: &[u8],
    start: i64,
    rows: &mut Rows<'_>,
    fingerprint: impl Fn(u8) -> Fingerprint,
    describe: impl Fn(&str, &SeriesLimits) -> Result<Described, String>,
) -> Result<(), WireFault> {
    let (mut at, mut count, mut sum, mut buckets) = (0, 0.0, 0.0, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match (field, value) {
            (1, Value::Varint(number)) => count = number as f64,
            (2, Value::Fixed64(bits)) => count = f64::from_bits(bits),
            (3, value) => sum = value.double(),
            (9 | 12, Value::Bytes(packed)) => packed_varints(packed, |_| buckets += 1)?,
            (10 | 13, Value::Bytes(packed)) => buckets += packed.len() as u64 / 8,
            (15, value) => at = value.int(),
            _ => {}
        }
    }
    for (part, suffix, value) in [(HISTOGRAM_COUNT, "_count", count), (HISTOGRAM_SUM, "_sum", sum)]
    {
        let target = rows.series(fingerprint(part), |limits| describe(suffix, limits));
        rows.push(target, at, value, start);
    }
    rows.refuse(RefusalReason::NativeHistogram, buckets, || {
        "the buckets of native histograms are not kept; send classic ones".to_owned()
    });
    Ok(())
}

impl Families {
    /// `MetricMetadata`: type 1, family name 2.
    fn learn(&mut self, message: &[u8]) -> Result<(), WireFault> {
        let (mut code, mut name) = (0, "");
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next_field()? {
            match field {
                1 => code = value.int(),
                2 => name = std::str::from_utf8(value.bytes()).unwrap_or_default(),
                _ => {}
            }
        }
        if let Some(found) = Type::from_code(code)
            && (self.0.len() < FAMILIES_MAX || self.0.contains_key(name))
        {
            self.0.insert(name.into(), found);
        }
        Ok(())
    }

    fn kind(&self, metric: &str) -> Kind {
        match self.0.get(metric) {
            Some(found) => found.kind(metric),
            None => kind_of_name(metric),
        }
    }
}

/// The labels of one series, as text.
struct Labels<'a> {
    metric: &'a str,
    /// Put behind the metric's name.
    suffix: String,
    tags: Vec<(&'a str, &'a str)>,
}

impl<'a> Labels<'a> {
    fn read_1(labels: &'a [u8]) -> Result<Self, String> {
        let mut out = Self { metric: "", suffix: String::new(), tags: Vec::new() };
        let mut fields = Fields::of(labels);
        while let Some((_, label)) = fields.next_field().map_err(|fault| fault.to_string())? {
            let (mut name, mut value) = (&[][..], &[][..]);
            let mut parts = Fields::of(label.bytes());
            while let Some((field, part)) = parts.next_field().map_err(|fault| fault.to_string())? {
                match field {
                    1 => name = part.bytes(),
                    2 => value = part.bytes(),
                    _ => {}
                }
            }
            out.add(name, value)?;
        }
        Ok(out)
    }

    fn add(&mut self, name: &'a [u8], value: &'a [u8]) -> Result<(), String> {
        let text = |bytes: &'a [u8], what: &str| {
            std::str::from_utf8(bytes).map_err(|_| {
                format!("a label {what} is not UTF-8: {:?}", String::from_utf8_lossy(bytes))
            })
        };
        let (name, value) = (text(name, "name")?, text(value, "value")?);
        if name == NAME {
            self.metric = value;
        } else {
            self.tags.push((name, value));
        }
        Ok(())
    }

    fn renamed(mut self, suffix: &str) -> Self {
        suffix.clone_into(&mut self.suffix);
        self
    }

    fn described(self, kind: Kind, unit: &str, limits: &SeriesLimits) -> Result<Described, String> {
        let metric = format!("{}{}", self.metric, self.suffix);
        let key = SeriesKey::new(&metric, self.tags, limits).map_err(|cause| cause.to_string())?;
        Ok(Described { key, kind, unit: unit.into() })
    }
}

/// 2.0: `Request` with symbols 4 and series 5. The symbols come first; the specification asks
/// senders to write fields in order, and others are read in a pass of its own.
fn decode_2(body: &[u8], rows: &mut Rows<'_>) -> Result<Contents, WireFault> {
    let mut symbols: Vec<&[u8]> = Vec::new();
    let mut request = Fields::of(body);
    while let Some((field, value)) = request.next_field()? {
        if field == 4 && symbols.len() < SYMBOLS_MAX {
            symbols.push(value.bytes());
        }
    }
    let mut contents = Contents::default();
    let mut scratch = Scratch::default();
    let mut request = Fields::of(body);
    while let Some((field, value)) = request.next_field()? {
        if field == 5 {
            series_2(value.bytes(), &symbols, rows, &mut contents, &mut scratch)?;
        }
    }
    Ok(contents)
}

/// Kept from series to series, so that none allocates.
#[derive(Default)]
struct Scratch {
    refs: Vec<usize>,
    written: Vec<u8>,
}

/// `TimeSeries` of 2.0: label refs 1, samples 2, histograms 3, exemplars 4, metadata 5, created
/// timestamp 6.
fn series_2(
    message: &[u8],
    symbols: &[&[u8]],
    rows: &mut Rows<'_>,
    contents: &mut Contents,
    scratch: &mut Scratch,
) -> Result<(), WireFault> {
    scratch.refs.clear();
    let (mut metadata, mut created) = (None, 0);
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match (field, value) {
            (1, Value::Bytes(packed)) => {
                packed_varints(packed, |reference| scratch.refs.push(reference as usize))?;
            }
            (1, Value::Varint(reference)) => scratch.refs.push(reference as usize),
            (5, value) => metadata = Some(Metadata::read(value.bytes())?),
            (6, value) => created = value.int(),
            _ => {}
        }
    }
    let Scratch { refs, written } = scratch;
    // A few bytes of refs may stand for a long text.
    let length = |reference: &usize| symbols.get(*reference).map_or(1, |symbol| symbol.len()) + 4;
    let bytes = refs.iter().map(length).fold(0, usize::saturating_add);
    if bytes > rows.limits.series_bytes_max() {
        rows.fits(bytes, entries(message, [2, 3])?);
        return Ok(());
    }
    // Equal series have different refs in different requests; their texts are equal.
    written.clear();
    for reference in &*refs {
        let symbol = symbols.get(*reference).copied().unwrap_or(b"\xff");
        written.extend_from_slice(&(symbol.len() as u32).to_le_bytes());
        written.extend_from_slice(symbol);
    }
    let metadata = metadata.unwrap_or_default();
    let describe = |suffix: &str, limits: &SeriesLimits| {
        let labels = Labels::read_2(refs, symbols)?.renamed(suffix);
        let unit = symbols.get(metadata.unit).and_then(|unit| std::str::from_utf8(unit).ok());
        let known = Type::from_code(metadata.code);
        let by_name = kind_of_name(labels.metric);
        let kind = if suffix.is_empty() {
            known.map_or(by_name, |known| known.kind(labels.metric))
        } else {
            Kind::Counter
        };
        labels.described(kind, unit.unwrap_or_default(), limits)
    };
    let mut target = None;
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match field {
            2 => {
                let target = *target.get_or_insert_with(|| {
                    let fingerprint = Fingerprint::of(PROTOCOL_2, written);
                    rows.series(fingerprint, |limits| describe("", limits))
                });
                let (at, value, start) = sample(value.bytes())?;
                contents.samples += 1;
                rows.push(target, at, value, if start == 0 { created } else { start });
            }
            3 => {
                contents.histograms += 1;
                let fingerprint = |part| Fingerprint::of(PROTOCOL_2 | part, written);
                histogram(value.bytes(), created, rows, fingerprint, describe)?;
            }
            4 => contents.exemplars += 1,
            _ => {}
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, Default)]
struct Metadata {
    code: i64,
    unit: usize,
}

impl Metadata {
    /// Type 1, help ref 3, unit ref 4.
    fn read(message: &[u8]) -> Result<Self, WireFault> {
        let mut out = Self::default();
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next_field()? {
            match field {
                1 => out.code = value.int(),
                4 => out.unit = value.int() as usize,
                _ => {}
            }
        }
        Ok(out)
    }
}

impl<'a> Labels<'a> {
    fn read_2(refs: &[usize], symbols: &[&'a [u8]]) -> Result<Self, String> {
        let mut out = Self { metric: "", suffix: String::new(), tags: Vec::new() };
        if !refs.len().is_multiple_of(2) {
            return Err("the label refs are no pairs".to_owned());
        }
        for pair in refs.chunks_exact(2) {
            let symbol = |index: usize| {
                let found = symbols.get(index).copied();
                found.ok_or_else(|| format!("label ref {index} is beyond the symbols"))
            };
            out.add(symbol(pair[0])?, symbol(pair[1])?)?;
        }
        Ok(out)
    }
}
