//! The fuzz target of segments, which reads arbitrary bytes as a tile's head and as a block.
//!
//! Must never know: checksums, which would reject changed bytes.

use super::{
    bits::PADDING,
    buffers::Buffers,
    tile::{LANES, SLOTS_MAX, TileHead},
    times::Times,
    values::{self, Columns},
};
use crate::model::Cell;

const WIDTH_MS: i64 = 60_000;

/// Reads bytes. The first two are the number of slots, the third is the number of samples per slot;
/// the remaining bytes are read as a block and as a head.
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
        if let Ok(found) = values::read(&padded, &times, WIDTH_MS, limit, wanted, &mut buffers) {
            assert!(found.first.len() <= limit && found.sum.len() <= limit);
        }
    }
    let span = (slots, WIDTH_MS);
    if let Ok(head) = TileHead::parse(&padded, rest.len(), 0, span, &mut buffers) {
        assert!(head.lanes().count() <= LANES);
        for lane in head.lanes() {
            assert!(head.block(lane).is_some() || !head.has(lane, 0..slots));
        }
    }
}
