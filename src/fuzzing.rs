//! Fuzz targets for code that reads bytes from outside or from disk: no input may cause a panic.
//!
//! The targets in `tests/fuzz` call these functions, and a test runs them on the stored corpus.
#![allow(clippy::missing_panics_doc, reason = "fuzzing searches for panics")]

use std::{
    fs, io,
    sync::{Arc, LazyLock},
    time::Duration,
};

use granary_protocol::{
    JsonBatch, decode_batch, decode_json, encode_batch, pack, split_batches, unpack,
};

use crate::{
    api, config,
    import::{
        Location, Source, batcher::NumberedBatch, csv, influx as influx_file, intake, openmetrics,
        remote_write as remote_write_file, samples, selection::Selection, whisper,
    },
    ingest::{
        self,
        graphite::Template,
        influx::Precision,
        otlp::Form,
        remote_write::{Families, Version},
        rows::Rows,
        series_cache::SeriesCache,
    },
    model::{
        AcceptedBatch, DefinitionVerdict, GranularitySet, Kind, ProjectName, SenderWindow,
        SeriesId, SeriesInfo, SeriesKey, SeriesLimits, Span, UnixMillis,
    },
    policy::Admission,
    query::{self, ExpressionLimits, PromqlRequest, QueryResources, Scheduler},
    store::{self, DocumentLayout},
};

/// A time within the retention of the default granularities.
const NOW: UnixMillis = UnixMillis(1_795_264_496_000);

/// A function that reads bytes and must not panic.
pub type Target = fn(&[u8]);

/// All targets with their names.
pub const TARGETS: [(&str, Target); 19] = [
    ("batch", batch),
    ("json", json),
    ("journal", journal),
    ("document", document),
    ("query", query),
    ("remote_write", remote_write),
    ("import", import),
    ("pipeline", pipeline),
    ("influx", influx),
    ("otlp", otlp),
    ("graphite_lines", graphite_lines),
    ("pickle", pickle),
    ("collectd", collectd),
    ("promql", promql),
    ("settings", settings),
    ("sealed", sealed),
    ("head", head),
    ("packed", packed),
    ("updates", updates),
];

/// Decodes, resolves and checks a native ingest body, plain or compressed.
pub fn batch(bytes: &[u8]) {
    if let Some(plain) = api::fuzz_decompress(bytes) {
        decode_bodies(&plain);
    }
    decode_bodies(bytes);
}

/// Decodes a packed body, and checks that packing it again preserves it.
pub fn packed(bytes: &[u8]) {
    let Ok(batches) = unpack(bytes) else { return };
    let again = unpack(&pack(&batches)).expect("a packed body can be unpacked");
    let plain = |batches: &[granary_protocol::Batch]| {
        let mut plain = Vec::new();
        for batch in batches {
            encode_batch(batch, &mut plain);
        }
        plain
    };
    let bodies = plain(&batches);
    assert_eq!(plain(&again), bodies);
    decode_bodies(&bodies);
}

fn decode_bodies(bytes: &[u8]) {
    let mut dictionary = store::Dictionary::default();
    let mut sessions = ingest::native::Sessions::new(SeriesLimits::default(), 1000, 2000);
    let admission = Admission::new(&GranularitySet::default(), 600_000, NOW);
    for body in split_batches(bytes).into_iter().flatten() {
        let Ok(view) = decode_batch(body) else { continue };
        let none = ingest::native::DecidedSeries::default();
        let default = ProjectName::of_default();
        let known = dictionary.of_project(default);
        for definition in sessions.add_definitions(&view, &known, &none, (false, NOW)).new {
            if dictionary.of_project(default).find(&definition.key).is_none() {
                dictionary.add(definition);
            }
        }
        let known = dictionary.of_project(default);
        let unknown = sessions.add_definitions(&view, &known, &none, (false, NOW));
        assert!(unknown.is_empty(), "all series are known");
        let name = |id| Some(dictionary.key(id)?.to_string());
        let former = |_, _| ingest::native::FormerSeries::Unknown;
        let (kind, class) = (|_| Some(Kind::Gauge), |_, _| 0);
        let lookup = ingest::native::SeriesLookup { kind, class, name, former };
        if let Ok(admitted) = sessions.admit(&view, &admission, &lookup) {
            let batch = &admitted.batch;
            assert_eq!(batch.series.len(), batch.values.len());
            (0..batch.values.len()).for_each(|index| {
                let at = batch.time(index);
                assert_eq!(admission.check(at, batch.values[index], || Some(Kind::Gauge)), Ok(()));
            });
        }
    }
}

/// Decodes a JSON ingest body, and checks that it can be written as BSON and read back.
pub fn json(bytes: &[u8]) {
    encode_batches(decode_json(bytes, NOW.0).unwrap_or_default());
}

/// Decodes updates in MongoDB's syntax.
pub fn updates(bytes: &[u8]) {
    encode_batches(ingest::updates::decode(bytes).unwrap_or_default());
}

