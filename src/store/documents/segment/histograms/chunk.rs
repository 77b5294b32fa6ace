//! A chunk: the histograms of consecutive cells of a series, column by column.
//!
//! Must never know: the slots and the number of samples of cells, which precede the blocks of a
//! tile.

use std::ops::Range;

use super::{
    super::{
        buffers::Buffers,
        cursor::{Cursor, Misfit},
        stream::{self, choose},
        times::Times,
    },
    HISTOGRAM_SLOTS_MAX,
    column::{Mode, Part, Values},
    forms::{Form, Forms},
};
use crate::{
    model::{Histogram, HistogramCell, ResetHint, histogram::Bucket},
    store::encoding::number::Scale,
};

/// The bits of the first byte that contain the mode; the power of the scale of counts follows.
const MODE_BITS: u8 = 2;

/// The cells of a chunk that is written.
struct Chunk<'a> {
    cells: &'a [(u16, HistogramCell)],
    forms: Forms,
    /// The number of samples of each cell, and the positions of its forms.
    shapes: Vec<(u32, [u32; 3])>,
}

/// Returns the histograms of a cell in the order of columns. A correction has only a total.
fn histograms(cell: &HistogramCell) -> [&Histogram; 3] {
    if cell.n == 0 { [&cell.total; 3] } else { [&cell.first, &cell.last, &cell.total] }
}

/// Appends a chunk of as many of the first cells as it can contain; returns their number.
pub(super) fn put(cells: &[(u16, HistogramCell)], out: &mut Vec<u8>) -> usize {
    let (mut forms, mut shapes) = (Forms::default(), Vec::new());
    for (_, cell) in cells.iter().take(HISTOGRAM_SLOTS_MAX) {
        let Some(positions) = forms.add_cell(cell, shapes.len() + 1) else { break };
        shapes.push((cell.n, positions));
    }
    let count = shapes.len();
    let chunk = Chunk { cells: &cells[..count], forms, shapes };
    let columns = chunk.columns();
    let mut shortest: Option<Vec<u8>> = None;
    for mode in Mode::ALL {
        let mut bytes = Vec::new();
        chunk.put(mode, &columns, &mut bytes);
        if shortest.as_ref().is_none_or(|shortest| bytes.len() < shortest.len()) {
            shortest = Some(bytes);
        }
    }
    out.extend(shortest.unwrap_or_default());
    count
}

impl Chunk<'_> {
    /// Returns the values of each form, column by column: sum, zero bucket, positive buckets,
    /// negative buckets, count.
    fn columns(&self) -> Vec<Vec<Vec<Values>>> {
        let zeros = || vec![[0.0; 3]; self.cells.len()];
        let of_form = |form: &Form| vec![zeros(); form.buckets() + super::forms::OTHER_COLUMNS];
        let mut all: Vec<Vec<Vec<Values>>> = self.forms.all().iter().map(of_form).collect();
        for (index, ((_, cell), (_, positions))) in self.cells.iter().zip(&self.shapes).enumerate()
        {
            for (role, (histogram, position)) in
                histograms(cell).into_iter().zip(positions).enumerate()
            {
                let (form, columns) =
                    (&self.forms.all()[*position as usize], &mut all[*position as usize]);
                let last = columns.len() - 1;
                columns[0][index][role] = histogram.sum;
                columns[1][index][role] = histogram.zero_count;
                columns[last][index][role] = histogram.count;
                let mut column = 2;
                for (side, buckets) in
                    form.sides.iter().zip([&histogram.positive, &histogram.negative])
                {
                    let mut known = side.iter().enumerate();
                    for bucket in buckets.iter().filter(|bucket| bucket.count != 0.0) {
                        if let Some((at, _)) = known.find(|(_, known)| **known == bucket.index) {
                            columns[column + at][index][role] = bucket.count;
                        }
                    }
                    column += side.len();
                }
            }
        }
        all
    }

    fn put(&self, mode: Mode, columns: &[Vec<Vec<Values>>], out: &mut Vec<u8>) {
        let sums = columns.iter().flat_map(|columns| columns[0].iter().flatten().copied());
        let counts =
            columns.iter().flat_map(|columns| columns[1..].iter().flatten().flatten().copied());
        let (sums, counts) = (Scale::of(sums), Scale::of(counts));
        out.extend([mode as u8 | counts.power() << MODE_BITS, counts.shift]);
        out.extend([sums.power(), sums.shift]);
        self.forms.put(out);
        self.put_shapes(out);
        for (form, columns) in (0..).zip(columns) {
            let part = |scale| Part { mode, scale, cells: &self.shapes, form };
            let (others, count) = columns.split_at(columns.len() - 1);
            for (index, column) in others.iter().enumerate() {
                part(if index == 0 { sums } else { counts }).put(column, out);
            }
            part(counts).put_near(&count[0], &totals(&others[1..], self.cells.len()), out);
        }
    }

    fn put_shapes(&self, out: &mut Vec<u8>) {
        let count = self.forms.all().len() as i64;
        let combined = |positions: &[u32; 3]| {
            positions.iter().fold(0, |all, position| all * count + i64::from(*position))
        };
        if count > 1 {
            let shapes: Vec<_> =
                self.shapes.iter().map(|(_, positions)| combined(positions)).collect();
            choose(&shapes).write(out);
        }
        let hints = |cell| histograms(cell).iter().fold(0, |all, of| all * 4 + of.hint as i64);
        let hints: Vec<_> = self.cells.iter().map(|(_, cell)| hints(cell)).collect();
        choose(&hints).write(out);
    }
}

