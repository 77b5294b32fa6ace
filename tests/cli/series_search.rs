//! Search over HTTP: metrics by words, and tags with counts.

use serde_json::json;

use crate::{daemon::Daemon, prometheus_api::get};

#[test]
fn metrics_are_found_by_words_and_their_tags_are_counted() {
    let daemon = Daemon::start("");
    let sample = |metric: &str, host: &str, core: &str| json!({"metric": metric, "tags": {"host": host, "core": core}, "unit": "percent", "value": 1});
    daemon.accept(&json!([
        sample("cpu_user", "<img src=x>", "0"),
        sample("cpu_user", "b", "0"),
        sample("cpu_user", "b", "1"),
        sample("cpu_idle", "b", "1"),
    ]));
    let (status, body) = get(&daemon, "/api/v1/find?q=User+CPU");
    let expected = json!({"total": 1, "metrics": [
        {"metric": "cpu_user", "kind": "gauge", "unit": "percent", "series": 3}]});
    assert_eq!((status, body), (200, expected));
    let (_, body) = get(&daemon, "/api/v1/find?limit=1");
    assert_eq!((&body["total"], &body["metrics"][0]["metric"]), (&json!(2), &json!("cpu_idle")));

    let (status, body) = get(&daemon, "/api/v1/facets?metric=cpu_user&tags=host=b,core=0");
    let expected = json!({"series": 1, "tags_total": 2, "tags": [
        {"name": "core", "values_total": 2,
         "values": [{"value": "0", "series": 1}, {"value": "1", "series": 1}]},
        {"name": "host", "values_total": 2,
         "values": [{"value": "<img src=x>", "series": 1}, {"value": "b", "series": 1}]}]});
    assert_eq!((status, body), (200, expected));

    daemon.accept(&json!([sample("cpu_user", "a,b", "0"), sample("cpu_user", "a", "0")]));
    let quoted = "/api/v1/series?metric=cpu_user&tags=host=%22a,b%22,core=0";
    let (_, body) = get(&daemon, quoted);
    assert_eq!((&body["total"], &body["series"][0]["tags"]["host"]), (&json!(1), &json!("a,b")));

    for (path, word) in [
        ("facets?metric=a&tags=host=%22a", "has no quote at its end"),
        ("find?q=x&limit=0", "limit=0"),
        ("find?query=x", "query"),
        ("facets", "metric is missing"),
        ("facets?metric=a&display=avg", "this query has no parameter display"),
    ] {
        let (status, body) = get(&daemon, &format!("/api/v1/{path}"));
        assert_eq!((status, &body["error"]), (400, &json!("invalid")), "{path}");
        assert!(body["message"].as_str().unwrap().contains(word), "{body}");
    }
}
