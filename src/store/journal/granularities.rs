//! The granularities in the journal: their spans, and the time since which each is complete.
//!
//! The data directory thus describes itself: a granularity that was added to an old store is not
//! expected to contain earlier samples, and a granularity that was removed from the settings keeps
//! its files until its retention drops them.
//!
//! Must never know: the files of a granularity.

use std::ops::Range;

use crate::{
    model::{Gaps, Granularity, GranularitySet, Span, UnixMillis, split_level},
    store::{error::StoreError, file::holes::Holes},
};

/// The word before the time since which a granularity is no longer in the settings.
const RETIRED: &str = " retired ";

/// The word before the ranges of time that lack samples, because the granularity was not in the
/// settings.
const AWAY: &str = " away ";
/// The separator between the start and the end of a range.
const TO: &str = "..";

/// A granularity, or a level of a class, in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredGranularity {
    pub(crate) granularity: Granularity,
    /// The time before which slots may contain fewer samples than the slots of other granularities.
    pub(crate) complete_since: UnixMillis,
    /// The time since which the granularity is not in the settings and accepts no samples.
    pub(crate) retired: Option<UnixMillis>,
    /// The times whose samples the granularity lacks, because it was not in the settings when they
    /// arrived.
    pub(crate) away: Holes,
}

impl StoredGranularity {
    /// Returns the value of the row, whose key is the granularity's name.
    pub(crate) fn to_text(&self) -> String {
        let Granularity { document, partition, .. } = &self.granularity;
        let retention = self.granularity.retention();
        let retired = self.retired.map_or(String::new(), |at| format!("{RETIRED}{}", at.0));
        let stretches = self.away.stretches().iter();
        let away: Vec<_> =
            stretches.map(|Range { start, end }| format!("{}{TO}{}", start.0, end.0)).collect();
        let away = if away.is_empty() { String::new() } else { AWAY.to_owned() + &away.join(" ") };
        format!("{document} {partition} {retention} {}{away}{retired}", self.complete_since.0)
    }

    /// Returns true for a granularity of the settings, false for a level of another class.
    pub(crate) fn is_of_settings(&self) -> bool {
        self.granularity.class().is_none()
    }

    /// Returns the gaps of the granularity, without damaged documents.
    pub(crate) fn gaps(&self) -> Gaps {
        let complete_until = self.retired.unwrap_or(UnixMillis::MAX);
        let holes = self.away.stretches().to_vec();
        Gaps { complete_since: self.complete_since, complete_until, holes }
    }

    /// Reads a row; `None` when it is damaged.
    pub(crate) fn from_text(name: &str, text: &str) -> Option<Self> {
        let (width_name, class) = split_level(name);
        let Ok(Span::Fixed(width_ms)) = width_name.parse() else { return None };
        let (text, retired) = match text.split_once(RETIRED) {
            Some((text, at)) => (text, Some(UnixMillis(at.parse().ok()?))),
            None => (text, None),
        };
        let (text, stretches) = text.split_once(AWAY).unwrap_or((text, ""));
        let mut away = Holes::default();
        for stretch in stretches.split_terminator(' ') {
            let (start, end) = stretch.split_once(TO)?;
            away.add(UnixMillis(start.parse().ok()?)..UnixMillis(end.parse().ok()?));
        }
        let mut words = text.split(' ');
        let mut span = || words.next()?.parse::<Span>().ok();
        let (document, partition, retention) = (span()?, span()?, span()?);
        let complete_since = UnixMillis(words.next()?.parse().ok()?);
        let plain = Granularity::new(width_ms, document, partition, retention);
        let granularity = class.map_or(plain.clone(), |class| plain.of_class(class));
        (words.next().is_none() && granularity.name == name).then_some(Self {
            granularity,
            complete_since,
            retired,
            away,
        })
    }
}

