//! Checks of a dashboard beyond its JSON form: counts, lengths, and unique names.
//!
//! Must never know: JSON.

use std::collections::BTreeSet;

use super::{
    Dashboard, SCHEMA, Variable,
    check_field::{
        CheckResult, NAME_BYTES_MAX, TITLE_BYTES_MAX, check_count, check_optional_line, check_word,
        fault,
    },
    check_panel::check_panel,
};
use crate::{kept::check_line, model::Span};

/// The maximum number of panels of a dashboard.
const PANELS_MAX: usize = 200;
/// The maximum number of variables of a dashboard.
const VARIABLES_MAX: usize = 20;
pub(super) fn check_dashboard(dashboard: &Dashboard) -> CheckResult {
    let Dashboard { schema, title, folder, range, resolution, variables, panels } = dashboard;
    if *schema != SCHEMA {
        let problem = format!("{schema} is unknown; this daemon reads {SCHEMA}");
        return Err(fault("schema", problem));
    }
    check_line("title", title, TITLE_BYTES_MAX)?;
    check_optional_line("folder", folder.as_deref(), TITLE_BYTES_MAX)?;
    check_span("range", range.as_deref())?;
    check_span("resolution", resolution.as_deref().filter(|word| *word != "auto"))?;
    check_count("variables", variables.len(), VARIABLES_MAX)?;
    let mut names = BTreeSet::new();
    for (index, item) in variables.iter().enumerate() {
        let location = format!("variables[{index}]");
        check_variable(&location, item)?;
        if !names.insert(&item.name) {
            return Err(fault(&format!("{location}.name"), "another variable has it"));
        }
    }
    check_count("panels", panels.len(), PANELS_MAX)?;
    let mut ids = BTreeSet::new();
    for (index, item) in panels.iter().enumerate() {
        let location = format!("panels[{index}]");
        check_panel(&location, item)?;
        check_repeat(&location, item.repeat.as_deref(), &names)?;
        if !ids.insert(&item.id) {
            return Err(fault(&format!("{location}.id"), "another panel has it"));
        }
    }
    Ok(())
}

/// Checks that a panel is repeated for the values of a variable.
fn check_repeat(location: &str, name: Option<&str>, names: &BTreeSet<&String>) -> CheckResult {
    match name {
        Some(name) if !names.iter().any(|known| *known == name) => {
            Err(fault(&format!("{location}.repeat"), format!("there is no variable {name:?}")))
        }
        _ => Ok(()),
    }
}

fn check_span(location: &str, text: Option<&str>) -> CheckResult {
    text.map_or(Ok(()), |text| {
        text.parse::<Span>().map(drop).map_err(|cause| fault(location, cause))
    })
}

