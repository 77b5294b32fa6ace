//! The table of all routes with the right that each requires. A route without a row prevents the
//! start, and docs/security.md contains the table.

use super::{
    admit::{Right, admit},
    roles::{ALL_PROJECTS, DEFAULT_PROJECT, Role, Roles},
    scopes::{Scope, Scopes},
};

/// A path with the right that some of its methods require.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteRow {
    /// The methods, separated by spaces; `*` stands for all.
    pub methods: &'static str,
    /// The path as it is registered, without the prefixes of Prometheus and Graphite.
    pub path: &'static str,
    /// The required right.
    pub right: Right,
    /// True when requests of other methods than GET and HEAD are changes, which the audit records.
    pub audited: bool,
}

/// Prefixes below which some routes are registered again, with the same rights.
const PREFIXES: [&str; 2] = ["/prometheus", "/graphite"];

const fn row(methods: &'static str, path: &'static str, right: Right) -> RouteRow {
    let audited = matches!(right, Right::Objects | Right::Manage | Right::Control);
    RouteRow { methods, path, right, audited }
}

/// Returns a row whose requests the audit records, although it does not record most requests with
/// this right.
const fn change(methods: &'static str, path: &'static str, right: Right) -> RouteRow {
    RouteRow { methods, path, right, audited: true }
}

/// Returns a row of requests that the audit does not record: data that programs send all the time,
/// and checks, which change nothing.
const fn data(methods: &'static str, path: &'static str, right: Right) -> RouteRow {
    RouteRow { methods, path, right, audited: false }
}

