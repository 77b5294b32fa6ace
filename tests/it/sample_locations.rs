//! The reported location of a sample is correct in memory, in the head and in its document.

use granary::{
    model::{GranularityIndex, Kind, SeriesId, UnixMillis},
    query::{Budget, CellLocation, Selector, StoredDocumentAnswer, StoredDocumentRequest},
    store::Store,
};

use crate::setup::{self, HOUR, MINUTE, NOW};

/// 11:10, in a document of 1m that covers an hour.
const TIME: UnixMillis = UnixMillis(NOW.0 - 4_496_000 - MINUTE * 10);

fn stored_document_at(store: &Store, time: UnixMillis, granularity: &str) -> StoredDocumentAnswer {
    let request = StoredDocumentRequest {
        selector: Selector { metric: Some("m".into()), tags: Vec::new() },
        granularity: Some(granularity.into()),
        time,
    };
    granary::query::stored_document(store, &Budget::UNLIMITED, &request).unwrap()
}

/// Returns the reported location of the slot, and the sums in memory, in the head and in the
/// document.
fn location_and_sums(answer: &StoredDocumentAnswer) -> (CellLocation, [f64; 3]) {
    let sum = |cells: &[granary::query::StoredCell]| cells.iter().filter_map(|cell| cell.sum).sum();
    let slots = answer.document.iter().flat_map(|part| &part.slots);
    let sum_of_slot = |columns: &[granary::query::ShownPart]| {
        columns.iter().find(|part| part.name == "sum").and_then(|part| part.value).unwrap()
    };
    let in_document = slots.map(|slot| sum_of_slot(&slot.columns)).sum();
    (answer.state, [sum(&answer.memory), sum(&answer.head), in_document])
}

/// Returns the location and the sums of the document at a time.
fn location_at(store: &Store, at: UnixMillis, granularity: &str) -> (CellLocation, [f64; 3]) {
    location_and_sums(&stored_document_at(store, at, granularity))
}

#[test]
fn a_sample_moves_from_memory_through_the_head_into_its_document() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), TIME);
    let id = setup::define(&mut appender, &[setup::series("m", &[], Kind::Gauge)], TIME)[0];
    assert_eq!(location_at(&store, TIME, "1m"), (CellLocation::None, [0.0; 3]));
    assert_eq!(stored_document_at(&store, TIME, "1m").partition, None);
    setup::send(&mut appender, setup::samples(id, [(TIME.0, 5.0)]), TIME);
    assert_eq!(location_at(&store, TIME, "1m"), (CellLocation::Memory, [5.0, 0.0, 0.0]));
    assert_eq!(location_at(&store, TIME, "1d"), (CellLocation::Memory, [5.0, 0.0, 0.0]));
    store.checkpoint(TIME.plus(MINUTE)).unwrap();
    assert_eq!(location_at(&store, TIME, "1m"), (CellLocation::Head, [0.0, 5.0, 0.0]));
    // A late sample is in memory, while the first sample is in the head.
    setup::send(&mut appender, setup::samples(id, [(TIME.0 + 1000, 2.0)]), TIME.plus(MINUTE));
    assert_eq!(location_at(&store, TIME, "1m"), (CellLocation::Memory, [2.0, 5.0, 0.0]));
    assert_eq!(stored_document_at(&store, TIME, "1m").document, None);
    // When the hour is over, the checkpoint writes its document; the document of the day is not due
    // yet.
    let later = TIME.plus(2 * HOUR);
    let report = store.checkpoint(later).unwrap();
    assert_eq!(location_at(&store, TIME, "1m"), (CellLocation::Open, [0.0, 0.0, 7.0]));
    assert_eq!(location_at(&store, TIME, "1d"), (CellLocation::Head, [0.0, 7.0, 0.0]));
    // At least one cell moves into the head of each granularity, and one cell from the head to
    // the hour's document.
    assert!(report.cells >= 4 && report.documents >= 1, "{report:?}");
    // A late sample waits in memory until it is merged.
    setup::send(&mut appender, setup::samples(id, [(TIME.0 + 2000, 1.0)]), later);
    assert_eq!(location_at(&store, TIME, "1m"), (CellLocation::Memory, [1.0, 0.0, 7.0]));
    assert_eq!(location_at(&store, TIME.plus(MINUTE), "1m").0, CellLocation::Open);
    store.checkpoint(later.plus(MINUTE)).unwrap();
    assert_eq!(location_at(&store, TIME, "1m"), (CellLocation::Open, [0.0, 0.0, 8.0]));
    drop((store, appender));
    let (store, _appender) = setup::open(dir.path(), later);
    assert_eq!(location_at(&store, TIME, "1m"), (CellLocation::Open, [0.0, 0.0, 8.0]));
    // Shells have no cells.
    let ahead = later.plus(HOUR);
    store
        .preallocate(
            GranularityIndex::FINEST,
            store.granularities()[GranularityIndex::FINEST].document_start(ahead),
            &[id],
        )
        .unwrap();
    assert_eq!(location_at(&store, ahead, "1m"), (CellLocation::Shell, [0.0; 3]));
}

#[test]
fn a_document_is_shown_with_its_bytes_and_their_meaning() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), TIME);
    let info = setup::series("m", &[("host", "a")], Kind::Gauge);
    let id = setup::define(&mut appender, &[info], TIME)[0];
    assert_eq!(id, SeriesId(0));
    let batch = setup::samples(id, [(TIME.0, 5.0), (TIME.0 + 5 * MINUTE, f64::NAN)]);
    setup::send(&mut appender, batch, TIME.plus(5 * MINUTE));
    store.checkpoint(TIME.plus(2 * HOUR)).unwrap();
    let answer = stored_document_at(&store, TIME, "1m");
    let partition = answer.partition.unwrap();
    assert!(partition.start <= TIME.0 && TIME.0 < partition.end && partition.bytes > 0);
    assert_eq!(partition.dropped_at, partition.end + 48 * HOUR);
    let document = answer.document.unwrap();
    let digits: Vec<_> =
        document.bytes_hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let bytes: Vec<_> =
        digits.as_chunks().0.iter().map(|[high, low]| (high * 16 + low) as u8).collect();
    assert_eq!(bytes.len(), granary::store::DocumentLayout::new(60, MINUTE).length());
    assert_eq!((document.end - document.start, document.slots.len()), (HOUR, 60));
    let slot = document.slots.iter().find(|slot| slot.start == TIME.0).unwrap();
    assert_eq!((slot.n, slot.length), (1, 52));
    for part in &slot.columns {
        let number = &bytes[part.offset..part.offset + part.length];
        let value = match number.len() {
            4 => f64::from(u32::from_le_bytes(number.try_into().unwrap())),
            _ => f64::from_le_bytes(number.try_into().unwrap()),
        };
        assert_eq!(part.value, Some(value), "{}", part.name);
    }
    let with_nan = document.slots.iter().find(|slot| slot.start == TIME.0 + 5 * MINUTE).unwrap();
    assert!(with_nan.columns.iter().any(|part| part.name == "sum" && part.value.is_none()));
    assert_eq!((document.nested.num_samples, document.nested.values.all().len()), (2, 60));
    let names: Vec<_> = document.header.iter().map(|part| part.name).collect();
    assert_eq!(names, ["length", "v", "series", "start", "checksum"]);
}
