//! The test cases of Prometheus (package model/relabel), and further cases.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn labels(map: &Value) -> Labels {
    map.as_object().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap())).collect()
}

fn abc() -> Value {
    json!({"a": "foo", "b": "bar", "c": "baz"})
}

fn ports() -> Value {
    json!({"__tmp_port": "1234", "__port1": "1234", "__port2": "5678"})
}

/// Applies rules to labels and checks the result; null means that the labels are dropped.
fn check(cases: impl IntoIterator<Item = (Value, Value, Value)>) {
    for (input, rules, expected) in cases {
        let rules: Vec<Rule> = serde_json::from_value(rules).unwrap();
        let mut found = labels(&input);
        let is_kept = apply(&rules, &mut found);
        let found = is_kept.then_some(found);
        assert_eq!(found, (!expected.is_null()).then(|| labels(&expected)), "{rules:?}");
    }
}

#[test]
fn values_are_replaced_kept_and_dropped() {
    check([
        (
            abc(),
            json!([{"source_labels": ["a"], "regex": "f(.*)", "target_label": "d", "replacement": "ch${1}-ch${1}"}]),
            json!({"a": "foo", "b": "bar", "c": "baz", "d": "choo-choo"}),
        ),
        (
            abc(),
            json!([{"source_labels": ["a", "b"], "regex": "f(.*);(.*)r", "target_label": "a", "replacement": "b${1}${2}m"},
                   {"source_labels": ["c", "a"], "regex": "(b).*b(.*)ba(.*)", "target_label": "d", "replacement": "$1$2$2$3"}]),
            json!({"a": "boobam", "b": "bar", "c": "baz", "d": "boooom"}),
        ),
        (
            json!({"a": "foo"}),
            json!([{"source_labels": ["a"], "regex": ".*o.*", "action": "drop"},
                   {"source_labels": ["a"], "regex": "f(.*)", "target_label": "d", "replacement": "ch$1-ch$1"}]),
            Value::Null,
        ),
        (
            json!({"a": "foo", "b": "bar"}),
            json!([{"source_labels": ["a"], "regex": ".*o.*", "action": "drop"}]),
            Value::Null,
        ),
        (
            json!({"a": "abc"}),
            json!([{"source_labels": ["a"], "regex": ".*(b).*", "target_label": "d"}]),
            json!({"a": "abc", "d": "b"}),
        ),
        (
            json!({"a": "foo"}),
            json!([{"source_labels": ["a"], "regex": "no-match", "action": "drop"}]),
            json!({"a": "foo"}),
        ),
        // The pattern is anchored around its alternatives.
        (
            json!({"a": "foo"}),
            json!([{"source_labels": ["a"], "regex": "f|o", "action": "drop"}]),
            json!({"a": "foo"}),
        ),
        (
            json!({"a": "foo"}),
            json!([{"source_labels": ["a"], "regex": "no-match", "action": "keep"}]),
            Value::Null,
        ),
        (
            json!({"a": "foo"}),
            json!([{"source_labels": ["a"], "regex": "f.*", "action": "keep"}]),
            json!({"a": "foo"}),
        ),
        (
            json!({"a": "boo"}),
            json!([{"source_labels": ["a"], "regex": "f", "target_label": "b", "replacement": "bar"}]),
            json!({"a": "boo"}),
        ),
    ]);
}