/// All routes.
pub const ROUTES: &[RouteRow] = &[
    // The page and health checks.
    row("GET HEAD", "/", Right::Open),
    row("GET HEAD", "/hosts/{name}", Right::Open),
    row("GET HEAD", "/explore", Right::Open),
    row("GET HEAD", "/moved", Right::Open),
    row("GET HEAD", "/dashboards", Right::Open),
    row("GET HEAD", "/dashboards/{name}", Right::Open),
    row("GET HEAD", "/alerts", Right::Open),
    row("GET HEAD", "/alerts/receivers", Right::Open),
    row("GET HEAD", "/alerts/rules", Right::Open),
    row("GET HEAD", "/alerts/rules/{name}", Right::Open),
    row("GET HEAD", "/storage", Right::Open),
    row("GET HEAD", "/status", Right::Open),
    row("GET HEAD", "/access", Right::Open),
    row("GET HEAD", "/profile", Right::Open),
    row("GET HEAD", "/login", Right::Open),
    row("GET", "/login/oidc", Right::Open),
    row("GET", "/login/oidc/callback", Right::Open),
    row("GET HEAD", "/assets/{name}", Right::Open),
    row("GET", "/graph", Right::Open),
    row("GET", "/healthz", Right::Open),
    row("GET", "/readyz", Right::Open),
    row("GET HEAD", "/-/healthy", Right::Open),
    row("GET HEAD", "/-/ready", Right::Open),
    row("*", "/ping", Right::Open),
    change("POST", "/api/v1/access/enroll", Right::Open),
    change("POST", "/api/v1/access/accept", Right::Open),
    // The caller's own session and profile.
    row("POST", "/api/v1/access/login", Right::Open),
    row("GET", "/api/v1/access/oidc", Right::Open),
    change("POST", "/api/v1/access/logout", Right::Own),
    row("GET", "/api/v1/access/me", Right::Own),
    change("POST", "/api/v1/access/password", Right::Own),
    row("POST", "/api/v1/access/totp", Right::Own),
    change("POST", "/api/v1/access/totp/confirm", Right::Own),
    change("POST", "/api/v1/access/totp/remove", Right::Own),
    change("GET DELETE", "/api/v1/access/sessions", Right::Own),
    change("DELETE", "/api/v1/access/sessions/{id}", Right::Own),
    // Samples.
    row("POST", "/api/v1/ingest", Right::Ingest),
    change("POST", "/api/v1/update", Right::Ingest),
    row("POST", "/api/v1/ping", Right::Ingest),
    row("POST", "/api/v1/write", Right::Ingest),
    row("POST", "/api/v1/collectd", Right::Ingest),
    row("POST", "/api/v2/write", Right::Ingest),
    row("POST", "/v1/metrics", Right::Ingest),
    row("POST", "/write", Right::Ingest),
    row("*", "/query", Right::Ingest),
    change("POST", "/api/v1/access/renew", Right::Ingest),
    // Queries.
    row("GET POST", "/api/v1/query", Right::Read),
    row("GET POST", "/api/v1/query_range", Right::Read),
    row("GET POST", "/api/v1/format_query", Right::Read),
    row("GET POST", "/api/v1/parse_query", Right::Read),
    row("GET POST", "/api/v1/labels", Right::Read),
    row("GET POST", "/api/v1/query_exemplars", Right::Read),
    row("GET", "/api/v1/label/{name}/values", Right::Read),
    row("GET POST", "/api/v1/series", Right::Read),
    row("GET", "/api/v1/metadata", Right::Read),
    row("POST", "/api/v1/read", Right::Read),
    row("GET", "/federate", Right::Read),
    row("GET", "/api/v1/rules", Right::Read),
    row("POST", "/api/v1/rules/check", Right::Read),
    row("GET", "/api/v1/alerts", Right::Read),
    row("GET", "/api/v1/alerts/history", Right::Read),
    row("GET", "/api/v1/alertmanagers", Right::Read),
    row("GET", "/api/v1/targets", Right::Read),
    row("GET", "/api/v1/targets/metadata", Right::Read),
    row("GET", "/api/v1/status/buildinfo", Right::Read),
    row("GET", "/api/v1/status/tsdb", Right::Read),
    row("GET", "/api/v1/status/flags", Right::Read),
    row("GET", "/api/v1/status/config", Right::Read),
    row("GET POST", "/render", Right::Read),
    row("GET POST", "/metrics/find", Right::Read),
    row("GET POST", "/metrics/expand", Right::Read),
    row("GET POST", "/tags/findSeries", Right::Read),
    row("GET", "/tags", Right::Read),
    row("GET", "/tags/autoComplete/tags", Right::Read),
    row("GET", "/tags/autoComplete/values", Right::Read),
    row("GET", "/tags/{tag}", Right::Read),
    row("GET", "/api/v1/chart", Right::Read),
    row("GET", "/api/v1/documents", Right::Read),
    row("GET", "/api/v1/storage/document", Right::Read),
    row("POST", "/api/v1/aggregate", Right::Read),
    row("POST", "/api/v1/held", Right::Read),
    row("GET", "/api/v1/cardinality", Right::Read),
    row("GET", "/api/v1/find", Right::Read),
    row("GET", "/api/v1/facets", Right::Read),
    row("GET", "/api/v1/moved", Right::Read),
    row("GET", "/api/v1/hosts", Right::Read),
    row("GET", "/api/v1/hosts/sparklines", Right::Read),
    row("GET", "/api/v1/export", Right::Read),
    row("GET", "/api/v1/tail", Right::Read),
    row("GET", "/api/v1/senders", Right::Read),
    row("GET", "/api/v1/dashboards", Right::Read),
    row("GET", "/api/v1/dashboards/{name}", Right::Read),
    row("GET", "/api/v1/annotations", Right::Read),
    row("GET", "/api/v2/alerts", Right::Read),
    row("GET", "/api/v2/alerts/groups", Right::Read),
    row("GET", "/api/v2/silences", Right::Read),
    row("GET", "/api/v2/silence/{id}", Right::Read),
    row("GET", "/api/v2/status", Right::Read),
    row("GET", "/api/v2/receivers", Right::Read),
    // Changes of objects.
    row("PUT DELETE", "/api/v1/dashboards/{name}", Right::Objects),
    row("POST", "/api/v1/annotations", Right::Objects),
    row("DELETE", "/api/v1/annotations/{id}", Right::Objects),
    row("POST", "/api/v1/alerts/ack", Right::Objects),
    row("POST", "/api/v1/alerts/unack", Right::Objects),
    data("POST", "/api/v2/alerts", Right::Objects),
    row("POST", "/api/v2/silences", Right::Objects),
    row("DELETE", "/api/v2/silence/{id}", Right::Objects),
    // Changes of stored data, and keys.
    row("DELETE", "/api/v1/series", Right::Manage),
    row("POST", "/api/v1/admin/series/delete", Right::Manage),
    row("POST", "/api/v1/admin/series/rename", Right::Manage),
    row("POST", "/api/v1/admin/series/merge", Right::Manage),
    row("DELETE", "/api/v1/hosts", Right::Manage),
    row("POST", "/api/v1/admin/hosts/remove", Right::Manage),
    row("DELETE", "/api/v1/senders", Right::Manage),
    row("POST", "/api/v1/admin/senders/remove", Right::Manage),
    row("POST", "/api/v1/receivers/test", Right::Manage),
    row("GET", "/api/v1/rule-files", Right::Manage),
    data("POST", "/api/v1/rule-files/check", Right::Manage),
    row("GET PUT DELETE", "/api/v1/rule-files/{name}", Right::Manage),
    row("GET", "/api/v1/notifications", Right::Manage),
    row("GET POST", "/api/v1/access/keys", Right::Manage),
    row("DELETE", "/api/v1/access/keys/{id}", Right::Manage),
    row("POST", "/api/v1/access/keys/{id}/rotate", Right::Manage),
    row("GET POST", "/api/v1/access/codes", Right::Manage),
    row("DELETE", "/api/v1/access/codes/{id}", Right::Manage),
    row("GET POST", "/api/v1/access/users", Right::Manage),
    row("POST DELETE", "/api/v1/access/users/{name}", Right::Manage),
    // The state of the daemon.
    row("GET", "/metrics", Right::Operate),
    row("GET", "/api/v1/status", Right::Operate),
    row("GET", "/api/v1/storage", Right::Operate),
    row("GET", "/api/v1/status/runtimeinfo", Right::Operate),
    row("GET", "/api/v1/admin/clock", Right::Operate),
    row("GET", "/api/v1/admin/log", Right::Operate),
    row("GET", "/api/v1/admin/audit", Right::Operate),
    row("GET", "/api/v1/admin/settings", Right::Operate),
    // Receivers send requests from the daemon's machine, which is the operator's.
    row("PUT DELETE", "/api/v1/notifications", Right::Control),
    data("POST", "/api/v1/notifications/check", Right::Control),
    row("POST", "/api/v1/admin/clock/confirm", Right::Control),
    row("POST", "/api/v1/admin/preallocate", Right::Control),
    row("POST", "/api/v1/admin/snapshot", Right::Control),
    row("GET", "/api/v1/cluster/status", Right::Operate),
    row("POST", "/api/v1/cluster/hand-over", Right::Control),
    row("POST", "/api/v1/cluster/strike", Right::Control),
    row("POST", "/api/v1/cluster/seed", Right::Control),
    row("POST PUT", "/-/reload", Right::Control),
];

