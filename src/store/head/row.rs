//! A row of the head: the cells of one slot of neighbouring series, as bytes.
//!
//! Properties that neighbours share are stored once: the times of their samples, the shapes of
//! their values, and the milliseconds between readings. A cell is read without decoding the values
//! of the cells before it. FORMAT.md describes the bytes. Must never know: where rows are stored.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    cell::{self, Shape},
    elapsed::Elapsed,
    moments::{Moments, MomentsWriter},
};
use crate::{
    model::Cell,
    store::encoding::{
        lanes::{RowCells, SERIES_PER_ROW},
        varint::{put_varint, take_varint},
    },
};

const WORD_BYTES: usize = 8;

/// The number of a cell's samples, and the times of the first and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Times {
    n: u32,
    first_at: u32,
    last_at: u32,
}

impl Times {
    fn of(cell: &Cell) -> Self {
        Self { n: cell.n, first_at: cell.first_at, last_at: cell.last_at }
    }

    fn put(self, out: &mut Vec<u8>) {
        put_varint(self.n.into(), out);
        put_varint(self.first_at.into(), out);
        put_varint(self.last_at.wrapping_sub(self.first_at).into(), out);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (n, first_at) = (take_u32(bytes)?, take_u32(bytes)?);
        let last_at = first_at.wrapping_add(take_u32(bytes)?);
        Some(Self { n, first_at, last_at })
    }
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    u32::try_from(take_varint(bytes)?).ok()
}

/// A stored row.
#[derive(Debug, Clone, Copy)]
pub struct HeadRow<'a> {
    /// The bit i is set when series i of the row has a cell.
    present: u64,
    /// The bit i is set when the times of the cell of series i differ from those of the previous
    /// cell.
    turns: u64,
    /// The times of the first cell, then of each cell with a bit in `turns`.
    times: &'a [u8],
    elapsed: [u32; Elapsed::COUNT_MAX],
    shapes: &'a [[u8; Shape::BYTES]],
    /// The position of each cell's shape; empty when there is one shape.
    positions: &'a [u8],
    values: &'a [u8],
}

impl<'a> HeadRow<'a> {
    /// Reads the row under a key; `None` when its checksum does not match.
    pub fn parse(bytes: &'a [u8], key: u64) -> Option<Self> {
        let (row, checksum) = bytes.split_last_chunk::<WORD_BYTES>()?;
        if *checksum != checksum_of(row, key) {
            return None;
        }
        Self::checked(bytes)
    }

    /// Reads a row whose checksum is already verified.
    pub fn checked(bytes: &'a [u8]) -> Option<Self> {
        let (mut rest, _) = bytes.split_last_chunk::<WORD_BYTES>()?;
        let rest = &mut rest;
        let (present, turns) = (take_word(rest)?, take_byte(rest)?);
        let count = present.count_ones() as usize;
        let turns = if turns > 0 { take_word(rest)? } else { 0 };
        if turns & !present != 0 {
            return None;
        }
        let times = *rest;
        for _ in 0..=turns.count_ones() {
            Times::take(rest)?;
        }
        let mut elapsed = [0; Elapsed::COUNT_MAX];
        let known = usize::from(take_byte(rest)?);
        for millis in elapsed.get_mut(..known)? {
            *millis = take_u32(rest)?;
        }
        elapsed[known..].fill(Elapsed::NONE);
        let shapes = usize::from(take_byte(rest)?);
        let (shapes, tail) = rest.split_at_checked(shapes * Shape::BYTES)?;
        let shapes = shapes.as_chunks().0;
        let (positions, values) =
            tail.split_at_checked(if shapes.len() > 1 { count } else { 0 })?;
        Some(Self { present, turns, times, elapsed, shapes, positions, values })
    }

