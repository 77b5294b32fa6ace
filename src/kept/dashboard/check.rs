//! Checks of a dashboard beyond its JSON form: counts, lengths, and fields that exclude each other.
//!
//! Must never know: JSON.

use std::collections::BTreeSet;

use super::{Dashboard, Panel, PanelKind, Query, QueryKind, SCHEMA, Variable};
use crate::{
    kept::{ObjectFault, check_line, check_text},
    model::{Span, tag_pairs},
};

/// The maximum number of panels of a dashboard.
const PANELS_MAX: usize = 200;
/// The maximum number of queries of a panel.
const QUERIES_MAX: usize = 20;
/// The maximum number of variables of a dashboard.
const VARIABLES_MAX: usize = 20;
/// The number of columns of the grid.
const COLUMNS: u32 = 12;
/// The maximum number of rows of the grid, and of one panel.
const ROWS_MAX: u32 = 10_000;
const PANEL_ROWS_MAX: u32 = 100;
/// The maximum number of series in a ranking.
const RANKED_MAX: u32 = 1000;
/// The maximum lengths of texts, in bytes.
const TITLE_BYTES_MAX: usize = 200;
const NAME_BYTES_MAX: usize = 256;
const ID_BYTES_MAX: usize = 64;
const TAGS_BYTES_MAX: usize = 4096;
const EXPRESSION_BYTES_MAX: usize = 8192;
const TEXT_BYTES_MAX: usize = 20_000;

type CheckResult = Result<(), ObjectFault>;

fn fault(location: &str, problem: impl std::fmt::Display) -> ObjectFault {
    ObjectFault::Invalid(format!("{location}: {problem}"))
}

fn check_count(location: &str, count: usize, most: usize) -> CheckResult {
    if count > most {
        return Err(fault(location, format!("{count} exceed the limit of {most}")));
    }
    Ok(())
}

pub(super) fn check_dashboard(dashboard: &Dashboard) -> CheckResult {
    let Dashboard { schema, title, range, resolution, variables, panels } = dashboard;
    if *schema != SCHEMA {
        let problem = format!("{schema} is unknown; this daemon reads {SCHEMA}");
        return Err(fault("schema", problem));
    }
    check_line("title", title, TITLE_BYTES_MAX)?;
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
        if !ids.insert(&item.id) {
            return Err(fault(&format!("{location}.id"), "another panel has it"));
        }
    }
    Ok(())
}

fn check_span(location: &str, text: Option<&str>) -> CheckResult {
    text.map_or(Ok(()), |text| {
        text.parse::<Span>().map(drop).map_err(|cause| fault(location, cause))
    })
}

/// Checks that a word has only letters, digits and the characters of `others`, so that addresses
/// and queries need no escapes.
fn check_word(location: &str, word: &str, others: &str) -> CheckResult {
    check_line(location, word, ID_BYTES_MAX)?;
    if word.chars().any(|c| !c.is_ascii_alphanumeric() && !others.contains(c)) {
        return Err(fault(location, format!("use letters, digits and {others:?}")));
    }
    Ok(())
}

fn check_variable(location: &str, variable: &Variable) -> CheckResult {
    let Variable { name, tag, metric, multi: _ } = variable;
    check_word(&format!("{location}.name"), name, "_")?;
    check_line(&format!("{location}.tag"), tag, NAME_BYTES_MAX)?;
    check_optional_line(&format!("{location}.metric"), metric.as_deref(), NAME_BYTES_MAX)
}

fn check_optional_line(location: &str, text: Option<&str>, bytes_max: usize) -> CheckResult {
    text.map_or(Ok(()), |text| check_line(location, text, bytes_max))
}

/// Refuses a field that belongs to another kind.
fn require_absent(location: &str, field: &str, is_present: bool, kind: &str) -> CheckResult {
    if is_present {
        return Err(fault(&format!("{location}.{field}"), format!("it is not allowed for {kind}")));
    }
    Ok(())
}

fn check_panel(location: &str, panel: &Panel) -> CheckResult {
    check_word(&format!("{location}.id"), &panel.id, "_-")?;
    check_text(&format!("{location}.title"), &panel.title, TITLE_BYTES_MAX)?;
    let Panel { x, y, w, h, .. } = *panel;
    if w == 0 || x.saturating_add(w) > COLUMNS {
        let problem =
            format!("columns {x} to {} are outside of 0 to {COLUMNS}", x.saturating_add(w));
        return Err(fault(location, problem));
    }
    if h == 0 || h > PANEL_ROWS_MAX || y > ROWS_MAX {
        let problem = format!(
            "{h} rows from row {y} on: use 1 to {PANEL_ROWS_MAX} rows, and rows up to {ROWS_MAX}"
        );
        return Err(fault(location, problem));
    }
    match panel.kind {
        PanelKind::Chart => check_chart(location, panel),
        PanelKind::Text => check_text_panel(location, panel),
    }
}

