//! Every route of the table with no credentials, with a key of each scope, with a user of each role
//! and with rights in another project: allowed, or 401 or 403.

use granary::access::{
    ROUTES, Right, Role, Roles, RouteRow, Scope, Scopes, admit, admits_other_project,
};
use serde_json::json;

use super::Guarded;

/// Returns a path with a value in place of each variable.
pub(super) fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn each_route_admits_exactly_the_keys_of_the_table() {
    let guarded = Guarded::start();
    let keys: Vec<_> = Scope::ALL
        .iter()
        .map(|scope| (Scopes::of(&[*scope]), guarded.scoped(scope.as_str(), &[scope.as_str()])))
        .chain([(Scopes::of(&[Scope::Admin, Scope::Operate]), guarded.admin.clone())])
        .collect();
    let mut checked = 0;
    for RouteRow { methods, path, right, .. } in ROUTES {
        let methods = if *methods == "*" { "GET POST" } else { methods };
        for method in methods.split(' ') {
            let path = filled(path);
            let (status, answer) = guarded.send_with(method, &path, &[], "");
            let is_refused = [401, 403].contains(&status);
            assert_eq!(is_refused, *right != Right::Open, "{method} {path}: {status} {answer}");
            for (scopes, key) in &keys {
                let (status, answer) = guarded.send(method, &path, key, "");
                let expected = admit(*right, Some(*scopes)).is_ok();
                let is_admitted = ![401, 403].contains(&status);
                assert_eq!(is_admitted, expected, "{method} {path} {scopes}: {status} {answer}");
                if !expected {
                    assert_eq!((status, &answer["error"]), (403, &"forbidden".into()));
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 500, "checked only {checked} requests");
}

#[test]
fn each_route_admits_exactly_the_roles_of_the_table() {
    let guarded = Guarded::start();
    let roles = Role::ALL.iter().map(|role| ("default", *role)).chain([("*", Role::Admin)]);
    let mut roles: Vec<_> = roles.map(|(project, role)| Roles::one(project, role)).collect();
    roles.extend([Roles::default(), Roles::one("other", Role::Admin)]);
    let mut checked = 0;
    for (number, roles) in roles.iter().enumerate() {
        let name = format!("user{number}");
        guarded.user(&name, &json!(roles));
        let mut session = guarded.log_in(&name);
        for RouteRow { methods, path, right, .. } in ROUTES {
            let methods = if *methods == "*" { "GET POST" } else { methods };
            for method in methods.split(' ') {
                let path = filled(path);
                let (status, answer) = guarded.with_session(&session, method, &path, "");
                let expected = admit(*right, Some(roles.scopes_in("default"))).is_ok();
                let is_admitted = ![401, 403].contains(&status);
                assert_eq!(is_admitted, expected, "{method} {path} {roles:?}: {status} {answer}");
                if !expected {
                    assert_eq!((status, &answer["error"]), (403, &"forbidden".into()));
                }
                // These requests end the session.
                if path.ends_with("/logout") || path.ends_with("/sessions") {
                    session = guarded.log_in(&name);
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 500, "checked only {checked} requests");
}

#[test]
fn each_route_admits_rights_in_another_project_as_the_table_says() {
    let settings = "security.access = true\n[security.projects.red]\n[security.projects.blue]\n";
    let guarded = Guarded::start_with(settings);
    let all_but_operate = ["ingest", "read", "objects", "admin"];
    let new = json!({ "name": "team", "scopes": all_but_operate, "project": "red" });
    let key = guarded.key(&new);
    let new = json!({ "name": "operator", "scopes": ["admin", "operate"], "project": "default" });
    let of_default = guarded.key(&new);
    guarded.user("ann", &json!({ "red": "admin" }));
    let mut session = guarded.log_in("ann");
    let mut checked = 0;
    for RouteRow { methods, path, right, .. } in ROUTES {
        let methods = if *methods == "*" { "GET POST" } else { methods };
        for method in methods.split(' ') {
            let path = filled(path);
            let is_of_daemon = matches!(right, Right::Operate | Right::Control);
            for project in ["default", "blue", "unknown", ""] {
                let named = ("X-Scope-OrgID", project);
                let bearer = format!("Bearer {key}");
                let with_key = [("Authorization", &*bearer), named];
                let cookie = [("Cookie", &*session.cookie), ("X-Granary-CSRF", &*session.csrf)];
                let with_session = [cookie[0], cookie[1], named];
                for headers in [&with_key[..], &with_session] {
                    let (status, answer) = guarded.send_with(method, &path, headers, "");
                    let is_admitted = ![401, 403].contains(&status);
                    let expected = admits_other_project(*right);
                    assert_eq!(is_admitted, expected, "{method} {path} {project:?}: {answer}");
                    checked += 1;
                }
                if path.ends_with("/logout") || path.ends_with("/sessions") {
                    session = guarded.log_in("ann");
                }
            }
            // The state of all projects needs rights in all projects.
            let (status, answer) = guarded.send(method, &path, &of_default, "");
            let is_admitted = ![401, 403].contains(&status);
            let expected =
                !is_of_daemon && admit(*right, Some(Scopes::of(&[Scope::Admin]))).is_ok();
            assert_eq!(is_admitted, expected, "{method} {path}: {status} {answer}");
        }
    }
    assert!(checked > 500, "checked only {checked} requests");
}

#[test]
fn other_spellings_of_a_path_are_no_way_around_the_check() {
    let guarded = Guarded::start();
    for path in [
        "//api/v1/series",
        "/api//v1/series",
        "/api/v1/series/",
        "/./api/v1/series",
        "/assets/../api/v1/series",
        "/api/v1/%73eries",
        "/api%2Fv1/series",
        "/API/v1/series",
        "/api/v1/series;x=1",
        "/api/v1/series%00",
        "/prometheus//api/v1/series",
        "/graphite/../api/v1/series",
        "/metrics/",
        "/%6detrics",
        "/metrics%2F",
    ] {
        for method in ["GET", "POST", "HEAD", "PROPFIND"] {
            let (status, answer) = guarded.send_with(method, path, &[], "");
            assert!([400, 401, 404, 405].contains(&status), "{method} {path}: {status} {answer}");
            let (_, answer) = (status, answer.to_string());
            assert!(!answer.contains("granary_series"), "{method} {path}: {answer}");
        }
    }
    // Headers that name another path or method change nothing.
    for header in ["X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override", "X-Forwarded-User"]
    {
        let headers = [(header, "/healthz")];
        assert_eq!(guarded.send_with("GET", "/api/v1/series", &headers, "").0, 401, "{header}");
    }
}
