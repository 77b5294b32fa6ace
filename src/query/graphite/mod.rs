//! Graphite's render API (graphite.readthedocs.io): targets over stored series, and the names that
//! targets can use.
//!
//! A target is parsed (`syntax`) and evaluated (`evaluate`) in a `context`: patterns become series
//! (`paths`, `tags`) and lines (`fetch`), and `functions` change lines. Must never know: HTTP, the
//! formats of answers.

mod aggregation;
mod arguments;
mod context;
mod evaluate;
mod fetch;
mod functions;
mod glob;
mod line;
mod paths;
mod shards;
mod syntax;
mod tags;
mod times;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

pub use line::Line;
pub use paths::NodeKinds;
pub use shards::{graphite_of_question, list_tags};
pub use tags::TagsRequest;
pub use times::civil_text;

use crate::{
    model::{UnixMillis, graphite::Template},
    query::{ExpressionLimits, QueryError},
    store::Store,
};
use context::Context;
use paths::Paths;

/// The maximum number of targets in a request.
const TARGETS_MAX: usize = 256;

/// A request for lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderRequest {
    /// The targets.
    pub targets: Vec<String>,
    /// The start of the range in Graphite's forms; `None` means a day ago.
    pub from: Option<String>,
    /// The end of the range; `None` means now.
    pub until: Option<String>,
    /// The maximum number of points of a line; `None` selects the default of Prometheus.
    pub points: Option<usize>,
}

/// The lines of a request, in the order of the targets.
#[derive(Debug)]
pub struct RenderAnswer {
    /// The lines.
    pub lines: Vec<Line>,
}

/// The store, with the templates that give its series Graphite names.
#[derive(Clone, Copy)]
pub struct GraphiteStore<'a> {
    /// The store.
    pub store: &'a Store,
    /// The templates that split paths at ingest.
    pub templates: &'a [Template],
}

impl GraphiteStore<'_> {
    /// Evaluates targets.
    ///
    /// # Errors
    /// When a target, a function or a time is invalid, a limit is exceeded, the budget is used up,
    /// or the store cannot be read.
    pub fn render(
        &self,
        request: &RenderRequest,
        zone: &TimeZone,
        limits: &ExpressionLimits<'_>,
        now: UnixMillis,
    ) -> Result<RenderAnswer, QueryError> {
        if request.targets.is_empty() {
            return Err(QueryError::Invalid(
                "target is missing: add target=PATH, such as target=servers.*.load".to_owned(),
            ));
        }
        if request.targets.len() > TARGETS_MAX {
            let count = request.targets.len();
            return Err(QueryError::Invalid(format!(
                "{count} targets exceed the limit of {TARGETS_MAX}: send fewer at a time"
            )));
        }
        let time = |name: &str, text: &Option<String>, default: &str| {
            times::time(name, text.as_deref().unwrap_or(default), zone, now)
        };
        let (start, end) =
            (time("from", &request.from, "-1d")?, time("until", &request.until, "now")?);
        if start >= end {
            return Err(QueryError::Invalid(format!("from {start} is not before until {end}")));
        }
        let range = UnixMillis(start.saturating_mul(1000))..UnixMillis(end.saturating_mul(1000));
        if range.start < UnixMillis::MIN || range.end > UnixMillis::MAX {
            return Err(QueryError::Invalid(format!(
                "from {start} and until {end} must be between the years 1970 and 9998"
            )));
        }
        let points = request.points.unwrap_or(fetch::POINTS_MAX).clamp(1, fetch::POINTS_MAX);
        let context = Context {
            evaluate: evaluate::evaluate,
            store: self.store,
            templates: self.templates,
            limits,
            now,
            range: start..end,
            points,
            aggregation: None,
        };
        let mut lines = Vec::new();
        for target in &request.targets {
            let parsed = syntax::parse(target)?;
            // Memory of the parsed target and of the copies of its texts.
            limits.reserve(target.len() * 16)?;
            let mut found = evaluate::evaluate(&parsed, &context)?;
            for line in &mut found {
                line::consolidate(line, points);
            }
            lines.extend(found);
        }
        Ok(RenderAnswer { lines })
    }

    /// Returns the nodes of the tree of paths that a pattern matches.
    ///
    /// # Errors
    /// When the pattern is invalid, a limit is exceeded, or the budget is used up.
    pub fn find(
        &self,
        pattern: &str,
        limits: &ExpressionLimits<'_>,
    ) -> Result<BTreeMap<String, NodeKinds>, QueryError> {
        let Self { store, templates } = *self;
        shards::nodes(Paths { store, templates, limits }, pattern)
    }

    /// Returns the names of the series that fulfil conditions on their tags, in order.
    ///
    /// # Errors
    /// When a condition is malformed, a limit is exceeded, or the budget is used up.
    pub fn series_by_tag(
        &self,
        conditions: &[String],
        limits: &ExpressionLimits<'_>,
    ) -> Result<Vec<String>, QueryError> {
        let Self { store, templates } = *self;
        shards::names(Paths { store, templates, limits }, conditions)
    }
}
