//! The memory of native histograms in queries.

use granary::{
    model::{Histogram, Kind, UnixMillis},
    query::{Budget, ExpressionLimits, promql},
};

use super::{DAY0, Fixture, LIMITS, NOW, fixture, request};
use crate::setup::{MINUTE, samples, send};

const SERIES: i64 = 40;

fn wide_histogram() -> Histogram {
    let mut histogram = Histogram::sketch();
    (1..500).for_each(|value| histogram.observe(f64::from(value), 1.0));
    histogram
}

/// Returns a fixture with ten minutes of series of gauge histograms.
fn with_histograms() -> Fixture {
    let mut fixture = fixture();
    for series in 0..SERIES {
        let tags = &[("host", &*series.to_string())];
        let id = fixture.define("delays", tags, Kind::GaugeHistogram);
        let mut batch = samples(id, []);
        for minute in 0..10 {
            batch.push_histogram(id, UnixMillis(DAY0 + minute * MINUTE), wide_histogram());
        }
        send(&mut fixture.appender, batch, NOW);
    }
    fixture
}

/// Returns the bytes that a query has reserved when it ends; `None` when they exceed a maximum.
fn reserved(fixture: &Fixture, query: &str, memory_max: usize) -> Option<usize> {
    let budget = Budget::of_memory(memory_max);
    let limits = ExpressionLimits { budget: &budget, ..LIMITS };
    let request = request(query, 5 * MINUTE, 9 * MINUTE, MINUTE);
    let answer = promql(&fixture.store, &request, &limits, NOW);
    answer.ok().map(|_| budget.reserved())
}

#[test]
fn results_of_operators_on_histograms_count_as_memory() {
    let fixture = with_histograms();
    let plain = reserved(&fixture, "delays", 1 << 30).unwrap();
    // Five steps of each series; the copies have no spare capacity.
    let buckets = wide_histogram().positive.len() * size_of_val(&wide_histogram().positive[0]);
    let copies = 5 * SERIES as usize * buckets;
    for query in ["delays * 2", "-delays", "delays + delays", "delays / 3"] {
        let found = reserved(&fixture, query, 1 << 30).unwrap();
        assert!(found >= plain + copies, "{query}: {found} bytes, {plain} without, {copies}");
    }
}

#[test]
fn a_repeated_selector_of_histograms_is_read_in_chunks() {
    let fixture = with_histograms();
    let query = "sum(sum_over_time(delays[5m])) - sum(sum_over_time(delays[5m]))";
    // All series have 10 slots of three histograms each.
    let all = SERIES as usize * 10 * wide_histogram().bytes();
    assert!(reserved(&fixture, query, all).is_some());
    assert!(reserved(&fixture, "delays", all / 4).is_none());
}
