//! Tests that every kind of query keeps to its budget: it lets other queries run, ends at its time
//! limit or when its client disconnects, and returns its memory.

use std::time::Duration;

use super::*;
use crate::{
    model::Kind,
    query::{
        AggregateRequest, ChartRequest, DocumentsForm, DocumentsRequest, ExportRequest,
        OtherShards, QueryError, QueryLimits, ReserveBytes, Resolution, Selector, SeriesMerge,
        Tail, TailRequest, aggregate, chart, documents, export, series,
    },
    setup::{self, MINUTE, NOW, samples, send},
    store::Store,
};

const LIMITS: QueryLimits = QueryLimits { lines_max: 100, series_max: 100, points_max: 1_000_000 };
const MEMORY: usize = 64 << 20;
const LONG: Duration = Duration::from_secs(600);

/// Creates a store with ten series, each with one sample per minute for two hours.
fn filled_store() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    for host in 0..10 {
        let load = setup::series("load", &[("host", &host.to_string())], Kind::Gauge);
        let id = setup::define(&mut appender, &[load], NOW)[0];
        let points = (0..120).map(|minute| (NOW.minus(minute * MINUTE).0, minute as f64));
        send(&mut appender, samples(id, points), NOW);
    }
    (store, dir)
}

type Run = fn(&Store, &Budget) -> Result<(), QueryError>;

fn selector() -> Selector {
    Selector { metric: Some("load".into()), tags: Vec::new() }
}

fn run_documents(store: &Store, budget: &Budget, form: DocumentsForm) -> Result<(), QueryError> {
    let levels = form == DocumentsForm::Levels;
    let minute = Resolution::Named("1m".into());
    let request = DocumentsRequest {
        selector: selector(),
        resolution: if levels { Resolution::Auto } else { minute },
        range: NOW.minus(120 * MINUTE)..NOW,
        form,
        display: None,
        time_zone: None,
        points: None,
        merge: SeriesMerge::Nothing,
        shells: form == DocumentsForm::Nested,
    };
    documents(store, budget, &request, &LIMITS, NOW).map(drop)
}

fn run_pipeline(store: &Store, budget: &Budget, text: &str) -> Result<(), QueryError> {
    let request = AggregateRequest::read(text, NOW)?;
    aggregate(store, budget, &request, &LIMITS, NOW).map(drop)
}

/// Every kind of query, by name.
const KINDS: [(&str, Run); 9] = [
    ("chart", |store, budget| {
        let minute = Resolution::Named("1m".into());
        let request = ChartRequest::new(selector(), minute, NOW.minus(120 * MINUTE)..NOW);
        chart(store, budget, &request, &LIMITS, NOW).map(drop)
    }),
    ("nested", |store, budget| run_documents(store, budget, DocumentsForm::Nested)),
    ("levels", |store, budget| run_documents(store, budget, DocumentsForm::Levels)),
    ("rows", |store, budget| run_documents(store, budget, DocumentsForm::Rows)),
    ("export", |store, budget| {
        let request = ExportRequest {
            selector: selector(),
            resolution: Resolution::Named("1m".into()),
            range: NOW.minus(120 * MINUTE)..NOW,
            after: None,
            upto: None,
            shells: true,
        };
        export(store, budget, &request, &LIMITS, NOW).map(drop)
    }),
    ("pipeline of slots", |store, budget| {
        run_pipeline(store, budget, "db.1m.aggregate([{$sort: {sum: -1}}, {$limit: 3}])")
    }),
    ("pipeline of months", |store, budget| {
        run_pipeline(store, budget, "db.m.aggregate([{$unwind: '$days'}, {$limit: 100}])")
    }),
    ("series", |store, budget| series(store, budget, &selector(), &LIMITS).map(drop)),
    ("tail", |store, budget| {
        let (resolution, ahead_ms) = (Resolution::Auto, 1);
        let request = TailRequest { selector: selector(), resolution, ahead_ms };
        Tail::new(store, budget, request, LIMITS, NOW)?.poll(budget, NOW).map(drop)
    }),
];

/// Creates resources with one turn at a time, which ends at every check.
fn resources() -> QueryResources {
    QueryResources::new(Scheduler::new(1, Duration::ZERO), MEMORY)
}

