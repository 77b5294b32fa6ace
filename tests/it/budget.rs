//! A role evaluates expressions on a store within a budget, as an HTTP request does.

use std::time::Duration;

use granary::{
    model::{Kind, Moment, UnixMillis},
    query::{
        Budget, ChartRequest, PromqlSettings, PromqlValue, QueryError, QueryLimits, QueryResources,
        Resolution, Scheduler, Selector, SeriesMerge, chart, evaluate_at,
    },
};

use crate::{
    promql::{DAY0, fixture},
    setup::MINUTE,
};

const SETTINGS: PromqlSettings = PromqlSettings {
    timeout: Duration::from_secs(120),
    lookback: Duration::from_secs(300),
    series_max: 100,
    points_max: 1_000_000,
    memory_max: 64 << 20,
};

#[test]
fn a_role_evaluates_an_expression_within_a_budget() {
    let mut fixture = fixture();
    for host in ["a", "b"] {
        let id = fixture.define("load", &[("host", host)], Kind::Gauge);
        fixture.fill(id, MINUTE, |i| (i < 60).then_some(2.0));
    }
    let resources = QueryResources::new(Scheduler::for_this_machine(), SETTINGS.memory_max);
    let now: Moment = UnixMillis(DAY0 + 30 * MINUTE).into();
    let run = |budget: &Budget| {
        evaluate_at(fixture.store(), budget, &SETTINGS, "sum(load) > bool 3", now.clock, now)
    };
    let budget = resources.budget(SETTINGS.timeout);
    let answer = run(&budget).unwrap();
    let PromqlValue::Vector(samples) = answer.value else { panic!("{answer:?}") };
    assert_eq!(samples.iter().map(|sample| sample.value).collect::<Vec<_>>(), [1.0]);
    assert!(budget.reserved() > 0 && resources.memory_free() < SETTINGS.memory_max);
    drop(budget);
    assert_eq!(resources.memory_free(), SETTINGS.memory_max);
    let timed_out = run(&resources.budget(Duration::ZERO));
    assert!(matches!(timed_out, Err(QueryError::Timeout(_))), "{timed_out:?}");
    let out_of_memory = run(&Budget::of_memory(100));
    assert!(matches!(out_of_memory, Err(QueryError::Busy(_))), "{out_of_memory:?}");
}

#[test]
fn all_metrics_of_a_chart_share_one_limit_of_series() {
    let mut fixture = fixture();
    for (metric, host) in [("load", "a"), ("load", "b"), ("idle", "a"), ("idle", "b")] {
        let id = fixture.define(metric, &[("host", host)], Kind::Gauge);
        fixture.fill(id, MINUTE, |i| (i < 3).then_some(1.0));
    }
    let now = UnixMillis(DAY0 + 30 * MINUTE);
    let run = |others: &[&str], merge| {
        let selector = Selector { metric: Some("load".into()), ..Selector::default() };
        let range = UnixMillis(DAY0)..now;
        let others = others.iter().map(|other| (*other).to_owned()).collect();
        let request =
            ChartRequest { others, merge, ..ChartRequest::new(selector, Resolution::Auto, range) };
        let limits = QueryLimits::new(3, 10_000);
        let answer = chart(fixture.store(), &Budget::UNLIMITED, &request, &limits, now);
        answer.map(|answer| answer.series.len()).map_err(|cause| cause.to_string())
    };
    assert_eq!(run(&[], SeriesMerge::Nothing), Ok(2));
    assert_eq!(run(&["load"], SeriesMerge::Nothing), Ok(2), "a series counts once");
    for merge in [SeriesMerge::Nothing, SeriesMerge::All] {
        let refused = run(&["idle"], merge).unwrap_err();
        assert!(refused.contains("4 series match, more than 3"), "{refused}");
    }
}
