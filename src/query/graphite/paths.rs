//! The series that a pattern of paths matches, by their names in Graphite.
//!
//! A series without tags has its metric as its path. A series whose tags come from a template has
//! the path that the template splits. Names of all other series contain tags, by which these series
//! are found.
//! Must never know: values, functions.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::glob;
use crate::{
    model::{
        METRIC_TAG, SeriesId, SeriesInfo, SeriesKey, SeriesLimits,
        graphite::{Condition, GraphiteName, Template},
    },
    query::{
        ExpressionLimits, MatchOperator, QueryError, SeriesMatcher, select_series,
        series::selector::CHUNK, whole_pattern,
    },
    store::Store,
};

/// The maximum number of tags in a name.
const TAGS_MAX: usize = 64;
/// Limits for keys that are only looked up: wider than any limits of the settings.
pub(super) const KEY_LIMITS: SeriesLimits =
    SeriesLimits { tags_max: 1024, name_bytes_max: 16_384, value_bytes_max: 65_536 };

/// A series that a pattern matches.
#[derive(Debug, Clone)]
pub(super) struct FoundSeries {
    pub(super) id: SeriesId,
    pub(super) info: SeriesInfo,
    pub(super) name: GraphiteName,
}

/// A node of the tree of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeKinds {
    /// True when a series has this path.
    pub is_leaf: bool,
    /// True when series have paths below this path.
    pub is_branch: bool,
}

/// A search for series by their names.
#[derive(Clone, Copy)]
pub(super) struct Paths<'a> {
    pub(super) store: &'a Store,
    pub(super) templates: &'a [Template],
    pub(super) limits: &'a ExpressionLimits<'a>,
}

type Visit<'v> = &'v mut dyn FnMut(SeriesId, GraphiteName) -> Result<(), QueryError>;

