//! The bytes of the cells that a shard answers with.
//!
//! Must never know: questions, where the shards are.

use std::sync::Arc;

use crate::{
    model::{Histogram, Kind},
    query::{
        Labels, QueryError,
        messages::damaged_answer,
        promql::value::{
            cells::TimedCell,
            histograms::TimedHistogram,
            range_vector::{CellMatrix, CellSeries},
        },
        wire::{count, number, put_count, put_text, take, take_slice, text},
    },
};

/// The bytes of a cell.
const CELL_BYTES: usize = 69;

/// Writes the cells of a shard and the warnings of reading them.
pub(super) fn encode(matrix: &CellMatrix, warnings: &[String], out: &mut Vec<u8>) {
    put_count(warnings.len(), out);
    for warning in warnings {
        put_text(warning, out);
    }
    out.extend(matrix.finest_ms.to_le_bytes());
    put_count(matrix.widths.len(), out);
    for (from, width) in &matrix.widths {
        out.extend(from.to_le_bytes());
        out.extend(width.to_le_bytes());
    }
    put_count(matrix.series.len(), out);
    for series in &matrix.series {
        series.labels.encode(out);
        let kinds = [series.kind, series.histogram_kind].map(Kind::code);
        out.extend([u8::from(series.drop_metric), kinds[0], kinds[1]]);
        out.extend(series.ended_at.to_le_bytes());
        for cells in [&series.cells, &series.counted] {
            put_count(cells.len(), out);
            for cell in cells {
                put_cell(cell, out);
            }
        }
        put_count(series.histograms.len(), out);
        for slot in &series.histograms {
            put_histogram(slot, out);
        }
    }
}

fn put_cell(cell: &TimedCell, out: &mut Vec<u8>) {
    let TimedCell { first_at, last_at, n, sum, min, max, first, last, m2, kind } = *cell;
    out.extend(first_at.to_le_bytes());
    out.extend(last_at.to_le_bytes());
    out.extend(n.to_le_bytes());
    for value in [sum, min, max, first, last, m2] {
        out.extend(value.to_bits().to_le_bytes());
    }
    out.push(kind.map_or(u8::MAX, Kind::code));
}

fn put_histogram(slot: &TimedHistogram, out: &mut Vec<u8>) {
    let TimedHistogram { first_at, last_at, n, total, first, last, kind } = slot;
    out.extend(first_at.to_le_bytes());
    out.extend(last_at.to_le_bytes());
    out.extend(n.to_le_bytes());
    for histogram in [total, first, last] {
        histogram.encode(out);
    }
    out.push(kind.map_or(u8::MAX, Kind::code));
}

/// Reads the cells and warnings of a shard. `reserve` is called with the memory of the labels and
/// histograms of each series.
///
/// # Errors
/// When the bytes are not whole, or `reserve` fails.
pub(super) fn decode(
    mut bytes: &[u8],
    reserve: &mut dyn FnMut(usize) -> Result<(), QueryError>,
) -> Result<(CellMatrix, Vec<String>), QueryError> {
    let bytes = &mut bytes;
    let Head { warnings, finest_ms, widths, count } = head(bytes).ok_or_else(damaged_answer)?;
    let mut all = Vec::new();
    for _ in 0..count {
        let one = series(bytes).ok_or_else(damaged_answer)?;
        let histograms = one.histograms.iter().map(TimedHistogram::bytes).sum::<usize>();
        reserve(2 * size_of::<CellSeries>() + one.labels.bytes() + histograms)?;
        all.push(one);
    }
    Ok((CellMatrix { series: all, widths, finest_ms }, warnings))
}

/// The values before the series.
struct Head {
    warnings: Vec<String>,
    finest_ms: i64,
    widths: Vec<(i64, i64)>,
    /// The number of series.
    count: usize,
}

fn head(bytes: &mut &[u8]) -> Option<Head> {
    let mut warnings = Vec::new();
    for _ in 0..count(bytes)? {
        warnings.push(text(bytes)?.to_owned());
    }
    let finest_ms = number(bytes)?;
    let mut widths = Vec::new();
    for _ in 0..count(bytes)? {
        widths.push((number(bytes)?, number(bytes)?));
    }
    Some(Head { warnings, finest_ms, widths, count: count(bytes)? })
}

