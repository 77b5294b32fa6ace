//! Rules of retention: series that are kept at other levels than the granularities of the settings.
//!
//! Must never know: the stored data, the format of settings.

use super::{Granularity, GranularitySet, KeySelector, Span};

/// The maximum number of rules, because each rule has separate files.
pub const RETENTION_RULES_MAX: usize = 16;
/// The maximum length of a rule's name, which is a part of the names of folders.
const NAME_BYTES_MAX: usize = 32;
/// The separator between a slot width and the class of a level in its name, as in `1m@debug`.
const OF_CLASS: char = '@';

/// A rule: a selector of series, and the levels at which these series are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRule {
    /// The name, which identifies the rule when its selector or its levels change.
    pub name: String,
    /// The series of the rule, unless an earlier rule selects them.
    pub selector: KeySelector,
    /// The levels, finest first, each with the spans of the granularity of its width.
    pub levels: GranularitySet,
}

/// A retention of a rule; `None` when the rule omits the level.
pub type RuleLevel = (String, Option<Span>);

impl RetentionRule {
    /// Returns a rule whose levels are those of the granularities, except for the given ones.
    ///
    /// # Errors
    /// All faults at once, each with a remedy.
    pub fn new(
        name: &str,
        selector: KeySelector,
        given: &[RuleLevel],
        granularities: &GranularitySet,
    ) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        if !is_name(name) {
            faults.push(format!(
                "{name:?} is not a valid name: use up to {NAME_BYTES_MAX} lower-case letters, \
                 digits and underscores, beginning with a letter"
            ));
        }
        let widths: Vec<_> = granularities.iter().map(|level| level.name.clone()).collect();
        for (width, _) in given.iter().filter(|(width, _)| !widths.contains(width)) {
            faults.push(format!(
                "{width} is not the slot of a granularity: use one of {}",
                widths.join(", ")
            ));
        }
        let retention_of = |level: &Granularity| {
            let given = given.iter().find(|(width, _)| *width == level.name);
            given.map_or(Some(level.retention()), |(_, retention)| *retention)
        };
        let kept = granularities
            .iter()
            .filter_map(|level| Some(level.with_retention(retention_of(level)?)));
        let kept: Vec<_> = kept.collect();
        if kept.is_empty() {
            faults.push("it keeps no level: keep at least one".to_owned());
            return Err(faults);
        }
        match GranularitySet::new(kept) {
            Ok(levels) if faults.is_empty() => Ok(Self { name: name.to_owned(), selector, levels }),
            Ok(_) => Err(faults),
            Err(found) => {
                faults.extend(found.0);
                Err(faults)
            }
        }
    }

    /// Returns true when a rule has the same name, selector and levels, whatever their retention.
    pub fn differs_in_retention_only(&self, other: &Self) -> bool {
        (&self.name, &self.selector) == (&other.name, &other.selector)
            && self.levels.differs_in_retention_only(&other.levels)
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(is_part)
}

impl Granularity {
    /// Returns the level of a class with the spans of this granularity.
    #[must_use]
    pub fn of_class(&self, class: &str) -> Self {
        // The level has a separate retention, which does not change with the retention of the
        // granularity.
        let mut level = self.with_retention(self.retention());
        level.name = format!("{}{OF_CLASS}{class}", self.width_name());
        level
    }

    /// Returns the name without the class: the slot width.
    pub fn width_name(&self) -> &str {
        split_level(&self.name).0
    }

    /// Returns the class of a level; `None` for a granularity of the settings.
    pub fn class(&self) -> Option<&str> {
        split_level(&self.name).1
    }
}

/// Splits the name of a level into its slot width and its class, if it has one.
pub fn split_level(name: &str) -> (&str, Option<&str>) {
    name.split_once(OF_CLASS).map_or((name, None), |(width, class)| (width, Some(class)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_changes_or_omits_levels_and_faults_name_the_remedy() {
        let set = GranularitySet::default();
        let rule = |name: &str, given: &[(&str, Option<&str>)]| {
            let read = |(width, span): &(&str, Option<&str>)| {
                ((*width).to_owned(), span.map(|span| span.parse().unwrap()))
            };
            let given: Vec<_> = given.iter().map(read).collect();
            RetentionRule::new(name, KeySelector::new(Vec::new()).unwrap(), &given, &set)
        };
        let debug = rule("debug", &[("1m", None), ("5m", Some("2d"))]).unwrap();
        let levels: Vec<_> = debug.levels.iter().map(|level| level.name.clone()).collect();
        assert_eq!(levels, ["5m", "1h", "1d"]);
        assert_eq!(debug.levels.as_slice()[0].retention().to_string(), "2d");
        let level = debug.levels.as_slice()[0].of_class("debug");
        assert_eq!((&*level.name, level.width_name()), ("5m@debug", "5m"));
        assert_eq!((level.class(), set.as_slice()[0].class()), (Some("debug"), None));
        for (name, given, fault) in [
            ("a", &[("2m", Some("1d"))][..], "use one of 1m, 5m, 1h, 1d"),
            ("Bad-name", &[], "lower-case letters"),
            ("", &[], "is not a valid name"),
            ("a", &[("1m", None), ("5m", None), ("1h", None), ("1d", None)], "keeps no level"),
            ("a", &[("1h", Some("10y"))], "granularity 1d: retention = 5y is shorter"),
            ("a", &[("1m", Some("1h"))], "use 6h or more"),
        ] {
            let faults = rule(name, given).unwrap_err().join("; ");
            assert!(faults.contains(fault), "{faults}");
        }
    }
}
