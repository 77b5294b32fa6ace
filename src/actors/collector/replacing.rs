//! Replacement of stored readings, for batches of JSON with `replace`.
//!
//! A checkpoint runs before the writer replaces readings, so that the checkpoint of the replacement
//! itself is short. Must never know: encodings of batches, HTTP.

use granary_protocol::BatchView;
use tokio::{sync::Mutex, task::spawn_blocking};

use super::{answers::CollectFault, parts::CollectorParts};
use crate::{
    actors::WriteFault,
    ingest::refusals::Refusals,
    model::{AcceptedBatch, BatchVerdict, SeriesId, TimesTally},
    policy::RefusalReason,
    store::{NewReading, REPLACED_MAX, ReplaceVerdict, Store, StoreError},
};

/// Held while a request is processed: one at a time.
static RUNNING: Mutex<()> = Mutex::const_new(());
/// The number of attempts while checkpoints or snapshots run.
const ATTEMPTS: usize = 20;

/// Checks the number of readings of a request.
pub(super) fn check_replaced(views: &[BatchView<'_>]) -> Result<(), CollectFault> {
    let readings: usize = views.iter().map(BatchView::len).sum();
    if readings > REPLACED_MAX {
        return Err(CollectFault::TooMany(format!(
            "{readings} readings to replace in one request, more than {REPLACED_MAX}"
        )));
    }
    Ok(())
}

/// Replaces the stored readings of the same series and times, or adds the readings where none is
/// stored. Adds the refused readings of each batch to `refused`; returns the verdicts of the
/// batches, and the number of replaced readings.
pub(super) async fn replace(
    batches: &[AcceptedBatch],
    refused: impl Iterator<Item = &mut Refusals>,
    parts: &CollectorParts,
) -> Result<(Vec<BatchVerdict>, u64), CollectFault> {
    let Ok(_running) = RUNNING.try_lock() else {
        let reason = "another request replaces readings: retry when it is complete";
        return Err(WriteFault::Busy(reason).into());
    };
    let reading = |batch: &AcceptedBatch, index| NewReading {
        series: batch.series[index],
        at: batch.time(index),
        value: batch.values[index],
    };
    let of_batch = |batch| (0..batch_len(batch)).map(move |index| reading(batch, index));
    let readings: Vec<_> = batches.iter().flat_map(of_batch).collect();
    let verdicts = if readings.is_empty() { Vec::new() } else { commit(&readings, parts).await? };
    let (mut verdicts, mut replaced) = (readings.iter().zip(verdicts), 0);
    for (batch, refused) in batches.iter().zip(refused) {
        for (reading, verdict) in verdicts.by_ref().take(batch_len(batch)) {
            match verdict {
                ReplaceVerdict::Replaced => replaced += 1,
                ReplaceVerdict::Added => {}
                ReplaceVerdict::Refused(refusal) => {
                    let describe = || (name(&parts.store, reading.series), refusal.to_string());
                    refused.add(RefusalReason::NotReplaceable, describe);
                }
            }
        }
    }
    let verdict = |batch: &AcceptedBatch| match batch_len(batch) {
        0 => BatchVerdict::Empty,
        _ => BatchVerdict::Accepted(TimesTally::default()),
    };
    Ok((batches.iter().map(verdict).collect(), replaced))
}

fn batch_len(batch: &AcceptedBatch) -> usize {
    batch.series.len()
}

fn name(store: &Store, series: SeriesId) -> String {
    let dictionary = store.dictionary();
    let merged = dictionary.whole_of(series).unwrap_or(series);
    dictionary.key(merged).map(ToString::to_string).unwrap_or_default()
}

/// Sends the readings to the writer, which replaces them only between two checkpoints, and
/// completes the change of files.
async fn commit(
    readings: &[NewReading],
    parts: &CollectorParts,
) -> Result<Vec<ReplaceVerdict>, WriteFault> {
    for _ in 0..ATTEMPTS {
        let (store, now) = (parts.store.clone(), parts.clock.moment());
        // This call also waits until a running checkpoint or snapshot is complete.
        run_blocking(move || store.checkpoint(now).map(drop)).await?;
        if let Some(verdicts) = parts.writer.replace(readings.to_vec()).await? {
            let store = parts.store.clone();
            run_blocking(move || store.complete_erasure()).await?;
            return Ok(verdicts);
        }
    }
    Err(WriteFault::Busy("a checkpoint or a snapshot is under way; retry when it is complete"))
}

/// Runs an operation of the store outside of the async threads.
async fn run_blocking(
    run: impl FnOnce() -> Result<(), StoreError> + Send + 'static,
) -> Result<(), WriteFault> {
    match spawn_blocking(run).await {
        Ok(outcome) => outcome.map_err(|cause| WriteFault::from(&cause)),
        Err(cause) => Err(WriteFault::Failed(cause.to_string())),
    }
}
