//! The classes and epochs of a run: the stored classes and epochs, updated to the rules of the
//! settings.
//!
//! The slot widths of a class never change. When a rule's widths change, its series get a new
//! class; the old class keeps its samples until they expire, and so does the class of a removed
//! rule. Must never know: files, and when the new epoch begins.

use std::collections::{BTreeMap, BTreeSet};

use super::Classes;
use crate::{
    model::{GranularitySet, RetentionRule, UnixMillis, split_level},
    store::{
        error::StoreError,
        file::names::JOURNAL_FILE,
        journal::{
            epoch_row::{Epoch, StoredRule},
            granularities::{StoredGranularity, guess, remembered},
        },
    },
};

/// The maximum number of classes in addition to the first class. Each class has up to eight levels,
/// with a file for each partition.
const CLASSES_MAX: usize = 31;
/// The maximum number of epochs, because queries check all epochs.
const EPOCHS_MAX: usize = 64;
/// The time for which classes and epochs are stored after their samples have expired, because the
/// clock may be set back.
const REMEMBERED_MS: i64 = 32 * 86_400_000;

/// The classes and epochs of a run.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) classes: Classes,
    /// All epochs, ascending.
    pub(crate) epochs: Vec<Epoch>,
    /// True when the last epoch is new: it begins after the latest sample.
    pub(crate) has_new_epoch: bool,
    /// The rows of the levels of all classes except the first, in the order of the classes.
    pub(crate) rows: Vec<StoredGranularity>,
}

/// The stored state, and the settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) settings: &'a GranularitySet,
    /// The rules of the settings; `None` keeps the stored rules.
    pub(crate) rules: Option<&'a [RetentionRule]>,
    pub(crate) epochs: &'a [Epoch],
    /// The rows of granularities and levels.
    pub(crate) rows: &'a [StoredGranularity],
    /// The names of granularities and levels with files.
    pub(crate) with_files: &'a [String],
}

/// Returns the classes and epochs of a run.
///
/// # Errors
/// When the rules have changed too often.
pub(crate) fn resolve(known: Known<'_>, now: UnixMillis) -> Result<Resolved, StoreError> {
    let mut stored = stored_classes(known);
    let mut epochs = without_expired(known, &stored, now);
    let last = epochs.last().map_or(&[][..], |epoch| &epoch.rules).to_vec();
    let mut has_new_epoch = false;
    if let Some(rules) = known.rules {
        let rules = rules.iter().map(|rule| settle(rule, &last, &mut stored, now)).collect();
        if rules != last {
            has_new_epoch = true;
            epochs.push(Epoch { from: UnixMillis::LATEST, rules });
        }
    }
    let used: BTreeSet<_> =
        epochs.iter().flat_map(|epoch| &epoch.rules).map(|rule| &*rule.class).collect();
    let has_files =
        |name: &str| known.with_files.iter().any(|level| split_level(level).1 == Some(name));
    stored.retain(|name, _| used.contains(&**name) || has_files(name));
    if stored.len() > CLASSES_MAX || epochs.len() > EPOCHS_MAX {
        return Err(StoreError::Mismatch {
            file: JOURNAL_FILE.to_owned(),
            problem: format!(
                "the rules of retention changed so often that {} classes and {} epochs still have \
                 samples, of at most {CLASSES_MAX} and {EPOCHS_MAX}: restore the rules of the last \
                 run",
                stored.len(),
                epochs.len()
            ),
        });
    }
    let sets = stored.iter().filter_map(|(name, rows)| {
        let levels = rows.iter().map(|row| row.granularity.clone()).collect();
        Some((name.clone(), GranularitySet::of_checked(levels)?))
    });
    let classes = Classes::new(known.settings.clone(), sets.collect());
    Ok(Resolved { classes, epochs, has_new_epoch, rows: stored.into_values().flatten().collect() })
}