/// Returns the granularities to store when the store starts with these settings. `latest` is the
/// time of the latest sample that was ever accepted; `None` for a new store. `with_files` are the
/// names of granularities that have files.
pub(crate) fn reconcile(
    stored: &[StoredGranularity],
    settings: &GranularitySet,
    with_files: &[String],
    latest: Option<UnixMillis>,
    now: UnixMillis,
) -> Vec<StoredGranularity> {
    let after_all = after_all(latest, now);
    let remember = |granularity: &Granularity| {
        let before = stored.iter().find(|known| known.granularity.name == granularity.name);
        remembered(before, granularity, after_all, now)
    };
    // A granularity that is removed now has all samples up to this time.
    let stopped = latest.map_or(now, |latest| latest.min(now));
    let is_removed = |name: &String| settings.named(name).is_none();
    let removed = stored.iter().filter(|known| is_removed(&known.granularity.name));
    let removed = removed.filter_map(|known| {
        let retired = known.retired.unwrap_or(stopped);
        // The head may contain its last samples before it has a file.
        let is_kept = known.granularity.keeps(retired, now);
        let has_data = is_kept || with_files.contains(&known.granularity.name);
        has_data.then(|| StoredGranularity { retired: Some(retired), ..known.clone() })
    });
    let is_forgotten = |name: &&String| {
        is_removed(name) && !stored.iter().any(|known| known.granularity.name == **name)
    };
    let guessed = with_files.iter().filter(is_forgotten).filter_map(|name| {
        Some(StoredGranularity { retired: Some(stopped), ..guess(name, settings)? })
    });
    let mut all: Vec<_> = settings.iter().map(remember).chain(removed).chain(guessed).collect();
    all.sort_by_key(|known| known.granularity.width_ms);
    all
}

/// Returns a time after all samples. `latest` is the time of the latest sample, if there is one.
pub(crate) fn after_all(latest: Option<UnixMillis>, now: UnixMillis) -> UnixMillis {
    latest.map_or(UnixMillis::EARLIEST, |at| at.max(now).plus(1))
}

/// Returns the row of a granularity of the settings. `before` is its row of the last run; a new
/// granularity is complete since `after_all`.
pub(crate) fn remembered(
    before: Option<&StoredGranularity>,
    granularity: &Granularity,
    after_all: UnixMillis,
    now: UnixMillis,
) -> StoredGranularity {
    let mut away = before.map_or_else(Holes::default, |known| known.away.clone());
    // Samples that arrived while it was not in the settings are missing.
    if let Some(since) = before.and_then(|known| known.retired) {
        away.add(since..after_all);
    }
    let complete_since = match before {
        None => after_all,
        Some(StoredGranularity { granularity: before, complete_since, .. })
            if (before.partition, before.retention())
                == (granularity.partition, granularity.retention()) =>
        {
            (*complete_since).min(after_all)
        }
        // The new settings may keep slots again that were dropped; these only have late samples.
        Some(known) => {
            let kept_since = known.granularity.retention().before(now).plus(1);
            known.complete_since.min(after_all).max(kept_since)
        }
    };
    StoredGranularity { granularity: granularity.clone(), complete_since, retired: None, away }
}

/// Guesses the spans of a granularity that has files and whose row is damaged: its retention is
/// that of the next coarser granularity.
pub(crate) fn guess(name: &str, settings: &GranularitySet) -> Option<StoredGranularity> {
    let (width_name, class) = split_level(name);
    let Ok(Span::Fixed(width_ms)) = width_name.parse() else { return None };
    let coarser = settings.iter().find(|granularity| granularity.width_ms > width_ms);
    let retention = coarser.or(settings.as_slice().last())?.retention();
    let width = Span::Fixed(width_ms);
    let plain = Granularity::new(width_ms, width, width, retention);
    let granularity = class.map_or(plain.clone(), |class| plain.of_class(class));
    let is_name = granularity.name == name && width_ms % 1000 == 0;
    is_name.then_some(StoredGranularity {
        granularity,
        complete_since: UnixMillis::MAX,
        retired: None,
        away: Holes::default(),
    })
}

/// Returns the granularities that these settings remove; their cells in the journal must be written
/// to their files first.
pub(crate) fn removed_granularities<'a>(
    stored: &'a [StoredGranularity],
    settings: &GranularitySet,
) -> Vec<&'a Granularity> {
    let is_living = |known: &&StoredGranularity| known.retired.is_none() && known.is_of_settings();
    let living = stored.iter().filter(is_living).map(|known| &known.granularity);
    living.filter(|known| settings.named(&known.name).is_none()).collect()
}

/// Returns the granularities that no longer accept samples.
pub(crate) fn retired(all: &[StoredGranularity]) -> Vec<Granularity> {
    let retired = all.iter().filter(|known| known.retired.is_some());
    retired.map(|known| known.granularity.clone()).collect()
}

