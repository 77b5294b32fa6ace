//! What there is to select: names of labels, their values, metrics.
//!
//! Must never know: HTTP, cells. The dictionary's lock is held for a part of a list at a time.

use super::PromqlError;
use crate::{
    model::Kind,
    store::{METRIC_TAG, Store},
};

/// Values looked at in one hold of the dictionary's lock.
const CHUNK: usize = 512;

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

/// The names of all labels in order, `__name__` among them.
pub fn list_label_names(store: &Store) -> Vec<String> {
    store.dictionary().tag_names().into_iter().map(String::from).collect()
}

/// The values of a label, in order.
///
/// # Errors
/// When `expired` says that the time is over.
pub fn list_label_values(
    store: &Store,
    name: &str,
    expired: &dyn Fn() -> bool,
) -> Result<Vec<String>, PromqlError> {
    let mut all: Vec<String> = Vec::new();
    loop {
        check_time(expired)?;
        let after = all.last().map(String::as_str);
        let next = store.dictionary().values_after(name, after, CHUNK);
        if next.is_empty() {
            return Ok(all);
        }
        all.extend(next.into_iter().map(String::from));
    }
}

/// The metrics in order, or only the one that is wanted.
///
/// # Errors
/// When `expired` says that the time is over.
pub fn list_metrics(
    store: &Store,
    wanted: Option<&str>,
    expired: &dyn Fn() -> bool,
) -> Result<Vec<ListedMetric>, PromqlError> {
    let names = match wanted {
        Some(name) => vec![name.to_owned()],
        None => list_label_values(store, METRIC_TAG, expired)?,
    };
    let mut all = Vec::with_capacity(names.len());
    for chunk in names.chunks(CHUNK) {
        check_time(expired)?;
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

fn check_time(expired: &dyn Fn() -> bool) -> Result<(), PromqlError> {
    if expired() {
        let message = "query timed out in a list of names: name fewer, or raise promql.timeout";
        return Err(PromqlError::Timeout(message.to_owned()));
    }
    Ok(())
}
