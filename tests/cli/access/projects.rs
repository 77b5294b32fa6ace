//! Projects: several projects use the same names at the same time, and no answer to one of them
//! reveals data of another.

use std::io::{BufRead, BufReader};

use granary::access::{ROUTES, Right, RouteRow};
use serde_json::{Value, json};

use super::Guarded;
use crate::daemon::client;

pub(super) const SETTINGS: &str =
    "security.access = true\n[security.projects.red]\n[security.projects.blue]\n";
const NAMES: [&str; 3] = ["default", "red", "blue"];

/// A project with its key, and a word and a number that only it stores.
pub(super) struct Tenant {
    pub(super) name: &'static str,
    pub(super) key: String,
    pub(super) word: String,
    pub(super) number: String,
}

/// Returns a random word without digits.
pub(super) fn random_word() -> String {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).unwrap();
    bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect()
}

pub(super) fn random_number() -> String {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).unwrap();
    (10_000_000 + u32::from_le_bytes(bytes) % 89_999_999).to_string()
}

pub(super) fn start() -> (Guarded, Vec<Tenant>) {
    let guarded = Guarded::start_with(SETTINGS);
    let tenants = NAMES.map(|name| Tenant::new(&guarded, name)).into_iter().collect();
    (guarded, tenants)
}

impl Tenant {
    pub(super) fn new(guarded: &Guarded, name: &'static str) -> Self {
        let new = json!({ "name": "team", "scopes": ["admin"], "project": name });
        Self { name, key: guarded.key(&new), word: random_word(), number: random_number() }
    }
}

/// Sends the same names with the tenant's word and number, by each kind of request.
pub(super) fn feed(guarded: &Guarded, tenant: &Tenant) {
    let Tenant { key, word, number, .. } = tenant;
    let send = |method: &str, path: &str, body: &str| {
        let (status, answer) = guarded.send(method, path, key, body);
        assert!((200..300).contains(&status), "{} {path}: {status} {answer}", tenant.name);
        answer
    };
    let sample = |metric: &str| {
        json!({ "metric": metric, "tags": { "host": "web1", "zone": word },
                "value": number.parse::<u64>().unwrap() })
    };
    let of_word = format!("m_{word}_total");
    let samples = [sample("load"), sample("memory"), sample(&of_word)];
    let batch = json!({ "agent": "web1", "epoch": 1, "seq": 1, "samples": samples });
    assert_eq!(send("POST", "/api/v1/ingest", &batch.to_string())["accepted"], 3);
    send("POST", "/write", &format!("disk,zone={word},host=web1 free={number},{word}=1"));
    let ping = json!({ "agent": "web1", "host": "web1", "program": word, "version": "1",
                       "started": 1, "interval_ms": 10_000, "sent": 1, "tags": { "zone": word } });
    let other = json!({ "agent": word, "host": word, "program": "p", "version": "1",
                        "started": 1, "interval_ms": 10_000, "sent": 1 });
    let pings = json!({ "pings": [ping, other] }).to_string();
    assert_eq!(send("POST", "/api/v1/ping", &pings)["accepted"], 2);
    for name in ["main", word] {
        let dashboard = json!({ "schema": 1, "title": word, "variables": [], "panels": [] });
        let body = json!({ "version": null, "dashboard": dashboard }).to_string();
        send("PUT", &format!("/api/v1/dashboards/{name}"), &body);
    }
    let note = json!({ "text": word, "tags": { "zone": word } }).to_string();
    send("POST", "/api/v1/annotations", &note);
    let labels = json!({ "alertname": "down", "zone": word });
    let alerts = json!([{ "labels": labels, "annotations": { "summary": word } }]).to_string();
    send("POST", "/api/v2/alerts", &alerts);
    let matchers = json!([{ "name": "zone", "value": word, "isRegex": false, "isEqual": true }]);
    let silence = json!({ "matchers": matchers, "startsAt": "2026-11-21T08:00:00Z",
                          "endsAt": "2099-11-21T08:00:00Z", "createdBy": word, "comment": word });
    send("POST", "/api/v2/silences", &silence.to_string());
}

