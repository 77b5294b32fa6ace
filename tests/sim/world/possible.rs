//! The possible worlds; see the folder's `mod.rs`.

use std::ops::Range;

use granary::{
    model::{AcceptedBatch, GranularitySet, SeriesId, SeriesInfo, SeriesKey, UnixMillis},
    store::NewReading,
};

use super::{Comparison, StoreContents, Verdict, World};

/// A request to the store's writer, which becomes durable completely or not at all.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Define(Vec<SeriesInfo>),
    Accept { batches: Vec<AcceptedBatch>, set: GranularitySet, now: UnixMillis },
    Change(Vec<(SeriesId, Option<SeriesKey>)>),
    ChangeKind(SeriesInfo),
    Erase(Vec<SeriesId>, Range<UnixMillis>),
    Replace { reading: NewReading, set: GranularitySet, now: UnixMillis },
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Defined(Vec<SeriesId>),
    Judged(Vec<Verdict>),
    Changed(usize),
    Replaced,
    Added,
}

impl Request {
    fn apply(&self, world: &mut World) -> Outcome {
        match self {
            Self::Define(definitions) => Outcome::Defined(world.define(definitions)),
            Self::Accept { batches, set, now } => {
                let accept_batch = |batch| world.accept(batch, set, *now);
                Outcome::Judged(batches.iter().map(accept_batch).collect())
            }
            Self::Change(updates) => {
                world.change(updates);
                Outcome::Changed(updates.len())
            }
            Self::Erase(series, range) => {
                world.erase(series, range);
                Outcome::Changed(series.len())
            }
            Self::Replace { reading, set, now } => world.replace(reading, set, *now),
            Self::ChangeKind(info) => Outcome::Defined(world.change_kind(info)),
        }
    }
}

/// The possible worlds.
#[derive(Debug, Clone)]
pub(crate) struct Worlds {
    possible: Vec<World>,
    /// Requests that failed since the last success: at most one of them is on disk.
    failed: Vec<Request>,
}

impl Default for Worlds {
    fn default() -> Self {
        Self { possible: vec![World::default()], failed: Vec::new() }
    }
}

impl Worlds {
    /// Notes a successful answer of the store.
    pub(crate) fn succeeded(&mut self, request: &Request, outcome: &Outcome) {
        let mut expected = Vec::new();
        let mut changed = false;
        self.possible.retain_mut(|world| {
            let before = world.clone();
            expected.push(request.apply(world));
            changed |= *world != before;
            expected.last() == Some(outcome)
        });
        assert!(!self.possible.is_empty(), "{outcome:?} instead of {expected:?} for {request:?}");
        // These requests append no record, so they leave what failed requests wrote to the log.
        let has_record = !matches!(request, Request::Erase(..)) && *outcome != Outcome::Replaced;
        if changed && has_record {
            // The transaction removed the writes of failed requests.
            self.failed.clear();
        }
    }

    /// Returns true when it is known whether a series has a sample of a time at any level.
    pub(crate) fn know(&self, series: SeriesId, at: UnixMillis) -> bool {
        self.possible.iter().all(|world| world.knows(series, at))
    }

    /// Notes an error of the store.
    pub(crate) fn failed(&mut self, request: Request) {
        self.failed.push(request);
    }

    /// Notes that the store was reopened: a failed request is present or absent.
    pub(crate) fn reopened(&mut self) {
        let count_before = self.possible.len();
        for request in std::mem::take(&mut self.failed) {
            for index in 0..count_before {
                let mut world = self.possible[index].clone();
                request.apply(&mut world);
                if !self.possible.contains(&world) {
                    self.possible.push(world);
                }
            }
        }
    }

    /// Notes that the store runs with these granularities at this time.
    pub(crate) fn expire(&mut self, set: &GranularitySet, now: UnixMillis) {
        self.possible.iter_mut().for_each(|world| world.expire(set, now));
    }

    /// Keeps the worlds that agree with the store.
    pub(crate) fn check(&mut self, found: &StoreContents) -> Result<Comparison, String> {
        let mut differences = Vec::new();
        let mut comparison = None;
        self.possible.retain(|world| {
            let checked = world.check(found).map_err(|difference| differences.push(difference));
            if let Ok(checked) = checked {
                let has_failed_request = !differences.is_empty();
                comparison.get_or_insert(Comparison { has_failed_request, ..checked });
            }
            checked.is_ok()
        });
        comparison.ok_or_else(|| differences.join("\nor, if a failed request is present: "))
    }
}
