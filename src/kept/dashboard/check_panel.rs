//! Checks of a panel beyond its JSON form: its area, and fields that belong to other kinds.
//!
//! Must never know: JSON, other panels.

use super::{
    Panel, PanelKind, Query, QueryKind,
    check_field::{
        CheckResult, ID_BYTES_MAX, NAME_BYTES_MAX, TITLE_BYTES_MAX, check_count,
        check_dashboard_name, check_word, fault,
    },
};
use crate::{
    kept::{check_line, check_text},
    model::tag_pairs,
};

/// The maximum number of queries of a panel.
const QUERIES_MAX: usize = 20;
/// The maximum number of thresholds of a panel.
const THRESHOLDS_MAX: usize = 10;
/// The number of columns of the grid.
const COLUMNS: u32 = 12;
/// The maximum number of rows of the grid, and of one panel.
const ROWS_MAX: u32 = 10_000;
const PANEL_ROWS_MAX: u32 = 100;
/// The maximum number of series in a ranking.
const RANKED_MAX: u32 = 1000;
/// The maximum lengths of texts, in bytes.
const TAGS_BYTES_MAX: usize = 4096;
const EXPRESSION_BYTES_MAX: usize = 8192;
const TEXT_BYTES_MAX: usize = 20_000;

/// Refuses a field that belongs to another kind.
fn require_absent(location: &str, field: &str, is_present: bool, kind: &str) -> CheckResult {
    if is_present {
        return Err(fault(&format!("{location}.{field}"), format!("it is not allowed for {kind}")));
    }
    Ok(())
}

pub(super) fn check_panel(location: &str, panel: &Panel) -> CheckResult {
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
    if let Some(name) = &panel.link {
        check_dashboard_name(name)
            .map_err(|problem| fault(&format!("{location}.link"), problem))?;
    }
    match panel.kind {
        PanelKind::Row => check_without_values(location, panel, "rows"),
        PanelKind::Text => check_text_panel(location, panel),
        PanelKind::Chart | PanelKind::Heatmap | PanelKind::States => {
            let is_reduced = panel.reduce.is_some();
            require_absent(location, "reduce", is_reduced, "charts, heat maps and states")?;
            check_values(location, panel)
        }
        PanelKind::Stat | PanelKind::Gauge | PanelKind::Table | PanelKind::Bars => {
            let (is_stacked, is_log) = (panel.stacked.is_some(), panel.log.is_some());
            require_absent(location, "stacked", is_stacked, "panels of single values")?;
            require_absent(location, "log", is_log, "panels of single values")?;
            check_values(location, panel)
        }
    }
}

/// Checks a panel that shows the results of queries.
fn check_values(location: &str, panel: &Panel) -> CheckResult {
    require_absent(location, "text", panel.text.is_some(), "charts and other values")?;
    require_absent(location, "folded", panel.folded.is_some(), "charts and other values")?;
    check_thresholds(location, panel)?;
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

/// Checks the scale of values and their thresholds.
fn check_thresholds(location: &str, panel: &Panel) -> CheckResult {
    let Panel { min, max, .. } = *panel;
    if min.zip(max).is_some_and(|(min, max)| min >= max) {
        return Err(fault(&format!("{location}.max"), "it is not larger than min"));
    }
    let location = format!("{location}.thresholds");
    let thresholds = panel.thresholds.as_deref().unwrap_or_default();
    check_count(&location, thresholds.len(), THRESHOLDS_MAX)?;
    let mut last = None;
    for (index, threshold) in thresholds.iter().enumerate() {
        let is_larger = match (last, threshold.from) {
            (None, _) => true,
            (Some(last), Some(from)) => last < from,
            (Some(_), None) => false,
        };
        if !is_larger {
            let problem = threshold.from.map_or("from is missing".to_owned(), |from| {
                format!("{from} is not larger than the threshold before")
            });
            return Err(fault(&format!("{location}[{index}]"), problem));
        }
        last = Some(threshold.from.unwrap_or(f64::NEG_INFINITY));
    }
    Ok(())
}

/// Refuses the fields of values.
fn check_without_values(location: &str, panel: &Panel, kind: &str) -> CheckResult {
    let fields_of_values = [
        ("queries", panel.queries.is_some()),
        ("display", panel.display.is_some()),
        ("stacked", panel.stacked.is_some()),
        ("log", panel.log.is_some()),
        ("unit", panel.unit.is_some()),
        ("reduce", panel.reduce.is_some()),
        ("min", panel.min.is_some()),
        ("max", panel.max.is_some()),
        ("thresholds", panel.thresholds.is_some()),
        ("text", panel.text.is_some() && panel.kind == PanelKind::Row),
        ("link", panel.link.is_some() && panel.kind == PanelKind::Row),
    ];
    for (field, is_present) in fields_of_values {
        require_absent(location, field, is_present, kind)?;
    }
    Ok(())
}

fn check_text_panel(location: &str, panel: &Panel) -> CheckResult {
    check_without_values(location, panel, "texts")?;
    require_absent(location, "folded", panel.folded.is_some(), "texts")?;
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
