//! What the journal remembers of the granularities: their spans, and since when each is complete.
//!
//! So a data directory says itself how it is to be read, and a granularity that was added to an
//! old store is not expected to hold what came before.

use super::StoreError;
use crate::model::{Gaps, Granularity, GranularitySet, Span, UnixMillis};

/// One granularity as the journal knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredLevel {
    pub(crate) granularity: Granularity,
    /// Slots that begin before this may hold less than the other granularities do.
    pub(crate) complete_since: UnixMillis,
}

impl StoredLevel {
    /// The row's value; its key is the granularity's name.
    pub(crate) fn to_text(&self) -> String {
        let Granularity { document, partition, retention, .. } = &self.granularity;
        format!("{document} {partition} {retention} {}", self.complete_since.0)
    }

    /// What the granularity lacks, but for holes.
    pub(crate) fn gaps(&self) -> Gaps {
        Gaps { complete_since: self.complete_since, ..Gaps::NONE }
    }

    /// Reads a row; `None` when it is damaged.
    pub(crate) fn from_text(name: &str, text: &str) -> Option<Self> {
        let Ok(Span::Fixed(width_ms)) = name.parse() else { return None };
        let mut words = text.split(' ');
        let mut span = || words.next()?.parse::<Span>().ok();
        let (document, partition, retention) = (span()?, span()?, span()?);
        let complete_since = UnixMillis(words.next()?.parse().ok()?);
        let granularity = Granularity::new(width_ms, document, partition, retention);
        (words.next().is_none() && granularity.name == name)
            .then_some(Self { granularity, complete_since })
    }
}

/// What is to be remembered once the store runs with these settings. `latest` is the time of the
/// latest sample that was ever accepted; `None` for a new store.
pub(crate) fn reconcile(
    stored: &[StoredLevel],
    settings: &GranularitySet,
    latest: Option<UnixMillis>,
    now: UnixMillis,
) -> Vec<StoredLevel> {
    let after_all = latest.map_or(UnixMillis(i64::MIN), |at| at.max(now).plus(1));
    let remember = |granularity: &Granularity| {
        let before = stored.iter().find(|level| level.granularity.name == granularity.name);
        let complete_since = match before {
            None => after_all,
            Some(StoredLevel { granularity: before, complete_since })
                if (before.partition, before.retention)
                    == (granularity.partition, granularity.retention) =>
            {
                *complete_since
            }
            // What was dropped may be kept again, with late samples only.
            Some(level) => {
                level.complete_since.max(level.granularity.retention.before(now).plus(1))
            }
        };
        StoredLevel { granularity: granularity.clone(), complete_since }
    };
    settings.levels().iter().map(remember).collect()
}

/// The set that the rows make.
pub(crate) fn as_set(stored: &[StoredLevel], file: &str) -> Result<GranularitySet, StoreError> {
    let levels = stored.iter().map(|level| level.granularity.clone()).collect();
    GranularitySet::new(levels).map_err(|faults| StoreError::Corrupt {
        file: file.to_owned(),
        problem: format!("its granularities do not fit together: {faults}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_795_264_496_000);

    #[test]
    fn rows_survive_the_disk() {
        for granularity in GranularitySet::default().levels() {
            let level =
                StoredLevel { granularity: granularity.clone(), complete_since: UnixMillis(-5) };
            let read = StoredLevel::from_text(&granularity.name, &level.to_text());
            assert_eq!(read, Some(level));
        }
        for text in ["", "1h 6h 2d", "1h 6h 2d x", "1h 6h 2d 5 6", "now 6h 2d 5"] {
            assert_eq!(StoredLevel::from_text("1m", text), None, "{text}");
        }
    }

    #[test]
    fn an_added_level_and_a_longer_retention_are_incomplete_before() {
        let set = GranularitySet::default();
        let new = reconcile(&[], &set, None, NOW);
        assert!(new.iter().all(|level| level.complete_since.0 == i64::MIN));
        assert_eq!(as_set(&new, "journal.redb").unwrap(), set);
        let added = reconcile(&new[1..], &set, Some(NOW.plus(7)), NOW);
        assert_eq!(added[0].complete_since, NOW.plus(8));
        assert_eq!(added[1..], new[1..]);
        let mut shorter = new.clone();
        shorter[0].granularity.retention = Span::Fixed(6 * 3_600_000);
        let longer = reconcile(&shorter, &set, Some(NOW), NOW);
        assert_eq!(longer[0].complete_since, NOW.minus(6 * 3_600_000 - 1));
        let mut shorter = new.clone();
        shorter[0].granularity.partition = Span::Fixed(3_600_000);
        let longer = reconcile(&shorter, &set, Some(NOW), NOW);
        assert_eq!(longer[0].complete_since, NOW.minus(48 * 3_600_000 - 1));
    }
}
