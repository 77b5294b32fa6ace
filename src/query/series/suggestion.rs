//! Suggestions when no series matches: the unknown name, and the nearest known names.
//!
//! Must never know: the caller. The number of compared names is limited.

use std::collections::BTreeSet;

use crate::{
    model::{METRIC_TAG, SeriesId, SeriesKey},
    query::Selector,
    store::{Matcher, Store},
};

/// Maximum number of names to compare.
const NAMES_MAX: usize = 10_000;
/// Maximum number of series whose tags are compared.
const SERIES_MAX: usize = 10_000;
/// Maximum length of a compared name, in bytes.
const NAME_BYTES_MAX: usize = 100;
/// Maximum number of suggested names.
const SUGGESTED_MAX: usize = 3;
/// Minimum similarity of a suggested name, between 0 and 1.
const SIMILARITY_MIN: f64 = 0.7;
/// The beginning of a note about an unknown metric.
const NO_METRIC: &str = "no metric is called";
/// The end of a note when there are no series at all.
const EMPTY_STORE: &str = "the daemon has no series yet";
/// The beginning of a list of suggested names.
const NEAREST: &str = "; the nearest ";

/// Returns the reason why no series matches; `None` when a series matches or the selector is empty.
pub(crate) fn note(store: &Store, selector: &Selector) -> Option<String> {
    if !store.dictionary().select(&selector.matchers()).is_empty() {
        return None;
    }
    let Some(metric) = &selector.metric else { return tags_note(store, selector, "no series") };
    let of_metric = [Matcher { tag: METRIC_TAG.to_owned(), value: metric.clone() }];
    if !store.dictionary().select(&of_metric).is_empty() {
        return tags_note(store, selector, &format!("no series of {metric}"));
    }
    let names = store.dictionary().values_after(METRIC_TAG, None, NAMES_MAX);
    Some(if names.is_empty() {
        format!("{NO_METRIC} {metric}: {EMPTY_STORE}")
    } else {
        format!("{NO_METRIC} {metric}{}", suggestion(&nearest(metric, &names)))
    })
}

/// Returns the note of all shards from the notes of each: none when a shard has none, because that
/// shard knows the names. Otherwise, the note of the shard that knows most of them.
pub(crate) fn of_shards(notes: Vec<Vec<String>>) -> Vec<String> {
    if notes.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let known = |note: &String| {
        let knows_metric = !note.starts_with(NO_METRIC);
        (!note.ends_with(EMPTY_STORE), knows_metric, note.contains(NEAREST))
    };
    // The first of equal notes.
    notes.into_iter().flatten().rev().max_by_key(known).into_iter().collect()
}

/// Describes the first tag of the selector that no series has.
fn tags_note(store: &Store, selector: &Selector, subject: &str) -> Option<String> {
    let of_metric = Selector { metric: selector.metric.clone(), tags: Vec::new() };
    let ids = store.dictionary().select(&of_metric.matchers());
    if ids.is_empty() {
        return Some(EMPTY_STORE.to_owned());
    }
    for (tag, value) in &selector.tags {
        let with_value = store.dictionary().with_tag(tag, value).to_vec();
        if ids.iter().any(|id| with_value.binary_search(id).is_ok()) {
            continue;
        }
        let values = key_texts(store, &ids, |key, found| {
            found.extend(key.tag(tag).map(str::to_owned));
        });
        if values.is_empty() {
            let names = key_texts(store, &ids, |key, found| {
                found.extend(key.tags().map(|(name, _)| name.to_owned()));
            });
            return Some(format!("{subject} has the tag {tag}{}", suggested_texts(tag, &names)));
        }
        return Some(format!("{subject} has {tag}={value}{}", suggested_texts(value, &values)));
    }
    let pairs: Vec<_> = selector.tags.iter().map(|(tag, value)| format!("{tag}={value}")).collect();
    (!pairs.is_empty()).then(|| format!("{subject} has all of {}", pairs.join(", ")))
}

/// Returns the texts that `read` extracts from the keys of series.
fn key_texts(
    store: &Store,
    ids: &[SeriesId],
    read: impl Fn(&SeriesKey, &mut BTreeSet<String>),
) -> BTreeSet<String> {
    let dictionary = store.dictionary();
    let mut found = BTreeSet::new();
    for key in ids.iter().take(SERIES_MAX).filter_map(|id| dictionary.key(*id)) {
        read(key, &mut found);
    }
    found
}

/// Returns the names that are most similar to `requested`, best first.
fn nearest<'n, T: AsRef<str> + 'n>(
    requested: &str,
    known: impl IntoIterator<Item = &'n T>,
) -> Vec<&'n str> {
    if requested.len() > NAME_BYTES_MAX {
        return Vec::new();
    }
    let lower = requested.to_lowercase();
    let short = known.into_iter().map(AsRef::as_ref).filter(|name| name.len() <= NAME_BYTES_MAX);
    let mut found: Vec<(f64, &str)> = short
        .map(|name| {
            let known = name.to_lowercase();
            let contains = !lower.is_empty() && (known.contains(&lower) || lower.contains(&known));
            let longest = lower.chars().count().max(known.chars().count()).max(1);
            let similarity = 1.0 - strsim::osa_distance(&lower, &known) as f64 / longest as f64;
            (if contains { similarity.max(SIMILARITY_MIN) } else { similarity }, name)
        })
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.into_iter().take(SUGGESTED_MAX).map(|(_, name)| name).collect()
}

fn suggestion(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => format!("{NEAREST}is {name}"),
        names => format!("{NEAREST}are {}", names.join(", ")),
    }
}

/// Formats the nearest texts; when none is near, the first few texts.
fn suggested_texts(requested: &str, all: &BTreeSet<String>) -> String {
    let near = nearest(requested, all);
    if !near.is_empty() || all.is_empty() {
        return suggestion(&near);
    }
    let few: Vec<_> = all.iter().take(SUGGESTED_MAX).map(String::as_str).collect();
    let more = match all.len() - few.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; known: {}{more}", few.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let known = ["system_cpu_user", "system_cpu_system", "system_load_1m", "x"];
        let check = |requested: &str, expected: &[&str]| {
            assert_eq!(nearest(requested, &known), expected, "{requested}");
        };
        check("system_cpu_usr", &["system_cpu_user", "system_cpu_system"]);
        check("SYSTEM_LOAD_1M", &["system_load_1m"]);
        check("cpu_user", &["system_cpu_user"]);
        check("system_laod_1m", &["system_load_1m"]);
        check("page_views", &[]);
        check(&"y".repeat(NAME_BYTES_MAX + 1), &[]);
    }

    #[test]
    fn the_note_of_shards_is_of_the_shard_that_knows_most() {
        let check = |notes: &[&[&str]], expected: &[&str]| {
            let owned = |notes: &&[&str]| notes.iter().map(|note| (*note).to_owned()).collect();
            assert_eq!(of_shards(notes.iter().map(owned).collect()), expected, "{notes:?}");
        };
        let empty = "no metric is called a: the daemon has no series yet";
        let unlike = "no metric is called a";
        let near = "no metric is called a; the nearest is ab";
        let no_tag = "no series of a has the tag host=b";
        check(&[&[empty], &[empty]], &[empty]);
        check(&[&[empty], &[unlike]], &[unlike]);
        check(&[&[unlike], &[near], &[empty]], &[near]);
        check(&[&[near], &[no_tag]], &[no_tag]);
        check(&[&[near], &[]], &[]);
        check(&[], &[]);
    }
}
