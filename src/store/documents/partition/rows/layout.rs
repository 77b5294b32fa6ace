//! The open document: valid BSON of constant length, its cells at computed offsets.
//!
//! A header (series, start, width, slots) is followed by one binary column for each field of the
//! cells, and by a checksum. Entries of columns have a fixed length, so a cell can be written
//! without reading the other cells, and a document never grows. FORMAT.md describes the bytes.

mod form;
#[cfg(test)]
mod tests;

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::{
    model::{Cell, DOCUMENT_SLOTS_MAX, SeriesId, UnixMillis},
    store::documents::stored::StoredPart,
};
use form::{Form, SLOTS_AT, VERSION_AT, VERSIONS, element, get, put};

/// Columns in their order in a document, with the bytes of one entry.
const COLUMNS: [(&str, usize); 8] = [
    ("n", 4),
    ("first_at", 4),
    ("last_at", 4),
    ("sum", 8),
    ("min", 8),
    ("max", 8),
    ("first", 8),
    ("last", 8),
];

/// The column of second central moments.
const MOMENTS: &str = "m2";

/// The offsets in the documents of one granularity with a given number of slots.
///
/// A document without second moments has no column for them. The first moment that is written to it
/// adds the column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentLayout {
    slots: usize,
    series_at: usize,
    start_at: usize,
    columns: [usize; COLUMNS.len()],
    /// The offset of the element after the other columns: the moments, or the checksum.
    columns_end: usize,
    /// The offset of the column of moments.
    moments_at: usize,
    /// Documents without and with the column of moments.
    forms: [Form; 2],
}

/// A fault in the bytes of a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentFault {
    /// The number of bytes is not the length of a document.
    #[error("{found} bytes instead of {expected}")]
    Length {
        /// Bytes found.
        found: usize,
        /// Bytes of every document of this layout.
        expected: usize,
    },
    /// The constant parts differ.
    #[error("the header at byte {0} is damaged")]
    Header(usize),
    /// The document belongs to another series or start.
    #[error("it belongs to series {series}, start {start}")]
    Identity {
        /// The series that the document names.
        series: i64,
        /// The start that the document names.
        start: i64,
    },
    /// The checksum does not match the bytes.
    #[error("its checksum does not fit")]
    Checksum,
}

impl DocumentLayout {
    /// Returns the layout of documents with `slots` slots of `width_ms` milliseconds.
    ///
    /// # Panics
    /// When there are more than [`DOCUMENT_SLOTS_MAX`] slots, which the check of the settings
    /// prevents.
    pub fn new(slots: usize, width_ms: i64) -> Self {
        assert!(slots <= DOCUMENT_SLOTS_MAX, "validated by GranularitySet");
        let mut shell = vec![0; 4];
        element(&mut shell, 0x10, "v").extend_from_slice(&[0; 4]);
        let series_at = element(&mut shell, 0x12, "series").len();
        shell.extend_from_slice(&[0; 8]);
        let start_at = element(&mut shell, 0x09, "start").len();
        shell.extend_from_slice(&[0; 8]);
        element(&mut shell, 0x12, "width").extend_from_slice(&width_ms.to_le_bytes());
        element(&mut shell, 0x10, "slots").extend_from_slice(&(slots as i32).to_le_bytes());
        assert_eq!(shell.len(), SLOTS_AT + 4, "the header has a constant length");
        let mut columns = [0; COLUMNS.len()];
        for ((name, entry_bytes), column_at) in COLUMNS.into_iter().zip(&mut columns) {
            let bytes = entry_bytes * slots;
            element(&mut shell, 0x05, name).extend_from_slice(&(bytes as i32).to_le_bytes());
            shell.push(0); // generic binary
            *column_at = shell.len();
            shell.resize(shell.len() + bytes, 0);
        }
        let columns_end = shell.len();
        let mut variable = vec![(series_at, 8), (start_at, 8)];
        variable.extend(columns.iter().zip(COLUMNS).map(|(at, (_, bytes))| (*at, bytes * slots)));
        let plain = Form::new(shell.clone(), variable.clone(), VERSIONS[0]);
        let bytes = 8 * slots;
        element(&mut shell, 0x05, MOMENTS).extend_from_slice(&(bytes as i32).to_le_bytes());
        shell.push(0);
        let moments_at = shell.len();
        shell.resize(moments_at + bytes, 0);
        variable.push((moments_at, bytes));
        let forms = [plain, Form::new(shell, variable, VERSIONS[1])];
        Self { slots, series_at, start_at, columns, columns_end, moments_at, forms }
    }

    /// Returns the number of slots of these documents.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the length in bytes of each of these documents that has no second moments.
    pub fn length(&self) -> usize {
        self.forms[0].shell.len()
    }