fn series(bytes: &mut &[u8]) -> Option<CellSeries> {
    let labels = Labels::decode(bytes)?;
    let [drop_metric, kind, histogram_kind] = take(bytes)?;
    let kind = *Kind::ALL.get(usize::from(kind))?;
    let histogram_kind = *Kind::ALL.get(usize::from(histogram_kind))?;
    let ended_at = number(bytes)?;
    let drop_metric = drop_metric == 1;
    let (cells, counted) = (cells(bytes)?, cells(bytes)?);
    let mut histograms = Vec::new();
    for _ in 0..count(bytes)? {
        histograms.push(histogram(bytes)?);
    }
    Some(CellSeries {
        labels,
        drop_metric,
        kind,
        ended_at,
        cells,
        histogram_kind,
        histograms,
        counted,
    })
}

fn cells(bytes: &mut &[u8]) -> Option<Vec<TimedCell>> {
    let count = count(bytes)?;
    let all = take_slice(bytes, count.checked_mul(CELL_BYTES)?)?;
    all.chunks_exact(CELL_BYTES).map(cell).collect()
}

fn cell(mut bytes: &[u8]) -> Option<TimedCell> {
    let bytes = &mut bytes;
    let (first_at, last_at) = (number(bytes)?, number(bytes)?);
    let n = u32::from_le_bytes(take(bytes)?);
    let mut value = || Some(f64::from_bits(u64::from_le_bytes(take(bytes)?)));
    let [sum, min, max] = [value()?, value()?, value()?];
    let [first, last, m2] = [value()?, value()?, value()?];
    let [kind] = take(bytes)?;
    let kind = Kind::ALL.get(usize::from(kind)).copied();
    Some(TimedCell { first_at, last_at, n, sum, min, max, first, last, m2, kind })
}

fn histogram(bytes: &mut &[u8]) -> Option<TimedHistogram> {
    let (first_at, last_at) = (number(bytes)?, number(bytes)?);
    let n = u32::from_le_bytes(take(bytes)?);
    let mut next = || Histogram::decode(bytes).ok().map(Arc::new);
    let (total, first, last) = (next()?, next()?, next()?);
    let [kind] = take(bytes)?;
    let kind = Kind::ALL.get(usize::from(kind)).copied();
    Some(TimedHistogram { first_at, last_at, n, total, first, last, kind })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn matrix(names: &[&str], value: f64) -> CellMatrix {
        let series = |name: &&str| CellSeries {
            labels: Labels::new(vec![("__name__".into(), (*name).into())]),
            drop_metric: false,
            kind: Kind::Counter,
            ended_at: i64::MAX,
            cells: vec![TimedCell { kind: Some(Kind::Delta), ..TimedCell::sample(5, value) }],
            histogram_kind: Kind::GaugeHistogram,
            histograms: vec![TimedHistogram::reading(7, Arc::new(Histogram::empty(3)))],
            counted: Vec::new(),
        };
        let series = names.iter().map(series).collect();
        CellMatrix { series, widths: vec![(0, 60_000)], finest_ms: 60_000 }
    }

    #[test]
    fn a_matrix_comes_back_as_it_was_and_no_prefix_is_one() {
        let stale = f64::from_bits(0x7ff0_0000_0000_0002);
        let mut bytes = Vec::new();
        encode(&matrix(&["a", "b"], stale), &["w".to_owned()], &mut bytes);
        let mut reserved = 0;
        let (decoded, warnings) = decode(&bytes, &mut |bytes| {
            reserved += bytes;
            Ok(())
        })
        .unwrap();
        assert!(reserved >= 2 * 3 * Histogram::empty(3).bytes(), "{reserved}");
        assert_eq!((warnings, decoded.widths), (vec!["w".to_owned()], vec![(0, 60_000)]));
        assert_eq!(decoded.series[1].labels.get("__name__"), "b");
        let cell = decoded.series[1].cells[0];
        assert_eq!((cell.last.to_bits(), cell.kind), (stale.to_bits(), Some(Kind::Delta)));
        let slot = &decoded.series[1].histograms[0];
        assert_eq!((slot.last_at, slot.last.schema), (7, 3));
        assert_eq!(decoded.series[1].histogram_kind, Kind::GaugeHistogram);
        let is_cut = |length: usize| decode(&bytes[..length], &mut |_| Ok(())).is_err();
        assert!((0..bytes.len()).all(is_cut));
        let refuse = &mut |_| Err(QueryError::Busy("no memory".to_owned()));
        assert!(decode(&bytes, refuse).is_err());
    }
}
