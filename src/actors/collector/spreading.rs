//! The spreading of a request over the shards of a store: each shard gets its part, and the request
//! is acknowledged when all have answered.
//!
//! A repeated request counts once: by the numbers of its batches, or by the times of each series.
//! Must never know: nodes, HTTP.

use std::collections::BTreeMap;

use futures_util::future::{try_join, try_join_all};
use granary_protocol::{BatchView, IngestAnswer, InvalidSamples};

use super::{
    answers::{CollectFault, RowsAnswer},
    others::{OtherShards, Sending, SentBatches, SentRows},
    parts::CollectorParts,
};
use crate::ingest::{
    protocol::{BatchEncoding, DecodedBody},
    refusals::Refusals,
    rows::{SplitRows, shard_of_sender},
};

/// The shard whose holder spreads requests.
const FIRST: u16 = 0;
/// The maximum number of examples in an answer.
const EXAMPLES_MAX: usize = 10;

/// Spreads batches: those of a sender go to one shard. `here` collects those of the first one.
pub(super) async fn spread_batches<F>(
    views: &[BatchView<'_>],
    decoded: DecodedBody,
    encoding: BatchEncoding,
    (others, parts): (&dyn OtherShards, &CollectorParts),
    here: impl FnOnce(DecodedBody) -> F,
) -> Result<IngestAnswer, CollectFault>
where
    F: Future<Output = Result<IngestAnswer, CollectFault>>,
{
    let DecodedBody { bson, invalid, replace } = decoded;
    let mut invalid = invalid.into_iter();
    let mut bodies: BTreeMap<u16, (Vec<u8>, Vec<InvalidSamples>)> = BTreeMap::new();
    for (view, bytes) in views.iter().zip(granary_protocol::split_batches(&bson)?) {
        let shard = shard_of_sender(view.agent, others.count());
        let (body, of_shard) = bodies.entry(shard).or_default();
        body.extend_from_slice(bytes);
        of_shard.extend(invalid.next());
    }
    let own = bodies.remove(&FIRST);
    let mut refused = Refusals::default();
    let mut sent = Vec::new();
    for (shard, (body, invalid)) in bodies {
        let batches = SentBatches { body: body.into(), encoding, replace };
        sent.push(others.send_batches(shard, parts.store.project(), batches));
        for invalid in invalid {
            refused.add_invalid(invalid);
        }
    }
    let own = own.map(|(body, invalid)| here(DecodedBody { bson: body.into(), invalid, replace }));
    let mut answer = IngestAnswer::default();
    for part in all_answers(own, sent).await? {
        add(&mut answer, part);
    }
    refused.report(&mut answer);
    Ok(answer)
}

/// Spreads rows. `here` collects those of the first shard.
pub(super) async fn spread_rows<F>(
    split: SplitRows,
    sender: &str,
    (others, parts): (&dyn OtherShards, &CollectorParts),
    here: impl FnOnce(Vec<u8>) -> F,
) -> Result<RowsAnswer, CollectFault>
where
    F: Future<Output = Result<RowsAnswer, CollectFault>>,
{
    let SplitRows { parts: mut bodies, refused, refused_points } = split;
    let own = bodies.iter().position(|(shard, _)| *shard == FIRST);
    let own = own.map(|index| bodies.remove(index).1);
    let send = |(shard, body): (u16, Vec<u8>)| {
        let rows = SentRows { body: body.into(), sender: sender.into() };
        others.send_rows(shard, parts.store.project(), rows)
    };
    let sent = bodies.into_iter().map(send).collect();
    let mut whole = RowsAnswer { refused_points, ..RowsAnswer::default() };
    for part in all_answers(own.map(here), sent).await? {
        add(&mut whole.answer, part.answer);
        whole.refused_points += part.refused_points;
    }
    refused.report(&mut whole.answer);
    Ok(whole)
}

/// Waits for the answers of the other shards, and of the first one if it has a part.
async fn all_answers<T>(
    own: Option<impl Future<Output = Result<T, CollectFault>>>,
    sent: Vec<Sending<T>>,
) -> Result<Vec<T>, CollectFault> {
    let others = try_join_all(sent);
    let Some(own) = own else { return others.await };
    let (own, mut answers) = try_join(own, others).await?;
    answers.push(own);
    Ok(answers)
}

/// Adds the answer of a shard.
fn add(whole: &mut IngestAnswer, part: IngestAnswer) {
    let IngestAnswer { accepted, replaced, duplicates, emptied, refused, examples, renumber } =
        part;
    whole.accepted += accepted;
    whole.replaced += replaced;
    whole.duplicates += duplicates;
    for (sender, count) in emptied {
        *whole.emptied.entry(sender).or_default() += count;
    }
    for (reason, count) in refused {
        *whole.refused.entry(reason).or_default() += count;
    }
    let room = EXAMPLES_MAX.saturating_sub(whole.examples.len());
    whole.examples.extend(examples.into_iter().take(room));
    whole.renumber.extend(renumber);
}