fn check_variable(location: &str, variable: &Variable) -> CheckResult {
    let Variable { name, tag, metric, multi: _ } = variable;
    check_word(&format!("{location}.name"), name, "_")?;
    check_line(&format!("{location}.tag"), tag, NAME_BYTES_MAX)?;
    check_optional_line(&format!("{location}.metric"), metric.as_deref(), NAME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn chart() -> Value {
        json!({ "id": "a", "x": 0, "y": 0, "w": 6, "h": 6, "title": "A", "kind": "chart",
            "queries": [{ "kind": "metric", "metric": "m", "tags": "host=$host" }] })
    }

    fn dashboard_with(panels: &[Value]) -> Value {
        json!({ "schema": 1, "title": "T", "range": "6h", "resolution": "auto",
            "variables": [{ "name": "host", "tag": "host", "multi": true }], "panels": panels })
    }

    /// Returns a dashboard of two charts, with another value at a path.
    fn changed(path: &str, value: Value) -> Value {
        let mut dashboard = dashboard_with(&[chart(), chart()]);
        dashboard["panels"][1]["id"] = json!("b");
        let (parent, field) = path.rsplit_once('/').unwrap();
        dashboard.pointer_mut(parent).unwrap()[field] = value;
        dashboard
    }

    fn repeated(value: Value, count: usize) -> Value {
        Value::Array(vec![value; count])
    }

    fn check(dashboard: &Value) -> Result<Dashboard, String> {
        Dashboard::read(&dashboard.to_string()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn dashboards_survive_a_round_trip() {
        let text = json!({ "id": "b", "x": 6, "y": 0, "w": 6, "h": 6, "title": "", "kind": "text",
            "text": "# Notes\n- one\t<img src=x onerror=alert(1)>" });
        let promql = json!({ "id": "c", "x": 0, "y": 6, "w": 12, "h": 1, "title": "C",
            "kind": "chart", "queries": [{ "kind": "promql", "expression": "up", "legend": "{{a}}",
            "hidden": true }], "display": "avg_per_sec", "stacked": true, "log": false,
            "unit": "bytes" });
        let gauge = json!({ "id": "d", "x": 0, "y": 8, "w": 3, "h": 4, "title": "D",
            "kind": "gauge", "queries": [], "unit": "percent", "reduce": "max", "min": 0.0,
            "max": 100.0, "thresholds": [{ "level": "good" }, { "from": 90.0, "level": "bad" }],
            "repeat": "host" });
        let row = json!({ "id": "e", "x": 0, "y": 7, "w": 12, "h": 1, "title": "Row",
            "kind": "row", "repeat": "host", "folded": true });
        let mut dashboard = dashboard_with(&[chart(), text, promql, gauge, row]);
        dashboard["folder"] = json!("Servers");
        let read = check(&dashboard).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), dashboard);
    }

    #[test]
    fn faults_are_reported_with_their_location() {
        for (path, value, expected) in [
            ("/schema", json!(2), "schema: 2 is unknown; this daemon reads 1"),
            ("/title", json!(" "), "title: it is empty"),
            ("/title", json!("a\u{1b}[31m"), "title: it has a control character"),
            ("/range", json!("soon"), "range: \"soon\" is not a duration"),
            ("/color", json!(1), "color: unknown field `color`"),
            ("/variables/0/name", json!("a b"), "variables[0].name: use letters, digits"),
            ("/variables", json!({}), "variables: invalid type: map"),
            ("/panels", repeated(chart(), 201), "panels: 201 exceed the limit of 200"),
            ("/panels/1/id", json!("a"), "panels[1].id: another panel has it"),
            ("/panels/1/id", json!("../x"), "panels[1].id: use letters, digits"),
            ("/panels/1/x", json!(7), "panels[1]: columns 7 to 13 are outside of 0 to 12"),
            ("/panels/1/x", json!(-1), "panels[1].x: invalid value"),
            ("/panels/1/w", json!(u32::MAX), "panels[1]: columns 0 to"),
            ("/panels/1/h", json!(0), "panels[1]: 0 rows from row 0 on"),
            ("/panels/1/kind", json!("html"), "panels[1].kind: unknown variant `html`"),
            ("/panels/1/text", json!("x"), "panels[1].text: it is not allowed for charts"),
            ("/panels/1/kind", json!("text"), "panels[1].queries: it is not allowed for texts"),
            ("/panels/1/display", json!("median"), "panels[1].display: display=\"median\" is not"),
            (
                "/panels/1/queries",
                repeated(json!({ "kind": "promql", "expression": "" }), 21),
                "panels[1].queries: 21 exceed the limit of 20",
            ),
            ("/panels/1/queries/0/metric", json!(""), "panels[1].queries[0].metric: it is empty"),
            ("/panels/1/queries/0/metric", json!(5), "panels[1].queries[0].metric: invalid type"),
            (
                "/panels/1/queries/0/metric",
                json!("m".repeat(257)),
                "panels[1].queries[0].metric: 257 bytes exceed the limit of 256",
            ),
            (
                "/panels/1/queries/0/tags",
                json!("host"),
                "panels[1].queries[0].tags: \"host\" is not name=value",
            ),
            (
                "/panels/1/queries/0/kind",
                json!("promql"),
                "panels[1].queries[0].metric: it is not allowed for PromQL",
            ),
            ("/panels/1/queries/0/top", json!(0), "panels[1].queries[0].top: use 1 to 1000"),
            ("/panels/1/queries/0/sql", json!("x"), "panels[1].queries[0].sql: unknown field"),
        ] {
            let message = check(&changed(path, value)).unwrap_err();
            assert!(message.starts_with(expected), "{path}: {message}");
        }
        let text = Dashboard::read("[").unwrap_err().to_string();
        assert!(text.contains("EOF"), "{text}");
    }

    #[test]
    fn faults_of_rows_values_and_folders_are_reported_with_their_location() {
        for (path, value, expected) in [
            ("/panels/1/kind", json!("row"), "panels[1].queries: it is not allowed for rows"),
            ("/panels/1/folded", json!(true), "panels[1].folded: it is not allowed for charts"),
            ("/panels/1/reduce", json!("last"), "panels[1].reduce: it is not allowed for charts"),
            ("/panels/1/repeat", json!("dc"), "panels[1].repeat: there is no variable \"dc\""),
            (
                "/panels/1/thresholds",
                json!([{ "from": 2, "level": "warn" }, { "from": 1, "level": "bad" }]),
                "panels[1].thresholds[1]: 1 is not larger than the threshold before",
            ),
            (
                "/panels/1/thresholds",
                json!([{ "from": 1, "level": "ugly" }]),
                "panels[1].thresholds[0].level: unknown variant `ugly`",
            ),
            (
                "/panels/1/thresholds",
                repeated(json!({ "level": "good" }), 11),
                "panels[1].thresholds: 11 exceed the limit of 10",
            ),
            ("/folder", json!(""), "folder: it is empty"),
        ] {
            let message = check(&changed(path, value)).unwrap_err();
            assert!(message.starts_with(expected), "{path}: {message}");
        }
    }
}
