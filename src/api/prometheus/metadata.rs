//! `metadata`: type and unit of each metric. Help texts are not stored.

use actix_web::HttpResponse;

use super::{
    answer::{Answer, Data, MetricEntry},
    query,
    receive::{Received, respond},
    series::ask,
};
use crate::{
    api::shards::METADATA,
    model::Kind,
    query::{ListedMetric, list_metrics},
};

pub(super) async fn metadata(received: Received) -> HttpResponse {
    respond("promql_metadata", received, |call| {
        let limit = call.params.limit()?.unwrap_or(usize::MAX);
        let metric = call.params.get("metric");
        let own = list_metrics(&call.parts.store, metric, &call.limits()).map_err(query::fault)?;
        let others: Vec<Vec<ListedMetric>> = ask(call, METADATA, &metric)?;
        let all = with_others(own, others);
        let entries = all.into_iter().flat_map(entries).take(limit);
        Ok(Answer::new(Data::Metrics(entries.collect())))
    })
    .await
}

/// Adds the metrics of other shards, in order. The first shard's metadata of a metric count.
fn with_others(own: Vec<ListedMetric>, others: Vec<Vec<ListedMetric>>) -> Vec<ListedMetric> {
    if others.is_empty() {
        return own;
    }
    let mut all = own;
    all.extend(others.into_iter().flatten());
    // The sort is stable.
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.dedup_by(|next, kept| next.name == kept.name);
    all
}

/// Returns the entries of a metric: for the buckets of a histogram also the family, which is the
/// name that clients look up.
fn entries(metric: ListedMetric) -> Vec<MetricEntry> {
    let ListedMetric { name, kind, unit } = metric;
    let word = match kind {
        Kind::Counter => "counter",
        Kind::Gauge | Kind::Delta => "gauge",
        Kind::Histogram | Kind::DeltaHistogram => "histogram",
        Kind::GaugeHistogram => "gaugehistogram",
    };
    let family = name.strip_suffix("_bucket").filter(|_| kind == Kind::Counter);
    let family = family.map(|family| MetricEntry {
        name: family.to_owned(),
        kind: "histogram",
        unit: unit.clone(),
    });
    let entry = MetricEntry { name, kind: word, unit };
    family.into_iter().chain([entry]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_all_shards_are_listed_once_in_order() {
        let metric = |name: &str, unit: &str| {
            let (name, kind, unit) = (name.to_owned(), Kind::Gauge, unit.to_owned());
            ListedMetric { name, kind, unit }
        };
        let others = vec![vec![metric("a", ""), metric("b", "s")], vec![metric("a", "")]];
        let expected = [metric("a", ""), metric("b", "m"), metric("c", "")];
        assert_eq!(with_others(vec![metric("b", "m"), metric("c", "")], others), expected);
    }

    #[test]
    fn buckets_of_a_histogram_also_list_their_family() {
        let names = |name: &str, kind| {
            let metric = ListedMetric { name: name.to_owned(), kind, unit: String::new() };
            entries(metric).into_iter().map(|entry| (entry.name, entry.kind)).collect::<Vec<_>>()
        };
        assert_eq!(
            names("latency_bucket", Kind::Counter),
            [("latency".to_owned(), "histogram"), ("latency_bucket".to_owned(), "counter")]
        );
        assert_eq!(names("ice_bucket", Kind::Gauge), [("ice_bucket".to_owned(), "gauge")]);
        assert_eq!(names("clicks", Kind::Delta), [("clicks".to_owned(), "gauge")]);
    }
}
