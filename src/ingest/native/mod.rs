//! The native protocol: batches with refs, which the sender's earlier definitions resolve.

mod samples;

use std::{collections::HashMap, ops::Deref, sync::Arc};

use foldhash::fast::RandomState;
use granary_protocol::{BatchView, SeriesView};

use crate::{
    model::{Distributions, Kind, SeriesId, SeriesInfo, SeriesKey, SeriesLimits, UnixMillis},
    policy::{Admission, KindConflicts, RefusalReason},
    store::{Dictionary, ProjectDictionary},
};
use samples::Samples;
pub use samples::{AdmittedBatch, FormerSeries, SeriesLookup, UnknownRef};

/// The maximum number of senders that a collector remembers. Beyond it, the collector forgets all
/// senders, and these send their definitions again.
const SESSIONS_MAX: usize = 50_000;
/// The memory of a refused definition and its message, counted in refs.
const FAULT_REFS: usize = 64;
/// The maximum length of a refused series in messages.
const SHOWN_BYTES_MAX: usize = 256;

/// The meaning of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ResolvedRef {
    #[default]
    Unknown,
    Series(SeriesId),
    /// A series of histograms.
    Histograms(SeriesId),
    /// A series of histograms whose samples are numbers: observations of a distribution.
    Observations(SeriesId),
    /// A part of a series whose kind has changed: the time of a sample decides to which part the
    /// sample belongs.
    Former(SeriesId),
    Refused(RefusalReason),
}

/// The definitions of one sender in its epoch.
#[derive(Debug, Default)]
struct Session {
    epoch: i64,
    refs: Vec<ResolvedRef>,
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

/// The series that the writer has decided about during a request, each with the reason for its
/// refusal, or with `KindConflict` when its kind does not change again.
pub type DecidedSeries = HashMap<SeriesKey, RefusalReason, RandomState>;

/// The definitions that the writer must register before the batch can be admitted.
#[derive(Debug, Default, PartialEq)]
pub struct Unknown {
    /// The definitions of new series.
    pub new: Vec<SeriesInfo>,
    /// The definitions of series that are known with another kind.
    pub of_other_kind: Vec<SeriesInfo>,
}

impl Unknown {
    /// Returns true when all series are known.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.of_other_kind.is_empty()
    }
}

/// The definitions of all senders of one collector.
#[derive(Debug)]
pub struct Sessions {
    limits: SeriesLimits,
    sender_series_max: usize,
    by_sender: HashMap<Box<str>, Session, RandomState>,
    /// The generation of the dictionary that resolved the refs.
    generation: u64,
    conflicts: KindConflicts,
    /// The number of refs of all sessions.
    refs: usize,
    /// The limit at which all sessions are forgotten; the senders define their refs again.
    refs_max: usize,
    /// The gauges whose samples are observations.
    distributions: Distributions,
}

impl Sessions {
    /// Returns sessions without senders.
    pub fn new(limits: SeriesLimits, sender_series_max: usize, refs_max: usize) -> Self {
        let by_sender = HashMap::default();
        let conflicts = KindConflicts::default();
        let (generation, refs) = (0, 0);
        let distributions = Distributions::default();
        Self {
            limits,
            sender_series_max,
            by_sender,
            generation,
            conflicts,
            refs,
            refs_max,
            distributions,
        }
    }

    /// Changes the limits; see [`Sessions::new`].
    pub fn set_limits(&mut self, sender_series_max: usize, refs_max: usize) {
        (self.sender_series_max, self.refs_max) = (sender_series_max, refs_max);
    }

    /// Changes the gauges whose samples are observations. After a change, the senders define their
    /// refs again.
    pub fn set_distributions(&mut self, distributions: &Distributions) {
        if !self.distributions.is_same(distributions) {
            self.by_sender.clear();
            self.refs = 0;
        }
        self.distributions.clone_from(distributions);
    }

