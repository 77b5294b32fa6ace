//! `series`, `labels` and `label/NAME/values`.
//!
//! With `start`, only series with samples since then are listed. `end` is checked but not used,
//! because the store does not remember when a series began.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use actix_web::HttpResponse;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    answer::{Answer, Data},
    fault::Fault,
    query,
    receive::{Call, Received, respond},
};
use crate::{
    api::shards::{LABELS, LabelsQuestion, SERIES, SeriesQuestion},
    model::{SeriesKey, UnixMillis},
    query::{
        Labels, QueryError, list_label_names, list_label_values, read_answer, select_series,
        series_matchers, with_samples_since, written,
    },
};

const TRUNCATED: &str = "results truncated due to limit";
/// The maximum number of different `match[]` in a request.
pub(super) const SELECTORS_MAX: usize = 256;

pub(super) async fn series(received: Received) -> HttpResponse {
    respond("promql_series", received, |call| {
        let since = samples_since(call)?;
        let Some(found) = selected_series(call, since)? else {
            return Err(Fault::bad_data("no match[] parameter provided"));
        };
        truncate_to_limit(call, found, Data::Series)
    })
    .await
}

pub(super) async fn labels(received: Received) -> HttpResponse {
    respond("promql_labels", received, |call| {
        let since = samples_since(call)?;
        let names = if let Some(found) = selected_series(call, since)? {
            let mut names = BTreeSet::new();
            for labels in &found {
                for (name, _) in labels.iter() {
                    if !names.contains(name) {
                        names.insert(name.to_owned());
                    }
                }
            }
            names.into_iter().collect()
        } else {
            let own = list_label_names(&call.parts.store, since, &call.limits());
            with_others(call, None, since, own.map_err(query::fault)?)?
        };
        truncate_to_limit(call, names, Data::Texts)
    })
    .await
}

pub(super) async fn values(received: Received) -> HttpResponse {
    let (request, ..) = &received;
    let name = request.match_info().get("name").unwrap_or_default();
    let name = unescape_label_name(name).unwrap_or_else(|| name.to_owned());
    respond("promql_values", received, move |call| {
        let since = samples_since(call)?;
        let values = if let Some(found) = selected_series(call, since)? {
            let values = found.iter().map(|labels| labels.get(&name));
            let values: BTreeSet<_> = values.filter(|value| !value.is_empty()).collect();
            values.into_iter().map(str::to_owned).collect()
        } else {
            let store = &call.parts.store;
            let own = list_label_values(store, &name, since, &call.limits());
            with_others(call, Some(&name), since, own.map_err(query::fault)?)?
        };
        truncate_to_limit(call, values, Data::Texts)
    })
    .await
}

/// Returns the time since which a listed series must have samples.
fn samples_since(call: &Call<'_>) -> Result<Option<UnixMillis>, Fault> {
    let (start, end) = (call.params.time("start")?, call.params.time("end")?);
    if start.zip(end).is_some_and(|(start, end)| end < start) {
        return Err(Fault::parameter("end", "end timestamp must not be before start time"));
    }
    Ok(start.map(UnixMillis))
}

/// Returns the series of all `match[]`, without duplicates and sorted; `None` without `match[]`.
fn selected_series(
    call: &Call<'_>,
    since: Option<UnixMillis>,
) -> Result<Option<Vec<Labels>>, Fault> {
    let limits = call.limits();
    let selectors: BTreeSet<_> = call.params.all("match[]").collect();
    if selectors.is_empty() {
        return Ok(None);
    }
    if selectors.len() > SELECTORS_MAX {
        return Err(too_much(format!(
            "{} different match[] exceed the limit of {SELECTORS_MAX}: send fewer at a time, or \
             combine them into one pattern",
            selectors.len()
        )));
    }
    let mut found = BTreeMap::new();
    for selector in selectors {
        let sets = series_matchers(selector, &limits)
            .map_err(|cause| Fault::parameter("match[]", query::fault(cause)))?;
        for set in sets {
            let store = &call.parts.store;
            let more = select_series(store, &set, &limits)
                .and_then(|more| with_samples_since(store, more, since, &limits));
            for (id, info) in more.map_err(query::fault)? {
                if let Entry::Vacant(entry) = found.entry(id) {
                    limits.reserve(Labels::bytes_of_key(&info.key)).map_err(query::fault)?;
                    entry.insert(Labels::of_key(info.key));
                }
            }
            if found.len() > limits.series_max {
                return Err(too_much(format!(
                    "more than {} series match: name more labels or raise limits.query_points_max",
                    limits.series_max
                )));
            }
        }
    }
    let mut all: Vec<_> = found.into_values().collect();
    for selector in call.params.all("match[]").collect::<BTreeSet<_>>() {
        all.extend(series_of_others(call, selector, since)?);
    }
    all.sort();
    all.dedup();
    Ok(Some(all))
}

