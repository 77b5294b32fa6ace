//! Rows of the journal's `series` table: the series that one commit made known.
//!
//! FORMAT.md describes the bytes. Must never know: the table, and the ids of the series.

use crate::model::{Kind, SeriesInfo, SeriesKey};

/// The new series of one commit share a row: a commit may define thousands.
pub(crate) fn encode(series: &[SeriesInfo]) -> Vec<u8> {
    let mut row = Vec::with_capacity(series.len() * 96);
    for info in series {
        let bytes = encode_series(info);
        row.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        row.extend_from_slice(&bytes);
    }
    row
}

/// A series as it lies in a row.
#[derive(Debug)]
pub(crate) struct SeriesBytes<'a> {
    pub(crate) kind: Kind,
    pub(crate) unit: &'a str,
    pub(crate) sender: &'a str,
    /// The bytes of its key, which may be damaged.
    pub(crate) key: &'a [u8],
}

/// Takes a series from the front of a row; `None` when it is damaged.
pub(crate) fn take<'a>(row: &mut &'a [u8]) -> Option<SeriesBytes<'a>> {
    let (length, rest) = row.split_first_chunk::<4>()?;
    let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *row = rest;
    let (kind, bytes) = bytes.split_first()?;
    let (unit, bytes) = decode_text(bytes)?;
    let (sender, key) = decode_text(bytes)?;
    Some(SeriesBytes { kind: Kind::from_code(*kind)?, unit, sender, key })
}

/// The bytes of one series.
fn encode_series(info: &SeriesInfo) -> Vec<u8> {
    let mut row = vec![info.kind.code()];
    for text in [&*info.unit, &*info.sender] {
        row.extend_from_slice(&(text.len() as u16).to_le_bytes());
        row.extend_from_slice(text.as_bytes());
    }
    row.extend_from_slice(info.key.as_bytes());
    row
}

fn decode_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

/// All series of a row; `None` when it is damaged.
fn decode(mut row: &[u8]) -> Option<Vec<SeriesInfo>> {
    let mut series = Vec::new();
    while !row.is_empty() {
        let SeriesBytes { kind, unit, sender, key } = take(&mut row)?;
        let key = SeriesKey::from_bytes(key)?;
        series.push(SeriesInfo { key, kind, unit: unit.into(), sender: sender.into() });
    }
    Some(series)
}

/// For fuzzing: reads bytes as a row of series.
pub(crate) fn fuzz_rows(bytes: &[u8]) {
    if let Some(series) = decode(bytes) {
        assert_eq!(decode(&encode(&series)), Some(series));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::series;

    #[test]
    fn series_survive_the_disk_and_a_cut_row_is_damage() {
        let info = |metric: &str, tags: &[(&str, &str)], unit: &str| {
            let info = series(metric, tags, Kind::Counter);
            SeriesInfo { unit: unit.into(), sender: "a".into(), ..info }
        };
        let all = vec![info("cpu", &[("host", "a"), ("core", "0")], ""), info("mem", &[], "bytes")];
        let row = encode(&all);
        assert_eq!(decode(&row[..row.len() - 1]), None);
        assert_eq!(decode(&row), Some(all));
    }
}