    /// Forgets the refs of series that were deleted or renamed and, after a while, the refs that
    /// were refused because of their kind; the senders define them again.
    pub fn renew(
        &mut self,
        dictionary: &ProjectDictionary<'_, impl Deref<Target = Dictionary>>,
        now: UnixMillis,
    ) {
        let before = std::mem::replace(&mut self.generation, dictionary.generation());
        let checks_kinds = self.conflicts.expire(now);
        if before == self.generation && !checks_kinds {
            return;
        }
        let refs = self.by_sender.values_mut().flat_map(|session| &mut session.refs);
        for resolved in refs {
            if let ResolvedRef::Series(id) | ResolvedRef::Histograms(id) = *resolved
                && let Some(whole) = dictionary.whole_of(id)
                && dictionary.has_parts_of_another_kind(whole)
            {
                *resolved = ResolvedRef::Former(id);
            }
            let is_current = match resolved {
                ResolvedRef::Series(id)
                | ResolvedRef::Histograms(id)
                | ResolvedRef::Observations(id) => dictionary.is_current(*id, before),
                ResolvedRef::Former(id) => dictionary.whole_of(*id).is_some(),
                ResolvedRef::Unknown | ResolvedRef::Refused(RefusalReason::BadSeries) => true,
                // The limit may have room again.
                ResolvedRef::Refused(_) => false,
            };
            if !is_current {
                *resolved = ResolvedRef::Unknown;
            }
        }
    }

    /// Stores a batch's definitions and returns the unknown ones, except for decided series. If all
    /// are known, the caller must admit the batch at once: definitions of later requests may belong
    /// to another epoch, or to another sender with the same name. With `may_change`, a definition
    /// changes the kind of a known series.
    pub fn add_definitions(
        &mut self,
        view: &BatchView<'_>,
        dictionary: &ProjectDictionary<'_, impl Deref<Target = Dictionary>>,
        decided: &DecidedSeries,
        (may_change, now): (bool, UnixMillis),
    ) -> Unknown {
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
        let mut unknown = Unknown::default();
        let sender: Arc<str> = view.agent.into();
        for series in &view.series {
            if series.reference as usize >= self.sender_series_max {
                continue;
            }
            let refuse = |reason, series, message| Err((reason, Fault { series, message }));
            let resolved = match definition(series, &sender, &self.limits) {
                Err(message) => {
                    refuse(RefusalReason::BadSeries, shortened_name(series), Some(message))
                }
                Ok(mut definition) => {
                    let metric = definition.key.metric();
                    let change = if self.distributions.observes(metric, definition.kind) {
                        definition.kind = Kind::DeltaHistogram;
                        KindChange::Observations
                    } else if may_change {
                        KindChange::Declared
                    } else {
                        KindChange::None
                    };
                    match definition_state(&definition, dictionary, decided, change) {
                        DefinitionState::Unknown => {
                            unknown.new.push(definition);
                            Ok(ResolvedRef::Unknown)
                        }
                        DefinitionState::OfOtherKind(sender) => {
                            unknown.of_other_kind.push(SeriesInfo { sender, ..definition });
                            Ok(ResolvedRef::Unknown)
                        }
                        DefinitionState::Resolved(resolved) => Ok(resolved),
                        DefinitionState::Refused(reason, message) => {
                            if reason == RefusalReason::KindConflict {
                                self.conflicts.note(now);
                            }
                            refuse(reason, definition.key.to_string(), message)
                        }
                    }
                }
            };
            session.resolve(series.reference, resolved);
        }
        self.refs = (self.refs + session.weight()).saturating_sub(before);
        unknown
    }

    /// Returns the number of samples of a batch that become observations, by their refs.
    pub fn observations(&self, view: &BatchView<'_>) -> usize {
        let Some(session) = self.session(view).filter(|_| !self.distributions.is_empty()) else {
            return 0;
        };
        let is_observed =
            |reference: &u32| matches!(session.get(*reference), ResolvedRef::Observations(_));
        view.refs().filter(is_observed).count()
    }

    /// Returns the definitions of a batch's sender in the epoch of the batch.
    fn session(&self, view: &BatchView<'_>) -> Option<&Session> {
        self.by_sender.get(view.agent).filter(|session| session.epoch == view.epoch)
    }

    /// Resolves and checks each sample of a batch.
    ///
    /// # Errors
    /// A ref is unknown.
    pub fn admit(
        &self,
        view: &BatchView<'_>,
        admission: &Admission,
        lookup: &SeriesLookup<
            impl Fn(SeriesId) -> Option<Kind>,
            impl Fn(SeriesId, UnixMillis) -> usize,
            impl Fn(SeriesId) -> Option<String>,
            impl Fn(SeriesId, UnixMillis) -> FormerSeries,
        >,
    ) -> Result<AdmittedBatch, UnknownRef> {
        let session = self.session(view);
        let sender_series_max = self.sender_series_max;
        Samples { view, session, sender_series_max, admission }.admit(lookup)
    }
}