/// Returns the set of the stored granularities that accept samples.
pub(crate) fn as_set(
    stored: &[StoredGranularity],
    file: &str,
) -> Result<GranularitySet, StoreError> {
    let is_living = |known: &&StoredGranularity| known.retired.is_none() && known.is_of_settings();
    let living = stored.iter().filter(is_living);
    let all = living.map(|known| known.granularity.clone()).collect();
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
    fn a_row_is_read_as_it_was_written_and_a_malformed_one_is_refused() {
        for granularity in &GranularitySet::default() {
            let stored = StoredGranularity {
                granularity: granularity.clone(),
                complete_since: UnixMillis(-5),
                retired: None,
                away: Holes::default(),
            };
            let read = StoredGranularity::from_text(&granularity.name, &stored.to_text());
            assert_eq!(read, Some(stored));
        }
        for text in [
            "",
            "1h 6h 2d",
            "1h 6h 2d x",
            "1h 6h 2d 5 6",
            "now 6h 2d 5",
            "1h 6h 2d 5 retired",
            "1h 6h 2d 5 away 7",
        ] {
            assert_eq!(StoredGranularity::from_text("1m", text), None, "{text}");
        }
    }

    #[test]
    fn earlier_slots_are_incomplete_after_a_granularity_is_added_or_its_retention_grows() {
        let set = GranularitySet::default();
        let new = reconcile(&[], &set, &[], None, NOW);
        assert!(new.iter().all(|granularity| granularity.complete_since.0 == i64::MIN));
        assert_eq!(as_set(&new, "journal.redb").unwrap(), set);
        let added = reconcile(&new[1..], &set, &[], Some(NOW.plus(7)), NOW);
        assert_eq!(added[0].complete_since, NOW.plus(8));
        assert_eq!(added[1..], new[1..]);
        let mut shorter = new.clone();
        shorter[0].granularity = shorter[0].granularity.with_retention(Span::Fixed(6 * 3_600_000));
        let longer = reconcile(&shorter, &set, &[], Some(NOW), NOW);
        assert_eq!(longer[0].complete_since, NOW.minus(6 * 3_600_000 - 1));
        let mut shorter = new.clone();
        shorter[0].granularity.partition = Span::Fixed(3_600_000);
        let longer = reconcile(&shorter, &set, &[], Some(NOW), NOW);
        assert_eq!(longer[0].complete_since, NOW.minus(48 * 3_600_000 - 1));
    }

    #[test]
    fn a_granularity_that_is_no_longer_configured_stays_while_it_has_files() {
        let all = GranularitySet::default();
        let some =
            GranularitySet::new([0, 2, 3].map(|i: usize| all.as_slice()[i].clone()).to_vec());
        let (some, known) = (some.unwrap(), reconcile(&[], &all, &[], None, NOW));
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let kept = reconcile(&known, &some, &names(&["1m", "5m"]), Some(NOW), NOW);
        assert_eq!(retired(&kept), [all.as_slice()[1].clone()]);
        assert_eq!(as_set(&kept, "journal.redb").unwrap(), some);
        assert_eq!(StoredGranularity::from_text("5m", &kept[1].to_text()), Some(kept[1].clone()));
        // During its retention, the granularity also stays without files, because the head may have
        // its last samples.
        let fileless = |now| retired(&reconcile(&kept, &some, &names(&["1m"]), Some(NOW), now));
        assert_eq!(fileless(NOW.plus(86_400_000)), [all.as_slice()[1].clone()]);
        assert_eq!(fileless(NOW.plus(400 * 86_400_000)), []);
        assert_eq!(kept[1].gaps().complete_until, NOW);
        let later = reconcile(&kept, &some, &names(&["5m"]), Some(NOW.plus(7)), NOW.plus(7));
        assert_eq!(later[1], kept[1]);
        // A granularity that returns lacks the samples of the meantime.
        let back = NOW.plus(7_200_000);
        let again = reconcile(&kept, &all, &names(&["5m"]), Some(back), back);
        assert_eq!((again[1].retired, again[1].complete_since), (None, known[1].complete_since));
        assert_eq!(again[1].gaps().holes, [NOW..back.plus(1)]);
        let text = again[1].to_text();
        assert_eq!(StoredGranularity::from_text("5m", &text), Some(again[1].clone()));
        // After a second removal, exactly these two ranges are missing.
        let twice = reconcile(&again, &some, &names(&["5m"]), Some(back.plus(99)), back.plus(99));
        let text = twice[1].to_text();
        assert_eq!(StoredGranularity::from_text("5m", &text), Some(twice[1].clone()));
        let twice = reconcile(&twice, &all, &[], Some(back.plus(200)), back.plus(200));
        assert_eq!(twice[1].gaps().holes, [NOW..back.plus(1), back.plus(99)..back.plus(201)]);
        // The row of 5m is damaged.
        let guessed = reconcile(&[], &some, &names(&["5m", "lost+found", "7ms"]), Some(NOW), NOW);
        let guessed = retired(&guessed);
        assert_eq!(guessed.len(), 1);
        assert_eq!(
            (&*guessed[0].name, guessed[0].retention()),
            ("5m", all.as_slice()[2].retention())
        );
    }
}
