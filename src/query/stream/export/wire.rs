//! The bytes of a shard's part of an export: its series with their slots, then the numbers of the
//! part. The numbers mark the end: a part without them is damaged.
//!
//! Must never know: how parts are read or merged.

use super::part::{PartHead, SeriesPart};
use crate::{
    model::{
        Cell, Histogram, HistogramCell, HistogramSlot, Kind, SeriesInfo, SeriesKey, UnixMillis,
    },
    query::{
        Budget, QueryError,
        wire::{count, number, put_count, put_text, put_value, take, take_slice, text, value},
    },
    store::Slot,
};

/// The byte before a series.
const SERIES: u8 = 1;
/// The byte before the numbers of the part.
const END: u8 = 0;
/// The bytes of a slot.
const SLOT_BYTES: usize = 60;

/// Writes a series with its slots.
pub(super) fn put_series(part: &SeriesPart<'_>, out: &mut Vec<u8>) {
    let SeriesPart { info, slots, shells, histograms } = part;
    out.push(SERIES);
    put_count(info.key.as_bytes().len(), out);
    out.extend(info.key.as_bytes());
    out.push(info.kind.code());
    put_text(&info.unit, out);
    put_count(slots.len(), out);
    for Slot { start, cell } in *slots {
        out.extend(start.0.to_le_bytes());
        for number in [cell.n, cell.first_at, cell.last_at] {
            out.extend(number.to_le_bytes());
        }
        for number in [cell.sum, cell.min, cell.max, cell.first, cell.last] {
            put_value(number, out);
        }
    }
    put_count(shells.len(), out);
    for start in shells {
        out.extend(start.0.to_le_bytes());
    }
    let mut bytes = Vec::new();
    for HistogramSlot { start, cell } in histograms {
        bytes.extend(start.0.to_le_bytes());
        for number in [cell.n, cell.first_at, cell.last_at] {
            bytes.extend(number.to_le_bytes());
        }
        for histogram in [&cell.total, &cell.first, &cell.last] {
            histogram.encode(&mut bytes);
        }
    }
    put_count(bytes.len(), out);
    out.extend(bytes);
}

/// Writes the numbers of a part after its series.
pub(super) fn put_end(head: &[u8], out: &mut Vec<u8>) {
    out.push(END);
    out.extend(head);
}

/// A part whose slots are still bytes.
#[derive(Debug)]
pub(super) struct WholePart<'a> {
    pub(super) head: PartHead,
    /// The series in order of their keys.
    pub(super) series: Vec<SeriesBytes<'a>>,
}

/// A series whose slots are still bytes.
#[derive(Debug)]
pub(super) struct SeriesBytes<'a> {
    pub(super) info: SeriesInfo,
    slots: &'a [u8],
    shells: &'a [u8],
    histograms: &'a [u8],
}

impl<'a> WholePart<'a> {
    /// Reads a part, and reserves its memory; `None` when the bytes are damaged.
    pub(super) fn decode(mut bytes: &'a [u8], budget: &Budget) -> Result<Option<Self>, QueryError> {
        let mut series = Vec::new();
        loop {
            match take(&mut bytes) {
                Some([SERIES]) => {
                    let Some(one) = SeriesBytes::decode(&mut bytes) else { return Ok(None) };
                    let texts = one.info.key.as_bytes().len() + one.info.unit.len();
                    budget.reserve(2 * size_of::<SeriesBytes<'_>>() + texts)?;
                    series.push(one);
                }
                Some([END]) => {
                    let head = serde_json::from_slice(bytes).ok();
                    return Ok(head.map(|head| Self { head, series }));
                }
                Some(_) | None => return Ok(None),
            }
        }
    }
}

impl<'a> SeriesBytes<'a> {
    fn decode(bytes: &mut &'a [u8]) -> Option<Self> {
        let key_bytes = count(bytes)?;
        let key = SeriesKey::from_bytes(take_slice(bytes, key_bytes)?)?;
        let [kind] = take(bytes)?;
        let kind = *Kind::ALL.get(usize::from(kind))?;
        let info = SeriesInfo { key, kind, unit: text(bytes)?.into(), sender: "".into() };
        let slot_bytes = count(bytes)?.checked_mul(SLOT_BYTES)?;
        let slots = take_slice(bytes, slot_bytes)?;
        let shell_bytes = count(bytes)?.checked_mul(size_of::<i64>())?;
        let shells = take_slice(bytes, shell_bytes)?;
        let histogram_bytes = count(bytes)?;
        let histograms = take_slice(bytes, histogram_bytes)?;
        Some(Self { info, slots, shells, histograms })
    }

