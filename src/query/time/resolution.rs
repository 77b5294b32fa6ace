//! The width of an answer's slots: requested by name, or the finest width that a number of points
//! allows.
//!
//! Must never know: series. When no granularity has the requested width, slots are merged from the
//! coarsest granularity that divides it.

use std::{collections::BTreeSet, fmt, ops::Range, str::FromStr};

use crate::{
    model::{Granularity, GranularityIndex, GranularitySet, Span, UnixMillis},
    policy::coverage::Coverage,
    query::{CalendarUnit, QueryError},
};

/// Maximum number of slots of a chart with automatic resolution, unless the request sets a maximum.
pub(crate) const AUTO_POINTS: usize = 1500;
const DAY_MS: i64 = 86_400_000;
/// The widest slot: a thousand years.
const WIDEST_MS: i64 = 365_250 * DAY_MS;

/// Slot widths, in seconds, for automatic resolution. Wider slots double in width.
const AUTO_SECONDS: [i64; 14] =
    [5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800];

/// Width of an answer's slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The finest resolution that results in a readable number of points.
    Auto,
    /// A granularity, or a multiple of a granularity, by name.
    Named(String),
    /// Buckets of the calendar.
    Calendar(CalendarUnit),
}

impl FromStr for Resolution {
    type Err = std::convert::Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(match (word, CalendarUnit::named(word)) {
            ("auto", _) => Self::Auto,
            (_, Some(unit)) => Self::Calendar(unit),
            (name, None) => Self::Named(name.to_owned()),
        })
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Named(name) => formatter.write_str(name),
            Self::Calendar(unit) => formatter.write_str(&unit.name()),
        }
    }
}

/// Returns the coarsest granularity whose slots divide a width.
pub(crate) fn granularity_of_width(
    granularities: &GranularitySet,
    width_ms: i64,
) -> Option<GranularityIndex> {
    granularities.coarsest_by_width(|stored_ms| width_ms % stored_ms == 0)
}

/// Returns the start of the slot that contains a time. Slots of whole weeks begin on Monday.
pub(crate) fn slot_start(width_ms: i64, at: UnixMillis) -> UnixMillis {
    Span::Fixed(width_ms).start_of(at)
}

/// Extends a range to whole slots of a width.
pub(crate) fn whole_slots(width_ms: i64, range: &Range<UnixMillis>) -> Range<UnixMillis> {
    let end = slot_start(width_ms, range.end.minus(1)).plus(width_ms);
    slot_start(width_ms, range.start)..end
}

/// Parses a slot width.
///
/// # Errors
/// When no granularity divides the width.
pub(crate) fn named_width(granularities: &GranularitySet, name: &str) -> Result<i64, QueryError> {
    let width = match name.parse() {
        Ok(Span::Fixed(ms)) => Some(ms),
        Ok(Span::Months(_)) | Err(_) => None,
    };
    width.filter(|width| granularity_of_width(granularities, *width).is_some()).ok_or_else(|| {
        let units = CalendarUnit::NAMED.map(|(_, unit)| unit).join(", ");
        QueryError::Invalid(format!(
            "resolution={name:?} is not kept; use auto, one of {}, or for charts one of {units}, or \
             a whole multiple of a granularity",
            names(granularities)
        ))
    })
}

/// Returns the narrowest width, at least `least_ms`, that results in at most `points` slots over a
/// range and is stored for the whole range. When no such width exists, returns the narrowest width
/// with at most `points` slots.
pub(crate) fn auto_width(
    coverage: &Coverage<'_>,
    range: &Range<UnixMillis>,
    points: usize,
    least_ms: i64,
) -> i64 {
    let granularities = coverage.granularities();
    let stored = granularities.iter().map(|granularity| granularity.width_ms);
    let merged = AUTO_SECONDS.iter().map(|seconds| seconds * 1000);
    let doubled = std::iter::successors(Some(14 * DAY_MS), |width| width.checked_mul(2));
    let widths: BTreeSet<_> =
        stored.chain(merged).chain(doubled.take_while(|width| *width < WIDEST_MS)).collect();
    let fits = |width: &(i64, GranularityIndex)| {
        let slots = whole_slots(width.0, range);
        (slots.end.0 - slots.start.0) / width.0 <= points as i64
    };
    let mut available = widths
        .range(least_ms..)
        .filter_map(|width| Some((*width, granularity_of_width(granularities, *width)?)));
    let fitting: Vec<_> = available.clone().filter(fits).collect();
    let whole = fitting.iter().find(|(width, granularity)| {
        coverage.makes_whole(*granularity, &whole_slots(*width, range))
    });
    let found = whole.or(fitting.first()).copied().or_else(|| available.next_back());
    found.map_or(DAY_MS, |(width, _)| width)
}

