//! Charts: one point for each slot of a range.

use std::{ops::Range, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Display, QueryError, QueryLimits, Selector, SeriesEntry};
use crate::{
    model::{SeriesId, UnixMillis},
    pipeline::query_plan::{self, Segment},
    store::Store,
};

/// Points of a chart when the resolution is left to the daemon.
const AUTO_POINTS: usize = 1500;

/// Width of a chart's slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The finest granularity that gives a readable number of points.
    Auto,
    /// A granularity, by name.
    Named(String),
}

impl FromStr for Resolution {
    type Err = std::convert::Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(if word == "auto" { Self::Auto } else { Self::Named(word.to_owned()) })
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartRequest {
    /// Which series.
    pub selector: Selector,
    /// How wide the slots are.
    pub resolution: Resolution,
    /// From when to when, end exclusive; widened to whole slots.
    pub range: Range<UnixMillis>,
    /// Which number is shown; by kind when `None`.
    pub display: Option<Display>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChartAnswer {
    /// Granularity of the points.
    pub resolution: String,
    /// Start of the first slot, Unix milliseconds.
    pub start: i64,
    /// End of the last slot, Unix milliseconds.
    pub end: i64,
    /// The series in order of metric and tags.
    pub series: Vec<ChartSeries>,
    /// What a reader should know, such as that a part comes from a coarser granularity.
    pub notes: Vec<String>,
}

/// One series of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChartSeries {
    /// Which series.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// Which number of each slot is shown.
    pub display: String,
    /// Slot start in Unix milliseconds and number; `None` where the slot is empty.
    pub points: Vec<(i64, Option<f64>)>,
}

/// Answers a chart request.
///
/// # Errors
/// When the resolution is not known, the answer too large, or the store cannot be read.
pub fn chart(
    store: &Store,
    request: &ChartRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<ChartAnswer, QueryError> {
    let level = level_of(store, &request.resolution, &request.range)?;
    let segments = query_plan::segments(store.granularities(), level, request.range.clone(), now);
    let found = request.selector.select_within(store, limits)?;
    let points: i64 =
        segments.iter().map(|segment| slot_starts(store, segment).count() as i64).sum();
    if points * found.len().max(1) as i64 > limits.points_max as i64 {
        return Err(QueryError::TooMuch(format!(
            "{} series of {points} points are more than {}: ask for a shorter range, a coarser \
             resolution or fewer series, or raise limits.query_points_max",
            found.len(),
            limits.points_max
        )));
    }
    let mut series: Vec<_> = found
        .iter()
        .map(|(_, info)| ChartSeries {
            series: SeriesEntry::new(info),
            display: String::new(),
            points: Vec::with_capacity(points as usize),
        })
        .collect();
    let ids: Vec<SeriesId> = found.iter().map(|(id, _)| *id).collect();
    for segment in &segments {
        let view = store.view(segment.level, segment.range.clone(), &ids)?;
        for ((id, info), out) in found.iter().zip(&mut series) {
            let display = request.display.unwrap_or_else(|| Display::of_kind(info.kind));
            out.display = display_name(display);
            let filled = view.slots(*id)?;
            push_points(store, segment, &filled, display, &mut out.points);
        }
    }
    let granularity = &store.granularities().levels()[level];
    Ok(ChartAnswer {
        resolution: granularity.name.clone(),
        start: granularity.slot_start(request.range.start).0,
        end: granularity.slot_start(request.range.end.plus(granularity.width_ms - 1)).0,
        series,
        notes: notes(store, level, &segments, &request.range),
    })
}

/// The granularity that is asked for.
pub(super) fn level_of(
    store: &Store,
    resolution: &Resolution,
    range: &Range<UnixMillis>,
) -> Result<usize, QueryError> {
    let granularities = store.granularities();
    match resolution {
        Resolution::Auto => Ok(query_plan::level_for_points(granularities, range, AUTO_POINTS)),
        Resolution::Named(name) => {
            granularities.named(name).map(|(level, _)| level).ok_or_else(|| {
                let known: Vec<_> =
                    granularities.levels().iter().map(|level| level.name.as_str()).collect();
                QueryError::Invalid(format!(
                    "resolution={name:?} is not kept; use auto or one of {}",
                    known.join(", ")
                ))
            })
        }
    }
}

fn display_name(display: Display) -> String {
    serde_json::to_value(display)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn slot_starts(store: &Store, segment: &Segment) -> impl Iterator<Item = i64> + use<> {
    let granularity = &store.granularities().levels()[segment.level];
    let width = granularity.width_ms;
    let first = granularity.slot_start(segment.range.start).0;
    (first..segment.range.end.0).step_by(width as usize)
}

fn push_points(
    store: &Store,
    segment: &Segment,
    filled: &[crate::store::Slot],
    display: Display,
    points: &mut Vec<(i64, Option<f64>)>,
) {
    let width = store.granularities().levels()[segment.level].width_ms;
    let mut filled = filled.iter().peekable();
    for start in slot_starts(store, segment) {
        let slot = filled.next_if(|slot| slot.start.0 == start);
        points.push((start, slot.and_then(|slot| display.of_cell(&slot.cell, width))));
    }
}

fn notes(
    store: &Store,
    level: usize,
    segments: &[Segment],
    range: &Range<UnixMillis>,
) -> Vec<String> {
    let name = |level: usize| &store.granularities().levels()[level].name;
    let coarser = segments.iter().filter(|segment| segment.level != level);
    let mut notes: Vec<_> = coarser
        .map(|segment| {
            format!(
                "{} is no longer kept before {}: {} is shown there",
                name(level),
                segment.range.end,
                name(segment.level)
            )
        })
        .collect();
    let oldest = segments.first().map_or(range.end, |segment| segment.range.start);
    if oldest > range.start {
        notes.push(format!("nothing is kept before {oldest}"));
    }
    notes
}
