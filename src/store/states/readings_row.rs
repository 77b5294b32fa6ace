//! The remembered readings of 64 series of histograms, as one row.
//!
//! FORMAT.md describes the bytes. Must never know: the table of the rows.

use crate::{
    model::{Histogram, HistogramReading, HistogramReadings, counter::Reading},
    store::encoding::{
        lanes::SERIES_PER_ROW,
        varint::{put_varint, take_varint, unzigzag, zigzag},
    },
};

/// Appends the readings of the series in a lane.
pub(crate) fn put_readings(lane: usize, readings: &HistogramReadings, out: &mut Vec<u8>) {
    out.push(lane as u8);
    out.push(readings.in_order().len() as u8);
    for HistogramReading { reading, follows_forgotten, histogram } in readings.in_order() {
        put_varint(zigzag(reading.at), out);
        put_varint(zigzag(reading.age), out);
        out.push(u8::from(*follows_forgotten));
        histogram.encode(out);
    }
}

/// Reads a row; `None` when it is damaged.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<(usize, HistogramReadings)>> {
    let mut all = Vec::new();
    while let Some((lane, rest)) = bytes.split_first() {
        let (count, rest) = rest.split_first()?;
        bytes = rest;
        let readings = (0..*count).map(|_| take_reading(&mut bytes)).collect::<Option<_>>()?;
        let lane = Some(usize::from(*lane)).filter(|lane| *lane < SERIES_PER_ROW)?;
        all.push((lane, HistogramReadings::restore(readings)?));
    }
    Some(all)
}

fn take_reading(bytes: &mut &[u8]) -> Option<HistogramReading> {
    let at = unzigzag(take_varint(bytes)?);
    let age = unzigzag(take_varint(bytes)?);
    let (follows_forgotten, rest) = bytes.split_first()?;
    *bytes = rest;
    let histogram = Histogram::decode(bytes).ok()?;
    let reading = Reading { at, value: histogram.count, age };
    Some(HistogramReading { reading, follows_forgotten: *follows_forgotten != 0, histogram })
}
