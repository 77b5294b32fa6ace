//! Version 2.0, `io.prometheus.write.v2.Request`: labels as refs into the request's symbols, and a
//! type in each series.
//!
//! Must never know: version 1.0, types remembered from other requests.

use granary_exposition::{
    kind_of_name,
    wire::{Fields, Value, WireFault, packed_varints},
};

use super::{EntryCounts, Labels, entries, families::Type, histograms::TimedHistogram, sample};
use crate::{
    ingest::{rows::Rows, series_cache::Fingerprint},
    model::{Kind, SeriesLimits, is_stale_marker},
};

const PROTOCOL: u8 = 2;

/// The maximum number of symbols of a request.
const SYMBOLS_MAX: usize = 1 << 20;

/// Decodes `Request` of 2.0, with the fields 4 symbols and 5 series. The symbols are read in a
/// first pass, because they may follow the series that refer to them.
pub(super) fn decode(body: &[u8], rows: &mut Rows<'_>) -> Result<EntryCounts, WireFault> {
    let mut symbols: Vec<&[u8]> = Vec::new();
    let mut request = Fields::of(body);
    while let Some((field, value)) = request.next_field()? {
        if field == 4 && symbols.len() < SYMBOLS_MAX {
            symbols.push(value.bytes());
        }
    }
    let mut counts = EntryCounts::default();
    let mut scratch = SeriesBuffers::default();
    let mut request = Fields::of(body);
    while let Some((field, value)) = request.next_field()? {
        if field == 5 && !rows.is_full() {
            series(value.bytes(), &symbols, rows, &mut counts, &mut scratch)?;
        }
    }
    Ok(counts)
}

/// Buffers that are reused for each series to avoid allocations.
#[derive(Default)]
struct SeriesBuffers {
    refs: Vec<usize>,
    fingerprint_input: Vec<u8>,
}

/// Decodes `TimeSeries` of 2.0, with the fields 1 label refs, 2 samples, 3 histograms, 4 exemplars,
/// 5 metadata and 6 created timestamp.
fn series(
    message: &[u8],
    symbols: &[&[u8]],
    rows: &mut Rows<'_>,
    counts: &mut EntryCounts,
    scratch: &mut SeriesBuffers,
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
    let SeriesBuffers { refs, fingerprint_input } = scratch;
    // A few bytes of refs may refer to a long text.
    let length = |reference: &usize| symbols.get(*reference).map_or(1, |symbol| symbol.len()) + 4;
    let bytes = refs.iter().map(length).fold(0, usize::saturating_add);
    if bytes > rows.limits.series_bytes_max() {
        // Refuses the samples of the series.
        rows.fits(bytes, entries(message, [2, 3])?);
        return Ok(());
    }
    // Equal series have different refs in different requests, but equal texts.
    fingerprint_input.clear();
    for reference in &*refs {
        let symbol = symbols.get(*reference).copied().unwrap_or(b"\xff");
        fingerprint_input.extend_from_slice(&(symbol.len() as u32).to_le_bytes());
        fingerprint_input.extend_from_slice(symbol);
    }
    let metadata = metadata.unwrap_or_default();
    let declared = Type::from_code(metadata.type_code);
    fingerprint_input.push(declared.map_or(0, |declared| declared as u8 + 1));
    let describe = |of_histogram: Option<Kind>, limits: &SeriesLimits| {
        let labels = Labels::read_2(refs, symbols)?;
        let unit = symbols.get(metadata.unit_ref).and_then(|unit| std::str::from_utf8(unit).ok());
        let kind = match (of_histogram, declared) {
            (Some(kind), _) => (kind, true),
            (None, Some(declared)) => (declared.kind(labels.metric), declared != Type::ByName),
            (None, None) => (kind_of_name(labels.metric), false),
        };
        labels.described(kind, unit.unwrap_or_default(), limits)
    };
    let mut target = None;
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match field {
            2 => {
                let (at, value, start) = sample(value.bytes())?;
                let plain = || Fingerprint::new(PROTOCOL, fingerprint_input);
                let describe = |limits: &SeriesLimits| describe(None, limits);
                let target = if is_stale_marker(value) {
                    rows.ended_series(plain(), plain(), describe)
                } else {
                    *target.get_or_insert_with(|| rows.series(plain(), describe))
                };
                counts.samples += 1;
                rows.push(target, at, value, if start == 0 { created } else { start });
            }
            3 => {
                let sample = TimedHistogram::read(value.bytes())?;
                counts.histograms += u64::from(sample.histogram.is_ok());
                let start = if sample.start == 0 { created } else { sample.start };
                let plain = Fingerprint::new(PROTOCOL, fingerprint_input);
                sample.push(rows, plain, start, |kind, limits| describe(Some(kind), limits));
            }
            4 => counts.exemplars += 1,
            _ => {}
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, Default)]
struct Metadata {
    type_code: i64,
    unit_ref: usize,
}

impl Metadata {
    /// Decodes the fields 1 type and 4 unit ref; the help is ignored.
    fn read(message: &[u8]) -> Result<Self, WireFault> {
        let mut out = Self::default();
        let mut fields = Fields::of(message);
        while let Some((field, value)) = fields.next_field()? {
            match field {
                1 => out.type_code = value.int(),
                4 => out.unit_ref = value.int() as usize,
                _ => {}
            }
        }
        Ok(out)
    }
}

impl<'a> Labels<'a> {
    fn read_2(refs: &[usize], symbols: &[&'a [u8]]) -> Result<Self, String> {
        let mut out = Self { metric: "", tags: Vec::new() };
        if !refs.len().is_multiple_of(2) {
            return Err("the label refs are not pairs".to_owned());
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
