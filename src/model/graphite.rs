//! Graphite's names of series: dotted paths, tags, and templates that split paths into a metric and
//! tags, in both directions.
//!
//! Must never know: protocols, patterns of paths.

use serde::{Deserialize, Serialize};

use super::SeriesKey;

/// A rule that splits dotted paths that begin with its filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// The parts that a path must begin with; `*` matches any part.
    filter: Vec<String>,
    /// The meaning of each part of the path.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    /// A part that is left out.
    Skip,
    /// A part of the metric's name.
    Metric,
    /// The rest of the path is the metric's name.
    MetricRest,
    /// The value of a tag.
    Tag(String),
}

impl Template {
    /// Parses `FILTER PARTS`, such as `servers.* _.host.metric*`.
    ///
    /// # Errors
    /// The text is malformed; the error shows the correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (filter, parts) = text.split_once(' ').ok_or_else(|| {
            format!(
                "{text:?} is not a template; write `FILTER PARTS` as in `servers.* _.host.metric*`"
            )
        })?;
        let part = |word: &str| match word {
            "" | "_" => Part::Skip,
            "metric" => Part::Metric,
            "metric*" => Part::MetricRest,
            tag => Part::Tag(tag.to_owned()),
        };
        let parts: Vec<_> = parts.trim().split('.').map(part).collect();
        if !parts.iter().any(|part| matches!(part, Part::Metric | Part::MetricRest)) {
            return Err(format!("{text:?} has no part that is `metric` or `metric*`"));
        }
        Ok(Self { filter: filter.split('.').map(str::to_owned).collect(), parts })
    }

    /// Returns true when a path begins with the filter.
    pub fn fits(&self, path: &str) -> bool {
        let mut parts = path.split('.');
        self.filter.iter().all(|wanted| parts.next().is_some_and(|p| wanted == "*" || wanted == p))
    }

    /// Returns the metric of a path, and appends its tags.
    pub fn split<'a>(&'a self, path: &'a str, tags: &mut Vec<(&'a str, &'a str)>) -> String {
        let mut metric: Vec<&str> = Vec::new();
        let mut words = path.split('.');
        for (part, word) in self.parts.iter().zip(&mut words) {
            match part {
                Part::Skip => {}
                Part::Metric => metric.push(word),
                Part::Tag(name) => tags.push((name, word)),
                Part::MetricRest => {
                    metric.push(word);
                    metric.extend(words);
                    break;
                }
            }
        }
        metric.join(".")
    }

    /// Returns the parts of the path of a series, as far as they are known: the reverse of
    /// [`Template::split`]. A part that the template left out is known when the filter names it.
    ///
    /// Returns `None` when no path of this template becomes the series.
    fn join<'a>(&'a self, key: &'a SeriesKey, used: &mut Vec<&'a str>) -> Option<Vec<&'a str>> {
        let mut words = key.metric().split('.').peekable();
        let mut path = Vec::with_capacity(self.parts.len());
        for (index, part) in self.parts.iter().enumerate() {
            // A path may be shorter than its template.
            if words.peek().is_none() && matches!(part, Part::Metric | Part::MetricRest) {
                break;
            }
            match part {
                Part::Skip => path.push(self.literal(index)?),
                Part::Metric => path.push(words.next()?),
                Part::Tag(name) => {
                    path.push(key.tag(name).filter(|value| !value.contains('.'))?);
                    used.push(name);
                }
                Part::MetricRest => {
                    path.extend(words.by_ref());
                    break;
                }
            }
        }
        words.peek().is_none().then_some(path)
    }

    /// Returns the part of the filter at an index, unless it matches any part.
    fn literal(&self, index: usize) -> Option<&str> {
        self.filter.get(index).map(String::as_str).filter(|word| *word != "*")
    }

    /// Returns the condition on each part of a path whose series the template made.
    pub fn conditions(&self) -> impl Iterator<Item = Condition<'_>> {
        self.parts.iter().enumerate().map(|(index, part)| match part {
            Part::Skip => self.literal(index).map_or(Condition::Unknown, Condition::Literal),
            Part::Metric => Condition::Metric,
            Part::MetricRest => Condition::MetricRest,
            Part::Tag(name) => Condition::Tag(name),
        })
    }
}