#[test]
fn values_are_hashed_and_names_are_mapped() {
    check([
        (
            abc(),
            json!([{"source_labels": ["c"], "target_label": "d", "action": "hashmod", "modulus": 1000}]),
            json!({"a": "foo", "b": "bar", "c": "baz", "d": "976"}),
        ),
        (
            json!({"a": "foo\nbar"}),
            json!([{"source_labels": ["a"], "target_label": "b", "action": "hashmod", "modulus": 1000}]),
            json!({"a": "foo\nbar", "b": "734"}),
        ),
        (
            json!({"a": "foo", "b1": "bar", "b2": "baz"}),
            json!([{"regex": "(b.*)", "replacement": "bar_${1}", "action": "labelmap"}]),
            json!({"a": "foo", "b1": "bar", "b2": "baz", "bar_b1": "bar", "bar_b2": "baz"}),
        ),
        (
            json!({"a": "foo", "__meta_my_bar": "aaa", "__meta_my_baz": "bbb", "__meta_other": "ccc"}),
            json!([{"regex": "__meta_(my.*)", "replacement": "${1}", "action": "labelmap"}]),
            json!({"a": "foo", "__meta_my_bar": "aaa", "__meta_my_baz": "bbb", "__meta_other": "ccc",
                   "my_bar": "aaa", "my_baz": "bbb"}),
        ),
        (
            json!({"a": "some-name-value"}),
            json!([{"source_labels": ["a"], "regex": "some-([^-]+)-([^,]+)", "replacement": "${2}", "target_label": "${1}"}]),
            json!({"a": "some-name-value", "name": "value"}),
        ),
        // An empty replacement removes the label.
        (
            json!({"a": "some-name-value", "name": "x"}),
            json!([{"source_labels": ["a"], "regex": "some-([^-]+)-([^,]+)", "replacement": "${3}", "target_label": "${1}"}]),
            json!({"a": "some-name-value"}),
        ),
        // Invalid target names have no effect.
        (
            json!({"a": "some-name-0"}),
            json!([{"source_labels": ["a"], "regex": "some-([^-]+)-([^,]+)", "replacement": "${1}", "target_label": "${3}"},
                   {"source_labels": ["a"], "regex": "some-([^-]+)-([^,]+)", "replacement": "${1}", "target_label": "${2}"},
                   {"source_labels": ["a"], "regex": "some-([^-]+)(-[^,]+)", "replacement": "${1}", "target_label": "${2}"}]),
            json!({"a": "some-name-0"}),
        ),
        (
            json!({"__meta_sd_tags": "path:/secret,job:some-job,label:foo=bar"}),
            json!([{"source_labels": ["__meta_sd_tags"], "regex": "(?:.+,|^)path:(/[^,]+).*", "replacement": "${1}", "target_label": "__metrics_path__"},
                   {"source_labels": ["__meta_sd_tags"], "regex": "(?:.+,|^)job:([^,]+).*", "replacement": "${1}", "target_label": "job"},
                   {"source_labels": ["__meta_sd_tags"], "regex": "(?:.+,|^)label:([^=]+)=([^,]+).*", "replacement": "${2}", "target_label": "${1}"}]),
            json!({"__meta_sd_tags": "path:/secret,job:some-job,label:foo=bar",
                   "__metrics_path__": "/secret", "job": "some-job", "foo": "bar"}),
        ),
    ]);
}