/// Requests whose answers contain the caller's word or number.
pub(super) const TELLING: [(&str, &str, &str); 35] = [
    ("GET", "/api/v1/query?query=load", ""),
    ("GET", "/api/v1/query?query=sum(load)", ""),
    ("GET", "/api/v1/query?query=count_values(%22v%22,load)", ""),
    ("GET", "/api/v1/query?query=topk(5,%7Bzone!=%22%22%7D)", ""),
    ("GET", "/api/v1/query?query=max_over_time(load%5B1h%5D)", ""),
    ("GET", "/api/v1/query?query=label_replace(load,%22a%22,%22$1%22,%22zone%22,%22(.*)%22)", ""),
    ("GET", "/api/v1/query?query=group%20by%20(zone)(memory)", ""),
    ("GET", "/api/v1/query?query=load%20*%20on(host)%20group_left%20memory%20/%20memory", ""),
    ("GET", "/api/v1/query?query=ALERTS%20or%20load", ""),
    ("GET", "/prometheus/api/v1/query?query=last_over_time(load%5B1h%5D)", ""),
    ("GET", "/api/v1/label/zone/values", ""),
    ("GET", "/api/v1/label/__name__/values", ""),
    ("GET", "/api/v1/series?match%5B%5D=load", ""),
    ("GET", "/api/v1/metadata", ""),
    ("GET", "/federate?match%5B%5D=load", ""),
    ("GET", "/api/v1/status/tsdb", ""),
    ("GET", "/render?target=seriesByTag(%22name=load%22)&format=json&from=-1h", ""),
    ("GET", "/tags/zone", ""),
    ("GET", "/tags/findSeries?expr=name%3Dload", ""),
    ("GET", "/tags/autoComplete/values?tag=zone", ""),
    ("GET", "/api/v1/series", ""),
    ("GET", "/api/v1/chart?metric=load&range=1h&resolution=1m", ""),
    ("GET", "/api/v1/documents?metric=load&range=1h&resolution=1m", ""),
    (
        "POST",
        "/api/v1/aggregate",
        "{\"collection\": \"1m\", \"metric\": \"load\", \"pipeline\": []}",
    ),
    ("GET", "/api/v1/cardinality", ""),
    ("GET", "/api/v1/find?q=total", ""),
    ("GET", "/api/v1/facets?metric=load", ""),
    ("GET", "/api/v1/hosts", ""),
    ("GET", "/api/v1/export?metric=load&resolution=1d&start=2026-01-01&end=2100-01-01", ""),
    ("GET", "/api/v1/dashboards", ""),
    ("GET", "/api/v1/dashboards/main", ""),
    ("GET", "/api/v1/annotations", ""),
    ("GET", "/api/v2/alerts", ""),
    ("GET", "/api/v2/silences", ""),
    ("GET", "/api/v1/storage/document?metric=load&resolution=1m", ""),
];

/// Requests whose answers must not depend on whether another project has a name.
pub(super) const ASKING: [(&str, &str, &str); 18] = [
    ("GET", "/api/v1/query?query=load%7Bzone=%22WORD%22%7D", ""),
    ("GET", "/api/v1/query?query=absent(m_WORD_total)", ""),
    ("GET", "/api/v1/query?query=info(load,%7Bzone=%22WORD%22%7D)", ""),
    ("GET", "/api/v1/series?match%5B%5D=m_WORD_total", ""),
    ("GET", "/api/v1/chart?metric=m_WORD_total&range=1h", ""),
    ("GET", "/api/v1/chart?metric=load&tags=zone=WORD&range=1h", ""),
    ("GET", "/api/v1/chart?metric=m_WORD_tota&range=1h", ""),
    ("GET", "/api/v1/find?q=WORD", ""),
    ("GET", "/api/v1/facets?metric=m_WORD_total", ""),
    ("GET", "/api/v1/storage/document?metric=m_WORD_total&resolution=1m", ""),
    ("GET", "/api/v1/dashboards/WORD", ""),
    ("GET", "/render?target=m_WORD_total&format=json", ""),
    ("DELETE", "/api/v1/dashboards/WORD?version=1", ""),
    ("DELETE", "/api/v1/series?metric=m_WORD_total", ""),
    ("POST", "/api/v1/admin/series/delete", "{\"selector\": {\"metric\": \"m_WORD_total\"}}"),
    ("POST", "/api/v1/admin/hosts/remove", "{\"hosts\": [\"WORD\"]}"),
    ("POST", "/api/v1/admin/senders/remove", "{\"agents\": [\"WORD\"]}"),
    ("GET", "/api/v1/senders?name=WORD", ""),
];

