//! `metadata`: type and unit of each metric. A help text is not kept.

use actix_web::HttpResponse;

use super::{
    answer::{Answer, Data, MetricEntry},
    query,
    receive::{Received, respond},
};
use crate::{
    model::Kind,
    query::{ListedMetric, list_metrics},
};

pub(super) async fn metadata(received: Received) -> HttpResponse {
    respond("promql_metadata", received, |asked| {
        let limit = asked.params.limit()?.unwrap_or(usize::MAX);
        let wanted = asked.params.get("metric");
        let all = list_metrics(&asked.parts.store, wanted, &asked.limits()).map_err(query::of)?;
        let entries = all.into_iter().flat_map(entries).take(limit);
        Ok(Answer::of(Data::Metrics(entries.collect())))
    })
    .await
}

/// The metric; and for the buckets of a histogram the family, under which clients look for it.
fn entries(metric: ListedMetric) -> Vec<MetricEntry> {
    let ListedMetric { name, kind, unit } = metric;
    let word = match kind {
        Kind::Counter => "counter",
        Kind::Gauge | Kind::Delta => "gauge",
    };
    let family = name.strip_suffix("_bucket").filter(|_| kind == Kind::Counter);
    let family = family.map(|family| MetricEntry {
        name: family.to_owned(),
        kind: "histogram",
        unit: unit.clone(),
    });
    let own = MetricEntry { name, kind: word, unit };
    family.into_iter().chain([own]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buckets_of_a_histogram_name_their_family() {
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
