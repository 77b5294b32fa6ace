//! The counted steps: `check.sh` finds them by their names, so they are never inlined.

use std::hint::black_box;

use granary_ingest::{
    protocol::{RowDecoder, RowProtocol},
    remote_write::Version,
    rows::{DecodedRows, Rows},
    series_cache::SeriesCache,
};
use granary_model::{AcceptedBatch, DefinitionVerdict, SeriesKey, SeriesLimits, UnixMillis};
use granary_policy::Admission;
use granary_query::{PromqlAnswer, QueryResources};
use granary_store::{Appender, Store};

use super::query::{MINUTE, query};

/// The state of the daemon's collector.
pub(super) struct Collector {
    pub(super) decoder: RowDecoder,
    pub(super) cache: SeriesCache,
    pub(super) store: Store,
}

/// Decodes a remote write request.
#[inline(never)]
pub(super) fn decode(collector: &mut Collector, body: &[u8], now: UnixMillis) -> DecodedRows {
    let Collector { decoder, cache, store } = collector;
    let find = |key: &SeriesKey| {
        let dictionary = store.dictionary();
        let id = dictionary.find(key)?;
        Some((id, dictionary.kind(id)?))
    };
    let limits = SeriesLimits::default();
    let mut rows = Rows::new(cache, &find, &limits, "instructions");
    decoder.decode(RowProtocol::RemoteWrite(Version::V1), body, now, &mut rows).unwrap();
    rows.finish()
}

/// Registers the new series of a request.
#[inline(never)]
pub(super) fn register(
    appender: &mut Appender,
    rows: &DecodedRows,
    now: UnixMillis,
) -> Vec<DefinitionVerdict> {
    appender.commit(&rows.definitions(), &[], now).unwrap().definitions
}

/// Checks the samples of a request.
#[inline(never)]
pub(super) fn admit(
    collector: &mut Collector,
    rows: DecodedRows,
    verdicts: &[DefinitionVerdict],
    now: UnixMillis,
) -> AcceptedBatch {
    let Collector { cache, store, .. } = collector;
    let admission = Admission::by_rule(store.classes(), 5 * MINUTE, now);
    let kind = |series| store.dictionary().kind(series);
    let name = |series| Some(store.dictionary().key(series)?.to_string());
    let class = |series, at| store.class_at(series, at);
    let (batch, refused) = rows.admit(verdicts, cache, &admission, (kind, class, name), 5 * MINUTE);
    assert!(refused.counts.is_empty());
    batch
}

/// Makes a batch durable, and adds it to the catalog.
#[inline(never)]
pub(super) fn append(appender: &mut Appender, batch: AcceptedBatch, now: UnixMillis) {
    let verdict = appender.commit(&[], &[batch], now).unwrap();
    assert!(verdict.batches[0].is_accepted());
}

/// Runs a checkpoint whose cells stay in the head.
#[inline(never)]
pub(super) fn checkpoint(store: &Store, now: UnixMillis) {
    store.checkpoint(now).unwrap();
}

/// Runs the checkpoint that writes and seals the documents of the hour.
#[inline(never)]
pub(super) fn seal(store: &Store, now: UnixMillis) {
    // Otherwise, it could be merged with the function above.
    black_box("seal");
    store.checkpoint(now).unwrap();
}

macro_rules! queries {
    ($($name:ident, $doc:literal, $text:literal, $is_range:literal;)*) => {
        $(#[doc = $doc] #[inline(never)]
        pub(super) fn $name(store: &Store, resources: &QueryResources) -> PromqlAnswer {
            // Equal functions would be merged into one.
            black_box(stringify!($name));
            query(store, resources, $text, $is_range)
        })*
    };
}

queries! {
    under_way_rate, "The rates of a metric.", "rate(m0_total[5m])", true;
    under_way_topk, "The hosts with the highest rates.", "topk(5, rate(m1_total[5m]))", false;
    under_way_sum, "A sum over all hosts.", "sum(m3)", true;
    under_way_sum_by, "Sums of rates.", "sum by (datacenter) (rate(m2_total[2m]))", true;
    under_way_host, "All series of a host.", "{host=\"web0100\"}", true;
    sealed_rate, "The rates of a metric.", "rate(m0_total[5m])", true;
    sealed_topk, "The hosts with the highest rates.", "topk(5, rate(m1_total[5m]))", false;
    sealed_sum, "A sum over all hosts.", "sum(m3)", true;
    sealed_sum_by, "Sums of rates.", "sum by (datacenter) (rate(m2_total[2m]))", true;
    sealed_host, "All series of a host.", "{host=\"web0100\"}", true;
    sealed_second_rate, "Rates that the cache keeps from now on.", "rate(m0_total[5m])", true;
    sealed_second_topk, "The highest rates twice.", "topk(5, rate(m1_total[5m]))", false;
    sealed_second_sum, "A sum over all hosts twice.", "sum(m3)", true;
    sealed_second_sum_by, "Sums twice.", "sum by (datacenter) (rate(m2_total[2m]))", true;
    sealed_second_host, "All series of a host twice.", "{host=\"web0100\"}", true;
    sealed_again_rate, "Rates that are in the cache.", "rate(m0_total[5m])", true;
    sealed_again_topk, "The highest rates again.", "topk(5, rate(m1_total[5m]))", false;
    sealed_again_sum, "A sum over all hosts again.", "sum(m3)", true;
    sealed_again_sum_by, "Sums again.", "sum by (datacenter) (rate(m2_total[2m]))", true;
    sealed_again_host, "All series of a host again.", "{host=\"web0100\"}", true;
}
