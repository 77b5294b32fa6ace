//! The response to a request with batches, from the verdicts of the writer.
//!
//! Must never know: how batches are resolved, HTTP.

use granary_protocol::{BatchView, IngestAnswer};

use crate::{
    actors::collector::{answers::CollectFault, parts::CollectorParts},
    ingest::refusals::Refusals,
    model::BatchVerdict,
    policy::RefusalReason,
    telemetry::Protocol,
};

/// The data for one batch's part of the response.
#[derive(Debug)]
pub(super) struct ResponsePart {
    /// The batch's number; 0 if it is not numbered.
    pub(super) seq: u64,
    pub(super) samples: u64,
    pub(super) refused: Refusals,
}

/// Counts the accepted and refused samples of each batch, and returns the response.
pub(super) fn answer(
    protocol_label: Protocol,
    verdicts: Vec<BatchVerdict>,
    views: &[BatchView<'_>],
    response_parts: Vec<ResponsePart>,
    parts: &CollectorParts,
) -> Result<IngestAnswer, CollectFault> {
    let mut answer = IngestAnswer::default();
    let mut sender_limit = None;
    // A client must not resend a request if part of it is not numbered.
    let may_repeat = response_parts.iter().all(|part| part.seq != 0);
    for ((verdict, view), part) in verdicts.into_iter().zip(views).zip(response_parts) {
        let ResponsePart { seq, samples, mut refused } = part;
        let refuse_all = |reason| Refusals::of_batch(reason, samples);
        match verdict {
            BatchVerdict::Accepted(tally) => {
                let reason = RefusalReason::OutOfOrder;
                refused.add_many(reason, tally.out_of_order, || reason.remedy().to_owned());
                let repeated = tally.of_replica + tally.duplicates;
                let accepted = samples - refused.total() - repeated;
                parts.tally.accept(view.agent, accepted, parts.clock.now());
                answer.accepted += accepted;
                answer.duplicates += repeated;
            }
            BatchVerdict::Empty => parts.tally.accept(view.agent, 0, parts.clock.now()),
            BatchVerdict::Duplicate => {
                answer.duplicates += samples;
                continue;
            }
            BatchVerdict::StaleNumber => refused = refuse_all(RefusalReason::StaleNumber),
            BatchVerdict::FarNumber => refused = refuse_all(RefusalReason::FarNumber),
            BatchVerdict::SenderLimit if may_repeat => {
                sender_limit = Some(CollectFault::SenderLimit);
                continue;
            }
            BatchVerdict::SenderLimit => refused = refuse_all(RefusalReason::SenderLimit),
        }
        if refused.is_for_batch_number() {
            answer.renumber.push(seq);
        }
        parts.count(protocol_label, &IngestAnswer::default(), &refused);
        refused.report(&mut answer);
    }
    parts.count(protocol_label, &answer, &Refusals::default());
    sender_limit.map_or(Ok(answer), Err)
}