impl Session {
    /// Returns the approximate memory of the session, counted in refs.
    fn weight(&self) -> usize {
        self.refs.len() + self.faults.len() * FAULT_REFS
    }

    fn resolve(&mut self, reference: u32, resolved: Result<ResolvedRef, (RefusalReason, Fault)>) {
        let resolved = match resolved {
            Ok(resolved) => {
                self.faults.remove(&reference);
                resolved
            }
            Err((reason, fault)) => {
                self.faults.insert(reference, fault);
                ResolvedRef::Refused(reason)
            }
        };
        let index = reference as usize;
        if index >= self.refs.len() {
            self.refs.resize(index + 1, ResolvedRef::Unknown);
        }
        self.refs[index] = resolved;
    }

    fn get(&self, reference: u32) -> ResolvedRef {
        self.refs.get(reference as usize).copied().unwrap_or_default()
    }
}

/// The reason why a definition changes the kind of a known series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KindChange {
    /// The sender guesses kinds.
    None,
    /// The sender declares the kind.
    Declared,
    /// The settings make the samples of the series observations, whatever its kind was.
    Observations,
}

/// The state of a defined series.
enum DefinitionState {
    Resolved(ResolvedRef),
    /// The series does not exist.
    Unknown,
    /// The series has another kind, and may get the kind of the definition from this sender.
    OfOtherKind(Arc<str>),
    Refused(RefusalReason, Option<String>),
}

fn definition_state(
    definition: &SeriesInfo,
    dictionary: &ProjectDictionary<'_, impl Deref<Target = Dictionary>>,
    decided: &DecidedSeries,
    change: KindChange,
) -> DefinitionState {
    let found = dictionary.find(&definition.key);
    let Some((id, known)) = found.and_then(|id| Some((id, dictionary.info(id)?))) else {
        let reason = decided.get(&definition.key).copied();
        let reason = reason.filter(|reason| *reason != RefusalReason::KindConflict);
        return reason
            .map_or(DefinitionState::Unknown, |reason| DefinitionState::Refused(reason, None));
    };
    if known.kind != definition.kind {
        let part = part_of_kind(dictionary, id, definition.kind);
        if let Some(part) = part.filter(|_| change == KindChange::Declared) {
            return DefinitionState::Resolved(ResolvedRef::Former(part));
        }
        if change != KindChange::None && !decided.contains_key(&definition.key) {
            // The settings change a gauge, and no sender: the series stays its sender's.
            let is_setting = change == KindChange::Observations && known.kind == Kind::Gauge;
            let sender = if is_setting { known.sender } else { definition.sender.clone() };
            return DefinitionState::OfOtherKind(sender);
        }
        let (defined, kind) = (definition.kind, known.kind);
        let message =
            format!("the series is a {kind}, not a {defined}: use that kind or another name");
        return DefinitionState::Refused(RefusalReason::KindConflict, Some(message));
    }
    if !(definition.unit.is_empty() || known.unit.is_empty() || known.unit == definition.unit) {
        let (defined, unit) = (&definition.unit, &known.unit);
        let message =
            format!("the series' unit is {unit:?}, not {defined:?}: use that unit or another name");
        return DefinitionState::Refused(RefusalReason::UnitConflict, Some(message));
    }
    DefinitionState::Resolved(if change == KindChange::Observations {
        ResolvedRef::Observations(id)
    } else if definition.kind.is_histogram() {
        ResolvedRef::Histograms(id)
    } else {
        ResolvedRef::Series(id)
    })
}

/// Returns the newest part of a series with a kind.
fn part_of_kind(
    dictionary: &ProjectDictionary<'_, impl Deref<Target = Dictionary>>,
    id: SeriesId,
    kind: Kind,
) -> Option<SeriesId> {
    let mut parts = dictionary.parts(id).iter().rev().copied();
    parts.find(|part| dictionary.kind(*part) == Some(kind))
}

/// Returns a series in the form that responses use.
fn name_of(series: &SeriesView<'_>) -> String {
    let key = SeriesKey::new(series.metric, series.tags.iter().copied(), &SeriesLimits::default());
    key.map_or_else(|_| shortened_name(series), |key| key.to_string())
}

/// Returns the name of a series without a valid key, shortened.
fn shortened_name(series: &SeriesView<'_>) -> String {
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
mod tests;
