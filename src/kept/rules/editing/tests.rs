//! Tests of texts in a store: what is refused, what is in use, and what a start finds.

use std::{fs, path::Path, sync::Arc};

use serde_json::{Value, json};

use super::*;
use crate::{
    faulty::FaultyMedium,
    kept::{
        RuleSources,
        rules::fixtures::{open_rules, promql},
    },
    model::GranularitySet,
    setup::{NOW, open_on},
    store::{ObjectKind, ObjectRefusal, Store},
};

const SHOP: AlertText<'_> = AlertText::Rules("shop");
const RULES: &str = "groups: [{name: g, rules: [{alert: Down, expr: up == 0}]}]";
const SLO: &str = "slos: [{name: shop, target: 99, good: 'increase(a[$window])', total: \
                   'increase(b[$window])'}]";

fn new_store() -> Store {
    open_on(Arc::new(FaultyMedium::new(1)), &GranularitySet::default(), NOW).0
}

fn no_files() -> RuleSources {
    RuleSources { interval_ms: 60_000, ..RuleSources::default() }
}

fn sources(folder: &Path) -> RuleSources {
    let paths = vec![folder.join("*.yml").display().to_string()];
    RuleSources { paths, ..no_files() }
}

/// Returns the files of the groups in use.
fn files(known: &KnownRules) -> Vec<String> {
    known.loaded().set.groups.iter().map(|group| group.file.clone()).collect()
}

fn put(known: &KnownRules, text: AlertText<'_>, content: &str) -> Result<u64, TextFault> {
    let version = known.text(text).ok().map(|found| json!(found)["version"].as_u64().unwrap());
    known.put_text(text, version, content, NOW).map(|saved| saved.version)
}

/// Returns the message of a refusal, which must not change the rules in use.
fn refused(known: &KnownRules, text: AlertText<'_>, content: &str) -> String {
    let before = known.loaded().generation;
    let message = put(known, text, content).unwrap_err().to_string();
    assert_eq!(known.loaded().generation, before, "{message}");
    message
}

#[test]
fn a_saved_text_is_in_use_until_it_is_deleted_and_a_start_reads_it() {
    let store = new_store();
    let known = open_rules(&store, no_files());
    let saved = known.put_text(SHOP, None, RULES, NOW).unwrap();
    assert_eq!(json!(saved), json!({ "name": "shop", "version": 1, "groups": 1, "rules": 1 }));
    assert_eq!(files(&known), ["page:shop"]);
    assert_eq!(put(&known, SHOP, "groups: []").unwrap(), 2);
    assert_eq!(files(&known), [""; 0]);
    assert_eq!(put(&known, SHOP, RULES).unwrap(), 3);
    let conflict = |found: Result<_, TextFault>| {
        let is_conflict = matches!(
            found,
            Err(TextFault::Object(ObjectFault::Refused(ObjectRefusal::Conflict {
                found: Some(3),
                ..
            })))
        );
        assert!(is_conflict);
    };
    conflict(known.put_text(SHOP, None, RULES, NOW).map(drop));
    conflict(known.put_text(SHOP, Some(2), RULES, NOW).map(drop));
    conflict(known.delete_text(SHOP, Some(2)));
    let started = open_rules(&store, no_files());
    assert_eq!((files(&started), started.fault()), (vec!["page:shop".to_owned()], None));
    assert_eq!(json!(started.text(SHOP).unwrap())["text"], RULES);
    started.delete_text(SHOP, Some(3)).unwrap();
    assert_eq!(files(&started), [""; 0]);
    assert!(matches!(
        started.delete_text(SHOP, Some(3)),
        Err(TextFault::Object(ObjectFault::NotFound(_)))
    ));
    assert!(matches!(started.text(SHOP), Err(ObjectFault::NotFound(_))));
}

#[test]
fn an_unusable_text_changes_nothing() {
    let known = open_rules(&new_store(), no_files());
    put(&known, SHOP, RULES).unwrap();
    let assert_refused = |text, content: &str, part: &str| {
        let message = refused(&known, text, content);
        assert!(message.contains(part), "{message}");
    };
    assert_refused(SHOP, "groups:\n- nam: x", "page:shop");
    assert_refused(SHOP, &RULES.replace("up ==", "up == =="), "rule 1 (Down)");
    assert_refused(SHOP, &"#".repeat(TEXT_BYTES_MAX + 1), "bytes of text exceed the limit");
    assert_refused(AlertText::Rules("a/b"), RULES, "not a text name");
    put(&known, AlertText::Rules("slo"), SLO).unwrap();
    assert_refused(SHOP, SLO, "page:slo declares it too");
    let checked = known.check_text(SHOP, "groups:\n- nam: x").unwrap();
    assert_eq!(json!(checked)["faults"][0]["line"], 2);
    assert_eq!(json!(known.check_text(SHOP, RULES).unwrap())["faults"], json!([]));
    for index in 2..TEXTS_MAX {
        put(&known, AlertText::Rules(&format!("t{index}")), "").unwrap();
    }
    assert_refused(AlertText::Rules("more"), "", "there are 100 texts");
    put(&known, SHOP, "").unwrap();
}

