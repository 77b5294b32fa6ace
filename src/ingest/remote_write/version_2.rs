//! Version 2.0, `io.prometheus.write.v2.Request`: labels as refs into the request's symbols, and a
//! type in each series.
//!
//! Must never know: version 1.0, types remembered from other requests.

use granary_exposition::{
    kind_of_name,
    wire::{Fields, Value, WireFault, packed_varints},
};

use super::{EntryCounts, Labels, entries, families::Type, histogram, sample};
use crate::{
    ingest::{rows::Rows, series_cache::Fingerprint},
    model::{Kind, SeriesLimits},
};

const PROTOCOL: u8 = 2;

/// The maximum number of symbols of a request.
const SYMBOLS_MAX: usize = 1 << 20;

/// Decodes `Request` of 2.0: symbols 4 and series 5. The specification asks senders to write fields
/// in order, symbols first; a separate pass reads requests in other orders.
pub(super) fn decode(body: &[u8], rows: &mut Rows<'_>) -> Result<EntryCounts, WireFault> {
    let mut symbols: Vec<&[u8]> = Vec::new();
    let mut request = Fields::of(body);
    while let Some((field, value)) = request.next_field()? {
        if field == 4 && symbols.len() < SYMBOLS_MAX {
            symbols.push(value.bytes());
        }
    }
    let mut contents = EntryCounts::default();
    let mut scratch = SeriesBuffers::default();
    let mut request = Fields::of(body);
    while let Some((field, value)) = request.next_field()? {
        if field == 5 && !rows.is_full() {
            series(value.bytes(), &symbols, rows, &mut contents, &mut scratch)?;
        }
    }
    Ok(contents)
}

/// Buffers that are reused for each series to avoid allocations.
#[derive(Default)]
struct SeriesBuffers {
    refs: Vec<usize>,
    written: Vec<u8>,
}

/// Decodes `TimeSeries` of 2.0: label refs 1, samples 2, histograms 3, exemplars 4, metadata 5,
/// created timestamp 6.
fn series(
    message: &[u8],
    symbols: &[&[u8]],
    rows: &mut Rows<'_>,
    contents: &mut EntryCounts,
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
    let SeriesBuffers { refs, written } = scratch;
    // A few bytes of refs may refer to a long text.
    let length = |reference: &usize| symbols.get(*reference).map_or(1, |symbol| symbol.len()) + 4;
    let bytes = refs.iter().map(length).fold(0, usize::saturating_add);
    if bytes > rows.limits.series_bytes_max() {
        rows.fits(bytes, entries(message, [2, 3])?);
        return Ok(());
    }
    // Equal series have different refs in different requests, but equal texts.
    written.clear();
    for reference in &*refs {
        let symbol = symbols.get(*reference).copied().unwrap_or(b"\xff");
        written.extend_from_slice(&(symbol.len() as u32).to_le_bytes());
        written.extend_from_slice(symbol);
    }
    let metadata = metadata.unwrap_or_default();
    let declared = Type::from_code(metadata.code);
    written.push(declared.map_or(0, |declared| declared as u8 + 1));
    let describe = |suffix: &str, limits: &SeriesLimits| {
        let labels = Labels::read_2(refs, symbols)?.renamed(suffix);
        let unit = symbols.get(metadata.unit).and_then(|unit| std::str::from_utf8(unit).ok());
        let kind = match declared {
            _ if !suffix.is_empty() => (Kind::Counter, true),
            Some(declared) => (declared.kind(labels.metric), declared != Type::ByName),
            None => (kind_of_name(labels.metric), false),
        };
        labels.described(kind, unit.unwrap_or_default(), limits)
    };
    let mut target = None;
    let mut fields = Fields::of(message);
    while let Some((field, value)) = fields.next_field()? {
        match field {
            2 => {
                let target = *target.get_or_insert_with(|| {
                    let fingerprint = Fingerprint::new(PROTOCOL, written);
                    rows.series(fingerprint, |limits| describe("", limits))
                });
                let (at, value, start) = sample(value.bytes())?;
                contents.samples += 1;
                rows.push(target, at, value, if start == 0 { created } else { start });
            }
            3 => {
                contents.histograms += 1;
                let fingerprint = |part| Fingerprint::new(PROTOCOL | part, written);
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
    /// Decodes type 1, help ref 3, unit ref 4.
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
