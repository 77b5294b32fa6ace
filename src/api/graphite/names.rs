//! `/metrics/find` and `/metrics/expand`: the names that targets can use.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::{Received, respond};
use crate::query::{NodeKinds, QueryError};

/// Returns the last part of a path.
fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns the nodes that a pattern matches, branches before leaves, as a tree or for completion.
pub(super) async fn find(received: Received) -> HttpResponse {
    respond("graphite_find", received, |call| {
        let query = call.required_param("query")?;
        let (pattern, form): (String, fn(&str, bool) -> Value) =
            match call.params.get("format").unwrap_or("treejson") {
                "treejson" => (query.to_owned(), tree_node),
                "completer" => (completion_pattern(query), completer_node),
                other => {
                    return Err(QueryError::Invalid(format!(
                        "format={other} is not supported: use treejson or completer"
                    )));
                }
            };
        let mut nodes = Vec::new();
        for (path, NodeKinds { is_leaf, is_branch }) in
            call.store().find(&pattern, &call.limits())?
        {
            nodes.extend(is_branch.then(|| form(&path, false)));
            nodes.extend(is_leaf.then(|| form(&path, true)));
        }
        if call.params.get("format") == Some("completer") {
            return call.json(&json!({ "metrics": nodes }));
        }
        call.json(&nodes)
    })
    .await
}

/// Returns the pattern of the paths that begin with a text.
fn completion_pattern(query: &str) -> String {
    let parts = query.split('.');
    let is_complete = parts.clone().next_back().is_some_and(|last| last.ends_with('*'));
    if is_complete { query.to_owned() } else { format!("{query}*") }
}

fn tree_node(path: &str, is_leaf: bool) -> Value {
    let flag = |is_set: bool| u8::from(is_set);
    json!({
        "text": last_part(path),
        "id": path,
        "context": {},
        "leaf": flag(is_leaf),
        "expandable": flag(!is_leaf),
        "allowChildren": flag(!is_leaf),
    })
}

fn completer_node(path: &str, is_leaf: bool) -> Value {
    let dot = if is_leaf { "" } else { "." };
    let leaf = if is_leaf { "1" } else { "0" };
    json!({ "path": format!("{path}{dot}"), "name": last_part(path), "is_leaf": leaf })
}

/// Returns the paths that patterns match.
pub(super) async fn expand(received: Received) -> HttpResponse {
    respond("graphite_find", received, |call| {
        let flag = |name: &str| matches!(call.params.get(name), Some("1" | "true"));
        let (leaves_only, by_pattern) = (flag("leavesOnly"), flag("groupByExpr"));
        call.required_param("query")?;
        let mut groups = serde_json::Map::new();
        let mut all = Vec::new();
        for pattern in call.params.all("query") {
            let nodes = call.store().find(pattern, &call.limits())?.into_iter();
            let kept = nodes.filter(|(_, node)| node.is_leaf || !leaves_only);
            let paths: Vec<_> = kept.map(|(path, _)| path).collect();
            if by_pattern {
                groups.insert(pattern.to_owned(), json!(paths));
            } else {
                all.extend(paths);
            }
        }
        all.sort_unstable();
        all.dedup();
        call.json(&json!({ "results": if by_pattern { json!(groups) } else { json!(all) } }))
    })
    .await
}
