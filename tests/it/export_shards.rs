//! Pages of an export of series that are split over several stores: together they are the pages of
//! one store with all series.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use granary::{
    model::{
        AcceptedBatch, Histogram, HistogramSample, Kind, SeriesId, SeriesInfo, UnixMillis,
        histogram::Bucket,
    },
    query::{
        Budget, EXPORT, ExportRequest, OtherShards, QueryError, QueryLimits, QueryResources,
        ReserveBytes, Resolution, Scheduler, Selector, ShardsOfProject, export, export_of_question,
    },
    store::{Appender, Store},
};
use serde_json::Value;

use crate::setup::{self, HOUR, MINUTE};

const START: UnixMillis = UnixMillis(1_795_219_200_000);
const NOW: UnixMillis = UnixMillis(START.0 + HOUR);
/// Five series of one hour of minutes are on a page.
const LIMITS: QueryLimits = QueryLimits { lines_max: 5, series_max: 100, points_max: 60 * 5 };
const SHARDS: usize = 3;
const HOSTS: usize = 17;

struct Opened {
    store: Store,
    appender: Appender,
    _dir: tempfile::TempDir,
}

impl Opened {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (store, appender) = setup::open(dir.path(), START);
        Self { store, appender, _dir: dir }
    }

    fn define(&mut self, metric: &str, host: &str, kind: Kind) -> SeriesId {
        let info: SeriesInfo = setup::series(metric, &[("host", host)], kind);
        setup::define(&mut self.appender, &[info], START)[0]
    }

    fn fill(&mut self, id: SeriesId, values: impl Iterator<Item = (i64, f64)>) {
        let points = values.map(|(minute, value)| (START.0 + minute * MINUTE, value));
        setup::send(&mut self.appender, setup::samples(id, points), NOW);
    }

    fn fill_histograms(&mut self, id: SeriesId, minutes: impl Iterator<Item = i64>) {
        for minute in minutes {
            let mut histogram = Histogram::empty(3);
            histogram.count = minute as f64 + 1.0;
            histogram.sum = minute as f64;
            histogram.positive = vec![Bucket { index: minute as i32 % 4, count: histogram.count }];
            let value = histogram.count;
            let (series, times, values) = (vec![id], vec![START.0 + minute * MINUTE], vec![value]);
            let histograms = vec![HistogramSample { index: 0, histogram }];
            let batch =
                AcceptedBatch { series, times, values, histograms, ..AcceptedBatch::default() };
            setup::send(&mut self.appender, batch, NOW);
        }
    }
}

/// The stores of other shards.
#[derive(Debug)]
struct Others(Vec<Store>);

impl OtherShards for Others {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn ask(
        &self,
        _: &str,
        (kind, question): (&str, &[u8]),
        _: Duration,
        reserve: &ReserveBytes<'_>,
    ) -> Result<Vec<Vec<u8>>, QueryError> {
        assert_eq!(kind, EXPORT);
        let answer = |(store, shard): (&Store, u16)| {
            let of_shard = (store, shard);
            let answer = export_of_question(of_shard, &Budget::UNLIMITED, question, &LIMITS, NOW)?;
            assert!(reserve(answer.len()));
            Ok(answer)
        };
        self.0.iter().zip(1..).map(answer).collect()
    }
}

/// A store with all series, the stores of shards, and the memory of their queries.
fn split() -> (Opened, Vec<Opened>, QueryResources) {
    let (mut whole, mut shards) =
        (Opened::new(), (0..SHARDS).map(|_| Opened::new()).collect::<Vec<_>>());
    for host in 0..HOSTS {
        let name = format!("h{host}");
        for (metric, kind) in [("level", Kind::Gauge), ("total", Kind::Counter)] {
            for to in [&mut whole, &mut shards[host * host % SHARDS]] {
                let id = to.define(metric, &name, kind);
                to.fill(id, (0..50).map(|minute| (minute, (minute * host as i64) as f64)));
            }
        }
    }
    // These series are in two shards: each has every other minute.
    for (metric, host, kind) in
        [("level", "both", Kind::Gauge), ("hist", "both", Kind::GaugeHistogram)]
    {
        for (shard, first) in [(None, 0), (Some(0), 0), (Some(2), 1)] {
            let to = shard.map_or(&mut whole, |shard: usize| &mut shards[shard]);
            let id = to.define(metric, host, kind);
            let step = if shard.is_none() { 1 } else { 2 };
            let minutes = (first..40).step_by(step);
            if kind == Kind::Gauge {
                to.fill(id, minutes.map(|minute| (minute, minute as f64)));
            } else {
                to.fill_histograms(id, minutes);
            }
        }
    }
    let others = shards[1..].iter().map(|shard| shard.store.clone()).collect();
    let of_project = ShardsOfProject::new(Arc::new(Others(others)), "default");
    let resources = QueryResources::new(Scheduler::for_this_machine(), usize::MAX);
    (whole, shards, resources.with_others(Some(of_project)))
}

