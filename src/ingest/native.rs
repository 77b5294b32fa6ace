//! The native protocol: batches with refs, resolved by what the sender defined before.

use std::collections::HashMap;

use granary_protocol::{BatchView, SeriesView};

use super::refusals::Refusals;

use crate::{
    model::{Kind, SeriesId, SeriesKey, SeriesLimits, UnixMillis},
    pipeline::{Admission, RefusalReason},
    store::{AcceptedBatch, BatchNumber, Definition, DefinitionVerdict, Dictionary},
};

/// Senders remembered by one collector. Beyond that all are forgotten; they define again.
const SESSIONS_MAX: usize = 50_000;
/// A refused definition with its message takes as much memory as this many refs.
const FAULT_REFS: usize = 64;

/// What a ref stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Resolved {
    #[default]
    Unknown,
    Series(SeriesId),
    Refused(RefusalReason),
}

/// What one sender defined in its epoch.
#[derive(Debug, Default)]
struct Session {
    epoch: i64,
    refs: Vec<Resolved>,
    /// Why a definition was refused.
    faults: HashMap<u32, String>,
}

/// What the senders of one collector defined.
#[derive(Debug)]
pub struct Sessions {
    limits: SeriesLimits,
    sender_series_max: usize,
    by_agent: HashMap<Box<str>, Session>,
    /// The dictionary's generation in which the refs were resolved.
    generation: u64,
    /// Refs that all sessions hold.
    refs: usize,
    /// With more refs, all sessions are forgotten; the senders define again.
    refs_max: usize,
}

/// A definition that the dictionary does not hold yet, and whom it belongs to.
#[derive(Debug)]
pub struct Pending {
    /// What to make known.
    pub definition: Definition,
    agent: Box<str>,
    reference: u32,
    generation: u64,
}

/// A ref that the collector does not know; the sender is to define it and send again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "ref {reference} of agent {agent:?} is not known here: send the batch again with the \
     definitions of all its refs"
)]
pub struct UnknownRef {
    agent: String,
    reference: u32,
}

/// A batch that passed all checks, and what did not.
#[derive(Debug)]
pub struct Admitted {
    /// What to write.
    pub batch: AcceptedBatch,
    /// Samples that were in the batch, refused ones included.
    pub samples: u64,
    /// Samples refused for good.
    pub refused: Refusals,
}

impl Sessions {
    /// No sender is known yet.
    pub fn new(limits: SeriesLimits, sender_series_max: usize, refs_max: usize) -> Self {
        let by_agent = HashMap::new();
        Self { limits, sender_series_max, by_agent, generation: 0, refs: 0, refs_max }
    }

    /// The dictionary's generation that the refs were resolved by.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Forgets the refs of series that were deleted or renamed; their senders define them again.
    fn renew(&mut self, dictionary: &Dictionary) {
        let before = std::mem::replace(&mut self.generation, dictionary.generation());
        if before == self.generation {
            return;
        }
        let refs = self.by_agent.values_mut().flat_map(|session| &mut session.refs);
        for resolved in refs {
            let stays = match resolved {
                Resolved::Series(id) => dictionary.is_current(*id, before),
                Resolved::Unknown | Resolved::Refused(RefusalReason::BadSeries) => true,
                // There may be room now.
                Resolved::Refused(_) => false,
            };
            if !stays {
                *resolved = Resolved::Unknown;
            }
        }
    }

    /// Notes a batch's definitions; returns those that the dictionary does not hold yet.
    pub fn learn(&mut self, view: &BatchView<'_>, dictionary: &Dictionary) -> Vec<Pending> {
        self.renew(dictionary);
        let generation = self.generation;
        let full = self.by_agent.len() >= SESSIONS_MAX || self.refs > self.refs_max;
        if full && !self.by_agent.contains_key(view.agent) {
            self.by_agent.clear();
            self.refs = 0;
        }
        let session = self.by_agent.entry(view.agent.into()).or_default();
        let before = session.weight();
        if session.epoch != view.epoch {
            *session = Session { epoch: view.epoch, ..Session::default() };
        }
        let mut pending = Vec::new();
        for series in &view.series {
            let resolved = match definition(series, view.agent, &self.limits) {
                Ok(_) if series.reference as usize >= self.sender_series_max => {
                    Resolved::Refused(RefusalReason::SenderSeriesLimit)
                }
                Ok(definition) => match dictionary.find(&definition.key) {
                    Some((id, known)) if known.kind == definition.kind => Resolved::Series(id),
                    Some(_) => Resolved::Refused(RefusalReason::KindConflict),
                    None => {
                        let agent = view.agent.into();
                        let reference = series.reference;
                        pending.push(Pending { definition, agent, reference, generation });
                        Resolved::Unknown
                    }
                },
                Err(message) => {
                    if (series.reference as usize) < self.sender_series_max {
                        session.faults.insert(series.reference, message);
                    }
                    Resolved::Refused(RefusalReason::BadSeries)
                }
            };
            session.resolve(series.reference, resolved, self.sender_series_max);
        }
        self.refs = (self.refs + session.weight()).saturating_sub(before);
        pending
    }