/// Returns the rows of the levels of each class, finest first. A level that has files but a damaged
/// row gets a guessed row.
fn stored_classes(known: Known<'_>) -> BTreeMap<String, Vec<StoredGranularity>> {
    let mut classes: BTreeMap<String, Vec<StoredGranularity>> = BTreeMap::new();
    let is_known = |name: &String| known.rows.iter().any(|row| row.granularity.name == *name);
    let unknown = known.with_files.iter().filter(|name| !is_known(name));
    let guessed = unknown.filter_map(|name| guess(name, known.settings));
    for row in known.rows.iter().cloned().chain(guessed) {
        if let Some(class) = row.granularity.class().map(ToOwned::to_owned) {
            classes.entry(class).or_default().push(row);
        }
    }
    for rows in classes.values_mut() {
        rows.sort_by_key(|row| row.granularity.width_ms);
    }
    classes
}

/// Returns the epochs without those whose samples have all expired.
fn without_expired(
    known: Known<'_>,
    stored: &BTreeMap<String, Vec<StoredGranularity>>,
    now: UnixMillis,
) -> Vec<Epoch> {
    let mut epochs = known.epochs.to_vec();
    if epochs.is_empty() {
        epochs.push(Epoch::WITHOUT_RULES);
    }
    let of_classes = stored.values().flatten().map(|row| &row.granularity);
    let of_settings = known.rows.iter().map(|row| &row.granularity).chain(known.settings);
    let kept_since = |level: &crate::model::Granularity| level.kept_since(now);
    let kept = of_classes.chain(of_settings).map(kept_since).min().unwrap_or(UnixMillis::EARLIEST);
    let expired = kept.minus(REMEMBERED_MS);
    let ended = epochs.iter().skip(1).take_while(|next| next.from <= expired).count();
    epochs.drain(..ended);
    epochs[0].from = UnixMillis::EARLIEST;
    epochs
}

/// Returns a rule with its class, and updates the rows of the class's levels. The class is that of
/// the rule in the last epoch, or of an earlier rule with this name, if its slot widths are the
/// same; otherwise it is a new class.
fn settle(
    rule: &RetentionRule,
    last: &[StoredRule],
    stored: &mut BTreeMap<String, Vec<StoredGranularity>>,
    now: UnixMillis,
) -> StoredRule {
    let has_widths = |rows: &[StoredGranularity]| {
        let widths = rows.iter().map(|row| row.granularity.width_ms);
        widths.eq(rule.levels.iter().map(|level| level.width_ms))
    };
    let is_class = |name: &str| rule_name(name) == rule.name;
    let fits =
        |name: &&String| is_class(name) && stored.get(*name).is_some_and(|rows| has_widths(rows));
    let of_last = last.iter().map(|rule| &rule.class).find(fits).cloned();
    let known = of_last.or_else(|| stored.keys().find(fits).cloned());
    let class = known.unwrap_or_else(|| {
        let numbered = (2..).map(|number| format!("{}.{number}", rule.name));
        let mut names = std::iter::once(rule.name.clone()).chain(numbered);
        names.find(|name| !stored.contains_key(name)).unwrap_or_default()
    });
    let before = stored.remove(&class).unwrap_or_default();
    let rows = rule.levels.iter().map(|level| {
        let level = level.of_class(&class);
        let before = before.iter().find(|row| row.granularity.name == level.name);
        // The class receives all samples of its epochs, so a new level lacks none of them.
        let after_all = if before.is_none() { UnixMillis::EARLIEST } else { UnixMillis::MAX };
        remembered(before, &level, after_all, now)
    });
    let rows = rows.collect();
    stored.insert(class.clone(), rows);
    StoredRule { class, selector: rule.selector.clone() }
}