fn check_chart(location: &str, panel: &Panel) -> CheckResult {
    require_absent(location, "text", panel.text.is_some(), "charts")?;
    let unit = panel.unit.as_deref().unwrap_or_default();
    check_text(&format!("{location}.unit"), unit, ID_BYTES_MAX)?;
    let queries_location = format!("{location}.queries");
    let Some(queries) = &panel.queries else {
        return Err(fault(&queries_location, "add queries, or an empty list"));
    };
    check_count(&queries_location, queries.len(), QUERIES_MAX)?;
    queries.iter().enumerate().try_for_each(|(index, query)| {
        let location = format!("{queries_location}[{index}]");
        match query.kind {
            QueryKind::Metric => check_metric_query(&location, query),
            QueryKind::Promql => check_promql_query(&location, query),
        }
    })
}

fn check_text_panel(location: &str, panel: &Panel) -> CheckResult {
    let chart_fields = [
        ("queries", panel.queries.is_some()),
        ("display", panel.display.is_some()),
        ("stacked", panel.stacked.is_some()),
        ("log", panel.log.is_some()),
        ("unit", panel.unit.is_some()),
    ];
    for (field, is_present) in chart_fields {
        require_absent(location, field, is_present, "texts")?;
    }
    let location = format!("{location}.text");
    let text = panel.text.as_deref().ok_or_else(|| fault(&location, "it is missing"))?;
    check_text(&location, text, TEXT_BYTES_MAX)
}

fn check_metric_query(location: &str, query: &Query) -> CheckResult {
    require_absent(location, "expression", query.expression.is_some(), "metrics")?;
    require_absent(location, "legend", query.legend.is_some(), "metrics")?;
    let field = format!("{location}.metric");
    let metric = query.metric.as_deref().ok_or_else(|| fault(&field, "it is missing"))?;
    check_line(&field, metric, NAME_BYTES_MAX)?;
    let tags = query.tags.as_deref().unwrap_or_default();
    let field = format!("{location}.tags");
    check_text(&field, tags, TAGS_BYTES_MAX)?;
    tag_pairs(tags).map_err(|cause| fault(&field, cause))?;
    let group_by = query.group_by.as_deref().unwrap_or_default();
    check_text(&format!("{location}.group_by"), group_by, TAGS_BYTES_MAX)?;
    if query.top.is_some() && query.bottom.is_some() {
        return Err(fault(location, "use top or bottom, not both"));
    }
    for (name, count) in [("top", query.top), ("bottom", query.bottom)] {
        if count.is_some_and(|count| !(1..=RANKED_MAX).contains(&count)) {
            return Err(fault(&format!("{location}.{name}"), format!("use 1 to {RANKED_MAX}")));
        }
    }
    Ok(())
}

fn check_promql_query(location: &str, query: &Query) -> CheckResult {
    let metric_fields = [
        ("metric", query.metric.is_some()),
        ("tags", query.tags.is_some()),
        ("group_by", query.group_by.is_some()),
        ("merge", query.merge.is_some()),
        ("top", query.top.is_some()),
        ("bottom", query.bottom.is_some()),
    ];
    for (field, is_present) in metric_fields {
        require_absent(location, field, is_present, "PromQL")?;
    }
    let field = format!("{location}.expression");
    let expression = query.expression.as_deref().ok_or_else(|| fault(&field, "it is missing"))?;
    check_text(&field, expression, EXPRESSION_BYTES_MAX)?;
    let legend = query.legend.as_deref().unwrap_or_default();
    check_text(&format!("{location}.legend"), legend, TITLE_BYTES_MAX)
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
        let dashboard = dashboard_with(&[chart(), text, promql]);
        let read = check(&dashboard).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), dashboard);
    }

    #[test]
    fn faults_are_reported_with_their_location() {
        let changed = |path: &str, value: Value| {
            let mut dashboard = dashboard_with(&[chart(), chart()]);
            dashboard["panels"][1]["id"] = json!("b");
            let (parent, field) = path.rsplit_once('/').unwrap();
            dashboard.pointer_mut(parent).unwrap()[field] = value;
            dashboard
        };
        let repeated = |value: Value, count: usize| Value::Array(vec![value; count]);
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
            ("/panels/1/display", json!("median"), "panels[1].display: unknown variant"),
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
}