    /// Notes what became of the definitions.
    pub fn settle(&mut self, pending: &[Pending], verdicts: &[DefinitionVerdict]) {
        // What was resolved before series were deleted or renamed may be one of these.
        let is_current = |pending: &Pending| pending.generation == self.generation;
        let settled = pending.iter().zip(verdicts).filter(|(pending, _)| is_current(pending));
        for (pending, verdict) in settled {
            let resolved = match verdict {
                DefinitionVerdict::Known(id) => Resolved::Series(*id),
                DefinitionVerdict::KindConflict(..) => {
                    Resolved::Refused(RefusalReason::KindConflict)
                }
                DefinitionVerdict::StoreLimit => Resolved::Refused(RefusalReason::SeriesLimit),
                DefinitionVerdict::SenderLimit => {
                    Resolved::Refused(RefusalReason::SenderSeriesLimit)
                }
            };
            if let Some(session) = self.by_agent.get_mut(&pending.agent) {
                session.resolve(pending.reference, resolved, self.sender_series_max);
            }
        }
    }

    /// Resolves and checks each sample of a batch.
    ///
    /// # Errors
    /// When a ref is not known.
    pub fn admit(
        &self,
        view: &BatchView<'_>,
        admission: &Admission,
        kind: impl Fn(SeriesId) -> Option<Kind>,
    ) -> Result<Admitted, UnknownRef> {
        let session = self.by_agent.get(view.agent).filter(|own| own.epoch == view.epoch);
        let samples = view.len();
        let number = BatchNumber { agent: view.agent.into(), epoch: view.epoch, seq: view.seq };
        let mut batch = AcceptedBatch {
            number: (view.seq != 0).then_some(number),
            window_ms: 0,
            series: Vec::with_capacity(samples),
            times: view.times().collect(),
            starts: view.starts().collect(),
            values: Vec::with_capacity(samples),
        };
        let mut refused = Refusals::default();
        // Filled from the first refusal on: most batches have none.
        let mut kept: Option<Vec<usize>> = None;
        for (index, (reference, value)) in view.refs().zip(view.values()).enumerate() {
            let resolved = session.map_or(Resolved::Unknown, |own| own.get(reference));
            let at = UnixMillis(batch.time(index));
            let verdict = match resolved {
                Resolved::Unknown if (reference as usize) < self.sender_series_max => {
                    return Err(UnknownRef { agent: view.agent.to_owned(), reference });
                }
                Resolved::Unknown => Err(RefusalReason::SenderSeriesLimit),
                Resolved::Refused(reason) => Err(reason),
                Resolved::Series(id) => admission.check(at, value, || kind(id)).map(|()| id),
            };
            match verdict {
                Ok(id) => {
                    batch.series.push(id);
                    // A NaN of any kind is one: stale markers are not spoken here.
                    batch.values.push(if value.is_nan() { f64::NAN } else { value });
                    if let Some(kept) = &mut kept {
                        kept.push(index);
                    }
                }
                Err(reason) => {
                    kept.get_or_insert_with(|| (0..index).collect());
                    refused.add(reason, || {
                        let message = session.and_then(|own| own.faults.get(&reference).cloned());
                        let message = message.filter(|_| reason == RefusalReason::BadSeries);
                        let explain = || admission.explain(reason, at, value);
                        (format!("ref {reference}"), message.unwrap_or_else(explain))
                    });
                }
            }
        }
        if let Some(kept) = kept {
            keep(&mut batch.times, &kept, samples);
            keep(&mut batch.starts, &kept, samples);
        }
        Ok(Admitted { batch, samples: samples as u64, refused })
    }
}

/// Keeps the entries of a column that has one for each sample.
fn keep(column: &mut Vec<i64>, kept: &[usize], samples: usize) {
    if column.len() == samples {
        *column = kept.iter().map(|index| column[*index]).collect();
    }
}

impl Session {
    /// About how much memory it takes, counted in refs.
    fn weight(&self) -> usize {
        self.refs.len() + self.faults.len() * FAULT_REFS
    }

    fn resolve(&mut self, reference: u32, resolved: Resolved, limit: usize) {
        let index = reference as usize;
        if index >= limit {
            return;
        }
        if index >= self.refs.len() {
            self.refs.resize(index + 1, Resolved::Unknown);
        }
        self.refs[index] = resolved;
    }

    fn get(&self, reference: u32) -> Resolved {
        self.refs.get(reference as usize).copied().unwrap_or_default()
    }
}

fn definition(
    series: &SeriesView<'_>,
    sender: &str,
    limits: &SeriesLimits,
) -> Result<Definition, String> {
    let key = SeriesKey::new(series.metric, series.tags.iter().copied(), limits)
        .map_err(|cause| cause.to_string())?;
    if series.unit.len() > limits.name_bytes_max {
        return Err(format!("a unit of {} bytes is too long", series.unit.len()));
    }
    Ok(Definition { key, kind: series.kind, unit: series.unit.into(), sender: sender.into() })
}
