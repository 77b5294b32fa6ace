//! The workload whose instructions `benches/instructions/check.sh` counts: ingest, checkpoints,
//! sealing, and queries while their hour is under way, and three times after it was sealed: the
//! second time, the cache keeps columns, from which the third query is answered.
//!
//! Times and values are fixed, and one thread does all the work.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot continue has failed")]

mod fleet;
mod query;
mod steps;

use std::{hint::black_box, sync::Arc};

use granary_ingest::{protocol::RowDecoder, remote_write::Families, series_cache::SeriesCache};
use granary_model::GranularitySet;
use granary_query::{PromqlAnswer, PromqlValue, QueryResources, Scheduler};
use granary_store::{Appender, Folder, Store};

use fleet::{Fleet, HOSTS, METRICS};
use query::{BEGIN, MINUTE};
use steps::Collector;

/// The daemon's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A checkpoint follows ten samples of each series, as with the daemon's defaults.
const MINUTES_A_CHECKPOINT: i64 = 10;

type Query = fn(&Store, &QueryResources) -> PromqlAnswer;

/// Runs queries, and checks their numbers of series.
fn run(queries: [Query; 5], store: &Store, resources: &QueryResources) {
    let counts = queries.map(|query| match black_box(query(store, resources)).value {
        PromqlValue::Vector(samples) => samples.len(),
        PromqlValue::Matrix(series) => series.len(),
        PromqlValue::Scalar(..) | PromqlValue::String(..) => 0,
    });
    assert_eq!(counts, [HOSTS, 5, 1, 7, METRICS]);
}

/// Sends a sample of each series every minute, with checkpoints.
fn ingest_hour(store: &Store, appender: &mut Appender) {
    let decoder = RowDecoder::new(Arc::default(), Families::default());
    let mut collector = Collector { decoder, cache: SeriesCache::default(), store: store.clone() };
    let mut fleet = Fleet::new();
    for minute in 0..60 {
        let now = BEGIN.plus(minute * MINUTE + 7000);
        for body in fleet.next_requests(now.0) {
            let rows = steps::decode(&mut collector, &body, now);
            let is_new = !rows.definitions().is_empty();
            let verdicts = if is_new { steps::register(appender, &rows, now) } else { Vec::new() };
            let batch = steps::admit(&mut collector, rows, &verdicts, now);
            steps::append(appender, batch, now);
        }
        if minute % MINUTES_A_CHECKPOINT == MINUTES_A_CHECKPOINT / 2 {
            steps::checkpoint(store, now);
        }
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let medium = Arc::new(Folder::new(folder.path()).unwrap());
    let (store, mut appender, _) = Store::open(medium, GranularitySet::default(), BEGIN).unwrap();
    ingest_hour(&store, &mut appender);
    let resources = QueryResources::new(Scheduler::for_this_machine(), 512 << 20);
    let under_way: [Query; 5] = [
        steps::under_way_rate,
        steps::under_way_topk,
        steps::under_way_sum,
        steps::under_way_sum_by,
        steps::under_way_host,
    ];
    run(under_way, &store, &resources);
    steps::seal(&store, BEGIN.plus(64 * MINUTE));
    let sealed: [Query; 5] = [
        steps::sealed_rate,
        steps::sealed_topk,
        steps::sealed_sum,
        steps::sealed_sum_by,
        steps::sealed_host,
    ];
    run(sealed, &store, &resources);
    let second: [Query; 5] = [
        steps::sealed_second_rate,
        steps::sealed_second_topk,
        steps::sealed_second_sum,
        steps::sealed_second_sum_by,
        steps::sealed_second_host,
    ];
    run(second, &store, &resources);
    let again: [Query; 5] = [
        steps::sealed_again_rate,
        steps::sealed_again_topk,
        steps::sealed_again_sum,
        steps::sealed_again_sum_by,
        steps::sealed_again_host,
    ];
    run(again, &store, &resources);
}