    /// Returns the form of a document by its length.
    fn form(&self, doc: &[u8]) -> Option<&Form> {
        self.forms.iter().find(|form| form.shell.len() == doc.len())
    }

    /// Returns true when the length is that of a document.
    pub(crate) fn fits(&self, doc: &[u8]) -> bool {
        self.form(doc).is_some()
    }

    /// Returns true when a document has the column of moments.
    fn has_moments(&self, doc: &[u8]) -> bool {
        doc.len() == self.forms[1].shell.len()
    }

    /// Copies the content of a document into the other form; moments are only in the second one.
    fn converted(&self, doc: &[u8], form: &Form) -> Vec<u8> {
        let mut converted = form.shell.clone();
        let shared = VERSION_AT + 4..self.columns_end;
        converted[shared.clone()].copy_from_slice(&doc[shared]);
        converted
    }

    /// Returns the number of slots that the header of a document with moments states; `None` when
    /// the document has no moments, or is damaged.
    pub(crate) fn slots_with_moments(doc: &[u8]) -> Option<usize> {
        if doc.get(VERSION_AT..)?.first_chunk() != Some(&VERSIONS[1].to_le_bytes()) {
            return None;
        }
        let slots = i32::from_le_bytes(*doc.get(SLOTS_AT..)?.first_chunk()?);
        usize::try_from(slots).ok().filter(|slots| (1..=DOCUMENT_SLOTS_MAX).contains(slots))
    }

    /// Returns an intact document without its moments, as releases of format 1 read it; `None` when
    /// it is damaged or has no moments.
    pub(crate) fn without_moments(&self, doc: &[u8]) -> Option<Vec<u8>> {
        let form = self.form(doc).filter(|_| self.has_moments(doc))?;
        let stored = u64::from_le_bytes(get(doc, form.checksum_at));
        if form.damaged_at(doc).is_some() || xxh3_64(&doc[..form.checksum_at]) != stored {
            return None;
        }
        let mut plain = self.converted(doc, &self.forms[0]);
        self.write_checksum(&mut plain);
        Some(plain)
    }

