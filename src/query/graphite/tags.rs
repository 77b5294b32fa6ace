//! Tags of series and conditions on them (graphite.readthedocs.io, "Graphite Tag Support").
//!
//! The tag `name` is the metric. Must never know: values, functions.

use serde::{Deserialize, Serialize};

use super::paths::{FoundSeries, Paths};
use crate::{
    model::{METRIC_TAG, SeriesId, SeriesInfo, graphite::GraphiteName},
    query::{
        ExpressionLimits, MatchOperator, QueryError, SeriesMatcher, list_label_names,
        list_label_values, select_series, whole_pattern,
    },
    store::Store,
};

/// Graphite's name for the metric.
const NAME: &str = "name";
/// The maximum number of conditions in a request.
const CONDITIONS_MAX: usize = 64;

/// A request for the names of tags, or for the values of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TagsRequest {
    /// The conditions on the series whose tags are listed; empty for all series.
    pub conditions: Vec<String>,
    /// The tag whose values are listed; `None` lists names of tags.
    pub tag: Option<String>,
    /// The prefix of each listed text.
    pub prefix: String,
    /// The maximum number of listed texts.
    pub limit: usize,
}

fn stored_tag(tag: &str) -> &str {
    if tag == NAME { METRIC_TAG } else { tag }
}

/// Parses conditions such as `name=disk.used`, `host=~web.*`, `dc!=a` or `dc!=~b`.
pub(super) fn matchers(
    conditions: &[String],
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<SeriesMatcher>, QueryError> {
    if conditions.len() > CONDITIONS_MAX {
        return Err(QueryError::Invalid(format!(
            "{} conditions on tags exceed the limit of {CONDITIONS_MAX}",
            conditions.len()
        )));
    }
    conditions.iter().map(|text| matcher(text, limits)).collect()
}

fn matcher(text: &str, limits: &ExpressionLimits<'_>) -> Result<SeriesMatcher, QueryError> {
    let parts = text.split_once('=').filter(|(tag, _)| !matches!(*tag, "" | "!"));
    let Some((tag, value)) = parts else {
        return Err(QueryError::Invalid(format!(
            "{text:?} is not a condition on a tag: use tag=value, tag!=value, tag=~pattern or \
             tag!=~pattern"
        )));
    };
    let (tag, is_negated) = tag.strip_suffix('!').map_or((tag, false), |tag| (tag, true));
    let operator = match (value.strip_prefix('~'), is_negated) {
        (None, false) => MatchOperator::Equal(value.to_owned()),
        (None, true) => MatchOperator::NotEqual(value.to_owned()),
        (Some(pattern), _) => {
            // Graphite's patterns match the beginning of a value.
            let pattern = whole_pattern(&format!("(?:{pattern}).*"), limits)?;
            if is_negated {
                MatchOperator::NotPattern(pattern)
            } else {
                MatchOperator::Pattern(pattern)
            }
        }
    };
    Ok(SeriesMatcher { tag: stored_tag(tag).to_owned(), operator })
}

fn selected(
    store: &Store,
    conditions: &[String],
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
    let matchers = matchers(conditions, limits)?;
    if matchers.iter().all(|matcher| matcher.matches("")) {
        return Err(QueryError::Invalid(
            "no condition requires a value: add one such as name=disk.used".to_owned(),
        ));
    }
    select_series(store, &matchers, limits)
}

impl Paths<'_> {
    /// Returns the series that fulfil all conditions, with their tags in their names.
    pub(super) fn by_tag(&self, conditions: &[String]) -> Result<Vec<FoundSeries>, QueryError> {
        let found = selected(self.store, conditions, self.limits)?;
        let named = |(id, info): (SeriesId, SeriesInfo)| {
            // Without templates, all tags are in the name.
            let name = GraphiteName::of(&info.key, &[]);
            self.limits.reserve(size_of::<FoundSeries>() + 2 * info.key.as_bytes().len())?;
            Ok(FoundSeries { id, info, name })
        };
        let mut all = found.into_iter().map(named).collect::<Result<Vec<_>, QueryError>>()?;
        all.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(all)
    }
}

/// Lists the names of tags, or the values of a tag, of this shard; see [`super::list_tags`].
pub(super) fn list_tags_here(
    store: &Store,
    request: &TagsRequest,
    limits: &ExpressionLimits<'_>,
) -> Result<Vec<String>, QueryError> {
    let display_name = |tag: &str| if tag == METRIC_TAG { NAME.to_owned() } else { tag.to_owned() };
    let tag = request.tag.as_deref().map(stored_tag);
    let mut texts = if request.conditions.is_empty() {
        match tag {
            None => {
                let names = list_label_names(store, None, limits)?;
                names.iter().map(|name| display_name(name)).collect()
            }
            Some(tag) => list_label_values(store, tag, None, limits)?,
        }
    } else {
        let mut texts = Vec::new();
        for (_, info) in selected(store, &request.conditions, limits)? {
            limits.budget.check()?;
            let value = |tag: &str| match tag {
                METRIC_TAG => Some(info.key.metric()),
                tag => info.key.tag(tag),
            };
            match tag {
                None => texts.extend(info.key.tags().map(|(name, _)| name.to_owned())),
                Some(tag) => texts.extend(value(tag).map(str::to_owned)),
            }
            if texts.len() > 2 * limits.series_max {
                texts.sort_unstable();
                texts.dedup();
            }
        }
        if tag.is_none() {
            texts.push(NAME.to_owned());
        }
        texts
    };
    texts.retain(|text| text.starts_with(&request.prefix));
    texts.sort_unstable();
    texts.dedup();
    texts.truncate(request.limit);
    Ok(texts)
}