/// Returns the row of a method of a registered path; `None` when there is none. Only the
/// registration of routes calls this function; requests are not looked up by path.
pub fn row_of(method: &str, path: &str) -> Option<&'static RouteRow> {
    let without_prefix = PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix));
    let path = match without_prefix {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    };
    let fits = |row: &&RouteRow| {
        row.path == path
            && (row.methods == "*" || row.methods.split(' ').any(|known| known == method))
    };
    ROUTES.iter().find(fits)
}

/// Returns true when a route with this right also admits callers who have no right in the project
/// that the request names. Such a route neither shows nor changes data of a project.
pub fn admits_other_project(right: Right) -> bool {
    matches!(right, Right::Open | Right::Own)
}

/// Returns the table in Markdown: for each route, the scopes whose keys and the roles whose users
/// may use it, and whether rights in another project suffice.
pub fn table() -> String {
    let rows = ROUTES.iter().map(|RouteRow { methods, path, right, .. }| {
        let methods = if *methods == "*" { "any method" } else { methods };
        let other = if admits_other_project(*right) { "admitted" } else { "403" };
        let (keys, users) = (keys_with(*right), users_with(*right));
        format!("| {methods} `{path}` | {keys} | {users} | {other} |\n")
    });
    std::iter::once(
        "| route | key | user | rights in another project |\n|---|---|---|---|\n".to_owned(),
    )
    .chain(rows)
    .collect()
}

