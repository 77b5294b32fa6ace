//! The fuzz target of segments, which reads arbitrary bytes as a tile's head and as a block.
//!
//! Must never know: checksums, which would reject changed bytes.

use std::ops::ControlFlow;

use super::{
    bits::PADDING,
    buffers::Buffers,
    histograms::{self, HISTOGRAM_SLOTS_MAX},
    tile::{LANES, SLOTS_MAX, TileHead},
    times::Times,
    values::{self, Columns},
};
use crate::model::Cell;

const WIDTH_MS: i64 = 60_000;

/// Reads bytes. The first two are the number of slots, the third is the number of samples per slot;
/// the remaining bytes are read as a block of cells, as one of histograms and as a head.
pub(crate) fn read(bytes: &[u8]) {
    let [low, high, n, rest @ ..] = bytes else { return };
    let slots = usize::from(u16::from_le_bytes([*low, *high])) % SLOTS_MAX + 1;
    let (mut padded, mut buffers) = (rest.to_vec(), Buffers::default());
    padded.resize(rest.len() + PADDING, 0);
    let cell = Cell { n: u32::from(*n), last_at: 40_000, ..Cell::single(0, 1.0) };
    let cells: Vec<_> = (0..slots as u16).map(|slot| (slot, cell)).collect();
    let times = Times::of(cells.iter().map(|(slot, cell)| (*slot, cell)));
    for wanted in [Columns::ALL, Columns::ENDS, Columns::SUM] {
        let limit = if wanted == Columns::SUM { slots / 2 } else { slots };
        if let Ok(found) = values::read(&padded, &times, WIDTH_MS, 0..limit, wanted, &mut buffers) {
            assert!(found.first.len() <= limit && found.sum.len() <= limit);
        }
    }
    read_histograms(&padded, slots, *n, &mut buffers);
    let span = (slots, WIDTH_MS);
    if let Ok(head) = TileHead::parse(&padded, rest.len(), 0, span, &mut buffers) {
        assert!(head.lanes().count() <= LANES);
        for lane in head.lanes() {
            assert!(head.block(lane).is_some() || !head.has(lane, 0..slots));
        }
    }
}

/// Reads padded bytes as a block of histograms.
fn read_histograms(padded: &[u8], slots: usize, n: u8, buffers: &mut Buffers) {
    let slots = slots.min(HISTOGRAM_SLOTS_MAX);
    let cell = Cell { n: u32::from(n), last_at: 40_000, ..Cell::single(0, 1.0) };
    let cells: Vec<_> = (0..slots as u16).map(|slot| (slot, cell)).collect();
    let times = Times::of(cells.iter().map(|(slot, cell)| (*slot, cell)));
    let mut visited = 0;
    let mut visit = |slot: usize, _| {
        visited += 1;
        assert!(slot < slots && visited <= slots);
        ControlFlow::Continue(())
    };
    let outcome = histograms::read(padded, &times, &(0..slots), buffers, &mut visit);
    assert!(!outcome.is_ok_and(|outcome| outcome.is_break()));
}