fn request(metric: Option<&str>, resolution: &str) -> ExportRequest {
    let selector = Selector { metric: metric.map(str::to_owned), tags: Vec::new() };
    let Ok(resolution) = resolution.parse::<Resolution>();
    let range = START..NOW;
    ExportRequest { selector, resolution, range, after: None, upto: None, shells: false }
}

/// Returns all pages; `meanwhile` runs after each.
fn pages(
    store: &Store,
    budget: &dyn Fn() -> Budget,
    mut request: ExportRequest,
    mut meanwhile: impl FnMut(),
) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let page = export(store, &budget(), &request, &LIMITS, NOW).unwrap();
        let page = serde_json::to_value(&page).unwrap();
        let token = |name: &str| serde_json::from_value(page[name].clone()).unwrap();
        (request.after, request.upto) = (token("after"), token("upto"));
        all.push(page);
        if request.after.is_none() {
            return all;
        }
        meanwhile();
    }
}

fn series_of(pages: &[Value]) -> Vec<Value> {
    pages.iter().flat_map(|page| page["series"].as_array().unwrap().clone()).collect()
}

#[test]
fn pages_of_shards_have_the_series_of_one_store_in_order() {
    let (whole, shards, resources) = split();
    let budget = || resources.budget(Duration::from_secs(600));
    for metric in [None, Some("level"), Some("total"), Some("hist"), Some("missing")] {
        for resolution in ["auto", "1m", "5m", "1h"] {
            let request = request(metric, resolution);
            let expected = pages(&whole.store, &|| Budget::UNLIMITED, request.clone(), || ());
            let found = pages(&shards[0].store, &budget, request, || ());
            assert_eq!(series_of(&found), series_of(&expected), "{metric:?} {resolution}");
            for name in ["start", "end", "resolution", "width_ms", "timestamp", "tags"] {
                assert!(found.iter().all(|page| page[name] == expected[0][name]), "{name}");
            }
            assert_eq!(found[0]["has_histograms"], expected[0]["has_histograms"]);
            let last = found.last().unwrap();
            assert_eq!(last["done"], last["total"], "{metric:?} {resolution}");
        }
    }
    let all = pages(&shards[0].store, &budget, request(None, "1m"), || ());
    assert!(all.len() > 4 && series_of(&all).len() == 2 * HOSTS + 2, "{}", all.len());
    // A page does not grow with the number of shards.
    let on_page = |page: &Value| page["series"].as_array().unwrap().len();
    assert!(all.iter().all(|page| on_page(page) <= LIMITS.points_max / 60));
}

#[test]
fn pages_leave_out_series_that_are_newer_than_the_first_page() {
    let (_, mut shards, resources) = split();
    let store = shards[0].store.clone();
    let budget = || resources.budget(Duration::from_secs(600));
    let before = series_of(&pages(&store, &budget, request(None, "1m"), || ()));
    let mut number = 0;
    let found = pages(&store, &budget, request(None, "1m"), || {
        for shard in &mut shards {
            let id = shard.define("z", &format!("new{number}"), Kind::Gauge);
            shard.fill(id, [(1, 1.0)].into_iter());
            number += 1;
        }
    });
    assert_eq!(series_of(&found), before);
    let totals: BTreeMap<_, _> = found.iter().map(|page| (page["total"].to_string(), 0)).collect();
    assert_eq!(totals.len(), 1, "{totals:?}");
    // A shard without series at the first page has none on the others.
    let selector = Selector { metric: Some("z".to_owned()), tags: Vec::new() };
    let empty = ExportRequest { selector, ..request(None, "1m") };
    assert_eq!(series_of(&pages(&store, &budget, empty, || ())).len(), number);
}

#[test]
fn a_token_of_another_export_is_refused() {
    let (whole, shards, resources) = split();
    let budget = || resources.budget(Duration::from_secs(600));
    let first = export(&whole.store, &Budget::UNLIMITED, &request(None, "1m"), &LIMITS, NOW);
    let first = serde_json::to_value(first.unwrap()).unwrap();
    let mut of_one = request(Some("total"), "1m");
    of_one.upto = serde_json::from_value(first["upto"].clone()).unwrap();
    let refused = export(&shards[0].store, &budget(), &of_one, &LIMITS, NOW).unwrap_err();
    assert!(refused.to_string().starts_with("upto is not a matching series"), "{refused}");
    let mut unknown = request(Some("total"), "1m");
    unknown.after = serde_json::from_value("0".repeat(32).into()).unwrap();
    let refused = export(&shards[0].store, &budget(), &unknown, &LIMITS, NOW).unwrap_err();
    assert!(refused.to_string().starts_with("after is not a matching series"), "{refused}");
}
