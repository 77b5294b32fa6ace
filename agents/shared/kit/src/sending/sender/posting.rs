//! One request with batches: its format, and the definitions that the daemon lacks.
//!
//! Must never know: the reaction to the outcome.

use std::{collections::BTreeMap, time::Duration};

use granary_protocol::SeriesDefinition;
use tracing::{debug, warn};

use super::Sender;
use crate::{
    clock::{Stopwatch, unix_ms},
    reporting::totals::Failure,
    sending::{
        client::RequestOutcome,
        request::{Form, build_body, count_histograms, refs_in},
    },
    spool::{SpoolError, StoredBatch},
};

impl Sender {
    /// Posts the batches within the timeout. When the daemon does not know their refs, the batches
    /// are posted again with all definitions.
    pub(super) fn post(
        &self,
        batches: &[StoredBatch],
        timeout: Duration,
    ) -> Result<RequestOutcome, SpoolError> {
        let watch = Stopwatch::start();
        let left = || watch.left_of(timeout);
        let histograms = count_histograms(batches);
        if histograms > 0 && self.client.reads_histograms().is_none() {
            debug!("the batches have histograms; asking the daemon whether it stores them");
            let outcome = self.client.ask(timeout);
            if self.client.reads_histograms().is_none() {
                return Ok(outcome);
            }
        }
        self.post_all(batches, &left)
    }

    /// Counts histograms that were omitted, and warns of the first.
    fn note_omitted(&self, histograms: u64) {
        if self.totals.histograms_omitted.get() == 0 {
            warn!(
                histograms,
                "the daemon does not store native histograms; they are omitted: update the \
                 daemon, or let the collector send numbers"
            );
        }
        self.totals.histograms_omitted.add(histograms);
    }

    fn post_all(
        &self,
        batches: &[StoredBatch],
        left: &dyn Fn() -> Duration,
    ) -> Result<RequestOutcome, SpoolError> {
        let outcome = self.post_with(batches, None, left);
        if outcome != RequestOutcome::UnknownRefs {
            return Ok(outcome);
        }
        debug!("the daemon does not know the refs; sending their definitions");
        let refs = refs_in(batches, self.sends_histograms()).unwrap_or_default();
        let definitions = self.spool.definitions(&refs)?;
        let outcome = self.post_with(batches, Some(&definitions), left);
        if outcome == RequestOutcome::UnknownRefs && definitions.len() < refs.len() {
            let missing = refs.len() - definitions.len();
            return Ok(RequestOutcome::Refused(format!(
                "{missing} refs have no definition in the spool"
            )));
        }
        Ok(outcome)
    }

    /// Returns true unless the daemon is known to store only numbers.
    fn sends_histograms(&self) -> bool {
        self.client.reads_histograms() != Some(false)
    }

    /// Posts the batches in the format of the daemon. A packed request that is rejected is repeated
    /// as BSON, because an older daemon may have replaced the newer daemon.
    fn post_with(
        &self,
        batches: &[StoredBatch],
        definitions: Option<&BTreeMap<u32, SeriesDefinition>>,
        left: &dyn Fn() -> Duration,
    ) -> RequestOutcome {
        let ahead_of = |seq| self.ahead_of(seq);
        let epoch = self.spool.epoch();
        let histograms = count_histograms(batches);
        let body = |form| build_body(batches, epoch, unix_ms(), definitions, form, &ahead_of);
        let post = |form, has_histograms| match body((form, has_histograms)) {
            Ok(body) if !left().is_zero() => {
                self.totals.requests.add(1);
                self.client.post(&body, left())
            }
            // Only an answer of the daemon leads to a second request.
            Ok(_) => {
                let cause = "no time is left to repeat the request".to_owned();
                RequestOutcome::Retry { after: None, cause, failure: Failure::Answer }
            }
            Err(cause) => {
                RequestOutcome::Refused(format!("the stored batches cannot be decoded: {cause}"))
            }
        };
        let (form, has_histograms) = (self.client.form(), self.sends_histograms());
        let omits = histograms > 0 && !has_histograms;
        let mut outcome = post(form, has_histograms);
        // An older daemon has refused the kinds of histograms.
        let were_too_new = histograms > 0 && has_histograms && !self.sends_histograms();
        if matches!(outcome, RequestOutcome::Refused(_)) && (form == Form::Packed || were_too_new) {
            outcome = post(Form::Bson, has_histograms && !were_too_new);
        }
        // An older daemon ignores histograms that it does not refuse.
        if (omits || were_too_new) && matches!(outcome, RequestOutcome::Acknowledged(_)) {
            self.note_omitted(histograms);
        }
        outcome
    }
}
