//! Compact columns of a record: whole numbers as differences of their differences, which are mostly
//! zero, and doubles without the zero bytes at their ends. FORMAT.md describes the bytes.
//!
//! Every sample is encoded before it is durable, so speed matters more than size. Must never know:
//! the meaning of columns.

use crate::store::encoding::varint::{put_varint, take_varint, unzigzag, zigzag};

/// The maximum size of a pair of doubles in bytes: their lengths, then their bytes.
const PAIR_BYTES: usize = 1 + 2 * size_of::<f64>();

/// Appends whole numbers. The step of a number is its difference from the previous number. Each
/// number is stored as the difference between its step and the previous step; a run of equal steps
/// is stored as a zero and its length.
pub(super) fn put_numbers(numbers: impl Iterator<Item = i64>, out: &mut Vec<u8>) {
    let (mut last, mut step, mut steady) = (0_i64, 0_i64, 0_u64);
    for number in numbers {
        let next = number.wrapping_sub(last);
        if next == step {
            steady += 1;
        } else {
            put_steady(&mut steady, out);
            put_varint(zigzag(next.wrapping_sub(step)), out);
        }
        (last, step) = (number, next);
    }
    put_steady(&mut steady, out);
}

fn put_steady(count: &mut u64, out: &mut Vec<u8>) {
    if *count > 0 {
        out.push(0);
        put_varint(std::mem::take(count), out);
    }
}

/// Removes `count` whole numbers from the front; `None` when there are fewer, or `convert` refuses
/// a number.
pub(super) fn take_numbers<T>(
    bytes: &mut &[u8],
    count: usize,
    convert: impl Fn(i64) -> Option<T>,
) -> Option<Vec<T>> {
    let (mut last, mut step) = (0_i64, 0_i64);
    let mut numbers = Vec::with_capacity(count);
    while numbers.len() < count {
        let steady = match take_varint(bytes)? {
            0 => usize::try_from(take_varint(bytes)?).ok()?,
            change => {
                step = step.wrapping_add(unzigzag(change));
                1
            }
        };
        if steady == 0 || steady > count - numbers.len() {
            return None;
        }
        for _ in 0..steady {
            last = last.wrapping_add(step);
            numbers.push(convert(last)?);
        }
    }
    Some(numbers)
}

/// Returns the number of bytes of a double without the zero bytes at its end.
fn length_of(value: f64) -> usize {
    size_of::<f64>() - (value.to_bits().trailing_zeros() / u8::BITS) as usize
}

/// Appends doubles in pairs: four bits for the length of each, then their bytes.
pub(super) fn put_doubles(values: &[f64], out: &mut Vec<u8>) {
    for pair in values.chunks(2) {
        let (first, second) = (pair[0], pair.get(1).copied().unwrap_or(0.0));
        let (length, second_length) = (length_of(first), length_of(second));
        let mut bytes = [0; PAIR_BYTES];
        bytes[0] = (length | second_length << 4) as u8;
        bytes[1..9].copy_from_slice(&first.to_bits().to_be_bytes());
        bytes[1 + length..9 + length].copy_from_slice(&second.to_bits().to_be_bytes());
        // Appending a constant length and truncating is faster than a copy of variable length.
        out.extend_from_slice(&bytes);
        out.truncate(out.len() - (PAIR_BYTES - 1 - length - second_length));
    }
}

fn take_double(length: u8, bytes: &mut &[u8]) -> Option<f64> {
    let (packed, rest) = bytes.split_at_checked(usize::from(length))?;
    let mut bits = [0; size_of::<f64>()];
    bits.get_mut(..packed.len())?.copy_from_slice(packed);
    *bytes = rest;
    Some(f64::from_bits(u64::from_be_bytes(bits)))
}

/// Removes `count` doubles from the front; `None` when there are fewer.
pub(super) fn take_doubles(bytes: &mut &[u8], count: usize) -> Option<Vec<f64>> {
    // A pair takes at least one byte.
    if count.div_ceil(2) > bytes.len() {
        return None;
    }
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let (lengths, rest) = bytes.split_first()?;
        *bytes = rest;
        values.push(take_double(lengths & 0xf, bytes)?);
        if values.len() < count {
            values.push(take_double(lengths >> 4, bytes)?);
        } else if lengths >> 4 > 0 {
            return None;
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(all: &[i64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_numbers(all.iter().copied(), &mut bytes);
        bytes
    }

    fn doubles(all: &[f64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_doubles(all, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn columns_are_read_as_they_were_written_and_shortened_ones_are_refused(
            all in prop::collection::vec(prop_oneof![Just(7), 0..3_i64, any::<i64>()], 0..50),
            values in prop::collection::vec(prop_oneof![Just(0.0), Just(3.0), any::<u64>().prop_map(f64::from_bits)], 0..50),
        ) {
            let bytes = numbers(&all);
            let mut rest = &*bytes;
            prop_assert_eq!(take_numbers(&mut rest, all.len(), Some), Some(all));
            prop_assert!(rest.is_empty());
            let bytes = doubles(&values);
            let mut rest = &*bytes;
            let read = take_doubles(&mut rest, values.len()).unwrap();
            let bits = |all: &[f64]| all.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&read), bits(&values));
            prop_assert!(rest.is_empty());
            if !values.is_empty() {
                prop_assert_eq!(take_doubles(&mut &bytes[..bytes.len() - 1], values.len()), None);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..60), count in 0..200_usize
        ) {
            let read = take_numbers(&mut &*bytes, count, Some);
            prop_assert!(read.is_none_or(|read| read.len() == count));
            let read = take_doubles(&mut &*bytes, count);
            prop_assert!(read.is_none_or(|read| read.len() == count));
        }
    }

    #[test]
    fn equal_steps_and_zero_bytes_take_little_space() {
        assert_eq!(numbers(&(5..1005).collect::<Vec<_>>()), [10, 7, 0, 0xe6, 0x07]);
        assert_eq!(doubles(&[0.0, 0.0]), [0]);
        assert_eq!(doubles(&[1.0, 0.0, 250.0]), [2, 0x3f, 0xf0, 3, 0x40, 0x6f, 0x40]);
    }
}