pub(super) fn assert_tells_nothing_of_others(
    text: &str,
    tenant: &Tenant,
    tenants: &[Tenant],
    what: &str,
) {
    for other in tenants.iter().filter(|other| other.name != tenant.name) {
        for secret in [&other.word, &other.number] {
            let shown: String = text.chars().take(2000).collect();
            assert!(!text.contains(secret.as_str()), "{what} of {}: {shown}", tenant.name);
        }
    }
}

#[test]
fn no_answer_to_a_project_tells_of_another() {
    let (guarded, tenants) = start();
    // All tenants send at the same time.
    std::thread::scope(|scope| {
        for tenant in &tenants {
            scope.spawn(|| feed(&guarded, tenant));
        }
    });
    let ask = |tenant: &Tenant, method: &str, path: &str, body: &str| {
        let (status, answer) = guarded.send(method, path, &tenant.key, body);
        let text = format!("{status} {answer}");
        assert_tells_nothing_of_others(&text, tenant, &tenants, &format!("{method} {path}"));
        text
    };
    for tenant in &tenants {
        let tells_nothing = |(method, path, body): &(&str, &str, &str)| {
            let text = ask(tenant, method, path, body);
            let tells = text.contains(&tenant.word) || text.contains(&tenant.number);
            let shown =
                || format!("{method} {path}: {}", text.chars().take(500).collect::<String>());
            (!tells || !text.starts_with("20")).then(shown)
        };
        let silent: Vec<_> = TELLING.iter().filter_map(tells_nothing).collect();
        assert_eq!(silent, [""; 0]);
        // Requests to each route, even without the parameters that it requires.
        for RouteRow { methods, path, right, .. } in
            ROUTES.iter().filter(|row| row.right != Right::Open)
        {
            for method in methods.replace('*', "GET POST").split(' ') {
                for value in ["web1", "main", "load", "zone"] {
                    let is_variable = |part: &&str| part.starts_with('{');
                    let parts = path.split('/');
                    let parts = parts.map(|part| if is_variable(&part) { value } else { part });
                    let path = parts.collect::<Vec<_>>().join("/");
                    // A tail does not end.
                    if !path.ends_with("/tail") && *right != Right::Manage {
                        ask(tenant, method, &path, "");
                    }
                }
            }
        }
        let (_, keys) = guarded.send("GET", "/api/v1/access/keys", &tenant.key, "");
        assert_eq!(keys["keys"].as_array().unwrap().len(), 1, "{keys}");
    }
    // The answers for a name in another project are the same as for a name that no project has.
    let mut telling = Vec::new();
    for (method, path, body) in ASKING {
        let ask_for = |tenant: &Tenant, word: &str| {
            let with = |text: &str| text.replace("WORD", word);
            let (status, answer) = guarded.send(method, &with(path), &tenant.key, &with(body));
            let text = format!("{status} {answer}").replace(word, "WORD");
            // Times of answers differ.
            text.split(|c: char| c.is_ascii_digit()).collect::<String>()
        };
        for (tenant, other) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            let (tenant, other) = (&tenants[tenant], &tenants[other]);
            let (of_other, of_none) =
                (ask_for(tenant, &other.word), ask_for(tenant, &random_word()));
            if of_other != of_none {
                telling.push(format!("{method} {path}: {of_other} instead of {of_none}"));
            }
        }
    }
    assert_eq!(telling, [""; 0]);
    // No request above changed another project than that of its key.
    for tenant in &tenants {
        assert!(ask(tenant, "GET", "/api/v1/query?query=load", "").contains(&tenant.number));
    }
}

