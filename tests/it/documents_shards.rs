//! Documents of series that are split over several stores equal those of one store with all series.

use granary::{
    model::{Display, Kind, UnixMillis},
    query::{
        Budget, DocumentsAnswer, DocumentsForm, DocumentsRequest, DocumentsStep, QueryError,
        QueryLimits, Resolution, Selector, SeriesMerge, documents, documents_of_shards,
        documents_step, time_zone,
    },
};

use crate::{
    chart_shards::{self, NOW, Opened, START, split},
    setup::{self, DAY, HOUR, MINUTE, define, samples, send},
};

/// The minutes of all months of the series are within the limit.
const LIMITS: QueryLimits = QueryLimits { points_max: 1_000_000, ..chart_shards::LIMITS };

fn request(metric: &str, form: DocumentsForm) -> DocumentsRequest {
    DocumentsRequest {
        selector: Selector { metric: Some(metric.to_owned()), tags: Vec::new() },
        resolution: Resolution::Auto,
        range: UnixMillis(START)..NOW,
        form,
        display: None,
        time_zone: None,
        points: None,
        merge: SeriesMerge::Nothing,
        shells: false,
    }
}

fn of_shards(
    shards: &[Opened],
    request: &DocumentsRequest,
    limits: &QueryLimits,
) -> Result<DocumentsAnswer, QueryError> {
    let ask = |step: &DocumentsStep| {
        let answer = |shard: &Opened| {
            documents_step(&shard.store, &Budget::UNLIMITED, (request, step), limits, NOW)
        };
        shards.iter().map(answer).collect()
    };
    documents_of_shards((&shards[0].store, &Budget::UNLIMITED), request, &ask, limits, NOW)
}

fn check(whole: &Opened, shards: &[Opened], request: &DocumentsRequest) {
    let expected = documents(&whole.store, &Budget::UNLIMITED, request, &LIMITS, NOW);
    match (of_shards(shards, request, &LIMITS), expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{request:?}"),
        (found, expected) => {
            let text = |answer: Result<DocumentsAnswer, QueryError>| {
                answer.map_or_else(|cause| cause.to_string(), |_| "documents".to_owned())
            };
            assert_eq!(text(found), text(expected), "{request:?}");
        }
    }
}

/// Adds a series whose samples are in two shards: each has every other minute.
fn add_series_of_two_shards(whole: &mut Opened, shards: &mut [Opened]) {
    let fill = |to: &mut Opened, first: i64, step: usize| {
        let info = setup::series("level", &[("host", "both"), ("dc", "dc0")], Kind::Gauge);
        let id = define(&mut to.appender, &[info], UnixMillis(START))[0];
        let minutes = (first..40).step_by(step);
        let points = minutes.map(|minute| (START + minute * MINUTE, minute as f64));
        send(&mut to.appender, samples(id, points), NOW);
    };
    fill(whole, 0, 1);
    fill(&mut shards[0], 0, 2);
    fill(&mut shards[2], 1, 2);
}

#[test]
fn documents_of_shards_equal_those_of_one_store() {
    let (mut whole, mut shards) = split();
    add_series_of_two_shards(&mut whole, &mut shards);
    for form in [DocumentsForm::Nested, DocumentsForm::Rows, DocumentsForm::Levels] {
        for metric in ["level", "total", "levle"] {
            for resolution in ["auto", "1m", "5m", "1h", "hour", "7m"] {
                let mut request = request(metric, form);
                let Ok(named) = resolution.parse();
                request.resolution = named;
                check(&whole, &shards, &request);
                request.time_zone = Some(time_zone("Asia/Kolkata").unwrap());
                check(&whole, &shards, &request);
            }
        }
    }
    let answer = of_shards(&shards, &request("level", DocumentsForm::Nested), &LIMITS).unwrap();
    let DocumentsAnswer::Documents { documents, .. } = answer else { panic!() };
    let both = documents.iter().find(|document| document.series.tags["host"] == "both").unwrap();
    assert_eq!((both.num_samples, both.total_samples), (40, 780.0));
    let answer = of_shards(&shards, &request("level", DocumentsForm::Levels), &LIMITS).unwrap();
    let DocumentsAnswer::Levels { documents, .. } = answer else { panic!() };
    let both = documents.iter().find(|document| document.series.tags["host"] == "both").unwrap();
    assert_eq!((both.num_samples, both.total_samples), (40, 780.0));
}

