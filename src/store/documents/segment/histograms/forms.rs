//! The forms of the histograms of a chunk: schema, zero bucket and custom bounds, with the indexes
//! of all buckets.
//!
//! Must never know: counts.

use std::sync::Arc;

use super::{
    super::cursor::{Cursor, Misfit, put_varint, put_zigzag},
    NUMBERS_MAX,
};
use crate::model::{
    Histogram, HistogramCell,
    histogram::{BUCKETS_MAX, CUSTOM_BOUNDS, SCHEMA_MAX, SCHEMA_MIN, ZERO_THRESHOLD},
};

/// The flag of a threshold other than 2^-128.
const THRESHOLD: u8 = 1;
/// The columns of a form besides its buckets: sum, zero bucket, count.
pub(super) const OTHER_COLUMNS: usize = 3;

/// The form of some histograms.
#[derive(Debug, Clone)]
pub(super) struct Form {
    schema: i8,
    zero_threshold: f64,
    custom_bounds: Arc<[f64]>,
    /// The ascending indexes of the positive and of the negative buckets of all histograms.
    pub(super) sides: [Vec<i32>; 2],
}

impl Form {
    fn is_of(&self, histogram: &Histogram) -> bool {
        let bounds = self.custom_bounds.iter().map(|bound| bound.to_bits());
        self.schema == histogram.schema
            && self.zero_threshold.to_bits() == histogram.zero_threshold.to_bits()
            && (Arc::ptr_eq(&self.custom_bounds, &histogram.custom_bounds)
                || bounds.eq(histogram.custom_bounds.iter().map(|bound| bound.to_bits())))
    }

    fn new(histogram: &Histogram) -> Self {
        Self {
            schema: histogram.schema,
            zero_threshold: histogram.zero_threshold,
            custom_bounds: Arc::clone(&histogram.custom_bounds),
            sides: Default::default(),
        }
    }

    /// Returns the number of buckets.
    pub(super) fn buckets(&self) -> usize {
        self.sides.iter().map(Vec::len).sum()
    }

    /// Returns a histogram without observations.
    pub(super) fn emptied(&self) -> Histogram {
        Histogram {
            zero_threshold: self.zero_threshold,
            custom_bounds: Arc::clone(&self.custom_bounds),
            ..Histogram::empty(self.schema)
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let has_threshold = self.zero_threshold.to_bits() != ZERO_THRESHOLD.to_bits();
        out.push(u8::from(has_threshold) * THRESHOLD);
        out.push(self.schema.cast_unsigned());
        if self.schema == CUSTOM_BOUNDS {
            put_varint(self.custom_bounds.len() as u64, out);
            out.extend(self.custom_bounds.iter().flat_map(|bound| bound.to_le_bytes()));
        }
        if has_threshold {
            out.extend(self.zero_threshold.to_le_bytes());
        }
        for side in &self.sides {
            put_varint(side.len() as u64, out);
            let mut next = 0_i64;
            for index in side {
                put_zigzag(i64::from(*index) - next, out);
                next = i64::from(*index) + 1;
            }
        }
    }

    fn read(from: &mut Cursor<'_>, columns_max: usize) -> Result<Self, Misfit> {
        let (flags, schema) = (from.byte()?, from.byte()?.cast_signed());
        if !(SCHEMA_MIN..=SCHEMA_MAX).contains(&schema) && schema != CUSTOM_BOUNDS {
            return Err(from.misfit());
        }
        let mut custom_bounds = Arc::default();
        if schema == CUSTOM_BOUNDS {
            let count = from.varint()?;
            if count > BUCKETS_MAX as u64 + 1 {
                return Err(from.misfit());
            }
            let bytes = from.take(count as usize * 8)?.as_chunks::<8>().0;
            custom_bounds =
                bytes[..count as usize].iter().map(|b| f64::from_le_bytes(*b)).collect();
        }
        let zero_threshold =
            if flags & THRESHOLD == 0 { ZERO_THRESHOLD } else { f64::from_bits(from.word()?) };
        let mut sides = [const { Vec::new() }; 2];
        let mut room = columns_max as u64;
        for side in &mut sides {
            let count = from.varint()?;
            room = room.checked_sub(count).ok_or_else(|| from.misfit())?;
            let mut next = 0_i64;
            for at in 0..count {
                let gap = from.zigzag()?;
                let index = next.checked_add(gap).and_then(|index| i32::try_from(index).ok());
                let index = index.filter(|_| at == 0 || gap >= 0).ok_or_else(|| from.misfit())?;
                side.push(index);
                next = i64::from(index) + 1;
            }
        }
        Ok(Self { schema, zero_threshold, custom_bounds, sides })
    }
}

/// The forms of a chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct Forms(Vec<Form>);

impl Forms {
    pub(super) fn all(&self) -> &[Form] {
        &self.0
    }

    /// Returns the number of columns of all forms.
    pub(super) fn columns(&self) -> usize {
        self.0.iter().map(|form| form.buckets() + OTHER_COLUMNS).sum()
    }

    /// Returns the position of a histogram's form, after the form and the buckets were added.
    fn add(&mut self, histogram: &Histogram) -> u32 {
        let known = self.0.iter().position(|form| form.is_of(histogram));
        let position = known.unwrap_or_else(|| {
            self.0.push(Form::new(histogram));
            self.0.len() - 1
        });
        let form = &mut self.0[position];
        for (side, buckets) in form.sides.iter_mut().zip([&histogram.positive, &histogram.negative])
        {
            for bucket in buckets.iter().filter(|bucket| bucket.count != 0.0) {
                if let Err(at) = side.binary_search(&bucket.index) {
                    side.insert(at, bucket.index);
                }
            }
        }
        position as u32
    }

    /// Adds the forms of a cell's first and last histogram and of its total. Returns their
    /// positions, or `None` when a chunk of `count` cells would be too large: the forms then do not
    /// change.
    pub(super) fn add_cell(&mut self, cell: &HistogramCell, count: usize) -> Option<[u32; 3]> {
        let histograms = [&cell.first, &cell.last, &cell.total];
        let buckets = |histogram: &&Histogram| histogram.positive.len() + histogram.negative.len();
        let added: usize = histograms.iter().map(|of_cell| buckets(of_cell) + OTHER_COLUMNS).sum();
        let is_near = (self.columns() + added) * count > NUMBERS_MAX;
        let before = (is_near && count > 1).then(|| self.clone());
        let positions = if cell.n == 0 {
            [self.add(&cell.total); 3]
        } else {
            histograms.map(|histogram| self.add(histogram))
        };
        match before {
            Some(before) if self.columns() * count > NUMBERS_MAX => {
                *self = before;
                None
            }
            _ => Some(positions),
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_varint(self.0.len() as u64, out);
        self.0.iter().for_each(|form| form.put(out));
    }

    /// Reads the forms of a chunk with `count` cells.
    pub(super) fn read(from: &mut Cursor<'_>, count: usize) -> Result<Self, Misfit> {
        let (forms, mut all) = (from.varint()?, Self::default());
        if !(1..=count as u64 * 3).contains(&forms) {
            return Err(from.misfit());
        }
        let mut room = NUMBERS_MAX / count;
        for _ in 0..forms {
            room = room.checked_sub(OTHER_COLUMNS).ok_or_else(|| from.misfit())?;
            let form = Form::read(from, room)?;
            room -= form.buckets();
            all.0.push(form);
        }
        Ok(all)
    }
}
