//! Inhibition: an alert is muted while another alert fires that explains it.
//!
//! Must never know: routes, time.

use std::collections::BTreeMap;

use crate::alerts::{LabelMatcher, LabelSet};

/// An inhibition rule.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Inhibition {
    pub(super) source: Vec<LabelMatcher>,
    pub(super) target: Vec<LabelMatcher>,
    /// Labels that must be equal, or missing, on both alerts.
    pub(super) equal: Vec<String>,
}

/// The firing alerts, indexed for the rules.
#[derive(Debug, Default)]
pub struct Inhibitors<'a>(Vec<IndexedInhibition<'a>>);

/// A rule with its sources by the values of the labels that must be equal.
type IndexedInhibition<'a> = (&'a Inhibition, BTreeMap<Vec<&'a str>, Sources<'a>>);

/// The labels of any source, and of a source that is not a target.
#[derive(Debug)]
struct Sources<'a> {
    any: &'a LabelSet,
    pure: Option<&'a LabelSet>,
}

impl Inhibition {
    fn values<'a>(&self, labels: &'a LabelSet) -> Vec<&'a str> {
        self.equal.iter().map(|name| labels.get(name).map_or("", String::as_str)).collect()
    }
}

fn match_all(matchers: &[LabelMatcher], labels: &LabelSet) -> bool {
    matchers.iter().all(|matcher| matcher.matches(labels))
}

impl<'a> Inhibitors<'a> {
    pub(super) fn new<I: Iterator<Item = &'a LabelSet>>(
        rules: &'a [Inhibition],
        firing: impl Fn() -> I,
    ) -> Self {
        let of_rule = |rule: &'a Inhibition| {
            let mut sources = BTreeMap::new();
            for labels in firing().filter(|labels| match_all(&rule.source, labels)) {
                let is_pure = !match_all(&rule.target, labels);
                let any = Sources { any: labels, pure: None };
                let found = sources.entry(rule.values(labels)).or_insert(any);
                found.pure = found.pure.or(is_pure.then_some(labels));
            }
            (rule, sources)
        };
        Self(rules.iter().map(of_rule).collect())
    }

    /// Returns the labels of an alert that inhibits the alert with these labels, if any. An
    /// alert that is both source and target is not inhibited by another such alert, nor by itself.
    pub fn inhibiting(&self, labels: &LabelSet) -> Option<&'a LabelSet> {
        self.0.iter().find_map(|(rule, sources)| {
            let source =
                sources.get(&rule.values(labels)).filter(|_| match_all(&rule.target, labels))?;
            if match_all(&rule.source, labels) { source.pure } else { Some(source.any) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(source: &str, target: &str, equal: &[&str]) -> Inhibition {
        let read = |text| LabelMatcher::parse_all(text).unwrap();
        let equal = equal.iter().map(|name| (*name).to_owned()).collect();
        Inhibition { source: read(source), target: read(target), equal }
    }

    fn labels(text: &str) -> LabelSet {
        let pair = |part: &str| part.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
        text.split(' ').filter_map(pair).collect()
    }

    #[test]
    fn a_source_inhibits_targets_with_equal_labels_and_never_itself() {
        let check = |rule: Inhibition, firing: &[&str], target: &str, expected: bool| {
            let firing: Vec<_> = firing.iter().map(|text| labels(text)).collect();
            let rules = [rule];
            let inhibitors = Inhibitors::new(&rules, || firing.iter());
            let found = inhibitors.inhibiting(&labels(target));
            assert_eq!(found.is_some(), expected, "{rules:?} {target}");
        };
        let equal = || rule("s=1", "t=1", &["e"]);
        check(equal(), &["s=1 e=a"], "t=1 e=a", true);
        check(equal(), &["s=1 e=a"], "t=1 e=b", false);
        check(equal(), &["s=2 e=a"], "t=1 e=a", false);
        check(equal(), &["s=1 e=a"], "t=2 e=a", false);
        // The label is missing on both.
        check(equal(), &["s=1"], "t=1", true);
        check(equal(), &["s=1"], "t=1 e=a", false);
        // An alert that is both source and target is not inhibited by itself or another such
        // alert, but by a source that is not a target.
        check(equal(), &["s=1 t=1"], "s=1 t=1", false);
        check(equal(), &["s=1 t=1 x=y"], "s=1 t=1", false);
        check(equal(), &["s=1 t=1", "s=1"], "s=1 t=1", true);
        check(equal(), &["s=1 t=1"], "t=1", true);
    }
}
