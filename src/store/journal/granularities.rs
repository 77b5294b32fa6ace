//! What the journal remembers of the granularities: their spans, and since when each is complete.
//!
//! So a data directory says itself how it is to be read, and a granularity that was added to an
//! old store is not expected to hold what came before, and one that is not in the settings any more
//! keeps its files until its retention drops them.
//!
//! Must never know: the files of a granularity.

use crate::{
    model::{Gaps, Granularity, GranularitySet, Span, UnixMillis},
    store::error::StoreError,
};

/// Before the time since which a granularity is not in the settings any more.
const RETIRED: &str = " retired ";

/// One granularity as the journal knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredGranularity {
    pub(crate) granularity: Granularity,
    /// Slots that begin before this may hold less than the other granularities do.
    pub(crate) complete_since: UnixMillis,
    /// Not in the settings any more since this: it takes no samples.
    pub(crate) retired: Option<UnixMillis>,
}

impl StoredGranularity {
    /// The row's value; its key is the granularity's name.
    pub(crate) fn to_text(&self) -> String {
        let Granularity { document, partition, retention, .. } = &self.granularity;
        let retired = self.retired.map_or(String::new(), |at| format!("{RETIRED}{}", at.0));
        format!("{document} {partition} {retention} {}{retired}", self.complete_since.0)
    }

    /// What the granularity lacks, but for holes.
    pub(crate) fn gaps(&self) -> Gaps {
        let complete_until = self.retired.unwrap_or(UnixMillis::MAX);
        Gaps { complete_since: self.complete_since, complete_until, ..Gaps::NONE }
    }

    /// Reads a row; `None` when it is damaged.
    pub(crate) fn from_text(name: &str, text: &str) -> Option<Self> {
        let Ok(Span::Fixed(width_ms)) = name.parse() else { return None };
        let (text, retired) = match text.split_once(RETIRED) {
            Some((text, at)) => (text, Some(UnixMillis(at.parse().ok()?))),
            None => (text, None),
        };
        let mut words = text.split(' ');
        let mut span = || words.next()?.parse::<Span>().ok();
        let (document, partition, retention) = (span()?, span()?, span()?);
        let complete_since = UnixMillis(words.next()?.parse().ok()?);
        let granularity = Granularity::new(width_ms, document, partition, retention);
        (words.next().is_none() && granularity.name == name).then_some(Self {
            granularity,
            complete_since,
            retired,
        })
    }
}

/// What is to be remembered once the store runs with these settings. `latest` is the time of the
/// latest sample that was ever accepted; `None` for a new store. `with_files` are the names of
/// granularities that have files.
pub(crate) fn reconcile(
    stored: &[StoredGranularity],
    settings: &GranularitySet,
    with_files: &[String],
    latest: Option<UnixMillis>,
    now: UnixMillis,
) -> Vec<StoredGranularity> {
    let after_all = latest.map_or(UnixMillis(i64::MIN), |at| at.max(now).plus(1));
    let remember = |granularity: &Granularity| {
        let before = stored.iter().find(|own| own.granularity.name == granularity.name);
        let complete_since = match before {
            None | Some(StoredGranularity { retired: Some(_), .. }) => after_all,
            Some(StoredGranularity { granularity: before, complete_since, .. })
                if (before.partition, before.retention)
                    == (granularity.partition, granularity.retention) =>
            {
                *complete_since
            }
            // What was dropped may be kept again, with late samples only.
            Some(own) => own.complete_since.max(own.granularity.retention.before(now).plus(1)),
        };
        StoredGranularity { granularity: granularity.clone(), complete_since, retired: None }
    };
    // What it has is everything up to here.
    let stopped = latest.map_or(now, |latest| latest.min(now));
    let retired = with_files.iter().filter(|name| settings.named(name).is_none());
    let retired = retired.filter_map(|name| {
        let before = stored.iter().find(|own| own.granularity.name == *name);
        let before = before.cloned().or_else(|| guess(name, settings))?;
        Some(StoredGranularity { retired: before.retired.or(Some(stopped)), ..before })
    });
    let mut all: Vec<_> = settings.iter().map(remember).chain(retired).collect();
    all.sort_by_key(|own| own.granularity.width_ms);
    all
}

/// What is assumed of a granularity that earlier releases forgot: it is kept as long as the next
/// coarser one.
fn guess(name: &str, settings: &GranularitySet) -> Option<StoredGranularity> {
    let Ok(Span::Fixed(width_ms)) = name.parse() else { return None };
    let coarser = settings.iter().find(|own| own.width_ms > width_ms);
    let retention = coarser.or(settings.as_slice().last())?.retention;
    let width = Span::Fixed(width_ms);
    let granularity = Granularity::new(width_ms, width, width, retention);
    let is_name = granularity.name == name && width_ms % 1000 == 0;
    is_name.then_some(StoredGranularity {
        granularity,
        complete_since: UnixMillis::MAX,
        retired: None,
    })
}