/// Returns the smallest role that has a right.
fn users_with(right: Right) -> String {
    let has = |roles: &Roles| admit(right, Some(roles.scopes_in(DEFAULT_PROJECT))).is_ok();
    let least = Role::ALL.iter().find(|role| has(&Roles::one(DEFAULT_PROJECT, **role)));
    match least {
        _ if admit(right, None).is_ok() => "none".to_owned(),
        _ if has(&Roles::default()) => "any".to_owned(),
        Some(role) => format!("`{}`", role.as_str()),
        None if has(&Roles::one(ALL_PROJECTS, Role::Admin)) => "`admin` of `*`".to_owned(),
        None => "nobody".to_owned(),
    }
}

/// Returns the scopes that grant a right: each of them alone or, when no single scope does, all of
/// them together.
fn keys_with(right: Right) -> String {
    let has = |scopes| admit(right, Some(scopes)).is_ok();
    let list = |scopes: Scopes, separator| {
        let names = scopes.iter().map(|scope| format!("`{}`", scope.as_str()));
        names.collect::<Vec<_>>().join(separator)
    };
    let alone = |scope: &&Scope| has(Scopes::of(&[**scope]));
    let alone: Vec<_> = Scope::ALL.iter().filter(alone).copied().collect();
    match &alone[..] {
        _ if admit(right, None).is_ok() => "none".to_owned(),
        _ if has(Scopes::NONE) => "any".to_owned(),
        [] => list(right.scopes(), " and "),
        scopes => list(Scopes::of(scopes), ", "),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_method_of_a_path_has_one_row() {
        let mut seen = BTreeSet::new();
        for row in ROUTES {
            for method in row.methods.split(' ') {
                assert!(seen.insert((method, row.path)), "{method} {}", row.path);
            }
        }
    }

    #[test]
    fn changes_are_audited_and_data_is_not() {
        let is_audited = |method, path| row_of(method, path).unwrap().audited;
        assert!(is_audited("DELETE", "/api/v1/series"));
        assert!(is_audited("POST", "/api/v1/access/enroll"));
        assert!(!is_audited("POST", "/api/v1/ingest"));
        assert!(!is_audited("POST", "/api/v2/alerts"));
        assert!(is_audited("PUT", "/api/v1/notifications"));
        assert!(!is_audited("POST", "/api/v1/notifications/check"));
        assert!(!is_audited("GET", "/api/v1/series"));
    }

    #[test]
    fn a_route_is_found_below_its_prefixes_and_unknown_ones_are_not() {
        let right_of = |method, path| row_of(method, path).map(|row| row.right);
        assert_eq!(right_of("GET", "/api/v1/query"), Some(Right::Read));
        assert_eq!(right_of("GET", "/prometheus/api/v1/query"), Some(Right::Read));
        assert_eq!(right_of("GET", "/graphite/render"), Some(Right::Read));
        assert_eq!(right_of("GET", "/prometheus"), Some(Right::Open));
        assert_eq!(right_of("TRACE", "/query"), Some(Right::Ingest));
        assert_eq!(right_of("DELETE", "/api/v1/series"), Some(Right::Manage));
        assert_eq!(right_of("PUT", "/api/v1/series"), None);
        // Reading the receivers is a right in the project, changing them a right of the operator.
        assert_eq!(right_of("GET", "/api/v1/notifications"), Some(Right::Manage));
        let check = "/api/v1/notifications/check";
        for (method, path) in
            [("PUT", "/api/v1/notifications"), ("DELETE", "/api/v1/notifications"), ("POST", check)]
        {
            assert_eq!(right_of(method, path), Some(Right::Control), "{method} {path}");
        }
        assert_eq!(right_of("GET", "/prometheusapi/v1/query"), None);
        assert_eq!(right_of("GET", "/api/v1/query/"), None);
    }
}
