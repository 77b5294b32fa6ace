//! One request with batches: its format, and the definitions that the daemon lacks.
//!
//! Must never know: the reaction to the outcome.

use std::{collections::BTreeMap, time::Duration};

use granary_protocol::SeriesDefinition;
use tracing::debug;

use super::Sender;
use crate::{
    clock::{Stopwatch, unix_ms},
    reporting::totals::Failure,
    sending::{
        client::RequestOutcome,
        request::{Form, build_body, refs_in},
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
        let outcome = self.post_with(batches, None, &left);
        if outcome != RequestOutcome::UnknownRefs {
            return Ok(outcome);
        }
        debug!("the daemon does not know the refs; sending their definitions");
        let refs = refs_in(batches).unwrap_or_default();
        let definitions = self.spool.definitions(&refs)?;
        let outcome = self.post_with(batches, Some(&definitions), &left);
        if outcome == RequestOutcome::UnknownRefs && definitions.len() < refs.len() {
            let missing = refs.len() - definitions.len();
            return Ok(RequestOutcome::Refused(format!(
                "{missing} refs have no definition in the spool"
            )));
        }
        Ok(outcome)
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
        let post = |form| match build_body(batches, epoch, unix_ms(), definitions, form, &ahead_of)
        {
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
        let form = self.client.form();
        let outcome = post(form);
        let is_final = form == Form::Bson || !matches!(outcome, RequestOutcome::Refused(_));
        if is_final { outcome } else { post(Form::Bson) }
    }
}