#[test]
fn a_tail_shows_the_samples_of_its_own_project() {
    let (guarded, tenants) = start();
    for tenant in &tenants {
        feed(&guarded, tenant);
    }
    let red = &tenants[1];
    let response = client()
        .get(format!("{}/api/v1/tail?metric=load", guarded.daemon.url))
        .header("Authorization", format!("Bearer {}", red.key))
        .call()
        .unwrap();
    assert_eq!(response.status(), 200);
    let mut lines = BufReader::new(response.into_body().into_reader()).lines();
    let mut shown = lines.next().unwrap().unwrap();
    for value in 1..4 {
        for tenant in &tenants {
            let tags = json!({ "host": "web1", "zone": tenant.word });
            let sample = json!({ "metric": "load", "tags": tags, "value": value });
            let body = json!({ "samples": [sample] }).to_string();
            assert_eq!(guarded.send("POST", "/api/v1/ingest", &tenant.key, &body).0, 200);
        }
        shown += &lines.next().unwrap().unwrap();
    }
    assert!(shown.contains(&red.word), "{shown}");
    assert_tells_nothing_of_others(&shown, red, &tenants, "the tail");
}

#[test]
fn the_key_chooses_the_project_and_only_a_key_of_all_may_name_one() {
    let (guarded, tenants) = start();
    for tenant in &tenants {
        feed(&guarded, tenant);
    }
    let all = guarded.key(&json!({ "name": "proxy", "scopes": ["read"], "project": "*" }));
    let get = |key: &str, project: Option<&str>| {
        let authorization = format!("Bearer {key}");
        let mut headers = vec![("Authorization", &*authorization)];
        headers.extend(project.map(|project| ("X-Scope-OrgID", project)));
        guarded.send_with("GET", "/api/v1/query?query=load", &headers, "")
    };
    for tenant in &tenants {
        for (key, header) in
            [(&all, Some(tenant.name)), (&tenant.key, None), (&tenant.key, Some(tenant.name))]
        {
            let (status, answer) = get(key, header);
            assert!(status == 200 && answer.to_string().contains(&tenant.number), "{answer}");
        }
    }
    assert!(get(&all, None).1.to_string().contains(&tenants[0].number), "default without a header");
    let (status, answer) = get(&tenants[1].key, Some("blue"));
    assert_eq!((status, &answer["error"]), (403, &json!("forbidden")), "{answer}");
    for unknown in ["green", "", "*", "red|blue"] {
        assert_eq!(get(&all, Some(unknown)).0, 403, "{unknown:?}");
    }
    // Keys of one project can only make keys of this project, and none that may read the state of
    // the daemon.
    let (status, answer) = get(&tenants[1].key, Some("unknown"));
    let of_blue = get(&tenants[1].key, Some("blue")).1;
    assert_eq!((status, answer), (403, of_blue), "an unknown project is as forbidden as another");
    let make = |project: Value, scope: &str| {
        let new = json!({ "name": "other", "scopes": [scope], "project": project });
        guarded.send("POST", "/api/v1/access/keys", &tenants[1].key, &new.to_string()).0
    };
    let made = ["blue", "default", "*", "Red"].map(|project| make(json!(project), "read"));
    assert_eq!(made, [403, 403, 403, 400]);
    assert_eq!(make(json!("red"), "operate"), 400);
    assert_eq!(make(Value::Null, "read"), 201);
    let (_, keys) = guarded.send("GET", "/api/v1/access/keys", &tenants[1].key, "");
    let projects = keys["keys"].as_array().unwrap().iter().map(|key| key["project"].clone());
    assert_eq!(projects.collect::<Vec<_>>(), ["red", "red"]);
    let id = tenants[2].key.split('_').nth(1).unwrap();
    let path = format!("/api/v1/access/keys/{id}");
    assert_eq!(guarded.send("DELETE", &path, &tenants[1].key, "").0, 404);
    // A code for an agent belongs to the project of its creator, and so does the agent's key.
    let codes = |tenant: &Tenant, method: &str, path: &str, body: &str| {
        guarded.send(method, &format!("/api/v1/access/codes{path}"), &tenant.key, body)
    };
    assert_eq!(codes(&tenants[1], "POST", "", "{\"project\": \"blue\"}").0, 403);
    let (status, code) = codes(&tenants[1], "POST", "", "{}");
    assert_eq!((status, &code["code"]["project"]), (201, &json!("red")), "{code}");
    assert_eq!(codes(&tenants[2], "GET", "", "").1, json!({ "codes": [] }));
    let path = format!("/{}", code["code"]["id"].as_str().unwrap());
    assert_eq!(codes(&tenants[2], "DELETE", &path, "").0, 404);
    let enroll = json!({ "code": code["text"], "sender": "web9" }).to_string();
    let (status, made) = guarded.send_with("POST", "/api/v1/access/enroll", &[], &enroll);
    assert_eq!((status, &made["key"]["project"]), (201, &json!("red")), "{made}");
    let listed = guarded.output(&guarded.admin, &["key", "list"]);
    assert!(listed.contains("blue") && listed.contains('*'), "{listed}");
    let added = ["key", "add", "mine", "--scope", "read", "--project", "blue"];
    let key = guarded.output(&guarded.admin, &added);
    assert!(get(&key, None).1.to_string().contains(&tenants[2].number));
}