    /// Replaces the content of `out` with an empty document, without its checksum.
    pub fn write_shell(&self, series: SeriesId, start: UnixMillis, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.forms[0].shell);
        put(out, self.series_at, i64::from(series.0).to_le_bytes());
        put(out, self.start_at, start.0.to_le_bytes());
    }

    /// Writes the checksum of all bytes before it.
    ///
    /// # Panics
    /// When the document is too short.
    pub fn write_checksum(&self, doc: &mut [u8]) {
        let checksum_at = self.form(doc).expect("a document of this layout").checksum_at;
        let checksum = xxh3_64(&doc[..checksum_at]);
        put(doc, checksum_at, checksum.to_le_bytes());
    }

    /// Checks that the bytes are an intact document of this layout, series and start.
    ///
    /// # Errors
    /// The difference.
    pub fn check(
        &self,
        doc: &[u8],
        series: SeriesId,
        start: UnixMillis,
    ) -> Result<(), DocumentFault> {
        let Some(form) = self.form(doc) else {
            return Err(DocumentFault::Length { found: doc.len(), expected: self.length() });
        };
        let found_series = i64::from_le_bytes(get(doc, self.series_at));
        let found_start = i64::from_le_bytes(get(doc, self.start_at));
        if found_series != i64::from(series.0) || found_start != start.0 {
            return Err(DocumentFault::Identity { series: found_series, start: found_start });
        }
        if let Some(at) = form.damaged_at(doc) {
            return Err(DocumentFault::Header(at));
        }
        let stored = u64::from_le_bytes(get(doc, form.checksum_at));
        let fits = xxh3_64(&doc[..form.checksum_at]) == stored;
        if fits { Ok(()) } else { Err(DocumentFault::Checksum) }
    }

    /// Returns the cell of a slot.
    pub fn cell(&self, doc: &[u8], slot: usize) -> Cell {
        debug_assert!(slot < self.slots && self.fits(doc));
        let [n, first_at, last_at, sum, min, max, first, last] = self.columns;
        let u32_at = |column: usize| u32::from_le_bytes(get(doc, column + slot * 4));
        let f64_at = |column: usize| f64::from_le_bytes(get(doc, column + slot * 8));
        if u32_at(n) == 0 {
            return Cell::EMPTY;
        }
        Cell {
            n: u32_at(n),
            first_at: u32_at(first_at),
            last_at: u32_at(last_at),
            sum: f64_at(sum),
            min: f64_at(min),
            max: f64_at(max),
            first: f64_at(first),
            last: f64_at(last),
            m2: if self.has_moments(doc) { f64_at(self.moments_at) } else { 0.0 },
        }
    }

    /// Returns the offsets and values of the numbers of a slot's cell.
    pub(crate) fn cell_parts(&self, doc: &[u8], slot: usize) -> Vec<StoredPart> {
        let moments = self.has_moments(doc).then_some(((MOMENTS, 8), self.moments_at));
        let columns = COLUMNS.into_iter().zip(self.columns).chain(moments);
        let part = |((name, length), column): ((&'static str, usize), usize)| {
            let offset = column + slot * length;
            let value = match length {
                4 => f64::from(u32::from_le_bytes(get(doc, offset))),
                _ => f64::from_le_bytes(get(doc, offset)),
            };
            StoredPart { name, offset, length, value: Some(value) }
        };
        columns.map(part).collect()
    }

    /// Returns the offsets and values of a document's header, and the offset of its checksum.
    pub(crate) fn header_parts(&self, doc: &[u8]) -> Vec<StoredPart> {
        let whole = |offset: usize| i64::from_le_bytes(get(doc, offset)) as f64;
        let mut parts = vec![
            StoredPart { name: "length", offset: 0, length: 4, value: Some(doc.len() as f64) },
            StoredPart {
                name: "v",
                offset: VERSION_AT,
                length: 4,
                value: Some(f64::from(i32::from_le_bytes(get(doc, VERSION_AT)))),
            },
        ];
        parts.extend([("series", self.series_at), ("start", self.start_at)].map(
            |(name, offset)| StoredPart { name, offset, length: 8, value: Some(whole(offset)) },
        ));
        if let Some(form) = self.form(doc) {
            let (name, offset) = ("checksum", form.checksum_at);
            parts.push(StoredPart { name, offset, length: 8, value: None });
        }
        parts
    }

    /// Returns true when no slot has samples.
    pub fn is_shell(&self, doc: &[u8]) -> bool {
        let [n, ..] = self.columns;
        doc[n..n + self.slots * 4].iter().all(|byte| *byte == 0)
    }

    /// Passes the cells with samples of a range of slots to `visit`.
    pub fn for_each_cell(
        &self,
        doc: &[u8],
        slots: Range<usize>,
        mut visit: impl FnMut(usize, Cell),
    ) {
        let [n, first_at, last_at, sum, min, max, first, last] = self.columns;
        let column_u32 = |at: usize| doc[at..at + self.slots * 4].as_chunks::<4>().0;
        let column_f64 = |at: usize| doc[at..at + self.slots * 8].as_chunks::<8>().0;
        let whole = [n, first_at, last_at].map(column_u32);
        let floats = [sum, min, max, first, last].map(column_f64);
        let moments = self.has_moments(doc).then(|| column_f64(self.moments_at));
        for slot in slots {
            let [n, first_at, last_at] = whole.map(|column| u32::from_le_bytes(column[slot]));
            if n > 0 {
                let [sum, min, max, first, last] =
                    floats.map(|column| f64::from_le_bytes(column[slot]));
                let m2 = moments.map_or(0.0, |column| f64::from_le_bytes(column[slot]));
                visit(slot, Cell { n, first_at, last_at, sum, min, max, first, last, m2 });
            }
        }
    }

    /// Replaces the cell of a slot. The checksum must then be written again.
    ///
    /// # Panics
    /// When the slot or the length does not fit this layout.
    pub fn write_cell(&self, doc: &mut Vec<u8>, slot: usize, cell: &Cell) {
        assert!(slot < self.slots && self.fits(doc), "slot {slot} of a document");
        if cell.m2 != 0.0 && !self.has_moments(doc) {
            *doc = self.converted(doc, &self.forms[1]);
        }
        if self.has_moments(doc) {
            put(doc, self.moments_at + slot * 8, cell.m2.to_le_bytes());
        }
        let [n, first_at, last_at, sum, min, max, first, last] = self.columns;
        for (column, value) in [(n, cell.n), (first_at, cell.first_at), (last_at, cell.last_at)] {
            put(doc, column + slot * 4, value.to_le_bytes());
        }
        let floats = [
            (sum, cell.sum),
            (min, cell.min),
            (max, cell.max),
            (first, cell.first),
            (last, cell.last),
        ];
        for (column, value) in floats {
            put(doc, column + slot * 8, value.to_le_bytes());
        }
    }

    /// Merges a cell into the cell of a slot. The checksum must then be written again.
    pub fn merge_cell(&self, doc: &mut Vec<u8>, slot: usize, delta: &Cell) {
        let mut cell = self.cell(doc, slot);
        cell.merge(delta);
        self.write_cell(doc, slot, &cell);
    }
}
