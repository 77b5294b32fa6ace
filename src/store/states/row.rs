//! The states of neighbouring series as bytes; FORMAT.md describes them.
//!
//! A property that is equal to that of the previous state takes one bit: the series of one host are
//! usually sampled at the same times, and their counters start with the host. Must never know:
//! where rows are stored.

use crate::{
    model::{
        Kind, SeriesState, UnixMillis,
        counter::{READINGS_MAX, RememberedReading, RememberedReadings},
    },
    store::encoding::varint::{put_varint, take_varint, unzigzag, zigzag},
};

/// The first byte of a row: the version of its layout.
const ROW: u8 = 1;

/// The bits of a state's first byte that contain the kind.
const KIND: u8 = 0x03;
/// Flag: the sender ended the series.
const ENDED: u8 = 0x04;
/// Flag: the latest sample has the same time as the latest sample of the previous state.
const SAME_LATEST: u8 = 0x08;
/// Flag: the state is of a counter with readings.
const READINGS: u8 = 0x10;
/// Flag: the readings have the same times as the previous readings in the row.
const SAME_TIMES: u8 = 0x20;
/// Flag: the ages of the readings follow from the previous ages.
const SAME_AGES: u8 = 0x40;
/// A flag without a meaning in this layout.
const UNKNOWN: u8 = 0x80;

/// The factors that convert decimal numbers to whole numbers.
const SCALES: [f64; 4] = [1.0, 100.0, 1000.0, 1e6];
/// The scale of numbers that are stored as doubles.
const NO_SCALE: u8 = SCALES.len() as u8;
/// The largest number up to which every whole number is a double.
const WHOLE_MAX: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;

/// The times of a counter's readings, and other properties that counters with the same times share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Times {
    at: [i64; READINGS_MAX],
    count: u8,
    base: u8,
    after_forgotten: u8,
    step_ms: u32,
}

/// The values of the previous states.
#[derive(Debug, Clone, Copy, Default)]
struct PreviousState {
    latest: i64,
    times: Times,
    /// The age of the previous counter's first reading.
    age: i64,
}

/// Encodes states as a row.
pub(super) fn encode(states: &[SeriesState]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + states.len() * 24);
    out.push(ROW);
    let mut before = PreviousState::default();
    for state in states {
        encode_state(state, &mut before, &mut out);
    }
    out
}

/// Restores the first of `states` from a row; `None` when the row is damaged, or contains more
/// states.
pub(super) fn decode(bytes: &[u8], states: &mut [SeriesState]) -> Option<()> {
    let mut rest = bytes.strip_prefix(&[ROW])?;
    let mut before = PreviousState::default();
    for state in states {
        if rest.is_empty() {
            break;
        }
        *state = decode_state(&mut rest, &mut before)?;
    }
    rest.is_empty().then_some(())
}

fn encode_state(state: &SeriesState, before: &mut PreviousState, out: &mut Vec<u8>) {
    let start = out.len();
    let (latest, ended_at) = (state.last_at.0, state.ended_at());
    let mut flags = state.kind.code();
    out.push(0);
    if latest == before.latest {
        flags |= SAME_LATEST;
    } else {
        put_difference(latest, before.latest, out);
        before.latest = latest;
    }
    if let Some(ended_at) = ended_at {
        flags |= ENDED;
        put_difference(ended_at.0, latest, out);
    }
    if let Some(counter) = state.counter() {
        flags |= READINGS | encode_readings(counter, before, out);
    }
    out[start] = flags;
}

