//! What the catalog remembers of each series between samples, by rows as they lie on disk.

use std::collections::BTreeSet;

use crate::model::{
    Kind, Observed, Reading, SeenTimes, SeriesId, SeriesState, TimeVerdict, UnixMillis,
    counter::{STRETCHES_MAX, Stretch},
};

/// Neighbouring series that make one row on disk.
pub(crate) const SERIES_PER_ROW: usize = 64;
const ENDED: u8 = 0x80;
const READING_BYTES: usize = 24;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SeriesStates {
    states: Vec<SeriesState>,
    /// Times accepted, up to the last series that needed them.
    seen: Vec<SeenTimes>,
    /// Rows that a checkpoint has to write.
    changed: BTreeSet<u32>,
    /// The row that was marked last.
    marked: Option<u32>,
}

/// The bytes of changed rows: number, states, times seen.
pub(crate) type ChangedRows = Vec<(u32, Vec<u8>, Vec<u8>)>;

impl SeriesStates {
    /// Makes room for a new series; ids count up.
    pub(crate) fn add(&mut self, kind: Kind) {
        self.states.push(SeriesState::new(kind));
    }

    /// The state of a series.
    pub(crate) fn get(&self, series: SeriesId) -> Option<&SeriesState> {
        self.states.get(series.0 as usize)
    }

    /// Time of the latest sample of all series; `None` when there never was one.
    pub(crate) fn latest(&self) -> Option<UnixMillis> {
        self.states.iter().filter(|state| !state.is_fresh()).map(|state| state.last_at).max()
    }

    /// Takes in one sample, see [`SeriesState::observe`].
    pub(crate) fn observe(
        &mut self,
        series: SeriesId,
        at: UnixMillis,
        value: f64,
        start: i64,
        slot_start: i64,
    ) -> Observed {
        self.mark(series);
        self.states[series.0 as usize].observe(at, value, start, slot_start)
    }

    /// Notes that the sender has no more samples of a series for now.
    pub(crate) fn end(&mut self, series: SeriesId, at: UnixMillis) {
        self.mark(series);
        self.states[series.0 as usize].end(at);
    }

    /// Judges and notes a time, see [`SeenTimes::note`].
    pub(crate) fn note_time(&mut self, series: SeriesId, at: i64, window_ms: i64) -> TimeVerdict {
        self.mark(series);
        let index = series.0 as usize;
        if index >= self.seen.len() {
            self.seen.resize(index + 1, SeenTimes::default());
        }
        self.seen[index].note(at, window_ms)
    }

    fn mark(&mut self, series: SeriesId) {
        let row = series.0 / SERIES_PER_ROW as u32;
        if self.marked != Some(row) {
            self.marked = Some(row);
            self.changed.insert(row);
        }
    }

    /// The rows that changed since the last call, as they are stored.
    pub(crate) fn take_changed(&mut self) -> ChangedRows {
        self.marked = None;
        let rows = std::mem::take(&mut self.changed).into_iter();
        rows.map(|row| {
            let from = row as usize * SERIES_PER_ROW;
            let to = from + SERIES_PER_ROW;
            let (mut states, mut seen) = (Vec::new(), Vec::new());
            let own = &self.states[from..to.min(self.states.len())];
            for state in own {
                encode_state(state, &mut states);
            }
            let times = self.seen.get(from.min(self.seen.len())..to.min(self.seen.len()));
            let times = times.unwrap_or_default();
            if times.iter().any(|times| !times.is_empty()) {
                for times in times {
                    times.to_bytes(&mut seen);
                }
            }
            (row, states, seen)
        })
        .collect()
    }

    /// Puts back a row of states; `None` when it is damaged.
    pub(crate) fn restore_states(&mut self, row: u32, mut bytes: &[u8]) -> Option<()> {
        let first = (row as usize).checked_mul(SERIES_PER_ROW)?;
        let mut index = first;
        while !bytes.is_empty() {
            // A row may be older than the series that came after it.
            *self.states.get_mut(index)? = decode_state(&mut bytes)?;
            index += 1;
        }
        (index - first <= SERIES_PER_ROW).then_some(())
    }

    /// Puts back a row of times seen; `None` when it is damaged.
    pub(crate) fn restore_seen(&mut self, row: u32, mut bytes: &[u8]) -> Option<()> {
        let first = (row as usize).checked_mul(SERIES_PER_ROW)?;
        let mut index = first;
        while !bytes.is_empty() {
            if index >= self.states.len() {
                return None;
            }
            if index >= self.seen.len() {
                self.seen.resize(index + 1, SeenTimes::default());
            }
            self.seen[index] = SeenTimes::from_bytes(&mut bytes)?;
            index += 1;
        }
        (index - first <= SERIES_PER_ROW).then_some(())
    }
}