/// The granularities that take no samples any more.
pub(crate) fn retired(all: &[StoredGranularity]) -> Vec<Granularity> {
    let retired = all.iter().filter(|own| own.retired.is_some());
    retired.map(|own| own.granularity.clone()).collect()
}

/// The set that the rows make.
pub(crate) fn as_set(
    stored: &[StoredGranularity],
    file: &str,
) -> Result<GranularitySet, StoreError> {
    let living = stored.iter().filter(|own| own.retired.is_none());
    let all = living.map(|own| own.granularity.clone()).collect();
    GranularitySet::new(all).map_err(|faults| StoreError::Corrupt {
        file: file.to_owned(),
        problem: format!("its granularities do not fit together: {faults}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::NOW;

    #[test]
    fn rows_survive_the_disk() {
        for granularity in &GranularitySet::default() {
            let own = StoredGranularity {
                granularity: granularity.clone(),
                complete_since: UnixMillis(-5),
                retired: None,
            };
            let read = StoredGranularity::from_text(&granularity.name, &own.to_text());
            assert_eq!(read, Some(own));
        }
        for text in
            ["", "1h 6h 2d", "1h 6h 2d x", "1h 6h 2d 5 6", "now 6h 2d 5", "1h 6h 2d 5 retired"]
        {
            assert_eq!(StoredGranularity::from_text("1m", text), None, "{text}");
        }
    }

    #[test]
    fn an_added_granularity_and_a_longer_retention_are_incomplete_before() {
        let set = GranularitySet::default();
        let new = reconcile(&[], &set, &[], None, NOW);
        assert!(new.iter().all(|own| own.complete_since.0 == i64::MIN));
        assert_eq!(as_set(&new, "journal.redb").unwrap(), set);
        let added = reconcile(&new[1..], &set, &[], Some(NOW.plus(7)), NOW);
        assert_eq!(added[0].complete_since, NOW.plus(8));
        assert_eq!(added[1..], new[1..]);
        let mut shorter = new.clone();
        shorter[0].granularity.retention = Span::Fixed(6 * 3_600_000);
        let longer = reconcile(&shorter, &set, &[], Some(NOW), NOW);
        assert_eq!(longer[0].complete_since, NOW.minus(6 * 3_600_000 - 1));
        let mut shorter = new.clone();
        shorter[0].granularity.partition = Span::Fixed(3_600_000);
        let longer = reconcile(&shorter, &set, &[], Some(NOW), NOW);
        assert_eq!(longer[0].complete_since, NOW.minus(48 * 3_600_000 - 1));
    }

    #[test]
    fn a_granularity_that_is_not_configured_any_more_stays_while_it_has_files() {
        let all = GranularitySet::default();
        let some =
            GranularitySet::new([0, 2, 3].map(|i: usize| all.as_slice()[i].clone()).to_vec());
        let (some, known) = (some.unwrap(), reconcile(&[], &all, &[], None, NOW));
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let kept = reconcile(&known, &some, &names(&["1m", "5m"]), Some(NOW), NOW);
        assert_eq!(retired(&kept), [all.as_slice()[1].clone()]);
        assert_eq!(as_set(&kept, "journal.redb").unwrap(), some);
        assert_eq!(StoredGranularity::from_text("5m", &kept[1].to_text()), Some(kept[1].clone()));
        assert_eq!(retired(&reconcile(&kept, &some, &names(&["1m"]), Some(NOW), NOW)), []);
        assert_eq!(kept[1].gaps().complete_until, NOW);
        let later = reconcile(&kept, &some, &names(&["5m"]), Some(NOW.plus(7)), NOW.plus(7));
        assert_eq!(later[1], kept[1]);
        // One that comes back lacks what came meanwhile.
        let again = reconcile(&kept, &all, &names(&["5m"]), Some(NOW), NOW);
        assert_eq!((again[1].retired, again[1].complete_since), (None, NOW.plus(1)));
        // Earlier releases forgot it.
        let guessed = reconcile(&[], &some, &names(&["5m", "lost+found", "7ms"]), Some(NOW), NOW);
        let guessed = retired(&guessed);
        assert_eq!(guessed.len(), 1);
        assert_eq!((&*guessed[0].name, guessed[0].retention), ("5m", all.as_slice()[2].retention));
    }
}