    /// Passes the cells of the wanted lanes to `out`, ascending; `None` when a cell is unreadable.
    pub fn cells(&self, wanted: u64, mut out: impl FnMut(usize, Cell)) -> Option<()> {
        let mut lengths = [0; SERIES_PER_ROW];
        for (length, shape) in lengths.iter_mut().zip(self.shapes) {
            *length = Shape::from_bytes(*shape).length();
        }
        let length = |shape: &u8| lengths.get(usize::from(*shape)).copied().unwrap_or(0);
        let bytes_of = |cells: Range<usize>| match self.positions.get(cells.clone()) {
            Some(shapes) => shapes.iter().map(length).sum(),
            // All cells have the only shape.
            None => cells.len() * length(&0),
        };
        let mut times = self.times;
        let (mut current, mut turns) = (Times::take(&mut times)?, 0);
        let (mut position, mut from) = (0, 0);
        let mut moments = None;
        let mut left = wanted & self.present;
        while left != 0 {
            let lane = left.trailing_zeros();
            left &= left - 1;
            let before = (1_u64 << lane) - 1;
            let next = (self.present & before).count_ones() as usize;
            from += bytes_of(position..next);
            position = next;
            while turns < (self.turns & (before | 1 << lane)).count_ones() {
                current = Times::take(&mut times)?;
                turns += 1;
            }
            let shape = self.shape(position)?;
            let mut cell = self.decode(shape, self.values.get(from..)?, current)?;
            if cell.n > 2 && !shape.has_rates() {
                // The moments follow the values.
                let end = || from + bytes_of(position..self.present.count_ones() as usize);
                let moments = moments.get_or_insert_with(|| {
                    Moments::new(self.values.get(end()..).unwrap_or_default())
                });
                cell.m2 = moments.of(lane, cell.n, shape.scale())?;
            }
            out(lane as usize, cell);
        }
        Some(())
    }

    /// Merges the cells of the row into other cells; `None` when a cell is unreadable.
    pub fn merge_into(&self, out: &mut RowCells) -> Option<()> {
        self.cells(u64::MAX, |lane, cell| out[lane].merge(&cell))
    }

    fn shape(&self, position: usize) -> Option<Shape> {
        let index = if self.shapes.len() > 1 { *self.positions.get(position)? } else { 0 };
        Some(Shape::from_bytes(*self.shapes.get(usize::from(index))?))
    }

    fn decode(&self, shape: Shape, values: &[u8], times: Times) -> Option<Cell> {
        let Times { n, first_at, last_at } = times;
        let mut cell = Cell { n, first_at, last_at, ..Cell::EMPTY };
        cell::decode(shape, values, &self.elapsed, &mut cell)?;
        Some(cell)
    }
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*byte)
}

fn take_word(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk::<WORD_BYTES>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*word))
}

/// Returns the checksum at the end of a row under a key.
fn checksum_of(row: &[u8], key: u64) -> [u8; WORD_BYTES] {
    xxh3_64_with_seed(row, key).to_le_bytes()
}

/// Writes rows, one after the other.
#[derive(Debug, Default)]
pub struct HeadRowWriter {
    row: Vec<u8>,
    times: Vec<u8>,
    elapsed: Elapsed,
    shapes: Vec<Shape>,
    positions: Vec<u8>,
    values: Vec<u8>,
    moments: MomentsWriter,
}

impl HeadRowWriter {
    /// Writes cells as the row under a key; `None` when all cells are empty.
    pub fn write(&mut self, cells: &RowCells, key: u64) -> Option<&[u8]> {
        self.clear();
        let (mut present, mut turns) = (0_u64, 0_u64);
        let mut times = Times::default();
        for (lane, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let cell_times = Times::of(cell);
            if cell_times != times || present == 0 {
                cell_times.put(&mut self.times);
                turns |= u64::from(present != 0) << lane;
                times = cell_times;
            }
            present |= 1 << lane;
            let shape = cell::encode(cell, &mut self.elapsed, &mut self.values);
            if !shape.has_rates() {
                self.moments.add(lane, cell.m2, cell.n, shape.scale());
            }
            let position = self.shapes.iter().position(|known| *known == shape);
            let position = position.unwrap_or_else(|| {
                self.shapes.push(shape);
                self.shapes.len() - 1
            });
            self.positions.push(position as u8);
        }
        (present != 0).then(|| self.finish(present, turns, key))
    }

    fn clear(&mut self) {
        let Self { row, times, elapsed, shapes, positions, values, moments } = self;
        [row, times, positions, values].into_iter().for_each(Vec::clear);
        shapes.clear();
        elapsed.clear();
        moments.clear();
    }

    fn finish(&mut self, present: u64, turns: u64, key: u64) -> &[u8] {
        let row = &mut self.row;
        row.extend_from_slice(&present.to_le_bytes());
        row.push(u8::from(turns != 0));
        if turns != 0 {
            row.extend_from_slice(&turns.to_le_bytes());
        }
        row.extend_from_slice(&self.times);
        row.push(self.elapsed.millis().len() as u8);
        self.elapsed.millis().iter().for_each(|millis| put_varint((*millis).into(), row));
        row.push(self.shapes.len() as u8);
        self.shapes.iter().for_each(|shape| row.extend_from_slice(&shape.to_bytes()));
        if self.shapes.len() > 1 {
            row.extend_from_slice(&self.positions);
        }
        row.extend_from_slice(&self.values);
        self.moments.finish(row);
        let checksum = checksum_of(row, key);
        row.extend_from_slice(&checksum);
        row
    }
}
