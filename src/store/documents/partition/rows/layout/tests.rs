//! Tests of the bytes of documents.

use super::*;
use crate::model::DOCUMENT_PAGE_BYTES;

const SERIES: SeriesId = SeriesId(7);
const START: UnixMillis = UnixMillis(1_763_712_000_000);

fn shell(layout: &DocumentLayout) -> Vec<u8> {
    let mut doc = Vec::new();
    layout.write_shell(SERIES, START, &mut doc);
    layout.write_checksum(&mut doc);
    doc
}

#[test]
fn a_shell_is_bson_with_the_documented_fields() {
    let layout = DocumentLayout::new(60, 60_000);
    let mut doc = shell(&layout);
    layout.write_cell(&mut doc, 59, &Cell::single(30_000, -0.5));
    assert_eq!(layout.check(&doc, SERIES, START), Err(DocumentFault::Checksum));
    layout.write_checksum(&mut doc);
    assert_eq!(layout.check(&doc, SERIES, START), Ok(()));
    let bson = bson::RawDocument::from_bytes(&doc).unwrap();
    assert_eq!(bson.get_i64("series").unwrap(), 7);
    assert_eq!(bson.get_datetime("start").unwrap().timestamp_millis(), START.0);
    assert_eq!(bson.get_i64("width").unwrap(), 60_000);
    assert_eq!(bson.get_i32("slots").unwrap(), 60);
    for (name, entry_bytes) in COLUMNS {
        assert_eq!(bson.get_binary(name).unwrap().bytes.len(), entry_bytes * 60, "{name}");
    }
    let sums = bson.get_binary("sum").unwrap().bytes;
    assert_eq!(sums[59 * 8..], (-0.5_f64).to_le_bytes());
    assert_eq!(bson.get_i32("v").unwrap(), 1);
    assert!(bson.get_i64("checksum").is_ok());
    assert_eq!(bson.iter().count(), 6 + COLUMNS.len());
}

#[test]
fn the_first_moment_adds_a_column() {
    let layout = DocumentLayout::new(60, 60_000);
    let mut doc = shell(&layout);
    layout.write_cell(&mut doc, 1, &Cell::single(7, 3.5));
    assert_eq!(doc.len(), layout.length());
    for (at, value) in (0..).zip([1.0, 2.0, 6.0]) {
        layout.merge_cell(&mut doc, 2, &Cell::single(at, value));
    }
    layout.write_checksum(&mut doc);
    assert_eq!(layout.check(&doc, SERIES, START), Ok(()));
    assert_eq!((layout.cell(&doc, 2).m2, layout.cell(&doc, 1).m2), (14.0, 0.0));
    assert_eq!(layout.cell(&doc, 1), Cell::single(7, 3.5));
    let bson = bson::RawDocument::from_bytes(&doc).unwrap();
    assert_eq!(bson.get_i32("v").unwrap(), 2);
    assert_eq!(bson.get_binary("m2").unwrap().bytes.len(), 8 * 60);
    let mut moments = Vec::new();
    layout.for_each_cell(&doc, 0..60, |_, cell| moments.push(cell.m2));
    assert_eq!(moments, [0.0, 14.0]);
    // A release of format 1 reads all other numbers.
    assert_eq!(DocumentLayout::slots_with_moments(&doc), Some(60));
    let plain = layout.without_moments(&doc).unwrap();
    assert_eq!((plain.len(), layout.check(&plain, SERIES, START)), (layout.length(), Ok(())));
    assert_eq!(layout.cell(&plain, 2), Cell { m2: 0.0, ..layout.cell(&doc, 2) });
    assert_eq!(layout.without_moments(&plain), None);
    assert_eq!(DocumentLayout::slots_with_moments(&plain), None);
    doc[100] ^= 1;
    assert_eq!(layout.without_moments(&doc), None, "a damaged document");
    doc[100] ^= 1;
    layout.write_cell(&mut doc, 2, &Cell::EMPTY);
    layout.write_checksum(&mut doc);
    assert_eq!((layout.cell(&doc, 2), layout.check(&doc, SERIES, START)), (Cell::EMPTY, Ok(())));
}

/// Returns a document whose middle slot has a cell with a moment.
fn with_moment(layout: &DocumentLayout) -> Vec<u8> {
    let mut doc = shell(layout);
    for (at, value) in (0..).zip([1.0, 2.0, 6.0]) {
        layout.merge_cell(&mut doc, layout.slots() / 2, &Cell::single(at, value));
    }
    layout.write_checksum(&mut doc);
    doc
}

#[test]
fn the_largest_documents_without_and_with_moments_fit_one_page() {
    // 4 bytes of page header, 8 of key, and 8 for the ends of key and value.
    let room = DOCUMENT_PAGE_BYTES - 20;
    let fits = |slots| {
        let layout = DocumentLayout::new(slots, 1000);
        (shell(&layout).len() <= room, with_moment(&layout).len() <= room)
    };
    assert_eq!(fits(DOCUMENT_SLOTS_MAX), (true, false));
    // FORMAT.md names the number of slots.
    assert_eq!((fits(64), fits(65)), ((true, true), (true, false)));
}

#[test]
fn cells_are_patched_in_place_and_zero_is_not_empty() {
    let layout = DocumentLayout::new(24, 3_600_000);
    let mut doc = shell(&layout);
    let before = doc.len();
    layout.merge_cell(&mut doc, 3, &Cell::single(5, 0.0));
    layout.merge_cell(&mut doc, 3, &Cell::single(9, 4.0));
    let cell = layout.cell(&doc, 3);
    assert_eq!((cell.n, cell.sum, cell.min, cell.last), (2, 4.0, 0.0, 4.0));
    assert!(layout.cell(&doc, 2).is_empty() && layout.cell(&doc, 4).is_empty());
    layout.write_cell(&mut doc, 23, &Cell::single(1, 7.0));
    let mut found = Vec::new();
    layout.for_each_cell(&doc, 0..24, |slot, cell| found.push((slot, cell)));
    assert_eq!(found, [(3, layout.cell(&doc, 3)), (23, layout.cell(&doc, 23))]);
    assert_eq!(doc.len(), before);
}

#[test]
fn every_flipped_bit_is_found() {
    let layout = DocumentLayout::new(28, 86_400_000);
    let mut plain = shell(&layout);
    layout.write_cell(&mut plain, 3, &Cell::single(5, 12_345.678));
    layout.write_checksum(&mut plain);
    for good in [plain, with_moment(&layout)] {
        assert_eq!(layout.check(&good, SERIES, START), Ok(()));
        for bit in 0..good.len() * 8 {
            let mut doc = good.clone();
            doc[bit / 8] ^= 1 << (bit % 8);
            assert!(layout.check(&doc, SERIES, START).is_err(), "bit {bit}");
        }
        assert!(layout.check(&good[1..], SERIES, START).is_err());
    }
}
