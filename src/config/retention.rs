//! Rules of retention: tables `[[retention.rule]]` become rules with selectors and levels.
//!
//! Must never know: the stored series.

use super::{
    faults::Faults,
    projects::ProjectSettings,
    sections::{Retention, Rule},
};
use crate::{
    model::{GranularitySet, KeySelector, ProjectName, RETENTION_RULES_MAX, RetentionRule},
    policy::retention::budget::DiskMax,
    query::key_selector,
};

/// The text with which a rule omits a level.
const NOTHING: &str = "none";

/// Checks the rules, and reports every fault.
pub(super) fn retention_rules(
    given: &Retention,
    projects: &[ProjectSettings],
    granularities: &GranularitySet,
    faults: &mut Faults,
) -> Vec<RetentionRule> {
    if given.rule.len() > RETENTION_RULES_MAX {
        faults.0.push(format!(
            "retention.rule: {} rules are more than {RETENTION_RULES_MAX}: join some of them, with \
             a pattern such as {{__name__=~\"a_.*|b_.*\"}}",
            given.rule.len()
        ));
        return Vec::new();
    }
    let mut rules: Vec<RetentionRule> = Vec::new();
    for rule in &given.rule {
        let section = format!("retention.rule {}", rule.name);
        let found = faults.0.len();
        if rules.iter().any(|known| known.name == rule.name) {
            faults.0.push(format!("{section}: another rule has this name; use another name"));
        }
        let mut levels = Vec::new();
        for (width, retention) in &rule.keep {
            let kept = if retention == NOTHING {
                None
            } else {
                let Some(span) = faults.span(&format!("{section}: {width}"), retention) else {
                    continue;
                };
                Some(span)
            };
            levels.push((width.clone(), kept));
        }
        let selector = match &rule.selector {
            // The project selects the series.
            empty if empty.is_empty() && rule.project.is_some() => KeySelector::new(Vec::new()),
            selector => key_selector(selector),
        };
        let selector = selector.map_err(|problem| {
            faults.0.push(format!("{section}: selector: {problem}"));
        });
        let Ok(mut selector) = selector else { continue };
        if let Some(project) = &rule.project {
            let others = projects.iter().map(|known| &known.name);
            let mut known = others.chain([ProjectName::of_default()]);
            match known.find(|known| known.as_str() == project) {
                Some(project) => selector = selector.in_project(project),
                None => faults.0.push(format!(
                    "{section}: there is no project {project:?}: add [security.projects.{project}]"
                )),
            }
        }
        match RetentionRule::new(&rule.name, selector, &levels, granularities) {
            Ok(rule) if faults.0.len() == found => rules.push(rule),
            Ok(_) => {}
            Err(problems) => {
                faults.0.extend(problems.iter().map(|problem| format!("{section}: {problem}")));
            }
        }
    }
    rules
}

/// Checks that each project with a limit of bytes has its own rule of retention, so that its files
/// are separate.
pub(super) fn check_projects(rules: &Retention, projects: &[ProjectSettings], faults: &mut Faults) {
    for ProjectSettings { name, settings, .. } in projects {
        let section = format!("security.projects.{name}.disk_max");
        let is_of_project = |rule: &Rule| {
            rule.project.as_deref() == Some(name.as_str()) && rule.selector.is_empty()
        };
        match settings.disk_max {
            None => {}
            Some(DiskMax::Percent(_)) => {
                faults.0.push(format!("{section} is a percentage: use bytes, such as \"20 GiB\""));
            }
            Some(DiskMax::Bytes(_)) if rules.rule.iter().any(is_of_project) => {}
            Some(DiskMax::Bytes(_)) => faults.0.push(format!(
                "{section} counts the files of the project's rules of retention: add a \
                 [[retention.rule]] with project = {:?} and without a selector",
                name.as_str()
            )),
        }
    }
}

/// Returns a note for each rule that selects no series, because an earlier rule selects all of
/// them.
pub(super) fn shadowed(rules: &[RetentionRule]) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let matchers = rule.selector.matchers();
        let selects_more = |earlier: &&RetentionRule| {
            earlier.selector.matchers().iter().all(|matcher| matchers.contains(matcher))
        };
        if let Some(earlier) = rules[..index].iter().find(selects_more) {
            notes.push(format!(
                "retention.rule {} matches nothing: rule {} before it selects all of its series",
                rule.name, earlier.name
            ));
        }
    }
    notes
}