/// Returns the granularity whose documents a request selects.
pub(crate) fn granularity_of_documents(
    coverage: &Coverage<'_>,
    resolution: &Resolution,
    range: &Range<UnixMillis>,
    points: usize,
) -> Result<GranularityIndex, QueryError> {
    let granularities = coverage.granularities();
    match resolution {
        Resolution::Auto => {
            Ok(crate::policy::query_plan::granularity_for_points(coverage, range, points))
        }
        Resolution::Named(name) => {
            granularities.named(name).map(|(index, _)| index).ok_or_else(|| {
                QueryError::Invalid(format!(
                    "resolution={name:?} is not kept in documents; use auto or one of {}",
                    names(granularities)
                ))
            })
        }
        Resolution::Calendar(unit) => Err(QueryError::Invalid(format!(
            "resolution={} is not kept in documents; use auto or one of {}",
            unit.name(),
            names(granularities)
        ))),
    }
}

/// Returns the granularity that a shard chose for all shards, in the granularities of this shard.
///
/// # Errors
/// When this shard does not have it.
pub(crate) fn granularity_of_shard<'g>(
    granularities: &'g GranularitySet,
    (name, shard): (&str, usize),
) -> Result<(GranularityIndex, &'g Granularity), QueryError> {
    granularities.named(name).ok_or_else(|| {
        QueryError::Invalid(format!(
            "shard {shard} keeps the range in {name}, which shard 0 does not have; name one of {} \
             with resolution",
            names(granularities)
        ))
    })
}

fn names(granularities: &GranularitySet) -> String {
    let names: Vec<_> = granularities.iter().map(|granularity| &*granularity.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Gaps, setup::WITHIN as NOW};

    #[test]
    fn the_granularity_of_another_shard_is_named_when_this_shard_does_not_have_it() {
        let set = GranularitySet::default();
        let (index, found) = granularity_of_shard(&set, ("1h", 3)).unwrap();
        assert_eq!((index, found), set.named("1h").unwrap());
        let refused = granularity_of_shard(&set, ("7m", 3)).unwrap_err();
        let expected = "shard 3 keeps the range in 7m, which shard 0 does not have; name one of \
                        1m, 5m, 1h, 1d with resolution";
        assert!(
            matches!(&refused, QueryError::Invalid(message) if message == expected),
            "{refused}"
        );
    }

    fn width(days: f64, points: usize) -> String {
        let set = GranularitySet::default();
        let coverage = Coverage::new(&set, vec![Gaps::NONE; 4], NOW);
        let range = NOW.minus((days * DAY_MS as f64) as i64)..NOW;
        let width = auto_width(&coverage, &range, points, 0);
        let slots = whole_slots(width, &range);
        assert!((slots.end.0 - slots.start.0) / width <= points as i64, "{days} {points}");
        Span::Fixed(width).to_string()
    }

    #[test]
    fn slots_are_merged_until_they_fit() {
        assert_eq!(width(1.0, 1500), "1m");
        assert_eq!(width(2.0, 1500), "5m");
        assert_eq!(width(1.0, 300), "5m");
        assert_eq!(width(1.0, 100), "15m");
        assert_eq!(width(1.0, 10), "3h");
        assert_eq!(width(14.0, 60), "6h");
        assert_eq!(width(30.0, 1500), "1h");
        assert_eq!(width(365.0, 1500), "1d");
        assert_eq!(width(365.0, 10), "56d");
        assert_eq!(width(5.0 * 365.0, 1500), "2d");
        for points in 1..200 {
            for days in [0.01, 0.3, 1.0, 7.7, 31.0, 366.0, 1826.0, 20_000.0] {
                width(days, points);
            }
        }
    }

    #[test]
    fn a_width_is_a_multiple_of_a_granularity() {
        let set = GranularitySet::default();
        let width = |name: &str| named_width(&set, name).map_err(|fault| fault.to_string());
        assert_eq!(width("15m"), Ok(900_000));
        assert_eq!(
            width("90s").unwrap_err().split(';').next(),
            Some("resolution=\"90s\" is not kept")
        );
        assert!(width("soon").unwrap_err().contains("quarter, year"));
        let granularity = |name: &str| granularity_of_width(&set, width(name).unwrap());
        assert_eq!(
            ["2m", "15m", "90m", "6h", "36h", "1w"].map(granularity),
            [0, 1, 1, 2, 2, 3].map(|index| Some(GranularityIndex(index)))
        );
    }
}