#[test]
fn texts_and_files_are_in_use_together_and_a_reload_keeps_a_text_that_was_saved_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yml"), SLO).unwrap();
    let store = new_store();
    let known = open_rules(&store, sources(folder.path()));
    let in_file = files(&known);
    assert!(refused(&known, SHOP, SLO).contains("a.yml declares it too"));
    fs::write(folder.path().join("b.yml"), RULES).unwrap();
    put(&known, AlertText::Rules("one"), RULES).unwrap();
    assert_eq!(files(&known), [&in_file[0], "page:one"], "a save reads no files");
    fs::remove_file(folder.path().join("b.yml")).unwrap();
    fs::write(folder.path().join("a.yml"), RULES).unwrap();
    let read = known.read(sources(folder.path()), &promql()).unwrap();
    put(&known, SHOP, RULES).unwrap();
    known.replace(read);
    assert_eq!(files(&known), [&in_file[0], "page:one", "page:shop"]);
    let listed = json!(known.texts());
    let name = |index: usize| listed["files"][index]["name"].as_str().unwrap().to_owned();
    assert_eq!([name(0), name(1), name(2)], [&in_file[0], "one", "shop"]);
    assert_eq!(
        (&listed["files"][0]["editable"], &listed["files"][0]["rules"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(
        (&listed["files"][1]["editable"], &listed["files"][1]["origin"]),
        (&json!(true), &json!("page"))
    );
    assert_eq!(listed["notifications"]["version"], Value::Null);
}

#[test]
fn a_start_and_a_reload_skip_an_unusable_text_and_a_save_repairs_it() {
    let store = new_store();
    for (name, text) in [("bad", "groups: 5"), ("good", RULES)] {
        let put = store.put_object(ObjectKind::RuleText, name, None, text.as_bytes(), NOW);
        put.unwrap().unwrap();
    }
    let known = open_rules(&store, no_files());
    assert_eq!(files(&known), ["page:good"]);
    let is_unread = |name: &str| known.loaded().set.is_unread(&format!("page:{name}"));
    assert_eq!((is_unread("bad"), is_unread("good")), (true, false));
    assert!(known.fault().unwrap().contains("page:bad"));
    let listed = json!(known.texts());
    assert_eq!(listed["files"][0]["faults"].as_array().unwrap().len(), 1, "{listed}");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yml"), RULES).unwrap();
    known.replace(known.read(sources(folder.path()), &promql()).unwrap());
    known.note_reload(None);
    assert_eq!(files(&known).len(), 2, "the reload uses the file beside the unusable text");
    assert!(known.fault().unwrap().contains("page:bad"));
    put(&known, AlertText::Rules("bad"), RULES).unwrap();
    assert_eq!((files(&known).len(), known.fault()), (3, None));
}

#[test]
fn receivers_on_the_page_name_no_files_run_no_commands_and_yield_to_a_file() {
    let text = |integration: &str| {
        format!("route: {{receiver: a}}\nreceivers: [{{name: a, {integration}}}]")
    };
    let store = new_store();
    let known = open_rules(&store, no_files());
    for integration in [
        "webhook_configs: [{url_file: /etc/passwd}]",
        "webhook_configs: [{url: 'http://x', http_config: {bearer_token_file: /etc/passwd}}]",
        "webhook_configs: [{url: 'http://x', http_config: {tls_config: {ca_file: x}}}]",
        "webhook_configs: [{url: 'http://x', http_config: {http_headers: {a: {files: [x]}}}}]",
        "command_configs: [{command: [reboot]}]",
    ] {
        let message = refused(&known, AlertText::Receivers, &text(integration));
        assert!(message.contains("receivers that are edited on the page cannot"), "{message}");
    }
    let templates = text("webhook_configs: [{url: 'http://x'}]") + "\ntemplates: [/etc/*]";
    assert!(refused(&known, AlertText::Receivers, &templates).contains("templates: receivers"));
    put(&known, AlertText::Receivers, &text("webhook_configs: [{url: 'http://x'}]")).unwrap();
    let receivers = |known: &KnownRules| {
        known.routing().map_or_else(Vec::new, |routing| {
            routing.receivers.iter().map(|receiver| receiver.name.clone()).collect()
        })
    };
    assert_eq!(receivers(&known), ["a"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notifications.yml");
    let with_file = RuleSources { notifications: Some(file.clone()), ..no_files() };
    fs::write(&file, "route: {receiver: b}\nreceivers: [{name: b}, {name: c}]").unwrap();
    let known = open_rules(&store, with_file);
    assert_eq!(receivers(&known), ["b", "c"]);
    assert_eq!(json!(known.texts())["notifications"]["receivers"], 2);
    assert_eq!(json!(known.text(AlertText::Receivers).unwrap())["receivers"], 1, "of the text");
    let message = refused(&known, AlertText::Receivers, "");
    assert!(message.contains("alerts.notifications names the file"), "{message}");
    assert_eq!(json!(known.texts())["notifications"]["editable"], false);
    known.delete_text(AlertText::Receivers, Some(1)).unwrap();
    assert!(known.text(AlertText::Receivers).is_err());
    let other = open_rules(&store.for_project(&"web".parse().unwrap()), no_files());
    assert!(refused(&other, AlertText::Receivers, "").contains("only the project default"));
    assert_eq!(json!(other.texts())["notifications"]["editable"], false);
}

#[test]
fn rules_called_as_the_receivers_share_no_faults_with_them() {
    let store = new_store();
    let rules = AlertText::Rules("notifications");
    let put = |kind, text: &str| {
        let put = store.put_object(kind, "notifications", None, text.as_bytes(), NOW);
        put.unwrap().unwrap();
    };
    put(ObjectKind::RuleText, RULES);
    put(ObjectKind::ReceiversText, "route: 5");
    let known = open_rules(&store, no_files());
    assert_eq!(files(&known), ["page:notifications"]);
    assert_eq!(json!(known.text(rules).unwrap())["faults"], json!([]));
    let listed = json!(known.texts());
    assert_eq!(listed["files"][0]["faults"], json!([]));
    assert_eq!(listed["notifications"]["faults"].as_array().unwrap().len(), 1, "{listed}");
    let receivers = json!(known.text(AlertText::Receivers).unwrap());
    assert_eq!(receivers["faults"].as_array().unwrap().len(), 1, "{receivers}");
}

#[test]
fn a_reload_uses_texts_that_it_had_not_read_and_parses_all_by_the_new_settings() {
    let store = new_store();
    let known = open_rules(&store, no_files());
    let slower = RuleSources { interval_ms: 120_000, ..no_files() };
    let read = known.read(slower, &promql()).unwrap();
    put(&known, SHOP, RULES).unwrap();
    // A change whose outcome was unknown.
    let put = store.put_object(ObjectKind::RuleText, "late", None, RULES.as_bytes(), NOW);
    put.unwrap().unwrap();
    known.replace(read);
    let intervals = |known: &KnownRules| {
        let groups = known.loaded().set.groups.clone();
        groups.into_iter().map(|group| (group.file, group.interval_ms)).collect::<Vec<_>>()
    };
    let expected = [("page:late".to_owned(), 120_000), ("page:shop".to_owned(), 120_000)];
    assert_eq!(intervals(&known), expected);
    known.delete_text(AlertText::Rules("late"), Some(2)).unwrap();
    assert_eq!(files(&known), ["page:shop"]);
}

#[test]
fn a_text_that_is_not_in_use_can_be_deleted() {
    let store = new_store();
    let known = open_rules(&store, no_files());
    let put = store.put_object(ObjectKind::RuleText, "shop", None, RULES.as_bytes(), NOW);
    assert_eq!(put.unwrap().unwrap(), 1);
    known.delete_text(SHOP, Some(1)).unwrap();
    assert_eq!(store.object(ObjectKind::RuleText, "shop").unwrap(), None);
}

#[test]
fn a_conflict_is_described_in_words() {
    let known = open_rules(&new_store(), no_files());
    put(&known, SHOP, RULES).unwrap();
    let conflict = known.put_text(SHOP, None, RULES, NOW).unwrap_err().to_string();
    assert!(conflict.starts_with("the text of rules \"shop\" was changed meanwhile"), "{conflict}");
}
