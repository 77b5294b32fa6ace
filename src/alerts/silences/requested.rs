//! Creation and replacement of silences.
//!
//! Must never know: where silences are stored, who sends requests.

use super::{Recurrence, Silence, SilenceFault, SilenceState, Silences};
use crate::{alerts::LabelMatcher, model::UnixMillis};

/// The maximum number of silences; expired ones make room for new ones.
pub(super) const SILENCES_MAX: usize = 2000;
/// The maximum number of matchers of a silence.
const MATCHERS_MAX: usize = 32;
/// The maximum number of patterns of all silences, because each is compiled.
const PATTERNS_MAX: usize = 2000;
const AUTHOR_BYTES_MAX: usize = 256;
const COMMENT_BYTES_MAX: usize = 4096;

/// A request for a new silence, or for a change.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are those of a silence")]
pub struct NewSilence {
    /// The id of the silence to change; `None`: a new one.
    pub id: Option<String>,
    pub matchers: Vec<LabelMatcher>,
    pub starts_at: UnixMillis,
    pub ends_at: UnixMillis,
    pub created_by: String,
    pub comment: String,
    /// The recurrence. `None`: the request does not mention it, so that a recurring silence is not
    /// changed by mistake.
    pub recurring: Option<Option<Recurrence>>,
}

impl Silence {
    /// Returns whether a change keeps the past effect of the silence (Alertmanager's `canUpdate`).
    fn may_become(&self, new: &NewSilence, now: UnixMillis) -> bool {
        let is_same = self.matchers == new.matchers
            && new.recurring.as_ref().is_none_or(|recurring| *recurring == self.recurring);
        // The start may be changed until the silence has begun.
        let has_begun = self.starts_at <= now.0;
        is_same
            && self.state(now) != SilenceState::Expired
            && if has_begun { new.starts_at.0 == self.starts_at } else { new.starts_at >= now }
    }
}

impl Silences {
    /// Returns the changes that a request makes: the new or changed silence, then the silence that
    /// it replaces. `new_id` is the id of a new silence.
    ///
    /// # Errors
    /// When the request is invalid, its id is unknown, or there is no room.
    pub fn create_or_change(
        &self,
        new: NewSilence,
        new_id: String,
        now: UnixMillis,
    ) -> Result<Vec<Silence>, SilenceFault> {
        let before = match &new.id {
            None => None,
            Some(id) => Some(self.get(id).ok_or_else(|| SilenceFault::NotFound(id.clone()))?),
        };
        check(&new, before, now)?;
        if let Some(before) = before.filter(|silence| silence.may_become(&new, now)) {
            let recurring = new.recurring.unwrap_or_else(|| before.recurring.clone());
            return Ok(vec![Silence {
                id: before.id.clone(),
                matchers: new.matchers,
                starts_at: new.starts_at.0,
                ends_at: new.ends_at.0,
                updated_at: now.0,
                created_by: new.created_by,
                comment: new.comment,
                recurring,
            }]);
        }
        self.check_room(&new)?;
        let created = Silence {
            id: new_id,
            matchers: new.matchers,
            starts_at: new.starts_at.max(now).0,
            ends_at: new.ends_at.0,
            updated_at: now.0,
            created_by: new.created_by,
            comment: new.comment,
            recurring: new.recurring.flatten(),
        };
        let replaced = before.filter(|silence| silence.state(now) != SilenceState::Expired);
        Ok([Some(created), replaced.map(|silence| silence.with_end_at(now))]
            .into_iter()
            .flatten()
            .collect())
    }

    /// Returns the ids of the expired silences to remove for a new one, the earliest end first.
    pub fn expired_to_remove(&self, new: &NewSilence, now: UnixMillis) -> Vec<String> {
        let mut expired = self.expired(now);
        expired.retain(|silence| new.id.as_ref() != Some(&silence.id));
        let patterns =
            |all: &[LabelMatcher]| all.iter().filter(|matcher| matcher.is_pattern()).count();
        let mut count = self.0.len();
        let mut compiled: usize = self.0.values().map(|silence| patterns(&silence.matchers)).sum();
        let is_full = |count: usize, compiled: usize| {
            count >= SILENCES_MAX || compiled + patterns(&new.matchers) > PATTERNS_MAX
        };
        let to_remove = expired.iter().take_while(|silence| {
            let is_removed = is_full(count, compiled);
            (count, compiled) = (count - 1, compiled - patterns(&silence.matchers));
            is_removed
        });
        let remove_count = to_remove.count();
        expired.truncate(remove_count);
        expired.into_iter().map(|silence| silence.id.clone()).collect()
    }

    /// Returns the expired silences, the earliest end first.
    pub fn expired(&self, now: UnixMillis) -> Vec<&Silence> {
        let is_expired = |silence: &&Silence| silence.state(now) == SilenceState::Expired;
        let mut expired: Vec<_> = self.0.values().filter(is_expired).collect();
        expired.sort_by_key(|silence| silence.ends_at);
        expired
    }

    fn check_room(&self, new: &NewSilence) -> Result<(), SilenceFault> {
        if self.0.len() >= SILENCES_MAX {
            let message = format!("{} silences are the maximum: expire some", self.0.len());
            return Err(SilenceFault::Invalid(message));
        }
        let patterns =
            |all: &[LabelMatcher]| all.iter().filter(|matcher| matcher.is_pattern()).count();
        let count: usize = self.0.values().map(|silence| patterns(&silence.matchers)).sum();
        if count + patterns(&new.matchers) > PATTERNS_MAX {
            let message =
                format!("all silences together have {PATTERNS_MAX} patterns at most: use values");
            return Err(SilenceFault::Invalid(message));
        }
        Ok(())
    }
}

fn check(new: &NewSilence, before: Option<&Silence>, now: UnixMillis) -> Result<(), SilenceFault> {
    let invalid = |message: &str| Err(SilenceFault::Invalid(message.to_owned()));
    if new.starts_at >= new.ends_at {
        return invalid("start time must be before end time");
    }
    if new.ends_at <= now {
        return invalid("end time can't be in the past");
    }
    if new.matchers.is_empty() || new.matchers.len() > MATCHERS_MAX {
        let message = format!("name 1 to {MATCHERS_MAX} matchers");
        return Err(SilenceFault::Invalid(message));
    }
    if new.matchers.iter().all(|matcher| matcher.accepts("")) {
        return invalid("at least one matcher must not match the empty string");
    }
    for (name, text, bytes_max) in [
        ("createdBy", &new.created_by, AUTHOR_BYTES_MAX),
        ("comment", &new.comment, COMMENT_BYTES_MAX),
    ] {
        if text.trim().is_empty() || text.len() > bytes_max {
            let message = format!("{name}: write 1 to {bytes_max} bytes");
            return Err(SilenceFault::Invalid(message));
        }
    }
    if new.recurring.is_none() && before.is_some_and(|silence| silence.recurring.is_some()) {
        return invalid(
            "this silence recurs: also send `recurring`; null makes it a silence that does not",
        );
    }
    Ok(())
}
