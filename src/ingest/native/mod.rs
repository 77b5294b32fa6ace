//! The native protocol: batches with refs, which the sender's earlier definitions resolve.

mod samples;

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use granary_protocol::{BatchView, SeriesView};

use crate::{
    model::{Kind, SeriesId, SeriesInfo, SeriesKey, SeriesLimits},
    policy::{Admission, RefusalReason},
    store::Dictionary,
};
use samples::Samples;
pub use samples::{Admitted, UnknownRef};

/// The maximum number of senders that a collector remembers. Beyond it, all are forgotten and send
/// their definitions again.
const SESSIONS_MAX: usize = 50_000;
/// The memory of a refused definition and its message, counted in refs.
const FAULT_REFS: usize = 64;
/// The maximum length of a refused series in messages.
const SHOWN_BYTES_MAX: usize = 256;

/// The meaning of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Resolved {
    #[default]
    Unknown,
    Series(SeriesId),
    Refused(RefusalReason),
}

/// The definitions of one sender in its epoch.
#[derive(Debug, Default)]
struct Session {
    epoch: i64,
    refs: Vec<Resolved>,
    /// The refused definitions.
    faults: HashMap<u32, Fault>,
}

/// A refused definition.
#[derive(Debug)]
struct Fault {
    series: String,
    /// The message, if it says more than the reason.
    message: Option<String>,
}

/// The series that were refused because the store or the sender is at its limit.
pub type RefusedSeries = HashMap<SeriesKey, RefusalReason, RandomState>;

/// The definitions of all senders of one collector.
#[derive(Debug)]
pub struct Sessions {
    limits: SeriesLimits,
    sender_series_max: usize,
    by_sender: HashMap<Box<str>, Session, RandomState>,
    /// The generation of the dictionary that resolved the refs.
    generation: u64,
    /// The number of refs of all sessions.
    refs: usize,
    /// The limit at which all sessions are forgotten; the senders define their refs again.
    refs_max: usize,
}

impl Sessions {
    /// Returns sessions without senders.
    pub fn new(limits: SeriesLimits, sender_series_max: usize, refs_max: usize) -> Self {
        let by_sender = HashMap::default();
        Self { limits, sender_series_max, by_sender, generation: 0, refs: 0, refs_max }
    }

    /// Forgets the refs of series that were deleted or renamed; the senders define them again.
    pub fn renew(&mut self, dictionary: &Dictionary) {
        let before = std::mem::replace(&mut self.generation, dictionary.generation());
        if before == self.generation {
            return;
        }
        let refs = self.by_sender.values_mut().flat_map(|session| &mut session.refs);
        for resolved in refs {
            let stays = match resolved {
                Resolved::Series(id) => dictionary.is_current(*id, before),
                Resolved::Unknown | Resolved::Refused(RefusalReason::BadSeries) => true,
                // The limit may have room again.
                Resolved::Refused(_) => false,
            };
            if !stays {
                *resolved = Resolved::Unknown;
            }
        }
    }

    /// Notes a batch's definitions; returns the unknown ones, except for those above a limit. If
    /// none is returned, the caller must admit the batch at once: definitions of later requests may
    /// belong to another epoch, or to another sender with the same name.
    pub fn learn(
        &mut self,
        view: &BatchView<'_>,
        dictionary: &Dictionary,
        without_room: &RefusedSeries,
    ) -> Vec<SeriesInfo> {
        let full = self.by_sender.len() >= SESSIONS_MAX || self.refs > self.refs_max;
        if full && !self.by_sender.contains_key(view.agent) {
            self.by_sender.clear();
            self.refs = 0;
        }
        let session = self.by_sender.entry(view.agent.into()).or_default();
        let before = session.weight();
        if session.epoch != view.epoch {
            *session = Session { epoch: view.epoch, ..Session::default() };
        }
        let mut unknown = Vec::new();
        let sender: Arc<str> = view.agent.into();
        for series in &view.series {
            if series.reference as usize >= self.sender_series_max {
                continue;
            }
            let refuse = |reason, series, message| Err((reason, Fault { series, message }));
            let resolved = match definition(series, &sender, &self.limits) {
                Err(message) => refuse(RefusalReason::BadSeries, shown(series), Some(message)),
                Ok(definition) => match known(&definition, dictionary, without_room) {
                    None => {
                        unknown.push(definition);
                        Ok(Resolved::Unknown)
                    }
                    Some(Ok(id)) => Ok(Resolved::Series(id)),
                    Some(Err((reason, message))) => {
                        refuse(reason, definition.key.to_string(), message)
                    }
                },
            };
            session.resolve(series.reference, resolved);
        }
        self.refs = (self.refs + session.weight()).saturating_sub(before);
        unknown
    }

    /// Resolves and checks each sample of a batch. `kind` and `name` are called for few samples.
    ///
    /// # Errors
    /// A ref is unknown.
    pub fn admit(
        &self,
        view: &BatchView<'_>,
        admission: &Admission,
        kind: impl Fn(SeriesId) -> Option<Kind>,
        name: impl Fn(SeriesId) -> Option<String>,
    ) -> Result<Admitted, UnknownRef> {
        let session = self.by_sender.get(view.agent).filter(|session| session.epoch == view.epoch);
        let sender_series_max = self.sender_series_max;
        Samples { view, session, sender_series_max, admission }.admit(kind, name)
    }
}

impl Session {
    /// Returns the approximate memory of the session, counted in refs.
    fn weight(&self) -> usize {
        self.refs.len() + self.faults.len() * FAULT_REFS
    }

