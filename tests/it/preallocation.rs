//! Shells: a new period uses them, a second preallocation changes nothing, no answer changes, and
//! every view of documents shows shells on request.

use std::ops::Range;

use granary::{
    model::{GranularityIndex, Kind, SeriesId, SeriesInfo, UnixMillis},
    policy::preallocation::{live_since, pass_due},
    query::{
        AggregateRequest, Budget, CellLocation, DocumentsForm, DocumentsRequest, ExportRequest,
        NestedDocument, PreallocateRequest, QueryError, QueryLimits, Resolution, Selector,
        SeriesMerge, StoredDocumentRequest, aggregate, documents, export, preallocate,
        stored_document,
    },
    store::Store,
};
use serde_json::{Value, json};

use crate::setup::{HOUR, MINUTE, define, open, samples, send, series, slots};

/// 2026-11-21T12:50:00Z
const NOW: UnixMillis = UnixMillis(1_795_265_400_000);
/// The start and the end of the next hour.
const NEXT_HOUR: UnixMillis = UnixMillis(NOW.0 + HOUR / 6);
const NEXT_HOUR_END: UnixMillis = UnixMillis(NEXT_HOUR.0 + HOUR);
const FINEST: GranularityIndex = GranularityIndex::FINEST;
const LIMITS: QueryLimits = QueryLimits { lines_max: 100, series_max: 100, points_max: 100_000 };

fn definition(host: &str) -> SeriesInfo {
    series("m", &[("host", host)], Kind::Gauge)
}

fn selector() -> Selector {
    Selector { metric: Some("m".into()), tags: Vec::new() }
}

fn nested_documents(
    store: &Store,
    range: Range<UnixMillis>,
    now: UnixMillis,
    shells: bool,
) -> Value {
    let request = DocumentsRequest {
        selector: selector(),
        resolution: Resolution::Named("1m".into()),
        range,
        form: DocumentsForm::Nested,
        display: None,
        time_zone: None,
        points: None,
        merge: SeriesMerge::Nothing,
        shells,
    };
    let answer = documents(store, &Budget::UNLIMITED, &request, &LIMITS, now).unwrap();
    serde_json::to_value(answer).unwrap()["documents"].clone()
}

fn run_pipeline(store: &Store, command: &Value, now: UnixMillis) -> Result<Value, QueryError> {
    let request = AggregateRequest::read(&command.to_string(), now)?;
    let answer = aggregate(store, &Budget::UNLIMITED, &request, &LIMITS, now)?;
    Ok(serde_json::to_value(answer).unwrap())
}

fn export_page(store: &Store, range: Range<UnixMillis>, now: UnixMillis, shells: bool) -> Value {
    let (after, upto) = (None, None);
    let resolution = Resolution::Named("1m".into());
    let request = ExportRequest { selector: selector(), resolution, range, after, upto, shells };
    let page = export(store, &Budget::UNLIMITED, &request, &LIMITS, now).unwrap();
    serde_json::to_value(page).unwrap()["series"].clone()
}

/// Returns the state of a host's document, and the number of its samples.
fn stored_state(store: &Store, host: &str, time: UnixMillis) -> (CellLocation, Option<u64>) {
    let selector = Selector { metric: Some("m".into()), tags: vec![("host".into(), host.into())] };
    let request = StoredDocumentRequest { selector, granularity: Some("1m".into()), time };
    let answer = stored_document(store, &Budget::UNLIMITED, &request).unwrap();
    (answer.state, answer.document.map(|document| document.nested.num_samples))
}