/// Appends the readings. Returns the flags of the properties that equal those of the previous
/// readings.
fn encode_readings(
    counter: &RememberedReadings,
    before: &mut PreviousState,
    out: &mut Vec<u8>,
) -> u8 {
    let mut flags = 0;
    let mut times = Times { base: counter.base(), step_ms: counter.step_ms(), ..Times::default() };
    let (mut values, mut ages) = ([0.0; READINGS_MAX], [0; READINGS_MAX]);
    for (index, RememberedReading { reading, after_forgotten }) in counter.in_order().enumerate() {
        (times.at[index], values[index], ages[index]) = (reading.at, reading.value, reading.age);
        times.after_forgotten |= u8::from(after_forgotten) << index;
        times.count += 1;
    }
    let count = usize::from(times.count);
    let (values, ages) = (&values[..count], &ages[..count]);
    let mut expected = expected_age(before.age, times.at[0], before.times.at[0]);
    if times == before.times {
        flags |= SAME_TIMES;
    } else {
        times.encode(before.latest, out);
    }
    let mut differences = [0; READINGS_MAX];
    for (index, age) in ages.iter().enumerate() {
        differences[index] = age.wrapping_sub(expected);
        let next = times.at.get(index + 1).copied().unwrap_or_default();
        expected = expected_age(*age, next, times.at[index]);
    }
    if differences == [0; READINGS_MAX] {
        flags |= SAME_AGES;
    } else {
        for difference in &differences[..count] {
            put_varint(zigzag(*difference), out);
        }
    }
    encode_values(values, out);
    (before.times, before.age) = (times, ages.first().copied().unwrap_or_default());
    flags
}

fn decode_state(bytes: &mut &[u8], before: &mut PreviousState) -> Option<SeriesState> {
    let (flags, rest) = bytes.split_first()?;
    *bytes = rest;
    let has = |flag: u8| flags & flag != 0;
    if has(UNKNOWN) {
        return None;
    }
    let kind = Kind::from_code(flags & KIND)?;
    if !has(SAME_LATEST) {
        before.latest = take_difference(before.latest, bytes)?;
    }
    let latest = before.latest;
    let ended_at = if has(ENDED) { Some(take_difference(latest, bytes)?) } else { None };
    let counter = match (has(READINGS), kind) {
        (false, _) => None,
        (true, Kind::Counter) => Some(decode_readings(*flags, before, bytes)?),
        (true, _) => return None,
    };
    Some(SeriesState::restore(kind, UnixMillis(latest), ended_at.map(UnixMillis), counter))
}

fn decode_readings(
    flags: u8,
    before: &mut PreviousState,
    bytes: &mut &[u8],
) -> Option<RememberedReadings> {
    let before_at = before.times.at[0];
    if flags & SAME_TIMES == 0 {
        before.times = Times::decode(before.latest, bytes)?;
    }
    let times = &before.times;
    let count = usize::from(times.count);
    let mut readings = [RememberedReading::default(); READINGS_MAX];
    let mut expected = expected_age(before.age, times.at[0], before_at);
    for (index, remembered) in readings[..count].iter_mut().enumerate() {
        remembered.reading.at = times.at[index];
        remembered.after_forgotten = times.after_forgotten >> index & 1 == 1;
        let difference = if flags & SAME_AGES == 0 { unzigzag(take_varint(bytes)?) } else { 0 };
        remembered.reading.age = expected.wrapping_add(difference);
        let next = times.at.get(index + 1).copied().unwrap_or_default();
        expected = expected_age(remembered.reading.age, next, times.at[index]);
    }
    let readings = &mut readings[..count];
    decode_values(readings, bytes)?;
    before.age = readings.first()?.reading.age;
    RememberedReadings::restore(readings, times.step_ms, times.base)
}

/// Returns the age of a counter's reading at `at`, provided that the counter has not restarted
/// since the reading at `before`. The special values for an unknown age and for an age out of range
/// remain.
fn expected_age(age: i64, at: i64, before: i64) -> i64 {
    if age == 0 || age == i64::MAX { age } else { age.wrapping_add(at.wrapping_sub(before)) }
}