    fn resolve(&mut self, reference: u32, resolved: Result<Resolved, (RefusalReason, Fault)>) {
        let resolved = match resolved {
            Ok(resolved) => {
                self.faults.remove(&reference);
                resolved
            }
            Err((reason, fault)) => {
                self.faults.insert(reference, fault);
                Resolved::Refused(reason)
            }
        };
        let index = reference as usize;
        if index >= self.refs.len() {
            self.refs.resize(index + 1, Resolved::Unknown);
        }
        self.refs[index] = resolved;
    }

    fn get(&self, reference: u32) -> Resolved {
        self.refs.get(reference as usize).copied().unwrap_or_default()
    }
}

/// Returns the series of a definition, or the reason for its refusal; `None` when the series must
/// be registered first.
fn known(
    definition: &SeriesInfo,
    dictionary: &Dictionary,
    without_room: &RefusedSeries,
) -> Option<Result<SeriesId, (RefusalReason, Option<String>)>> {
    let found = dictionary.find(&definition.key);
    let Some((id, known)) = found.and_then(|id| Some((id, dictionary.info(id)?))) else {
        return without_room.get(&definition.key).map(|reason| Err((*reason, None)));
    };
    let refuse = |reason, message| Some(Err((reason, Some(message))));
    if known.kind != definition.kind {
        let (defined, kind) = (definition.kind, known.kind);
        let message =
            format!("the series is a {kind}, not a {defined}: use that kind or another name");
        return refuse(RefusalReason::KindConflict, message);
    }
    if !(definition.unit.is_empty() || known.unit.is_empty() || known.unit == definition.unit) {
        let (defined, unit) = (&definition.unit, &known.unit);
        let message =
            format!("the series' unit is {unit:?}, not {defined:?}: use that unit or another name");
        return refuse(RefusalReason::UnitConflict, message);
    }
    Some(Ok(id))
}

/// Returns a series in the form that responses use.
fn named(series: &SeriesView<'_>) -> String {
    let key = SeriesKey::new(series.metric, series.tags.iter().copied(), &SeriesLimits::default());
    key.map_or_else(|_| shown(series), |key| key.to_string())
}

/// Returns the name of a series without a valid key, shortened.
fn shown(series: &SeriesView<'_>) -> String {
    let tags = series.tags.iter().map(|(name, value)| format!("{name:?}={value:?}"));
    let tags = tags.collect::<Vec<_>>().join(",");
    let mut text = format!("{:?}{{{tags}}}", series.metric);
    let end = text.char_indices().map(|(at, char)| at + char.len_utf8());
    let end = end.take_while(|end| *end <= SHOWN_BYTES_MAX).last().unwrap_or(0);
    text.truncate(end);
    text
}

fn definition(
    series: &SeriesView<'_>,
    sender: &Arc<str>,
    limits: &SeriesLimits,
) -> Result<SeriesInfo, String> {
    let key = SeriesKey::new(series.metric, series.tags.iter().copied(), limits)
        .map_err(|cause| cause.to_string())?;
    if series.unit.len() > limits.name_bytes_max {
        return Err(format!("a unit of {} bytes is too long", series.unit.len()));
    }
    Ok(SeriesInfo { key, kind: series.kind, unit: series.unit.into(), sender: sender.clone() })
}

#[cfg(test)]
mod tests {
    use granary_protocol::{Batch, SeriesDefinition, decode_batch, encode_batch};

    use super::*;
    use crate::{model::GranularitySet, setup::NOW};

    /// Returns a batch that defines ref 0 as `metric`, if given, and has one sample of ref 0.
    fn batch(epoch: i64, metric: Option<&str>) -> Vec<u8> {
        let define = |metric: &str| SeriesDefinition {
            metric: metric.to_owned(),
            ..SeriesDefinition::default()
        };
        let batch = Batch {
            agent: "a".to_owned(),
            epoch,
            seq: 1,
            series: metric.map(define).into_iter().collect(),
            refs: vec![0],
            times: vec![NOW.0],
            values: vec![1.0],
            ..Batch::default()
        };
        let mut bytes = Vec::new();
        encode_batch(&batch, &mut bytes);
        bytes
    }

    #[test]
    fn an_older_epoch_that_waited_for_the_disk_does_not_change_the_refs_of_a_newer_one() {
        // Regression: while a definition of epoch 1 waited for a slow sync, the agent began epoch 2
        // with another series under the same ref; the response then overwrote it.
        let mut sessions = Sessions::new(SeriesLimits::default(), 10, 100);
        let mut dictionary = Dictionary::default();
        let none = RefusedSeries::default();
        let admission = Admission::new(&GranularitySet::default(), 0, NOW);
        let [old, new, more] = [batch(1, Some("old")), batch(2, Some("new")), batch(2, None)];
        let [old, new, more] = [&old, &new, &more].map(|bytes| decode_batch(bytes).unwrap());
        let admit = |sessions: &Sessions, view| {
            let admitted = sessions.admit(view, &admission, |_| None, |_| None)?;
            Ok::<_, UnknownRef>(admitted.batch.series)
        };

        let waiting = sessions.learn(&old, &dictionary, &none);
        let other = sessions.learn(&new, &dictionary, &none);
        let [old_id, new_id] =
            [waiting, other].map(|mut unknown| dictionary.add(unknown.remove(0)));
        assert_eq!(sessions.learn(&new, &dictionary, &none), []);
        assert_eq!(admit(&sessions, &new), Ok(vec![new_id]));
        // The first request continues, and is judged right after its definitions.
        assert_eq!(sessions.learn(&old, &dictionary, &none), []);
        assert_eq!(admit(&sessions, &old), Ok(vec![old_id]));
        // The newer epoch must define its refs again instead of using the older epoch's.
        assert!(admit(&sessions, &more).is_err());
        assert_eq!(sessions.learn(&new, &dictionary, &none), []);
        assert_eq!(admit(&sessions, &more), Ok(vec![new_id]));
    }
}