#[test]
fn a_new_period_uses_its_shells_and_a_series_without_a_shell_needs_no_other_step() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    define(&mut appender, &["known", "quiet", "ended"].map(definition), NOW);
    send(&mut appender, samples(SeriesId(0), [(NOW.0, 1.0)]), NOW);
    send(&mut appender, samples(SeriesId(2), [(NOW.0, 1.0), (NOW.0 + 1, 0.0)]), NOW);
    store.checkpoint(NOW).unwrap();
    let minute = &store.granularities()[FINEST];

    // Series without a sample are not live.
    let live = store.live_series(live_since(minute, NOW));
    assert_eq!(live, [SeriesId(0), SeriesId(2)]);
    assert_eq!(pass_due(minute, NOW).unwrap().document, NEXT_HOUR);
    let counters = store.counters();
    assert_eq!(store.note_missed_shells(FINEST, NEXT_HOUR, &live).unwrap(), 2);
    assert_eq!(counters.shells_missed.get(), 2);
    assert_eq!(store.preallocate(FINEST, NEXT_HOUR, &live).unwrap(), 2);
    assert_eq!(store.preallocate(FINEST, NEXT_HOUR, &live).unwrap(), 0);
    assert_eq!(store.note_missed_shells(FINEST, NEXT_HOUR, &live).unwrap(), 0);
    assert_eq!((counters.shells_missed.get(), counters.shells_preallocated.get()), (2, 2));
    let range = NEXT_HOUR..NEXT_HOUR_END;
    assert_eq!(slots(&store, 0, range.clone(), SeriesId(0)), []);

    let later = NEXT_HOUR.plus(HOUR / 12);
    define(&mut appender, &[definition("new")], later);
    for series in [0, 3] {
        send(&mut appender, samples(SeriesId(series), [(later.0, 1.0)]), later);
    }
    // When the hour is over, checkpoints write the documents as they do without shells.
    store.checkpoint(NEXT_HOUR_END.plus(5 * MINUTE)).unwrap();
    assert_eq!(counters.documents_patched.get(), 0);
    for series in [0, 3] {
        let slots = slots(&store, 0, range.clone(), SeriesId(series));
        assert_eq!(slots.len(), 1, "series {series}");
        assert_eq!(slots[0].start, later);
    }
    assert_eq!(stored_state(&store, "known", NEXT_HOUR), (CellLocation::Open, Some(1)));
    assert_eq!(stored_state(&store, "ended", NEXT_HOUR), (CellLocation::Shell, Some(0)));
    assert_eq!(stored_state(&store, "quiet", NEXT_HOUR), (CellLocation::None, None));
}

#[test]
fn shells_are_shown_on_request_before_and_after_their_period_and_change_no_other_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    define(&mut appender, &["a", "b"].map(definition), NOW);
    for series in [0, 1] {
        send(&mut appender, samples(SeriesId(series), [(NOW.0, 1.0)]), NOW);
    }
    let range = NEXT_HOUR.minus(HOUR)..NEXT_HOUR_END;
    let find = |shells: bool| {
        let (start, end) = (range.start.to_string(), range.end.to_string());
        json!({"find": "1m", "metric": "m", "start": start, "end": end, "shells": shells})
    };
    let count = json!({"count": "1m", "metric": "m", "end": range.end.to_string()});
    let answers = |store: &Store, now| {
        [
            nested_documents(store, range.clone(), now, false),
            run_pipeline(store, &find(false), now).unwrap(),
            run_pipeline(store, &count, now).unwrap(),
            export_page(store, range.clone(), now, false),
        ]
    };
    let before = answers(&store, NOW);
    assert_eq!(before[0].as_array().unwrap().len(), 2);
    assert_eq!(store.preallocate(FINEST, NEXT_HOUR, &[SeriesId(0), SeriesId(1)]).unwrap(), 2);
    assert_eq!(answers(&store, NOW), before);
    // The shells of the next hour still exist after a restart.
    drop((store, appender));
    let (store, mut appender) = open(dir.path(), NOW);
    assert_eq!(answers(&store, NOW), before);
    let next_documents = nested_documents(&store, NEXT_HOUR..NEXT_HOUR_END, NOW, true);
    let next_documents: Vec<NestedDocument> = serde_json::from_value(next_documents).unwrap();
    assert_eq!(next_documents.len(), 2);
    for document in &next_documents {
        let values = document.values.all();
        assert_eq!((values.len(), document.num_samples), (60, 0));
        assert!(values.iter().all(|value| value.n == 0 && value.sum.is_none()));
    }
    assert_eq!(stored_state(&store, "a", NEXT_HOUR), (CellLocation::Shell, Some(0)));
    // One of the two series has samples in the hour.
    let later = NEXT_HOUR.plus(5 * MINUTE);
    send(&mut appender, samples(SeriesId(0), [(later.0, 0.0)]), later);
    for now in [later, NEXT_HOUR_END.plus(10 * MINUTE)] {
        store.checkpoint(now).unwrap();
        let all: Vec<NestedDocument> =
            serde_json::from_value(nested_documents(&store, NEXT_HOUR..NEXT_HOUR_END, now, true))
                .unwrap();
        let samples: Vec<_> = all.iter().map(|document| document.num_samples).collect();
        assert_eq!(samples, [1, 0]);
        let filled = nested_documents(&store, NEXT_HOUR..NEXT_HOUR_END, now, false);
        assert_eq!(filled.as_array().unwrap().len(), 1);
        let found = run_pipeline(&store, &find(true), now).unwrap();
        let found = found["documents"].as_array().unwrap();
        let empty: Vec<_> = found.iter().filter(|slot| slot["n"] == 0).collect();
        assert_eq!((found.len(), empty.len()), (63, 60));
        assert!(empty.iter().all(|slot| slot["host"] == "b" && slot["sum"].is_null()));
        let pages = export_page(&store, NEXT_HOUR..NEXT_HOUR_END, now, true);
        let cells = |series: usize| pages[series]["documents"][0]["cells"].as_array().map(Vec::len);
        assert_eq!([cells(0), cells(1)], [Some(1), Some(0)]);
        let without = export_page(&store, NEXT_HOUR..NEXT_HOUR_END, now, false);
        assert_eq!(without[1]["documents"], json!([]));
    }
    let months = json!({"find": "m", "shells": true});
    let refused = run_pipeline(&store, &months, NOW).unwrap_err().to_string();
    assert!(refused.contains("1m, 5m, 1h, 1d"), "{refused}");
}

