//! Why nothing matches: which name is not known, and what it may have been meant to be.
//!
//! Must never know: who asks. What is compared is bounded, whatever the store holds.

use std::collections::BTreeSet;

use crate::{
    model::{METRIC_TAG, SeriesId, SeriesKey},
    query::Selector,
    store::{Matcher, Store},
};

/// Names that are compared, at most.
const NAMES_MAX: usize = 10_000;
/// Series whose tags are looked at, at most.
const SERIES_MAX: usize = 10_000;
/// Bytes of a name that are compared, at most.
const NAME_BYTES_MAX: usize = 100;
/// Names that are told.
const TOLD_MAX: usize = 3;
/// Below this likeness, of 1, a name is no help.
const LIKENESS_MIN: f64 = 0.7;

/// Says why no series matches; `None` when one does, or when nothing was named.
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
        format!("no metric is called {metric}: the daemon has no series yet")
    } else {
        format!("no metric is called {metric}{}", told(&nearest(metric, &names)))
    })
}

/// Which tag of the selector no series has.
fn tags_note(store: &Store, selector: &Selector, whose: &str) -> Option<String> {
    let of_metric = Selector { metric: selector.metric.clone(), tags: Vec::new() };
    let ids = store.dictionary().select(&of_metric.matchers());
    if ids.is_empty() {
        return Some("the daemon has no series yet".to_owned());
    }
    for (tag, value) in &selector.tags {
        let with_value = store.dictionary().with_tag(tag, value).to_vec();
        if ids.iter().any(|id| with_value.binary_search(id).is_ok()) {
            continue;
        }
        let values = texts(store, &ids, |key, found| {
            found.extend(key.tag(tag).map(str::to_owned));
        });
        if values.is_empty() {
            let names = texts(store, &ids, |key, found| {
                found.extend(key.tags().map(|(name, _)| name.to_owned()));
            });
            return Some(format!("{whose} has the tag {tag}{}", near_or_some(tag, &names)));
        }
        return Some(format!("{whose} has {tag}={value}{}", near_or_some(value, &values)));
    }
    let pairs: Vec<_> = selector.tags.iter().map(|(tag, value)| format!("{tag}={value}")).collect();
    (!pairs.is_empty()).then(|| format!("{whose} has all of {}", pairs.join(", ")))
}

/// What `read` finds in the names of series.
fn texts(
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

/// The names that are most like the one that was asked for, best first.
fn nearest<'n, T: AsRef<str> + 'n>(
    asked: &str,
    known: impl IntoIterator<Item = &'n T>,
) -> Vec<&'n str> {
    if asked.len() > NAME_BYTES_MAX {
        return Vec::new();
    }
    let lower = asked.to_lowercase();
    let short = known.into_iter().map(AsRef::as_ref).filter(|name| name.len() <= NAME_BYTES_MAX);
    let mut found: Vec<(f64, &str)> = short
        .map(|name| {
            let own = name.to_lowercase();
            let holds = !lower.is_empty() && (own.contains(&lower) || lower.contains(&own));
            let longest = lower.chars().count().max(own.chars().count()).max(1);
            let likeness = 1.0 - strsim::osa_distance(&lower, &own) as f64 / longest as f64;
            (if holds { likeness.max(LIKENESS_MIN) } else { likeness }, name)
        })
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.into_iter().take(TOLD_MAX).map(|(_, name)| name).collect()
}

fn told(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => format!("; the nearest is {name}"),
        names => format!("; the nearest are {}", names.join(", ")),
    }
}

/// The nearest texts, or where none is near, some.
fn near_or_some(asked: &str, all: &BTreeSet<String>) -> String {
    let near = nearest(asked, all);
    if !near.is_empty() || all.is_empty() {
        return told(&near);
    }
    let few: Vec<_> = all.iter().take(TOLD_MAX).map(String::as_str).collect();
    let more = match all.len() - few.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; there is {}{more}", few.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let known = ["system_cpu_user", "system_cpu_system", "system_load_1m", "x"];
        let check = |asked: &str, expected: &[&str]| {
            assert_eq!(nearest(asked, &known), expected, "{asked}");
        };
        check("system_cpu_usr", &["system_cpu_user", "system_cpu_system"]);
        check("SYSTEM_LOAD_1M", &["system_load_1m"]);
        check("cpu_user", &["system_cpu_user"]);
        check("system_laod_1m", &["system_load_1m"]);
        check("page_views", &[]);
        check(&"y".repeat(NAME_BYTES_MAX + 1), &[]);
    }
}