impl Paths<'_> {
    /// Returns the series of a pattern, in order of their names.
    pub(super) fn series(&self, pattern: &str) -> Result<Vec<FoundSeries>, QueryError> {
        let mut found = BTreeMap::new();
        let mut keep = |id, name: GraphiteName| {
            self.limits.reserve(size_of::<FoundSeries>() + 2 * name.path.len())?;
            found.insert(name, id);
            self.check_count(found.len())
        };
        if pattern.contains(';') {
            self.visit_tagged(pattern, &mut keep)?;
        } else {
            for pattern in glob::expand_braces(pattern)? {
                self.visit_matching(&pattern, false, &mut keep)?;
            }
        }
        self.with_metadata(found.into_iter())
    }

    /// Returns the series with their metadata.
    pub(super) fn with_metadata(
        &self,
        found: impl ExactSizeIterator<Item = (GraphiteName, SeriesId)>,
    ) -> Result<Vec<FoundSeries>, QueryError> {
        let mut all = Vec::with_capacity(found.len());
        let mut found = found.peekable();
        while found.peek().is_some() {
            self.limits.budget.check()?;
            let dictionary = self.store.dictionary();
            all.extend(found.by_ref().take(CHUNK).filter_map(|(name, id)| {
                dictionary.info(id).map(|info| FoundSeries { id, info, name })
            }));
        }
        Ok(all)
    }

    /// Returns the nodes that a pattern matches, by their paths.
    pub(super) fn nodes(&self, pattern: &str) -> Result<BTreeMap<String, NodeKinds>, QueryError> {
        let mut nodes: BTreeMap<String, NodeKinds> = BTreeMap::new();
        for pattern in glob::expand_braces(pattern)? {
            let parts = pattern.split('.').count();
            self.visit_matching(&pattern, true, &mut |_, name| {
                let end = name.path.match_indices('.').nth(parts - 1).map(|(at, _)| at);
                let path = name.path.get(..end.unwrap_or(name.path.len())).unwrap_or_default();
                if !nodes.contains_key(path) {
                    self.limits.reserve(path.len() + 64)?;
                    nodes.insert(path.to_owned(), NodeKinds::default());
                    self.check_count(nodes.len())?;
                }
                if let Some(node) = nodes.get_mut(path) {
                    node.is_branch |= end.is_some();
                    node.is_leaf |= end.is_none();
                }
                Ok(())
            })?;
        }
        Ok(nodes)
    }

    pub(super) fn check_count(&self, count: usize) -> Result<(), QueryError> {
        let max = self.limits.series_max;
        if count <= max {
            return Ok(());
        }
        Err(QueryError::TooMuch(format!(
            "more than {max} paths match: use a longer pattern or raise limits.query_points_max"
        )))
    }

    /// Visits the series whose paths match a pattern without braces; with `below`, also the series
    /// whose paths continue after a matching part.
    fn visit_matching(
        &self,
        pattern: &str,
        below: bool,
        visit: Visit<'_>,
    ) -> Result<(), QueryError> {
        let rest = if below { "(?:\\..*)?" } else { "" };
        let regex = whole_pattern(&format!("{}{rest}", glob::regex(pattern)), self.limits)?;
        self.visit_untagged(pattern, below, &regex, visit)?;
        for template in self.templates {
            let Some(matchers) = self.matchers(template, pattern, below)? else { continue };
            for (id, info) in select_series(self.store, &matchers, self.limits)? {
                let name = GraphiteName::of(&info.key, self.templates);
                // Series whose metric is their path have been visited above.
                let is_visited = info.key.tags_count() == 0 && name.path == info.key.metric();
                if !is_visited && name.is_plain() && regex.is_match(&name.path) {
                    visit(id, name)?;
                }
            }
        }
        Ok(())
    }

    /// Visits the series without tags, whose metric is their path.
    fn visit_untagged(
        &self,
        pattern: &str,
        below: bool,
        regex: &Regex,
        visit: Visit<'_>,
    ) -> Result<(), QueryError> {
        let visit = &mut |metric: &str| {
            let key = SeriesKey::new(metric, [], &KEY_LIMITS).ok();
            let id = key.as_ref().and_then(|key| self.store.dictionary().find(key));
            let Some((id, key)) = id.zip(key) else { return Ok(()) };
            let name = GraphiteName::of(&key, self.templates);
            if name.path == metric { visit(id, name) } else { Ok(()) }
        };
        let start = glob::literal_start(pattern);
        if regex.is_match(start) {
            visit(start)?;
        }
        if start.len() == pattern.len() && !below {
            return Ok(());
        }
        let mut after: Box<str> = start.into();
        loop {
            self.limits.budget.check()?;
            let names = self.store.dictionary().values_after(METRIC_TAG, Some(&after), CHUNK);
            let Some(last) = names.last().cloned() else { return Ok(()) };
            for name in names.iter().take_while(|name| name.starts_with(start)) {
                if regex.is_match(name) {
                    visit(name)?;
                }
            }
            if !last.starts_with(start) {
                return Ok(());
            }
            after = last;
        }
    }

    /// Returns the matchers of the series that a template creates from matching paths; `None` when
    /// the template creates no such series.
    fn matchers(
        &self,
        template: &Template,
        pattern: &str,
        below: bool,
    ) -> Result<Option<Vec<SeriesMatcher>>, QueryError> {
        let parts: Vec<_> = pattern.split('.').collect();
        let (mut metric, mut rest): (Vec<String>, _) = (Vec::new(), "");
        let (mut matchers, mut used) = (Vec::new(), 0);
        for condition in template.conditions() {
            let part = parts.get(used).copied();
            if part.is_none() && !below {
                break;
            }
            used += 1;
            let regex = part.map(glob::regex);
            match condition {
                Condition::Unknown => return Ok(None),
                Condition::Literal(word) => {
                    let regex =
                        regex.map(|regex| whole_pattern(&regex, self.limits)).transpose()?;
                    if regex.is_some_and(|regex| !regex.is_match(word)) {
                        return Ok(None);
                    }
                }
                Condition::Metric => metric.push(regex.unwrap_or_else(|| "[^.]*".to_owned())),
                Condition::MetricRest => {
                    let all = parts.get(used - 1..).unwrap_or_default();
                    metric.extend(all.iter().map(|part| glob::regex(part)));
                    if below {
                        rest = if all.is_empty() { ".*" } else { "(?:\\..*)?" };
                    }
                    used = parts.len();
                    break;
                }
                Condition::Tag(tag) => {
                    let operator = match part {
                        Some(part) if !glob::is_pattern(part) => {
                            MatchOperator::Equal(part.to_owned())
                        }
                        _ => {
                            let regex = regex.unwrap_or_else(|| ".+".to_owned());
                            MatchOperator::Pattern(whole_pattern(&regex, self.limits)?)
                        }
                    };
                    matchers.push(SeriesMatcher { tag: tag.to_owned(), operator });
                }
            }
        }
        // A template drops the parts of a path that follow its last part.
        if used < parts.len() {
            return Ok(None);
        }
        let metric = format!("{}{rest}", metric.join("\\."));
        // A pattern that ends within the template does not restrict the metric.
        let metric = if metric.is_empty() { ".*".to_owned() } else { metric };
        let operator = MatchOperator::Pattern(whole_pattern(&metric, self.limits)?);
        matchers.push(SeriesMatcher { tag: METRIC_TAG.to_owned(), operator });
        Ok(Some(matchers))
    }

    /// Visits the series with the name `path;tag=value;...`, whose tags may be in any order.
    fn visit_tagged(&self, name: &str, visit: Visit<'_>) -> Result<(), QueryError> {
        let mut words = name.split(';');
        let path = words.next().unwrap_or_default();
        let mut pairs: Vec<_> = words.by_ref().take(TAGS_MAX).map(str::to_owned).collect();
        if words.next().is_some() {
            return Err(QueryError::Invalid(format!("a name has more than {TAGS_MAX} tags")));
        }
        // Keys contain tags in order of their names.
        pairs.sort_by(|a, b| a.split_once('=').cmp(&b.split_once('=')));
        let mut matchers = Vec::new();
        for pair in &pairs {
            let (tag, value) = pair.split_once('=').ok_or_else(|| {
                QueryError::Invalid(format!("tag {pair:?} of {name:?} is not name=value"))
            })?;
            matchers.push(SeriesMatcher::equal(tag, value));
        }
        for (id, info) in select_series(self.store, &matchers, self.limits)? {
            let name = GraphiteName::of(&info.key, self.templates);
            if name.path == path && name.tags == pairs {
                visit(id, name)?;
            }
        }
        Ok(())
    }
}