fn encode_state(state: &SeriesState, out: &mut Vec<u8>) {
    out.push(state.kind.code() | if state.ended { ENDED } else { 0 });
    out.extend_from_slice(&state.last_at.0.to_le_bytes());
    if state.kind != Kind::Counter {
        return;
    }
    out.extend_from_slice(&state.step_ms.to_le_bytes());
    out.push(state.stretches().len() as u8);
    for Reading { at, value, start } in
        state.stretches().iter().flat_map(|stretch| [stretch.first, stretch.last])
    {
        out.extend_from_slice(&at.to_le_bytes());
        out.extend_from_slice(&value.to_le_bytes());
        out.extend_from_slice(&start.to_le_bytes());
    }
}

fn decode_state(bytes: &mut &[u8]) -> Option<SeriesState> {
    let (code, rest) = bytes.split_first()?;
    let (last_at, rest) = rest.split_first_chunk::<8>()?;
    *bytes = rest;
    let mut state = SeriesState::new(Kind::from_code(code & !ENDED)?);
    state.ended = code & ENDED != 0;
    state.last_at = UnixMillis(i64::from_le_bytes(*last_at));
    if state.kind != Kind::Counter {
        return Some(state);
    }
    let (step_ms, rest) = rest.split_first_chunk::<4>()?;
    let (count, rest) = rest.split_first()?;
    let count = usize::from(*count);
    let (stretches, rest) = rest.split_at_checked(count * 2 * READING_BYTES)?;
    *bytes = rest;
    state.step_ms = u32::from_le_bytes(*step_ms);
    let readings: Vec<_> =
        stretches.as_chunks::<READING_BYTES>().0.iter().map(decode_reading).collect();
    let pairs = readings.chunks_exact(2);
    let stretches: Vec<_> = pairs.map(|two| Stretch { first: two[0], last: two[1] }).collect();
    let in_order = readings.is_sorted_by(|one, next| one.at <= next.at);
    state.restore_stretches(&stretches);
    (count <= STRETCHES_MAX && in_order).then_some(state)
}

fn decode_reading(bytes: &[u8; READING_BYTES]) -> Reading {
    let word = |index: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
        word
    };
    Reading {
        at: i64::from_le_bytes(word(0)),
        value: f64::from_le_bytes(word(1)),
        start: i64::from_le_bytes(word(2)),
    }
}

/// For fuzzing: reads bytes as rows.
pub(super) fn fuzz_rows(bytes: &[u8]) {
    let mut states = SeriesStates::default();
    (0..SERIES_PER_ROW).for_each(|_| states.add(Kind::Counter));
    let restored = [states.restore_states(0, bytes), states.restore_seen(0, bytes)];
    if restored.iter().all(Option::is_none) {
        return;
    }
    states.observe(SeriesId(0), UnixMillis(5), 1.0, 0, 0);
    states.note_time(SeriesId(0), 5, 600_000);
    assert_eq!(states.take_changed().len(), 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_the_disk() {
        let mut states = SeriesStates::default();
        for index in 0..130 {
            states.add(Kind::ALL[index % 3]);
        }
        for index in [0_u32, 1, 64, 129] {
            for at in 0..7 {
                states.observe(SeriesId(index), UnixMillis(at), at as f64, 3, 0);
            }
        }
        states.end(SeriesId(64), UnixMillis(9));
        states.note_time(SeriesId(65), 5, 1000);
        let rows = states.take_changed();
        assert_eq!(rows.iter().map(|(row, ..)| *row).collect::<Vec<_>>(), [0, 1, 2]);
        let mut read = SeriesStates::default();
        for index in 0..130 {
            read.add(Kind::ALL[index % 3]);
        }
        for (row, own, seen) in &rows {
            assert_eq!(read.restore_states(*row, own), Some(()));
            assert_eq!(read.restore_seen(*row, seen), Some(()));
            assert_eq!(read.restore_states(*row, &own[..own.len() - 1]), None);
        }
        assert_eq!(read.states, states.states);
        assert_eq!(read.note_time(SeriesId(65), 5, 1000), TimeVerdict::Duplicate);
        assert_eq!(read.get(SeriesId(1)).unwrap().stretches().len(), 2);
        assert!(states.take_changed().is_empty());
    }
}
