//! Tests of the comparison of two sets of settings.

use std::collections::BTreeSet;

use super::*;
use crate::config::{DEFAULTS, read};

#[test]
fn each_setting_that_a_reload_does_not_apply_at_once_exists_and_has_one_row() {
    let defaults: toml::Table = DEFAULTS.parse().unwrap();
    let keys = defaults.iter().map(|(section, keys)| match keys.as_table() {
        Some(keys) => keys.keys().map(|key| format!("{section}.{key}")).collect(),
        None => vec![section.clone()],
    });
    let keys: BTreeSet<_> = keys.flatten().collect();
    let classified: BTreeSet<_> = SETTINGS.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert!(classified.is_subset(&keys), "{:?}", classified.difference(&keys));
    assert_eq!(classified.len(), SETTINGS.len(), "a setting has two rows");
}

#[test]
fn a_reload_changes_what_can_change_and_names_what_it_keeps() {
    let before = read("server.listen = '127.0.0.1:1'\nlimits.query_points_max = 4").unwrap();
    let after = "server.listen = '127.0.0.1:2'\nlimits.query_points_max = 5\n\
                 alerts.alertmanagers = ['http://a:b@c']";
    let (merged, found) = before.reloaded(&read(after).unwrap()).unwrap();
    assert_eq!((merged.server.listen, merged.limits.query_points_max), (before.server.listen, 5));
    assert_eq!(merged.alertmanagers[0].url, "http://a:b@c");
    let change = |key: &str, from: &str, to: &str| SettingChange {
        key: key.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
    };
    let expected = [
        change("alerts.alertmanagers", "[]", "[\"http://***@c\"]"),
        change("limits.query_points_max", "4", "5"),
    ];
    assert_eq!(found.changed, expected);
    assert_eq!(found.kept.len(), 1);
    let kept = change("server.listen", "\"127.0.0.1:1\"", "\"127.0.0.1:2\"");
    assert_eq!(found.kept[0].change, kept);
    // A changed password is a change, and stays hidden.
    let other = read(&after.replace("a:b", "a:d")).unwrap();
    let (_, found) = merged.reloaded(&other).unwrap();
    assert_eq!(found.changed[0].key, "alerts.alertmanagers");
    assert!(!format!("{found:?}").contains("a:"), "{found:?}");
}

#[test]
fn retentions_change_at_once_and_other_changes_open_the_store_again() {
    let with = |text: &str| read(&DEFAULTS.replace("retention = \"48h\"", text)).unwrap();
    let (before, longer) = (read("").unwrap(), with("retention = \"96h\""));
    let (merged, found) = before.reloaded(&longer).unwrap();
    assert_eq!(merged.granularities, longer.granularities);
    assert_eq!(found.changed.len(), 1);
    assert_eq!(found.changed[0].key, "granularity.1m.retention");
    let ruled = DEFAULTS.replace("[retention]", "").replace("rule = []", "")
        + "[[retention.rule]]\nname = 'x'\nselector = 'x'\nkeep = { 1m = '12h' }\n";
    let change = |from: &str, to: &str| {
        let (before, after) = (read(&ruled), read(&ruled.replace(from, to)));
        let (before, after) = (before.unwrap(), after.unwrap());
        let (merged, found) = before.reloaded(&after).unwrap();
        let is_new = merged.granularities == after.granularities
            && merged.retention_rules == after.retention_rules;
        assert!(is_new && found.kept.is_empty(), "{found:?}");
        let changed: Vec<_> = found.changed.into_iter().map(|change| change.key).collect();
        (found.reopens, changed)
    };
    let of_rule = "retention.rule.x.1m.retention".to_owned();
    assert_eq!(change("1m = '12h'", "1m = '24h'"), (false, vec![of_rule]));
    let keys = ["granularity.1h.retention", "retention.rule.x.1h.retention"];
    assert_eq!(change("\"9w\"", "\"10w\""), (false, keys.map(str::to_owned).to_vec()));
    for (from, to) in [("selector = 'x'", "selector = 'y'"), ("1m = '12h'", "1m = 'none'")] {
        assert_eq!(change(from, to), (true, vec![RULES.to_owned()]));
    }
    let other = ("partition = \"6h\"", "partition = \"12h\"");
    let (reopens, changed) = change(other.0, other.1);
    assert_eq!((reopens, changed), (true, vec![GRANULARITY.to_owned()]));
}
