//! Texts of rules of a leader: they are in use after an unknown outcome, once it is known.

use granary::{
    config::{self, Overrides},
    kept::{AlertText, KnownRules, ObjectFault, RuleSources, TextFault},
    store::StoreError,
    telemetry::Metrics,
};
use serde_json::json;

use super::mutants::{difference, pair};
use crate::{memory_log::Fate, setup::NOW};

const SHOP: AlertText<'_> = AlertText::Rules("shop");
const RULES: &str = "groups: [{name: g, rules: [{alert: Down, expr: up == 0}]}]";

/// Returns the names of the texts in use.
fn in_use(rules: &KnownRules) -> Vec<String> {
    rules.groups().0.groups.iter().map(|group| group.file.clone()).collect()
}

fn is_of_log(outcome: &Result<(), TextFault>) -> bool {
    matches!(outcome, Err(TextFault::Object(ObjectFault::Store(StoreError::Log(_)))))
}

#[test]
fn a_text_of_unknown_outcome_is_used_or_removed_once_its_record_is_there() {
    let settings = config::load(None, &Overrides::default()).unwrap().promql_settings();
    for fate in [Fate::AnswerLost, Fate::RecordLost] {
        let (store, _leader, mut log, other, mut follower) = pair();
        let sources = RuleSources { interval_ms: 60_000, ..RuleSources::default() };
        let rules = KnownRules::open(&store, sources, &settings, Metrics::new().unwrap()).unwrap();
        log.set_fate(fate);
        assert!(is_of_log(&rules.put_text(SHOP, None, RULES, NOW).map(drop)));
        assert_eq!(in_use(&rules), [""; 0]);
        rules.settle_texts();
        assert_eq!(in_use(&rules), ["page:shop"]);
        assert_eq!(json!(rules.text(SHOP).unwrap())["version"], 1);
        log.set_fate(fate);
        assert!(is_of_log(&rules.delete_text(SHOP, Some(1))));
        rules.settle_texts();
        assert_eq!(in_use(&rules), [""; 0]);
        assert!(matches!(rules.text(SHOP), Err(ObjectFault::NotFound(_))));
        follower.follow(&mut log).unwrap();
        assert_eq!(difference(&store, &other), None);
    }
}