/// Returns the series of a selector in the other shards.
fn series_of_others(
    call: &Call<'_>,
    selector: &str,
    since: Option<UnixMillis>,
) -> Result<Vec<Labels>, Fault> {
    let since = since.map(|since| since.0);
    let question = SeriesQuestion { selector: selector.to_owned(), since };
    let answers: Vec<Vec<Vec<u8>>> = ask(call, SERIES, &question)?;
    let mut found = Vec::new();
    for key in answers.into_iter().flatten().filter_map(|key| SeriesKey::from_bytes(&key)) {
        call.limits().reserve(Labels::bytes_of_key(&key)).map_err(query::fault)?;
        found.push(Labels::of_key(key));
    }
    Ok(found)
}

/// Adds the names or values of labels in the other shards, in order.
fn with_others(
    call: &Call<'_>,
    name: Option<&str>,
    since: Option<UnixMillis>,
    own: Vec<String>,
) -> Result<Vec<String>, Fault> {
    let since = since.map(|since| since.0);
    let question = LabelsQuestion { name: name.map(str::to_owned), since };
    let answers: Vec<Vec<String>> = ask(call, LABELS, &question)?;
    if answers.is_empty() {
        return Ok(own);
    }
    let all: BTreeSet<_> = answers.into_iter().flatten().chain(own).collect();
    Ok(all.into_iter().collect())
}

/// Asks the other shards; no answers for a store with one shard.
pub(super) fn ask<A: DeserializeOwned>(
    call: &Call<'_>,
    kind: &str,
    question: &impl Serialize,
) -> Result<Vec<A>, Fault> {
    let limits = call.limits();
    if limits.budget.others().is_none() {
        return Ok(Vec::new());
    }
    let question = written(question).map_err(query::fault)?;
    let asked = limits.budget.beside_shards(kind, &question, || Ok(()));
    let ((), answers) = asked.map_err(query::fault)?;
    let read = |answer: &Vec<u8>| read_answer(answer, limits.budget).map_err(query::fault);
    answers.iter().map(read).collect()
}

fn too_much(message: String) -> Fault {
    query::fault(QueryError::TooMuch(message))
}

fn truncate_to_limit<T>(
    call: &Call<'_>,
    mut all: Vec<T>,
    data: impl FnOnce(Vec<T>) -> Data,
) -> Result<Answer, Fault> {
    let limit = call.params.limit()?.unwrap_or(usize::MAX);
    let truncated = all.len() > limit;
    all.truncate(limit);
    let mut answer = Answer::new(data(all));
    if truncated {
        answer.warnings.push(TRUNCATED.to_owned());
    }
    Ok(answer)
}

/// Decodes a label name in a path. Prometheus' clients escape names with other characters than
/// letters, digits and `_` as `U__`, then `_XX_` for the code of a character and `__` for `_`.
fn unescape_label_name(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix("U__")?;
    let mut out = String::with_capacity(rest.len());
    while let Some(at) = rest.find('_') {
        let (plain, tail) = rest.split_at_checked(at)?;
        out.push_str(plain);
        let tail = tail.strip_prefix('_')?;
        if let Some(after) = tail.strip_prefix('_') {
            out.push('_');
            rest = after;
        } else {
            let (code, after) = tail.split_once('_')?;
            out.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
            rest = after;
        }
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_are_read() {
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(unescape_label_name(name).as_deref(), expected, "{name}");
        };
        check("U__service_2e_name", Some("service.name"));
        check("U__a__b", Some("a_b"));
        check("U__plain", Some("plain"));
        check("job", None);
        check("U__a_zz_b", None);
        check("U__a_2e", None);
        check("U__a_ffffffff_", None);
    }
}