#[test]
fn a_request_inserts_documents_once_and_is_refused_beyond_the_retention() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    define(&mut appender, &["a", "b"].map(definition), NOW);
    send(&mut appender, samples(SeriesId(0), [(NEXT_HOUR.0 - HOUR, 1.0)]), NOW);
    store.checkpoint(NOW.plus(HOUR)).unwrap();
    let request = |metric: &str, range: Range<UnixMillis>, resolutions: &[&str]| {
        let selector = Selector { metric: Some(metric.into()), tags: Vec::new() };
        let resolutions = resolutions.iter().map(|name| (*name).to_owned()).collect();
        preallocate(&store, &PreallocateRequest { selector, range, resolutions }, NOW)
    };
    // One document of the current hour has samples.
    let range = NEXT_HOUR.minus(HOUR)..NEXT_HOUR_END;
    let answer = request("m", range.clone(), &["1m"]).unwrap();
    assert_eq!((answer.series, answer.inserted, answer.existed), (2, 3, 1));
    let answer = request("m", range.clone(), &[]).unwrap();
    assert_eq!((answer.resolutions[0].inserted, answer.resolutions[0].existed), (0, 4));
    let names: Vec<_> = answer.resolutions.iter().map(|level| level.resolution.as_str()).collect();
    assert_eq!(names, ["1m", "5m", "1h", "1d"]);
    assert_eq!(request("m", range.clone(), &[]).unwrap().inserted, 0);
    let refused =
        |metric, range, resolutions| request(metric, range, resolutions).unwrap_err().to_string();
    assert!(refused("nn", range.clone(), &[]).contains("nn"));
    assert!(refused("m", range.clone(), &["2m"]).contains("1m, 5m, 1h, 1d"));
    let far = NEXT_HOUR..NEXT_HOUR.plus(50 * HOUR);
    assert!(refused("m", far, &[]).contains("too far ahead"));
    let old = NOW.minus(90 * HOUR)..NOW;
    assert!(refused("m", old, &[]).contains("1m is kept for 2d"));
    let years = NOW..NOW.plus(4 * 365 * 24 * HOUR);
    assert!(request("m", years, &["1d"]).unwrap().inserted > 40);
}
