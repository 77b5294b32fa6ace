//! What there is to select: names of labels, their values, metrics.
//!
//! Must never know: HTTP, cells. The dictionary's lock is held for a part of a list at a time.

use crate::{
    model::{Kind, METRIC_TAG, SeriesId, SeriesInfo, UnixMillis},
    query::{PromqlError, PromqlLimits, series::selector::CHUNK},
    store::Store,
};

/// A metric, as its first series knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedMetric {
    /// Its name.
    pub name: String,
    /// How its values are to be read.
    pub kind: Kind,
    /// Their unit; empty when there is none.
    pub unit: String,
}

/// The names of all labels in order, `__name__` among them; only those of series that have samples
/// since a time, when one is given.
///
/// # Errors
/// When the time is over, or there is no memory left.
pub fn list_label_names(
    store: &Store,
    since: Option<UnixMillis>,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<String>, PromqlError> {
    let mut names = Vec::new();
    for name in store.dictionary().tag_names() {
        let mut is_live = since.is_none();
        if !is_live {
            visit_values(store, &name, since, limits, |_| {
                is_live = true;
                false
            })?;
        }
        if is_live {
            names.push(name.into());
        }
    }
    Ok(names)
}

/// The values of a label, in order; only those of series that have samples since a time, when one
/// is given.
///
/// # Errors
/// When the time is over, or there is no memory left.
pub fn list_label_values(
    store: &Store,
    name: &str,
    since: Option<UnixMillis>,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<String>, PromqlError> {
    let mut all: Vec<String> = Vec::new();
    visit_values(store, name, since, limits, |value| {
        all.push(value.into());
        true
    })?;
    Ok(all)
}

/// Hands out the values of a label in order, while `visit` wants more.
fn visit_values(
    store: &Store,
    name: &str,
    since: Option<UnixMillis>,
    limits: &PromqlLimits<'_>,
    mut visit: impl FnMut(Box<str>) -> bool,
) -> Result<(), PromqlError> {
    let mut after: Option<Box<str>> = None;
    loop {
        check_time(limits)?;
        let next = store.dictionary().values_after(name, after.as_deref(), CHUNK);
        let Some(last) = next.last().cloned() else { return Ok(()) };
        limits.take(next.iter().map(|value| value.len() + size_of::<String>()).sum())?;
        after = Some(last);
        for value in next {
            let is_live = since.is_none_or(|since| {
                let ids = store.dictionary().with_tag(name, &value).to_vec();
                store.have_samples_since(&ids, since)
            });
            if is_live && !visit(value) {
                return Ok(());
            }
        }
    }
}

/// Only the series that have samples since a time, when one is given.
///
/// # Errors
/// When the time is over.
pub fn with_samples_since(
    store: &Store,
    found: Vec<(SeriesId, SeriesInfo)>,
    since: Option<UnixMillis>,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<(SeriesId, SeriesInfo)>, PromqlError> {
    let Some(since) = since else { return Ok(found) };
    let mut kept = Vec::with_capacity(found.len());
    for part in found.chunks(CHUNK) {
        check_time(limits)?;
        let ids: Vec<_> = part.iter().map(|(id, _)| *id).collect();
        let last = store.last_samples(&ids);
        let live =
            part.iter().zip(last).filter(|(_, last)| last.is_some_and(|own| own.at >= since));
        kept.extend(live.map(|(own, _)| own.clone()));
    }
    Ok(kept)
}

/// The metrics in order, or only the one that is wanted.
///
/// # Errors
/// When the time is over, or there is no memory left.
pub fn list_metrics(
    store: &Store,
    wanted: Option<&str>,
    limits: &PromqlLimits<'_>,
) -> Result<Vec<ListedMetric>, PromqlError> {
    let names = match wanted {
        Some(name) => vec![name.to_owned()],
        None => list_label_values(store, METRIC_TAG, None, limits)?,
    };
    let mut all = Vec::with_capacity(names.len());
    for chunk in names.chunks(CHUNK) {
        check_time(limits)?;
        let dictionary = store.dictionary();
        for name in chunk {
            let first = dictionary.with_tag(METRIC_TAG, name).first();
            let info = first.and_then(|id| dictionary.info(*id));
            all.extend(info.map(|info| ListedMetric {
                name: name.clone(),
                kind: info.kind,
                unit: info.unit.to_string(),
            }));
        }
    }
    Ok(all)
}

/// Ends a list that takes too long.
pub(crate) fn check_time(limits: &PromqlLimits<'_>) -> Result<(), PromqlError> {
    if limits.budget.check().is_err() {
        let message =
            "query timed out in a list of names: name fewer, or raise limits.query_timeout";
        return Err(PromqlError::Timeout(message.to_owned()));
    }
    Ok(())
}