#[test]
fn a_metric_of_one_shard_is_known_when_the_range_has_no_samples() {
    let (mut whole, mut shards) = split();
    for to in [&mut whole, &mut shards[1]] {
        let info = setup::series("only", &[("host", "h1")], Kind::Gauge);
        let id = define(&mut to.appender, &[info], UnixMillis(START))[0];
        send(&mut to.appender, samples(id, [(START, 1.0)]), NOW);
    }
    let mut request = request("only", DocumentsForm::Levels);
    check(&whole, &shards, &request);
    request.range = UnixMillis(START - 70 * DAY)..UnixMillis(START - 60 * DAY);
    check(&whole, &shards, &request);
    let DocumentsAnswer::Levels { documents, notes } =
        of_shards(&shards, &request, &LIMITS).unwrap()
    else {
        panic!("the answer has levels")
    };
    assert_eq!((documents.len(), notes.len()), (0, 0), "{notes:?}");
    // The other shards do not know the metric, whose tag is unknown.
    request.selector.tags = vec![("host".to_owned(), "h2".to_owned())];
    check(&whole, &shards, &request);
}

#[test]
fn merged_documents_of_shards_equal_those_of_one_store() {
    let (whole, shards) = split();
    for form in [DocumentsForm::Nested, DocumentsForm::Rows, DocumentsForm::Levels] {
        for merge in [SeriesMerge::All, SeriesMerge::By(vec!["dc".to_owned()])] {
            for metric in ["level", "total"] {
                let request = DocumentsRequest { merge: merge.clone(), ..request(metric, form) };
                check(&whole, &shards, &request);
            }
        }
    }
    for display in [Display::of_kind(Kind::Gauge), Display::of_kind(Kind::Counter), Display::Count]
    {
        let display = Some(display);
        check(
            &whole,
            &shards,
            &DocumentsRequest { display, ..request("total", DocumentsForm::Rows) },
        );
    }
}

#[test]
fn limits_count_the_series_of_all_shards_and_shells_are_refused() {
    let (whole, shards) = split();
    let limits = QueryLimits { lines_max: 5, ..LIMITS };
    for form in [DocumentsForm::Nested, DocumentsForm::Rows, DocumentsForm::Levels] {
        // Each shard has at most five of the lines.
        let refused = of_shards(&shards, &request("level", form), &limits).unwrap_err();
        assert!(refused.to_string().contains("exceed the limit of 5"), "{refused}");
    }
    // Each shard has fewer than 100,000 of the slots.
    let levels = request("level", DocumentsForm::Levels);
    let refused = of_shards(&shards, &levels, &chart_shards::LIMITS);
    assert!(refused.unwrap_err().to_string().contains("slots exceed the limit"));
    // Few slots a series: their width depends on the number of series of all shards.
    for points_max in [11 * 30, 11 * 70] {
        let limits = QueryLimits { points_max, ..LIMITS };
        let mut request = request("level", DocumentsForm::Rows);
        request.range.start = UnixMillis(START - HOUR);
        let expected = documents(&whole.store, &Budget::UNLIMITED, &request, &limits, NOW).unwrap();
        let found = of_shards(&shards, &request, &limits).unwrap();
        let rows = |answer| match answer {
            DocumentsAnswer::Rows { rows, .. } => rows,
            other @ (DocumentsAnswer::Documents { .. } | DocumentsAnswer::Levels { .. }) => {
                panic!("{other:?}")
            }
        };
        assert_eq!(rows(found), rows(expected), "{points_max}");
    }
    let request = DocumentsRequest { shells: true, ..request("level", DocumentsForm::Nested) };
    let refused = of_shards(&shards, &request, &LIMITS).unwrap_err();
    assert!(refused.to_string().starts_with("shells=true is not available"), "{refused}");
}
