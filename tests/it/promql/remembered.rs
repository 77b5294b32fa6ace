//! What queries remember of those before them changes no answer.

use std::time::Duration;

use granary::{
    model::Kind,
    query::{Budget, PromqlLimits, PromqlValue, QueryResources, Scheduler, promql},
    store::{ChangeAction, Matcher, SeriesChange},
};
use proptest::prelude::*;

use super::{Bench, DAY0, LIMITS, NOW, bench, request, shown};
use crate::setup::{MINUTE, samples, send};

const MEMORY: usize = 64 << 20;
const QUERIES: [&str; 4] = [
    r#"load{host=~"a.*"}"#,
    r#"load{host!~"a.*|b0"}"#,
    r#"max_over_time(load{host=~".*1"}[2m])"#,
    r#"{host=~"b.*"} or load{host="a0"}"#,
];

/// What happens to a store between queries.
#[derive(Debug, Clone)]
enum Happening {
    /// A series has a sample; it may be new, and the sample late.
    Sample { host: String, at: i64, value: i32 },
    /// A series is deleted.
    Delete { host: String },
}

fn happenings() -> impl Strategy<Value = Happening> {
    let host = || "[ab][0-3]";
    prop_oneof![
        6 => (host(), 0..20 * MINUTE, 0..100).prop_map(|(host, at, value)| Happening::Sample {
            host,
            at,
            value,
        }),
        1 => host().prop_map(|host| Happening::Delete { host }),
    ]
}

impl Bench {
    fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Sample { host, at, value } => {
                let id = self.define("load", &[("host", host)], Kind::Gauge);
                let points = [(DAY0 + at, f64::from(*value))];
                send(&mut self.appender, samples(id, points), NOW);
            }
            Happening::Delete { host } => {
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
        let limits = PromqlLimits { budget, ..LIMITS };
        promql(self.store(), &request(query, at, end, step), &limits, NOW).unwrap().value
    }
}

/// The values at a time.
fn at_first(answer: &PromqlValue, at: i64) -> Vec<String> {
    let PromqlValue::Matrix(series) = answer else { panic!("{answer:?}") };
    let mut all = Vec::new();
    for own in series {
        let now = own.points.iter().find(|(own, _)| *own == DAY0 + at);
        all.extend(now.map(|(_, value)| format!("{} {value}", own.labels)));
    }
    all.sort();
    all
}

fn sorted(text: &str) -> Vec<String> {
    let mut all: Vec<_> = text.split("; ").filter(|own| !own.is_empty()).map(Into::into).collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// One who asks again and again is answered as one who asks once.
    #[test]
    fn a_query_that_was_asked_before_is_answered_as_a_new_one(
        rounds in prop::collection::vec(
            (prop::collection::vec(happenings(), 0..6), 0..22 * MINUTE),
            1..8,
        ),
    ) {
        let mut bench = bench();
        let resources = QueryResources::new(Scheduler::for_this_machine(), MEMORY);
        for (all, at) in rounds {
            for own in &all {
                bench.happen(own);
            }
            for query in QUERIES {
                let budget = resources.budget(Duration::from_secs(60));
                let again = bench.answer(query, (at, at, 0), &budget);
                let new = bench.answer(query, (at, at, 0), &Budget::UNLIMITED);
                prop_assert_eq!(shown(&again), shown(&new), "{} at {}", query, at);
                // One time of several is answered without looking for where the last samples are.
                let several = bench.answer(query, (at, at + MINUTE, MINUTE), &budget);
                prop_assert_eq!(sorted(&shown(&new)), at_first(&several, at));
            }
        }
    }
}