/// Returns the name of the rule of a class.
pub(crate) fn rule_name(class: &str) -> &str {
    class.split_once('.').map_or(class, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::KeySelector, setup::NOW};

    const DAY: i64 = 86_400_000;

    fn rule(name: &str, levels: &[(&str, Option<&str>)]) -> RetentionRule {
        let selector = KeySelector::new(Vec::new()).unwrap();
        let given: Vec<_> = levels
            .iter()
            .map(|(width, span)| ((*width).to_owned(), span.map(|span| span.parse().unwrap())))
            .collect();
        RetentionRule::new(name, selector, &given, &GranularitySet::default()).unwrap()
    }

    fn next(before: Option<&Resolved>, rules: &[RetentionRule], now: UnixMillis) -> Resolved {
        let known = Known {
            settings: &GranularitySet::default(),
            rules: Some(rules),
            epochs: before.map_or(&[], |before| &before.epochs),
            rows: before.map_or(&[], |before| &before.rows),
            with_files: &[],
        };
        let mut resolved = resolve(known, now).unwrap();
        if resolved.has_new_epoch {
            resolved.epochs.last_mut().unwrap().from = now;
        }
        resolved
    }

    fn names(resolved: &Resolved) -> Vec<String> {
        resolved.classes.levels().iter().skip(4).map(|level| level.name.clone()).collect()
    }

    #[test]
    fn a_rule_keeps_its_class_unless_its_widths_change_and_old_classes_expire() {
        let none = next(None, &[], NOW);
        assert!(!none.has_new_epoch && names(&none).is_empty());
        let debug = rule("debug", &[("1m", None), ("5m", Some("2d"))]);
        let first = next(Some(&none), std::slice::from_ref(&debug), NOW);
        assert!(first.has_new_epoch);
        assert_eq!(names(&first), ["5m@debug", "1h@debug", "1d@debug"]);
        assert!(first.rows.iter().all(|row| row.complete_since == UnixMillis::EARLIEST));
        let same = next(Some(&first), &[debug], NOW.plus(1));
        assert!(!same.has_new_epoch);
        // Another retention needs no new class.
        let longer = rule("debug", &[("1m", None), ("5m", Some("20d"))]);
        let longer = next(Some(&same), &[longer], NOW.plus(2));
        assert!(!longer.has_new_epoch);
        let level = &longer.classes.get(longer.classes.named("debug").unwrap()).levels;
        assert_eq!(level.as_slice()[0].retention().to_string(), "20d");
        assert!(longer.rows[0].complete_since > NOW.minus(2 * DAY));
        // Other widths need one.
        let minutes = rule("debug", &[("5m", None)]);
        let changed = next(Some(&longer), &[minutes], NOW.plus(3));
        assert!(changed.has_new_epoch);
        assert_eq!(names(&changed)[3..], ["1m@debug.2", "1h@debug.2", "1d@debug.2"]);
        assert_eq!(changed.epochs[2].rules[0].class, "debug.2");
        // The removed rule's class keeps its levels until its samples expire.
        let removed = next(Some(&changed), &[], NOW.plus(4));
        assert_eq!((names(&removed).len(), removed.epochs.len()), (6, 4));
        let years = next(Some(&removed), &[], NOW.plus(8 * 366 * DAY));
        assert_eq!((names(&years).len(), years.epochs.len()), (0, 1));
        assert!(years.epochs[0].rules.is_empty());
    }

    #[test]
    fn a_rule_that_changes_too_often_is_refused() {
        let mut before = next(None, &[], NOW);
        for number in 1..EPOCHS_MAX as i64 {
            let widths = if number % 2 == 0 { "1m" } else { "5m" };
            before = next(Some(&before), &[rule("a", &[(widths, None)])], NOW.plus(number));
        }
        assert_eq!((before.epochs.len(), names(&before).len()), (EPOCHS_MAX, 6));
        let rules = [rule("b", &[])];
        let settings = GranularitySet::default();
        let known = Known {
            settings: &settings,
            rules: Some(&rules),
            epochs: &before.epochs,
            rows: &before.rows,
            with_files: &[],
        };
        let refused = resolve(known, NOW.plus(100)).unwrap_err().to_string();
        assert!(refused.contains("changed so often"), "{refused}");
    }
}