impl Times {
    fn encode(&self, latest: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.count, self.base, self.after_forgotten]);
        put_varint(u64::from(self.step_ms), out);
        put_numbers(latest, &self.at[..usize::from(self.count)], out);
    }

    fn decode(latest: i64, bytes: &mut &[u8]) -> Option<Self> {
        let ([count, base, after_forgotten], rest) = bytes.split_first_chunk::<3>()?;
        *bytes = rest;
        let step_ms = u32::try_from(take_varint(bytes)?).ok()?;
        let mut at = [0; READINGS_MAX];
        take_numbers(latest, at.get_mut(..usize::from(*count))?, bytes)?;
        Some(Self { at, count: *count, base: *base, after_forgotten: *after_forgotten, step_ms })
    }
}

/// Appends values as whole numbers, if a scale converts them without loss; otherwise as doubles,
/// each XOR-ed with the previous one.
fn encode_values(values: &[f64], out: &mut Vec<u8>) {
    let mut scaled = SCALES.iter().map(|scale| whole_numbers(values, *scale)).zip(0..);
    if let Some((numbers, scale)) = scaled.find_map(|(numbers, scale)| Some((numbers?, scale))) {
        out.push(scale);
        put_numbers(0, &numbers[..values.len()], out);
        return;
    }
    out.push(NO_SCALE);
    let mut before = 0;
    for bits in values.iter().map(|value| value.to_bits()) {
        put_varint(bits ^ before, out);
        before = bits;
    }
}

/// Returns the values as whole numbers; `None` when a value would not be restored bit for bit.
fn whole_numbers(values: &[f64], scale: f64) -> Option<[i64; READINGS_MAX]> {
    let mut numbers = [0; READINGS_MAX];
    for (number, value) in numbers.iter_mut().zip(values) {
        let scaled = (value * scale).round();
        *number = scaled as i64;
        let restored = *number as f64 / scale;
        if scaled.abs() > WHOLE_MAX || restored.to_bits() != value.to_bits() {
            return None;
        }
    }
    Some(numbers)
}

fn decode_values(readings: &mut [RememberedReading], bytes: &mut &[u8]) -> Option<()> {
    let (scale, rest) = bytes.split_first()?;
    *bytes = rest;
    if *scale == NO_SCALE {
        let mut bits = 0;
        for remembered in readings {
            bits ^= take_varint(bytes)?;
            remembered.reading.value = f64::from_bits(bits);
        }
        return Some(());
    }
    let scale = SCALES.get(usize::from(*scale))?;
    let mut numbers = [0; READINGS_MAX];
    take_numbers(0, numbers.get_mut(..readings.len())?, bytes)?;
    for (remembered, number) in readings.iter_mut().zip(numbers) {
        remembered.reading.value = number as f64 / scale;
    }
    Some(())
}

/// Appends the first number as its difference from `from`, the second as its difference from the
/// first, and all others as changes of the difference.
fn put_numbers(from: i64, numbers: &[i64], out: &mut Vec<u8>) {
    let (mut before, mut step) = (from, 0_i64);
    for (index, number) in numbers.iter().enumerate() {
        let next = number.wrapping_sub(before);
        put_varint(zigzag(next.wrapping_sub(step)), out);
        // The first difference predicts nothing.
        step = if index == 0 { 0 } else { next };
        before = *number;
    }
}

/// Reads the numbers of a slice.
fn take_numbers(from: i64, numbers: &mut [i64], bytes: &mut &[u8]) -> Option<()> {
    let (mut before, mut step) = (from, 0_i64);
    for (index, number) in numbers.iter_mut().enumerate() {
        let next = unzigzag(take_varint(bytes)?).wrapping_add(step);
        *number = before.wrapping_add(next);
        step = if index == 0 { 0 } else { next };
        before = *number;
    }
    Some(())
}

fn put_difference(number: i64, from: i64, out: &mut Vec<u8>) {
    put_varint(zigzag(number.wrapping_sub(from)), out);
}

fn take_difference(from: i64, bytes: &mut &[u8]) -> Option<i64> {
    Some(from.wrapping_add(unzigzag(take_varint(bytes)?)))
}

#[cfg(test)]
mod tests;