fn encode_batches(batches: Vec<JsonBatch>) {
    for JsonBatch { batch, .. } in batches {
        let mut bson = Vec::new();
        encode_batch(&batch, &mut bson);
        if let Ok(view) = decode_batch(&bson) {
            assert_eq!(view.len(), batch.values.len());
        }
    }
}

/// Decodes a decompressed remote-write body in both versions.
pub fn remote_write(bytes: &[u8]) {
    for version in [Version::V1, Version::V2] {
        let families = Families::default();
        decode_rows(|rows| ingest::remote_write::decode(version, bytes, &families, rows).is_ok());
    }
}

/// Decodes line protocol, in the unit that the first byte selects.
pub fn influx(bytes: &[u8]) {
    let Some((unit, lines)) = bytes.split_first() else { return };
    let words = ["ns", "us", "ms", "s", "m", "h"];
    let word = words.get(usize::from(*unit) % words.len()).copied().unwrap_or_default();
    let Some(precision) = Precision::from_word(word) else { return };
    decode_rows(|rows| ingest::influx::decode(lines, precision, NOW, rows).is_ok());
}

/// Decodes OTLP metrics in both encodings.
pub fn otlp(bytes: &[u8]) {
    for form in [Form::Protobuf, Form::Json] {
        decode_rows(|rows| ingest::otlp::decode(form, bytes, rows).is_ok());
    }
}

/// Decodes Graphite's plaintext with the template in the first line.
pub fn graphite_lines(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (first, lines) = bytes.split_at(end);
    let template = std::str::from_utf8(first).ok().and_then(|text| Template::parse(text).ok());
    let templates: Vec<_> = template.into_iter().collect();
    decode_rows(|rows| {
        ingest::graphite::decode_lines(lines, &templates, NOW, rows);
        true
    });
}

/// Decodes a message of Graphite's pickle protocol.
pub fn pickle(bytes: &[u8]) {
    decode_rows(|rows| ingest::graphite::decode_pickle(bytes, &[], NOW, rows).is_ok());
}

/// Decodes collectd's value lists in JSON.
pub fn collectd(bytes: &[u8]) {
    decode_rows(|rows| ingest::collectd::decode(bytes, rows).is_ok());
}

/// Decodes twice, the second time with known series, and checks each sample.
fn decode_rows(mut decode: impl FnMut(&mut Rows<'_>) -> bool) {
    let limits = SeriesLimits::default();
    let admission = Admission::new(&GranularitySet::default(), 600_000, NOW);
    let mut cache = SeriesCache::default();
    let mut accepted = Vec::new();
    for _ in 0..2 {
        let known = |key: &SeriesKey| key.metric().is_empty().then_some((SeriesId(0), Kind::Gauge));
        let mut rows = Rows::new(&mut cache, &known, &limits, "fuzz");
        if !decode(&mut rows) {
            return;
        }
        let decoded = rows.finish();
        let count = decoded.len();
        let id = |index| DefinitionVerdict::Known(SeriesId(index as u32));
        let verdicts: Vec<_> = (0..decoded.definitions().len()).map(id).collect();
        let known = (|_| Some(Kind::Gauge), |_, _| 0, |_| None);
        let (batch, refused) = decoded.admit(&verdicts, &mut cache, &admission, known, 600_000);
        assert_eq!(batch.series.len(), batch.values.len());
        assert!(batch.values.len() as u64 + refused.total() >= count as u64);
        accepted.push(batch.values.len());
    }
    assert!(accepted.iter().all(|count| *count == accepted[0]), "{accepted:?}");
}

/// Imports a file in each format, and checks that the batches are numbered without gaps.
pub fn import(bytes: &[u8]) {
    check_import(&mut openmetrics::OpenMetrics::new(bytes));
    check_import(&mut influx_file::Influx::new(bytes, Precision::Nanoseconds));
    check_import(&mut csv::Csv::new(bytes, csv::Columns::default()));
    check_import(&mut samples::Samples::new(bytes));
    if let Ok(mut source) = whisper::Whisper::new(bytes, "a.b", &[]) {
        check_import(&mut source);
    }
    if let Ok(mut source) = remote_write_file::RemoteWrite::new(bytes) {
        check_import(&mut source);
    }
}

fn check_import(source: &mut dyn Source) {
    struct Check(u64, u64);
    impl intake::Receiver for Check {
        fn batch(&mut self, numbered: NumberedBatch) -> bool {
            self.0 += 1;
            self.1 += numbered.batch.values.len() as u64;
            assert_eq!(numbered.batch.seq, self.0);
            true
        }

        fn refused(&mut self, _: Location, _: crate::policy::RefusalReason, count: u64, _: &str) {
            self.1 += count;
        }
    }
    let mut check = Check(0, 0);
    let (tally, _) =
        intake::read_all(source, "import:fuzz".to_owned(), &Selection::default(), &mut check);
    assert_eq!(tally.samples, check.1, "every sample is batched or refused");
}

/// Reads rows of the journal's tables.
pub fn journal(bytes: &[u8]) {
    store::fuzz_rows(bytes);
    if let Some(window) = SenderWindow::from_bytes(bytes) {
        assert_eq!(SenderWindow::from_bytes(&window.to_bytes()), Some(window));
    }
    if let Some(key) = SeriesKey::from_bytes(bytes) {
        assert!(key.tags().count() <= bytes.len());
    }
}

/// Reads bytes as a tile of a segment, and as one of its blocks.
pub fn sealed(bytes: &[u8]) {
    store::fuzz_sealed(bytes);
}

/// Reads a row of the head.
pub fn head(bytes: &[u8]) {
    store::fuzz_head(bytes);
}

/// Reads a stored document, and merges its cells.
pub fn document(bytes: &[u8]) {
    for slots in [1, 24, 31, 48, 60] {
        let layout = DocumentLayout::new(slots, 60_000);
        let mut doc = bytes.to_vec();
        if doc.len() == layout.length() {
            layout.write_checksum(&mut doc);
        }
        let Ok(()) = layout.check(&doc, SeriesId(0), UnixMillis(0)) else { continue };
        for slot in 0..slots {
            let cell = layout.cell(&doc, slot);
            let mut twice = cell;
            twice.merge(&cell);
            layout.merge_cell(&mut doc, slot, &cell);
            assert_eq!(layout.cell(&doc, slot).n, twice.n);
        }
        layout.write_checksum(&mut doc);
        assert_eq!(layout.check(&doc, SeriesId(0), UnixMillis(0)), Ok(()));
    }
}

/// Reads and runs a pipeline.
pub fn pipeline(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        query::fuzz_pipeline(text, NOW);
    }
}

