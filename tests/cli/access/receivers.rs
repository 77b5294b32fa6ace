//! Texts of receivers and rules with access control: changes of receivers are the operator's, and
//! no request reaches the texts of another project.

use serde_json::{Value, json};

use super::Guarded;

const PATH: &str = "/api/v1/notifications";
const TEXT: &str = "route: {receiver: a}\nreceivers: [{name: a}]";

#[test]
fn changes_of_receivers_need_the_rights_of_the_operator_and_name_no_other_project() {
    let guarded = Guarded::start_with("security.access = true\n[security.projects.shop]\n");
    let new = json!({ "name": "ann", "scopes": ["admin", "operate"], "project": "default" });
    let of_default = guarded.key(&new);
    let text = json!({ "version": null, "text": TEXT }).to_string();
    let check = json!({ "text": TEXT }).to_string();
    let check_path = format!("{PATH}/check");
    let send = |key: &str, project: Option<&str>, method: &str, path: &str, body: &str| {
        let bearer = format!("Bearer {key}");
        let project = project.map(|project| ("X-Scope-OrgID", project));
        let headers = [("Authorization", &*bearer)].into_iter().chain(project);
        guarded.send_with(method, path, &headers.collect::<Vec<_>>(), body)
    };
    let delete = |version: &Value| format!("{PATH}?version={version}");
    for (method, path, body) in
        [("PUT", PATH, &*text), ("DELETE", &delete(&json!(1)), ""), ("POST", &check_path, &check)]
    {
        let (status, answer) = send(&of_default, None, method, path, body);
        assert_eq!((status, &answer["error"]), (403, &json!("forbidden")), "{method} {answer}");
        let (status, answer) = send(&guarded.admin, Some("shop"), method, path, body);
        assert_eq!((status, &answer["error"]), (409, &json!("not_editable")), "{method} {answer}");
    }
    assert_eq!(send(&of_default, None, "GET", PATH, "").0, 404, "no text is saved yet");
    assert_eq!(send(&guarded.admin, None, "POST", &check_path, &check).0, 200);
    let (status, saved) = send(&guarded.admin, Some("default"), "PUT", PATH, &text);
    assert_eq!((status, &saved["receivers"]), (200, &json!(1)), "{saved}");
    assert_eq!(send(&of_default, None, "GET", PATH, "").1["text"], TEXT);
    assert_eq!(send(&guarded.admin, Some("shop"), "GET", PATH, "").0, 404);
    assert_eq!(send(&guarded.admin, None, "DELETE", &delete(&saved["version"]), "").0, 204);
    let (_, audit) =
        guarded.send("GET", "/api/v1/admin/audit?who=first-key&limit=1", &guarded.admin, "");
    let newest = &audit["records"][0];
    assert_eq!(newest["action"], format!("DELETE {PATH}"), "{audit}");
    assert_eq!((&newest["object"], &newest["outcome"]), (&json!("notifications"), &json!("done")));
}

#[test]
fn the_stored_name_of_another_projects_text_reaches_no_text() {
    let guarded = Guarded::start_with("security.access = true\n[security.projects.shop]\n");
    let new = json!({ "name": "ann", "scopes": ["admin"], "project": "default" });
    let of_default = guarded.key(&new);
    let new = json!({ "name": "bob", "scopes": ["admin"], "project": "shop" });
    let of_shop = guarded.key(&new);
    let text = json!({ "version": null, "text": "groups: []" }).to_string();
    let (status, saved) = guarded.send("PUT", "/api/v1/rule-files/own", &of_shop, &text);
    assert_eq!(status, 200, "{saved}");
    let stored = "/api/v1/rule-files/%01shop%00own";
    assert_eq!(guarded.send("GET", stored, &of_default, "").0, 404);
    let delete = format!("{stored}?version={}", saved["version"]);
    assert_eq!(guarded.send("DELETE", &delete, &of_default, "").0, 404);
    assert_eq!(guarded.send("GET", "/api/v1/rule-files/own", &of_shop, "").0, 200);
}
