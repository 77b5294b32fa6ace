//! Stages of a group: the rules that are evaluated together.
//!
//! [`stages`] searches the text of each rule for recorded metrics, word by word; when that is not
//! conclusive, a rule counts as querying all of them. Must never know: how expressions are parsed.

use std::{collections::BTreeSet, ops::Range};

use super::{ALERTS, ALERTS_FOR_STATE};
use crate::{
    alerts::{Action, Rule, RuleGroup},
    model::METRIC_TAG,
};

/// Words that may precede a selector.
const BEFORE_SELECTORS: [&str; 7] =
    ["and", "or", "unless", "bool", "atan2", "group_left", "group_right"];

/// Splits the rules into stages: a stage ends before a rule that may query a metric recorded in it.
pub fn stages(group: &RuleGroup) -> Vec<Range<usize>> {
    let mut stages = Vec::new();
    let (mut start, mut recorded) = (0, BTreeSet::<&str>::new());
    for (index, rule) in group.rules.iter().enumerate() {
        if !recorded.is_empty() && may_query(rule, &recorded) {
            stages.push(start..index);
            start = index;
            recorded.clear();
        }
        match rule.action {
            Action::Record => drop(recorded.insert(&rule.name)),
            Action::Alert(_) => recorded.extend([ALERTS, ALERTS_FOR_STATE]),
        }
    }
    stages.push(start..group.rules.len());
    stages
}

/// Returns whether a rule may query one of these metrics.
fn may_query(rule: &Rule, metrics: &BTreeSet<&str>) -> bool {
    let policy = match &rule.action {
        Action::Record => None,
        Action::Alert(policy) => Some(policy),
    };
    let conditions = policy.into_iter().flat_map(|policy| [&policy.measured, &policy.recover]);
    let mut expressions = conditions.flatten().chain([&rule.expression]);
    // Templates may contain queries too, and their queries are only known when they are expanded.
    let labels = policy.is_some().then_some(rule.labels.values()).into_iter().flatten();
    let templates = policy.into_iter().flat_map(|policy| policy.annotations.values());
    let mut templates = templates.chain(labels);
    expressions.any(|text| names_metric(text, metrics))
        || templates.any(|text| text.contains("query"))
}

/// Returns whether an expression names one of these metrics, or selects without a name.
fn names_metric(text: &str, metrics: &BTreeSet<&str>) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let mut before = "";
    for part in text.split_inclusive(|c| !is_word(c)) {
        let word = part.trim_end_matches(|c| !is_word(c));
        if metrics.contains(word) || word == METRIC_TAG {
            return true;
        }
        if BEFORE_SELECTORS.contains(&word) {
            before = "";
        } else if !word.is_empty() {
            before = word;
        }
        match part.chars().next_back() {
            // A brace after a name belongs to its selector.
            Some('{') if before.is_empty() => return true,
            Some(c) if !is_word(c) && !c.is_whitespace() => before = "",
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_whole_words_and_a_selector_without_a_metric_queries_all() {
        let metrics = ["level:max", "up"].into();
        let check = |text: &str, expected: bool| {
            assert_eq!(names_metric(text, &metrics), expected, "{text}");
        };
        check("level:max > 3", true);
        check("sum(level:max)", true);
        check("level:max2 + down{a=\"b\"} + startup", false);
        check("down {a=\"b\"}", false);
        check("sum by (a) (down{a=~\"b.*\"}[5m])", false);
        check("{job=\"a\"}", true);
        check("down + {job=\"a\"}", true);
        check("rate({job=\"a\"}[5m])", true);
        check("down{__name__=~\"l.*\"}", true);
        check("down * on (a) group_left {b=\"c\"}", true);
        check("down and {b=\"c\"}", true);
        check("1 > bool {job=\"a\"}", true);
    }
}