/// Reads the query string of a chart, of documents or of Prometheus' API.
pub fn query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    api::fuzz_query(text, NOW);
    api::fuzz_params(text);
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse(), Ok(span));
        assert!(span.start_of(NOW) <= NOW);
    }
}

/// Checks, formats and evaluates an expression, at one time and at several times.
pub fn promql(bytes: &[u8]) {
    const MEMORY: usize = 64 << 20;
    const TIME_MAX: Duration = Duration::from_secs(10);
    static STORE: LazyLock<Option<store::Store>> = LazyLock::new(|| small_store().ok());
    let (Ok(text), Some(store)) = (std::str::from_utf8(bytes), &*STORE) else { return };
    let resources = QueryResources::new(Scheduler::for_this_machine(), MEMORY);
    let budget = resources.budget(TIME_MAX);
    let limits = ExpressionLimits {
        series_max: 100,
        points_max: 100_000,
        steps_max: 100,
        query_bytes_max: 4096,
        regex_bytes_max: 1 << 20,
        budget: &budget,
    };
    if query::check_promql(text, &limits).is_err() {
        return;
    }
    assert!(query::format_promql(text, &limits).is_ok());
    assert!(query::promql_tree(text, &limits).is_ok());
    for (start, step_ms) in [(NOW, 0), (NOW.plus(-600_000), 60_000)] {
        let request = PromqlRequest {
            query: text.to_owned(),
            start,
            end: NOW,
            step_ms,
            lookback_ms: 300_000,
            delayed_name_removal: true,
        };
        budget.shrink_to(0);
        // The result itself is not checked.
        let _any = query::promql(store, &request, &limits, NOW);
    }
}

/// Returns a store with a few minutes of a gauge, a counter and a histogram's bucket; its folder is
/// deleted.
fn small_store() -> io::Result<store::Store> {
    const NAMES: [(&str, &str, Kind); 3] = [
        ("up", "a", Kind::Gauge),
        ("hits", "b", Kind::Counter),
        ("wait_bucket", "1", Kind::Counter),
    ];
    let folder = std::env::temp_dir().join(format!("granary-fuzzing-{}", std::process::id()));
    let medium = Arc::new(store::Folder::new(&folder)?);
    let opened = store::Store::open(medium, GranularitySet::default(), NOW);
    let (store, mut appender, _) = opened.map_err(io::Error::other)?;
    for (name, value, kind) in NAMES {
        let tags = [("job", value), ("le", value)];
        let key = SeriesKey::new(name, tags, &SeriesLimits::default()).map_err(io::Error::other)?;
        let definition = SeriesInfo { key: key.clone(), kind, unit: "".into(), sender: "".into() };
        appender.commit(&[definition], &[], NOW).map_err(io::Error::other)?;
        let Some(id) = store.dictionary().find(&key) else { continue };
        let times: Vec<_> = (0..60).map(|n| NOW.0 - 600_000 + n * 10_000).collect();
        let batch = AcceptedBatch {
            series: vec![id; times.len()],
            values: (0..times.len()).map(|n| n as f64).collect(),
            times,
            ..AcceptedBatch::default()
        };
        appender.commit(&[], &[batch], NOW).map_err(io::Error::other)?;
    }
    drop(appender);
    fs::remove_dir_all(&folder)?;
    Ok(store)
}

/// Reads settings, and checks that valid settings can be printed and read back unchanged.
pub fn settings(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(settings) = config::read(text) else { return };
    let again = config::read(&settings.as_toml.join("\n"));
    assert_eq!(again.map(|again| again.as_toml).ok(), Some(settings.as_toml));
}
