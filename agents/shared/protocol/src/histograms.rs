//! The native histograms of a batch: a column that contains, for each of them, the index of its
//! sample as a varint, and the compact bytes of the histogram (`bytes.rs` of granary-histogram).
//!
//! The indexes ascend. A stale histogram ends its series.

use granary_histogram::Histogram;

use crate::{Batch, DecodeError};

/// The maximum number of bytes of an index.
const INDEX_BYTES_MAX: usize = 5;

/// Adds the histogram of a sample. The indexes of the samples must ascend.
pub fn push_histogram(column: &mut Vec<u8>, index: u32, histogram: &Histogram) {
    let mut number = index;
    while number >= 0x80 {
        column.push(number as u8 | 0x80);
        number >>= 7;
    }
    column.push(number as u8);
    histogram.encode(column);
}

/// Returns the histograms of a column with the indexes of their samples, one at a time. The caller
/// checks the contents of each histogram. After a fault, the iteration ends.
pub fn read_histograms(
    column: &[u8],
    samples: usize,
) -> impl Iterator<Item = Result<(u32, Histogram), DecodeError>> {
    let (mut rest, mut next) = (column, 0_u64);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let position = column.len() - rest.len();
        let found = take_index(&mut rest)
            .filter(|index| u64::from(*index) >= next && (*index as usize) < samples)
            .ok_or("the index is not that of a later sample")
            .and_then(|index| {
                next = u64::from(index) + 1;
                let histogram = Histogram::decode(&mut rest);
                Ok((index, histogram.map_err(|_| "the bytes are no histogram")?))
            });
        Some(found.map_err(|problem| {
            rest = &[];
            DecodeError::new(format!("samples.histograms at byte {position}"), problem)
        }))
    })
}

fn take_index(rest: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u64;
    for shift in 0..INDEX_BYTES_MAX {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        number |= u64::from(byte & 0x7f) << (7 * shift);
        if *byte < 0x80 {
            return u32::try_from(number).ok();
        }
    }
    None
}

impl Batch {
    /// Removes the histograms, their samples and their definitions, for a daemon that stores only
    /// numbers. Returns the number of removed samples.
    ///
    /// # Errors
    /// The histograms cannot be decoded.
    pub fn remove_histograms(&mut self) -> Result<usize, DecodeError> {
        let samples = self.values.len();
        let mut is_number = vec![true; samples];
        for found in read_histograms(&self.histograms, samples) {
            let (index, _) = found?;
            if let Some(is_number) = is_number.get_mut(index as usize) {
                *is_number = false;
            }
        }
        retain(&mut self.refs, &is_number);
        retain(&mut self.times, &is_number);
        retain(&mut self.starts, &is_number);
        retain(&mut self.values, &is_number);
        self.histograms.clear();
        self.series.retain(|definition| !definition.kind.is_histogram());
        Ok(samples - self.values.len())
    }
}

/// Retains entries of a column that has one entry per sample.
fn retain<T>(column: &mut Vec<T>, is_kept: &[bool]) {
    if column.len() == is_kept.len() && is_kept.contains(&false) {
        let mut is_kept = is_kept.iter();
        column.retain(|_| is_kept.next().is_some_and(|is_kept| *is_kept));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sketch(values: &[f64]) -> Histogram {
        let mut histogram = Histogram::sketch();
        for value in values {
            histogram.observe(*value, 1.0);
        }
        histogram
    }

    fn read_all(column: &[u8], samples: usize) -> Result<Vec<(u32, Histogram)>, DecodeError> {
        read_histograms(column, samples).collect()
    }

    #[test]
    fn faults_are_located_and_end_the_column() {
        let mut column = Vec::new();
        push_histogram(&mut column, 2, &sketch(&[1.0]));
        let second = column.len();
        push_histogram(&mut column, 300, &Histogram::stale());
        assert!(read_all(&column, 301).is_ok());
        for (column, samples) in [(&column[..], 300), (&column[..column.len() - 1], 301)] {
            let found: Vec<_> = read_histograms(column, samples).collect();
            let fault = found[1].as_ref().unwrap_err();
            assert_eq!(fault.location, format!("samples.histograms at byte {second}"));
            assert_eq!(found.len(), 2);
        }
        push_histogram(&mut column, 300, &sketch(&[]));
        assert!(read_all(&column, 1000).is_err(), "an index is repeated");
    }

    proptest! {
        #[test]
        fn histograms_come_back(
            all in prop::collection::btree_map(
                0_u32..100_000,
                prop::collection::vec(-1e9_f64..1e9, 0..20),
                0..20,
            ),
        ) {
            let mut column = Vec::new();
            for (index, values) in &all {
                push_histogram(&mut column, *index, &sketch(values));
            }
            let expected: Vec<_> =
                all.iter().map(|(index, values)| (*index, sketch(values))).collect();
            prop_assert_eq!(read_all(&column, 100_000).unwrap(), expected);
        }

        #[test]
        fn any_bytes_are_histograms_or_a_fault(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let found: Vec<_> = read_histograms(&bytes, 1000).collect();
            prop_assert!(found.len() <= bytes.len());
        }
    }
}
