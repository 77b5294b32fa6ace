//! The packed readings of idle counters, in rows. An idle counter has had no sample for a long
//! time.
//!
//! The readings of a counter are needed again when its next sample arrives, or when its row is
//! stored. Until then, packing reduces their memory to a quarter. Must never know: after which time
//! a counter is idle.

use std::collections::BTreeMap;

use super::row;
use crate::{
    model::{Kind, SeriesState, UnixMillis},
    store::encoding::lanes::SERIES_PER_ROW,
};

/// The idle counters of all series.
#[derive(Debug, Default)]
pub(super) struct IdleCounters {
    rows: BTreeMap<u32, IdleRow>,
    series: usize,
    bytes: usize,
}

/// The idle counters of a row.
#[derive(Debug)]
struct IdleRow {
    /// A bit for each series.
    lanes: u64,
    /// The encoded states of these series; see [`row`].
    states: Box<[u8]>,
}

/// Bytes of a row without its states. The factor 3/2 allows for tree nodes that are two thirds
/// full.
const ROW_BYTES: usize = (size_of::<u32>() + size_of::<IdleRow>()) * 3 / 2;

impl IdleCounters {
    /// Returns the number of series.
    pub(super) fn series(&self) -> usize {
        self.series
    }

    /// Returns the approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Packs the counters without a sample since `before`: moves their readings out of the states
    /// of a row.
    pub(super) fn take(&mut self, row: u32, states: &mut [SeriesState], before: UnixMillis) {
        let is_idle = |state: &SeriesState| state.counter().is_some() && state.last_at < before;
        if !states.iter().any(is_idle) {
            return;
        }
        self.restore(row, states);
        let mut lanes = 0;
        let mut taken = Vec::new();
        for (lane, state) in states.iter_mut().enumerate().filter(|(_, state)| is_idle(state)) {
            lanes |= 1_u64 << lane;
            taken.push(state.take_counter());
        }
        let bytes = row::encode(&taken);
        if !is_lossless(&bytes, taken.len()) {
            tracing::error!(row, "states of idle series stay unpacked: packing would change them");
            put_back(lanes, taken, states);
            return;
        }
        self.series += taken.len();
        self.bytes += ROW_BYTES + bytes.len();
        self.rows.insert(row, IdleRow { lanes, states: bytes.into() });
    }

    /// Unpacks the counters of a row: moves their readings back into its states.
    pub(super) fn restore(&mut self, row: u32, states: &mut [SeriesState]) {
        if let Some(idle) = self.rows.remove(&row) {
            self.series -= idle.lanes.count_ones() as usize;
            self.bytes -= ROW_BYTES + idle.states.len();
            idle.put_into(states);
        }
    }

    /// Returns the states of a row including packed readings; `None` when none are packed.
    pub(super) fn whole(&self, row: u32, states: &[SeriesState]) -> Option<Vec<SeriesState>> {
        let idle = self.rows.get(&row)?;
        let mut states = states.to_vec();
        idle.put_into(&mut states);
        Some(states)
    }
}

impl IdleRow {
    fn put_into(&self, states: &mut [SeriesState]) {
        let Some(found) = decode(&self.states, self.lanes.count_ones() as usize) else {
            unreachable!("`take` verified that these bytes can be decoded");
        };
        put_back(self.lanes, found, states);
    }
}

fn put_back(lanes: u64, taken: Vec<SeriesState>, states: &mut [SeriesState]) {
    let lanes = (0..SERIES_PER_ROW).filter(|lane| lanes >> lane & 1 == 1);
    for (lane, state) in lanes.zip(taken) {
        if let Some(stored) = states.get_mut(lane) {
            stored.put_counter(state);
        }
    }
}

fn decode(bytes: &[u8], count: usize) -> Option<Vec<SeriesState>> {
    let mut states = vec![SeriesState::new(Kind::Counter); count];
    row::decode(bytes, &mut states)?;
    Some(states)
}

fn is_lossless(bytes: &[u8], count: usize) -> bool {
    decode(bytes, count).is_some_and(|states| row::encode(&states) == bytes)
}