#[test]
fn quotas_refuse_what_is_beyond_them_and_name_themselves() {
    let settings = "security.access = true\n[security.projects.small]\nseries_max = 2\n\
                    samples_per_second = 1\nquery_points_max = 10\n[security.projects.other]\n";
    let guarded = Guarded::start_with(settings);
    let [small, other] = ["small", "other"]
        .map(|name| guarded.key(&json!({ "name": "team", "scopes": ["admin"], "project": name })));
    let send = |key: &str, count: usize| {
        let sample = |index| json!({ "metric": format!("m{index}"), "value": 1 });
        let samples: Vec<_> = (0..count).map(sample).collect();
        let body = json!({ "samples": samples }).to_string();
        guarded.send("POST", "/api/v1/ingest", key, &body)
    };
    let (status, answer) = send(&small, 3);
    assert_eq!((status, &answer["accepted"]), (200, &json!(2)), "{answer}");
    assert!(answer.to_string().contains("project_series_limit"), "{answer}");
    let mut last = (200, Value::Null);
    for _ in 0..20 {
        last = send(&small, 2);
    }
    assert_eq!((last.0, &last.1["error"]), (429, &json!("quota")), "{last:?}");
    assert!(last.1.to_string().contains("samples_per_second"), "{last:?}");
    // Protocols of rows answer 503, on which Prometheus sends again.
    assert_eq!(guarded.send("POST", "/write", &small, "m0 value=1").0, 503);
    assert_eq!(send(&other, 3).0, 200);
    let range = "/api/v1/query_range?query=vector(1)&start=0&end=1000&step=1";
    let (status, answer) = guarded.send("GET", range, &small, "");
    assert!(status >= 400 && answer.to_string().contains("points"), "{status} {answer}");
    assert_eq!(guarded.send("GET", range, &other, "").0, 200);
    let (_, metrics) = guarded.send("GET", "/metrics", &guarded.admin, "");
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("granary_requests_refused_total{reason=\"quota\"}"));
}