/// The meaning of a part of a path in the series that a template makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition<'a> {
    /// The part is this text.
    Literal(&'a str),
    /// The part is left out and unknown.
    Unknown,
    /// The part is a part of the metric.
    Metric,
    /// The part and all later ones are the rest of the metric.
    MetricRest,
    /// The part is the value of a tag.
    Tag(&'a str),
}

/// The name of a series in Graphite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphiteName {
    /// The dotted path, or the metric of a series with tags.
    pub path: String,
    /// The tags that are not in the path, as `name=value`.
    pub tags: Vec<String>,
}

impl GraphiteName {
    /// Returns the name with which a sender would write a series: the path that the first fitting
    /// template splits into this series, or else the metric with all tags.
    pub fn of(key: &SeriesKey, templates: &[Template]) -> Self {
        templates.iter().find_map(|template| Self::joined(key, template, templates)).unwrap_or_else(
            || {
                let tags = key.tags().map(|(name, value)| format!("{name}={value}"));
                Self { path: key.metric().to_owned(), tags: tags.collect() }
            },
        )
    }

    /// Returns the name of a series whose path a template splits; `None` when another template
    /// would split that path, or the parts do not become the series.
    fn joined(key: &SeriesKey, template: &Template, templates: &[Template]) -> Option<Self> {
        let mut used = Vec::new();
        let path = template.join(key, &mut used)?.join(".");
        let first = templates.iter().find(|template| template.fits(&path))?;
        let mut tags = Vec::new();
        let is_same = std::ptr::eq(first, template)
            && first.split(&path, &mut tags) == key.metric()
            && tags.iter().all(|(name, value)| key.tag(name) == Some(*value));
        let others = key.tags().filter(|(name, _)| !used.contains(name));
        let tags = others.map(|(name, value)| format!("{name}={value}")).collect();
        is_same.then_some(Self { path, tags })
    }

    /// Returns true when the series is found by its path alone.
    pub fn is_plain(&self) -> bool {
        self.tags.is_empty()
    }
}

impl std::fmt::Display for GraphiteName {
    /// Formats a name as Graphite does: `path;name=value;...`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.path)?;
        self.tags.iter().try_for_each(|tag| write!(f, ";{tag}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SeriesLimits;

    fn templates(texts: &[&str]) -> Vec<Template> {
        texts.iter().map(|text| Template::parse(text).unwrap()).collect()
    }

    fn name(metric: &str, tags: &[(&str, &str)], texts: &[&str]) -> String {
        let key = SeriesKey::new(metric, tags.iter().copied(), &SeriesLimits::default()).unwrap();
        GraphiteName::of(&key, &templates(texts)).to_string()
    }

    #[test]
    fn a_series_gets_the_name_that_its_sender_wrote() {
        const SERVERS: &str = "servers.* _.host.metric*";
        assert_eq!(name("a.b", &[], &[]), "a.b");
        assert_eq!(name("disk", &[("host", "a"), ("mount", "/")], &[]), "disk;host=a;mount=/");
        assert_eq!(name("cpu.idle", &[("host", "w1")], &[SERVERS]), "servers.w1.cpu.idle");
        assert_eq!(
            name("load", &[("az", "b"), ("host", "w1")], &[SERVERS]),
            "servers.w1.load;az=b"
        );
        // No template creates these series: a dot in a tag, no tag, a part that is unknown.
        assert_eq!(name("load", &[("host", "w.1")], &[SERVERS]), "load;host=w.1");
        assert_eq!(name("load", &[], &[SERVERS]), "load");
        assert_eq!(name("load", &[("host", "w")], &["* _.host.metric*"]), "load;host=w");
        // Another template comes first for this path.
        let both = ["servers.db1 _.db.metric*", SERVERS];
        assert_eq!(name("load", &[("host", "db1")], &both), "load;host=db1");
        assert_eq!(name("web1.cpu", &[("dc", "o")], &["* dc.metric.metric"]), "o.web1.cpu");
    }
}