#[test]
fn labels_are_dropped_kept_and_compared() {
    check([
        (
            json!({"__meta_name": "foo", "__meta_port": "9091"}),
            json!([{"regex": "^__meta_name$", "action": "labeldrop"},
                   {"source_labels": ["__meta_port"], "regex": "(.+)", "replacement": "metrics", "target_label": "__meta_name"},
                   {"source_labels": ["__meta_name"], "regex": "^metrics$", "action": "keep"}]),
            json!({"__meta_port": "9091", "__meta_name": "metrics"}),
        ),
        (
            json!({"a": "foo", "b1": "bar", "b2": "baz"}),
            json!([{"regex": "(b.*)", "action": "labelkeep"}]),
            json!({"b1": "bar", "b2": "baz"}),
        ),
        (
            json!({"a": "foo", "b1": "bar", "b2": "baz"}),
            json!([{"regex": "(b.*)", "action": "labeldrop"}]),
            json!({"a": "foo"}),
        ),
        (
            json!({"foo": "bAr123Foo"}),
            json!([{"source_labels": ["foo"], "action": "uppercase", "target_label": "foo_uppercase"},
                   {"source_labels": ["foo"], "action": "lowercase", "target_label": "foo_lowercase"}]),
            json!({"foo": "bAr123Foo", "foo_lowercase": "bar123foo", "foo_uppercase": "BAR123FOO"}),
        ),
        (
            ports(),
            json!([{"source_labels": ["__tmp_port"], "action": "keepequal", "target_label": "__port1"}]),
            ports(),
        ),
        (
            ports(),
            json!([{"source_labels": ["__tmp_port"], "action": "dropequal", "target_label": "__port1"}]),
            Value::Null,
        ),
        (
            ports(),
            json!([{"source_labels": ["__tmp_port"], "action": "dropequal", "target_label": "__port2"}]),
            ports(),
        ),
        (
            ports(),
            json!([{"source_labels": ["__tmp_port"], "action": "keepequal", "target_label": "__port2"}]),
            Value::Null,
        ),
        // Extensions of this crate: the dot matches line feeds, and `$$` is a dollar sign.
        (
            json!({"a": "x\ny"}),
            json!([{"source_labels": ["a"], "target_label": "b", "regex": "x.y", "replacement": "$$1"}]),
            json!({"a": "x\ny", "b": "$1"}),
        ),
    ]);
}

#[test]
fn rules_that_prometheus_rejects_are_rejected_with_the_reason() {
    let check = |rule: Value, expected: &str| {
        let fault = serde_json::from_value::<Rule>(rule).map(|_| ()).unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
    };
    check(json!({}), "action replace needs a target_label");
    check(json!({"action": "lowercase"}), "action lowercase needs a target_label");
    check(
        json!({"action": "lowercase", "target_label": "${3}"}),
        "\"${3}\" is not a valid target_label",
    );
    check(json!({"target_label": "0${3}"}), "\"0${3}\" is not a valid target_label");
    check(json!({"target_label": "-${3}"}), "\"-${3}\" is not a valid target_label");
    check(json!({"action": "hashmod", "target_label": "a"}), "modulus");
    check(json!({"action": "labelmap", "replacement": "-$1"}), "is not a valid replacement");
    check(json!({"action": "melt"}), "melt");
    check(json!({"target_label": "a", "regex": "("}), "regex \"(\"");
    check(json!({"target_label": "a", "regex": "(a{1000}){1000}"}), "size limit");
    check(json!({"target_label": "a", "regexp": "x"}), "regexp");
    for (text, is_valid) in [
        ("-label", false),
        ("label", true),
        ("label${1}", true),
        ("${1}label", true),
        ("${1}", true),
        ("${", false),
        ("$", false),
        ("${}", false),
        ("foo${", false),
        ("$1", true),
        ("asd$2asd", true),
        ("-foo${1}bar-", false),
        ("_${1}_", true),
        ("foo${bar}foo", true),
    ] {
        assert_eq!(is_template(text), is_valid, "{text}");
    }
}

proptest! {
    #[test]
    fn labels_stay_sorted_and_without_empty_values(
        sets in prop::collection::vec(("[a-c]{1,2}", "[xy]{0,2}"), 0..20),
        regex in "[a-z.*()|]{0,8}",
        replacement in "[a-z$1{}]{0,8}",
        action in prop::sample::select(vec!["replace", "labelmap", "labeldrop", "labelkeep", "uppercase"]),
    ) {
        let mut all: Labels = sets.into_iter().collect();
        let rule = json!({"source_labels": ["a", "b"], "regex": regex, "action": action,
            "replacement": replacement, "target_label": "t"});
        if let Ok(rule) = serde_json::from_value::<Rule>(rule) {
            apply(&[rule], &mut all);
        }
        let names: Vec<_> = all.iter().map(|(name, _)| name.to_owned()).collect();
        prop_assert!(names.is_sorted_by(|left, right| left < right));
        prop_assert!(all.iter().all(|(_, value)| !value.is_empty()));
    }
}
