//! The query cache changes no answer.

use std::time::Duration;

use granary::{
    model::Kind,
    query::{Budget, ExpressionLimits, PromqlValue, QueryResources, Scheduler, promql},
    store::{ChangeAction, Matcher, SeriesChange},
};
use proptest::prelude::*;

use super::{DAY0, Fixture, LIMITS, NOW, fixture, format_value, request};
use crate::setup::{MINUTE, samples, send};

const MEMORY: usize = 64 << 20;
const QUERIES: [&str; 4] = [
    r#"load{host=~"a.*"}"#,
    r#"load{host!~"a.*|b0"}"#,
    r#"max_over_time(load{host=~".*1"}[2m])"#,
    r#"{host=~"b.*"} or load{host="a0"}"#,
];

/// A change of the store between queries.
#[derive(Debug, Clone)]
enum Change {
    /// A series gets a sample; the series may be new, and the sample late.
    Sample { host: String, at: i64, value: i32 },
    /// A series is deleted.
    Delete { host: String },
}

fn any_change() -> impl Strategy<Value = Change> {
    let host = || "[ab][0-3]";
    prop_oneof![
        6 => (host(), 0..20 * MINUTE, 0..100).prop_map(|(host, at, value)| Change::Sample {
            host,
            at,
            value,
        }),
        1 => host().prop_map(|host| Change::Delete { host }),
    ]
}

impl Fixture {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Sample { host, at, value } => {
                let id = self.define("load", &[("host", host)], Kind::Gauge);
                let points = [(DAY0 + at, f64::from(*value))];
                send(&mut self.appender, samples(id, points), NOW);
            }
            Change::Delete { host } => {
                let matchers = vec![Matcher { tag: "host".into(), value: host.clone() }];
                let change = SeriesChange { matchers, action: ChangeAction::Delete };
                self.appender.change(&change, NOW).unwrap().unwrap();
            }
        }
    }

    fn answer(
        &self,
        query: &str,
        (at, end, step): (i64, i64, i64),
        budget: &Budget,
    ) -> PromqlValue {
        let limits = ExpressionLimits { budget, ..LIMITS };
        promql(self.store(), &request(query, at, end, step), &limits, NOW).unwrap().value
    }
}

/// Returns the series of a range query with their values at a time, sorted.
fn values_at(answer: &PromqlValue, at: i64) -> Vec<String> {
    let PromqlValue::Matrix(series) = answer else { panic!("{answer:?}") };
    let mut all = Vec::new();
    for series in series {
        let now = series.points.iter().find(|(time, _)| *time == DAY0 + at);
        all.extend(now.map(|(_, value)| format!("{} {value}", series.labels)));
    }
    all.sort();
    all
}

fn sorted(text: &str) -> Vec<String> {
    let mut all: Vec<_> =
        text.split("; ").filter(|point| !point.is_empty()).map(Into::into).collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// A query with the cache has the same answer as a query without it.
    #[test]
    fn a_cached_query_has_the_answer_of_an_uncached_query(
        steps in prop::collection::vec(
            (prop::collection::vec(any_change(), 0..6), 0..22 * MINUTE),
            1..8,
        ),
    ) {
        let mut fixture = fixture();
        let resources = QueryResources::new(Scheduler::for_this_machine(), MEMORY);
        for (all, at) in steps {
            for event in &all {
                fixture.apply(event);
            }
            for query in QUERIES {
                let budget = resources.budget(Duration::from_secs(60));
                let cached = fixture.answer(query, (at, at, 0), &budget);
                let new = fixture.answer(query, (at, at, 0), &Budget::UNLIMITED);
                prop_assert_eq!(format_value(&cached), format_value(&new), "{} at {}", query, at);
                // A query at several times uses the cached last samples; a query at one time does
                // not.
                let range_answer = fixture.answer(query, (at, at + MINUTE, MINUTE), &budget);
                prop_assert_eq!(sorted(&format_value(&new)), values_at(&range_answer, at));
            }
        }
    }
}