    /// Returns the number of slots.
    pub(super) fn slot_count(&self) -> usize {
        self.slots.len() / SLOT_BYTES
    }

    /// Appends the slots and the starts of preallocated documents; `None` when the bytes are
    /// damaged.
    pub(super) fn read(&self, slots: &mut Vec<Slot>, shells: &mut Vec<UnixMillis>) -> Option<()> {
        let mut bytes = self.slots;
        while !bytes.is_empty() {
            let start = UnixMillis(number(&mut bytes)?);
            let [n, first_at, last_at] = numbers(&mut bytes)?;
            let mut next = || value(&mut bytes);
            let [sum, min, max] = [next()?, next()?, next()?];
            let [first, last] = [next()?, next()?];
            let cell = Cell { n, first_at, last_at, sum, min, max, first, last, m2: 0.0 };
            slots.push(Slot { start, cell });
        }
        let mut bytes = self.shells;
        while !bytes.is_empty() {
            shells.push(UnixMillis(number(&mut bytes)?));
        }
        Some(())
    }

    /// Returns the slots of histograms, and reserves their memory; `None` when the bytes are
    /// damaged.
    pub(super) fn histograms(
        &self,
        budget: &Budget,
    ) -> Result<Option<Vec<HistogramSlot>>, QueryError> {
        let (mut bytes, mut all) = (self.histograms, Vec::new());
        while !bytes.is_empty() {
            let Some(slot) = histogram_slot(&mut bytes) else { return Ok(None) };
            budget.reserve(super::part::HISTOGRAM_FACTOR * slot.cell.bytes())?;
            all.push(slot);
        }
        Ok(Some(all))
    }
}

fn numbers(bytes: &mut &[u8]) -> Option<[u32; 3]> {
    let mut next = || take(bytes).map(u32::from_le_bytes);
    Some([next()?, next()?, next()?])
}

fn histogram_slot(bytes: &mut &[u8]) -> Option<HistogramSlot> {
    let start = UnixMillis(number(bytes)?);
    let [n, first_at, last_at] = numbers(bytes)?;
    let mut next = || Histogram::decode(bytes).ok();
    let (total, first, last) = (next()?, next()?, next()?);
    Some(HistogramSlot { start, cell: HistogramCell { n, first_at, last_at, total, first, last } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{query::written, setup};

    #[test]
    fn series_come_back_as_they_were_and_no_prefix_is_whole() {
        let info = setup::series("m", &[("host", "é")], Kind::Counter);
        let cell = Cell::reading(7, 3.0, 2.0, None);
        let slots = [Slot { start: UnixMillis(60_000), cell }];
        let cell = HistogramCell::single(9, Histogram::empty(3), Histogram::empty(2));
        let histograms = vec![HistogramSlot { start: UnixMillis(60_000), cell }];
        let shells = vec![UnixMillis(3_600_000)];
        let part = SeriesPart {
            info: &info,
            slots: &slots,
            shells: shells.clone(),
            histograms: histograms.clone(),
        };
        let head = PartHead { total: 3, resolution: "1m".to_owned(), ..PartHead::default() };
        let mut bytes = Vec::new();
        put_series(&part, &mut bytes);
        put_series(&part, &mut bytes);
        put_end(&written(&head).unwrap(), &mut bytes);
        let decode = |bytes| WholePart::decode(bytes, &Budget::UNLIMITED).unwrap();
        let whole = decode(&bytes).unwrap();
        assert_eq!((&whole.head, whole.series.len()), (&head, 2));
        for series in &whole.series {
            let (mut found, mut starts) = (Vec::new(), Vec::new());
            series.read(&mut found, &mut starts).unwrap();
            assert_eq!((&series.info, &found[..], &starts), (&info, &slots[..], &shells));
            assert_eq!(series.histograms(&Budget::UNLIMITED).unwrap().unwrap(), histograms);
        }
        assert!((0..bytes.len()).all(|length| decode(&bytes[..length]).is_none()));
    }
}