/// Returns the sums of the columns, value by value.
fn totals(columns: &[Vec<Values>], count: usize) -> Vec<Values> {
    let mut totals = vec![[0.0; 3]; count];
    for column in columns {
        for (total, values) in totals.iter_mut().zip(column) {
            total.iter_mut().zip(values).for_each(|(total, value)| *total += value);
        }
    }
    totals
}

/// Reads the wanted cells of a chunk, which has the cells of a part of the times.
pub(super) fn read(
    mut from: Cursor<'_>,
    (times, part): (&Times, Range<usize>),
    is_wanted: impl Fn(u16) -> bool,
    buffers: &mut Buffers,
) -> Result<Vec<(u16, HistogramCell)>, Misfit> {
    let slots = &times.slots[part.clone()];
    let (how, shift) = (from.byte()?, from.byte()?);
    let mode =
        *Mode::ALL.get(usize::from(how & ((1 << MODE_BITS) - 1))).ok_or_else(|| from.misfit())?;
    let counts = Scale::from_bytes(how >> MODE_BITS, shift).ok_or_else(|| from.misfit())?;
    let sums = Scale::from_bytes(from.byte()?, from.byte()?).ok_or_else(|| from.misfit())?;
    let forms = Forms::read(&mut from, slots.len())?;
    let (positions, hints) = read_shapes(&mut from, slots.len(), &forms, buffers)?;
    let shapes: Vec<_> = times.n[part.clone()].iter().copied().zip(positions).collect();
    let mut found = vec![[const { None }; 3]; slots.len()];
    for (position, form) in (0..).zip(forms.all()) {
        let part = |scale| Part { mode, scale, cells: &shapes, form: position };
        let mut columns: Vec<Vec<Values>> = vec![Vec::new(); form.buckets() + 2];
        for (index, column) in columns.iter_mut().enumerate() {
            let scale = if index == 0 { sums } else { counts };
            part(scale).read(&mut from, buffers, column)?;
        }
        let mut count = totals(&columns[1..], slots.len());
        part(counts).read_near(&mut from, buffers, &mut count)?;
        for (index, (_, positions)) in shapes.iter().enumerate() {
            for (role, _) in positions.iter().enumerate().filter(|(_, of)| **of == position) {
                if is_wanted(slots[index]) {
                    let mut histogram = histogram(form, &columns, index, role);
                    histogram.count = count[index][role];
                    histogram.hint = hints[index][role];
                    found[index][role] = Some(histogram);
                }
            }
        }
    }
    if !from.is_done() {
        return Err(from.misfit());
    }
    let times = part.map(|at| (times.n[at], times.first_at[at], times.last_at[at]));
    let cells = slots.iter().zip(times).zip(found);
    Ok(cells.filter_map(|((slot, times), found)| Some((*slot, cell(times, found)?))).collect())
}

/// Returns a cell; `None` when it was not wanted.
fn cell(
    (n, first_at, last_at): (u32, u32, u32),
    own: [Option<Histogram>; 3],
) -> Option<HistogramCell> {
    let [first, last, total] = own;
    let (first, last, total) = (first?, last?, total?);
    if n == 0 {
        return Some(HistogramCell::correction(total));
    }
    Some(HistogramCell { n, first_at, last_at, total, first, last })
}

/// Reads the positions of the forms of each cell, and its hints.
#[expect(clippy::type_complexity, reason = "two columns of the same cells")]
fn read_shapes(
    from: &mut Cursor<'_>,
    cells: usize,
    forms: &Forms,
    buffers: &mut Buffers,
) -> Result<(Vec<[u32; 3]>, Vec<[ResetHint; 3]>), Misfit> {
    let (count, mut numbers) = (forms.all().len() as i64, buffers.whole.take());
    let mut positions = vec![[0; 3]; cells];
    if count > 1 {
        stream::read(from, cells, cells, buffers, &mut numbers)?;
        for (position, number) in positions.iter_mut().zip(&numbers) {
            if !(0..count.pow(3)).contains(number) {
                return Err(from.misfit());
            }
            let [total, last, first] = [1, count, count * count].map(|unit| number / unit % count);
            *position = [first, last, total].map(|form| form as u32);
        }
    }
    stream::read(from, cells, cells, buffers, &mut numbers)?;
    let hints = numbers.iter().map(|number| [4, 2, 0].map(|shift| hint(number >> shift))).collect();
    buffers.whole.give([numbers]);
    Ok((positions, hints))
}

fn hint(number: i64) -> ResetHint {
    match number & 3 {
        1 => ResetHint::Reset,
        2 => ResetHint::NotReset,
        3 => ResetHint::Gauge,
        _ => ResetHint::Unknown,
    }
}

/// Returns one of the histograms of a cell, without its count.
fn histogram(form: &Form, columns: &[Vec<Values>], cell: usize, role: usize) -> Histogram {
    let value = |column: usize| columns[column][cell][role];
    let mut histogram = Histogram { sum: value(0), zero_count: value(1), ..form.emptied() };
    let (positive, negative) = columns[2..].split_at(form.sides[0].len());
    for (side, (indexes, columns)) in [&mut histogram.positive, &mut histogram.negative]
        .into_iter()
        .zip(form.sides.iter().zip([positive, negative]))
    {
        let counts = columns.iter().map(|column| column[cell][role]);
        let filled = indexes.iter().zip(counts).filter(|(_, count)| *count != 0.0);
        side.reserve_exact(filled.clone().count());
        side.extend(filled.map(|(index, count)| Bucket { index: *index, count }));
    }
    histogram
}