#[test]
fn another_query_gets_its_turn_while_a_query_of_any_kind_runs() {
    let (store, _dir) = filled_store();
    for (name, run) in KINDS {
        let resources = resources();
        let budget = resources.budget(LONG);
        // The query has already used several slices.
        let used = (0..16).map(|_| budget.check().unwrap()).count() as u64;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| resources.budget(LONG).check());
            while resources.scheduler.waiting() == 0 {
                std::thread::yield_now();
            }
            run(&store, &budget).unwrap();
            // The query has its turn back; the other query ran in between.
            let granted = resources.scheduler.turns_granted();
            assert!(resources.scheduler.waiting() == 0 && granted > used + 1, "{name}: {granted}");
            other.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_query_returns_its_turn_when_its_time_is_over_or_its_client_disconnects() {
    let (store, _dir) = filled_store();
    for (name, run) in KINDS {
        let resources = resources();
        let late = resources.budget(Duration::ZERO);
        let refused = run(&store, &late).unwrap_err();
        let is_named = refused.to_string().contains("limits.query_timeout");
        assert!(matches!(refused, QueryError::Timeout(_)) && is_named, "{name}: {refused}");
        drop(late);
        let abandoned = resources.budget(LONG);
        abandoned.check().unwrap();
        drop(abandoned.waiter());
        let refused = run(&store, &abandoned).unwrap_err();
        assert!(matches!(refused, QueryError::Timeout(_)), "{name}: {refused}");
        drop(abandoned);
        let next = resources.budget(LONG);
        run(&store, &next).unwrap();
        drop(next);
        assert_eq!(resources.memory_free(), MEMORY, "{name}");
    }
}

#[test]
fn a_query_reserves_the_memory_of_its_answer_from_the_shared_pool() {
    let (store, _dir) = filled_store();
    for (name, run) in KINDS {
        let resources = resources();
        let budget = resources.budget(LONG);
        run(&store, &budget).unwrap();
        let reserved = budget.reserved();
        assert!(
            reserved > 1000 && resources.memory_free() == MEMORY - reserved,
            "{name}: {reserved}"
        );
        // With one byte less, the query fails.
        let scarce = Budget::of_memory(reserved - 1);
        let refused = run(&store, &scarce).unwrap_err();
        assert!(matches!(refused, QueryError::Busy(_)), "{name}: {refused}");
        assert!(refused.to_string().contains("limits.query_memory_max"), "{name}: {refused}");
        // The answer keeps its memory until it has been sent.
        let reservation = budget.into_reservation();
        assert_eq!(resources.memory_free(), MEMORY - reserved);
        drop(reservation);
        assert_eq!(resources.memory_free(), MEMORY);
    }
}

/// A shard that never answers: it remembers the time that it was given.
#[derive(Debug, Default)]
struct Silent(parking_lot::Mutex<Vec<Duration>>);

impl OtherShards for Silent {
    fn count(&self) -> usize {
        1
    }

    fn ask(
        &self,
        _: &str,
        _: (&str, &[u8]),
        time_max: Duration,
        _: &ReserveBytes<'_>,
    ) -> Result<Vec<Vec<u8>>, QueryError> {
        self.0.lock().push(time_max);
        Err(QueryError::Busy("no answer".to_owned()))
    }
}

#[test]
fn shards_have_the_time_of_the_query_or_less() {
    let silent = Arc::new(Silent::default());
    let resources = QueryResources::new(Scheduler::for_this_machine(), MEMORY);
    let others = ShardsOfProject::new(silent.clone(), "default");
    let resources = resources.with_others(Some(others));
    let short = Duration::from_secs(20);
    for (budget, expected) in [
        (resources.budget(LONG), short..=LONG),
        (resources.budget(LONG).waiting_for_shards(short), short..=short),
        (
            resources.budget(Duration::ZERO).waiting_for_shards(short),
            Duration::ZERO..=Duration::ZERO,
        ),
    ] {
        let answer = budget.beside_shards("kind", b"", || Ok(()));
        assert!(matches!(answer, Err(QueryError::Busy(_))));
        let given = silent.0.lock().pop().unwrap();
        assert!(expected.contains(&given), "{given:?} {expected:?}");
    }
}
