//! Graphite's HTTP API as Grafana's data source uses it: names, tags, render, formats and errors.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, client},
    prometheus_api::get,
    remote_write::{V1, minute, request, series, write},
};

/// Starts a daemon with ten minutes of samples: series with a plain path, with a path by a
/// template, and with tags. Returns the start in seconds.
fn filled_daemon() -> (Daemon, i64) {
    let daemon = Daemon::start("graphite.templates = ['servers.* _.host.metric*']");
    let start = minute();
    let values = |value: fn(i64) -> f64| -> Vec<(i64, f64)> {
        (0..10).map(|i| (start + i * 60_000, value(i))).collect()
    };
    let remote_write_series = |metric: &str, tags: &[(&str, &str)], value| {
        let labels = [&[("__name__", metric)], tags].concat();
        series(&labels, &values(value))
    };
    let body = request(&[
        remote_write_series("app.web.hits", &[], |i| i as f64),
        remote_write_series("app.db.hits", &[], |i| 10.0 * i as f64),
        remote_write_series("app.db.errors.fatal", &[], |_| 1.0),
        remote_write_series("cpu.idle", &[("host", "web1")], |_| 90.0),
        remote_write_series("cpu.idle", &[("host", "web2")], |_| 70.0),
        remote_write_series("disk.used", &[("dc", "a"), ("mount", "/")], |_| 5.0),
        remote_write_series("requests_total", &[("dc", "a")], |i| 60.0 * i as f64),
    ]);
    assert_eq!(write(&daemon, V1, &body).status, 204);
    (daemon, start / 1000)
}

fn render(daemon: &Daemon, start: i64, target: &str, parameters: &str) -> (u16, Value) {
    let target: String = target
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'*' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    // As in Graphite, the range begins after `from` and ends with `until`.
    let (from, until) = (start - 1, start + 599);
    get(daemon, &format!("/render?target={target}&from={from}&until={until}{parameters}"))
}

/// Returns the names of the lines of a target, with the values of the second and the last point.
fn lines_of_target(daemon: &Daemon, start: i64, target: &str) -> Vec<(String, Value, Value)> {
    let (status, found) = render(daemon, start, target, "");
    assert_eq!(status, 200, "{target}: {found}");
    let line = |line: &Value| {
        let points = line["datapoints"].as_array().unwrap();
        let name = line["target"].as_str().unwrap().to_owned();
        (name, points[1][0].clone(), points[points.len() - 1][0].clone())
    };
    found.as_array().unwrap().iter().map(line).collect()
}

#[test]
fn targets_are_evaluated_as_by_graphite() {
    let (daemon, start) = filled_daemon();
    let (_, found) = render(&daemon, start, "app.web.hits", "");
    assert_eq!(found[0]["target"], "app.web.hits");
    assert_eq!(found[0]["tags"], json!({ "name": "app.web.hits" }));
    let points = found[0]["datapoints"].as_array().unwrap();
    assert_eq!(points[0], json!([0.0, start]));
    assert_eq!((points.len(), &points[9]), (10, &json!([9.0, start + 540])));
    let check = |target: &str, expected: &[(&str, Value, Value)]| {
        let expected: Vec<_> =
            expected.iter().map(|(n, a, b)| ((*n).to_owned(), a.clone(), b.clone())).collect();
        assert_eq!(lines_of_target(&daemon, start, target), expected, "{target}");
    };
    check(
        "app.*.hits",
        &[("app.db.hits", json!(10.0), json!(90.0)), ("app.web.hits", json!(1.0), json!(9.0))],
    );
    check(
        "sumSeries(app.{db,web}.hits)",
        &[("sumSeries(app.{db,web}.hits)", json!(11.0), json!(99.0))],
    );
    check("alias(scale(app.web.hits,0.5),'half')", &[("half", json!(0.5), json!(4.5))]);
    check(
        "servers.web?.cpu.idle|aliasByNode(1)",
        &[("web1", json!(90.0), json!(90.0)), ("web2", json!(70.0), json!(70.0))],
    );
    check(
        "groupByNode(app.*.hits,1,'max')",
        &[("db", json!(10.0), json!(90.0)), ("web", json!(1.0), json!(9.0))],
    );
    check(
        "seriesByTag('name=~disk.*','dc=a')",
        &[("disk.used;dc=a;mount=/", json!(5.0), json!(5.0))],
    );
    check("disk.used;mount=/;dc=a", &[("disk.used;dc=a;mount=/", json!(5.0), json!(5.0))]);
    check(
        "aliasByTags(perSecond(seriesByTag('name=requests_total')),'dc')",
        &[("a", json!(1.0), json!(1.0))],
    );
    check(
        "movingAverage(app.web.hits,2)",
        &[("movingAverage(app.web.hits,2)", json!(0.0), json!(7.5))],
    );
    check(
        "asPercent(app.web.hits,app.db.hits)",
        &[("asPercent(app.web.hits,app.db.hits)", json!(10.0), json!(10.0))],
    );
    check("highestMax(app.*.hits,1)", &[("app.db.hits", json!(10.0), json!(90.0))]);
    check(
        "timeShift(app.web.hits,'1min')",
        &[("timeShift(app.web.hits, \"-1min\")", json!(0.0), json!(8.0))],
    );
    check(
        "summarize(app.web.hits,'5min','sum',true)",
        &[("summarize(app.web.hits, \"5min\", \"sum\", true)", json!(35.0), json!(35.0))],
    );
    check("constantLine(42)", &[("42", json!(42.0), json!(42.0))]);
    check(
        "sumSeries(app.web.hits,timeShift(app.web.hits,'50y'))",
        &[("sumSeries(app.web.hits)", json!(1.0), json!(9.0))],
    );
    check("nothing.here", &[]);
    let (_, limited) = render(&daemon, start, "app.web.hits", "&maxDataPoints=2");
    assert!(limited[0]["datapoints"].as_array().unwrap().len() <= 2, "{limited}");
}

#[test]
fn names_are_found_as_in_a_tree_and_by_tags() {
    let (daemon, _) = filled_daemon();
    let check = |path: &str, expected: Value| {
        let (status, found) = get(&daemon, path);
        assert_eq!((status, found), (200, expected), "{path}");
    };
    let node = |text: &str, id: &str, leaf: u8| {
        let branch = 1 - leaf;
        json!({"text": text, "id": id, "context": {}, "leaf": leaf, "expandable": branch,
               "allowChildren": branch})
    };
    check("/metrics/find?query=*", json!([node("app", "app", 0), node("servers", "servers", 0)]));
    check(
        "/graphite/metrics/find?query=app.db.*",
        json!([node("errors", "app.db.errors", 0), node("hits", "app.db.hits", 1),]),
    );
    check(
        "/metrics/find?query=servers.*.cpu",
        json!([node("cpu", "servers.web1.cpu", 0), node("cpu", "servers.web2.cpu", 0),]),
    );
    check(
        "/metrics/find?query=app.d&format=completer",
        json!({"metrics": [
            {"path": "app.db.", "name": "db", "is_leaf": "0"},
        ]}),
    );
    check(
        "/metrics/expand?query=app.*.hits&query=servers.*",
        json!({"results": [
            "app.db.hits", "app.web.hits", "servers.web1", "servers.web2",
        ]}),
    );
    check("/tags", json!([{"tag": "dc"}, {"tag": "host"}, {"tag": "mount"}, {"tag": "name"}]));
    check("/tags/host", json!({"tag": "host", "values": [{"value": "web1"}, {"value": "web2"}]}));
    check("/tags/autoComplete/tags?tagPrefix=m", json!(["mount"]));
    check("/tags/autoComplete/tags?expr=name=requests_total", json!(["dc", "name"]));
    check("/tags/autoComplete/values?tag=host&valuePrefix=web&limit=1", json!(["web1"]));
    check("/tags/autoComplete/values?tag=name&expr=dc=a", json!(["disk.used", "requests_total"]));
    check("/tags/findSeries?expr=name=~cpu&expr=host!=web1", json!(["cpu.idle;host=web2"]));
}

#[test]
fn render_has_other_formats_and_accepts_forms() {
    let (daemon, start) = filled_daemon();
    let (from, until) = (start - 1, start + 119);
    let path = format!("/render?target=app.web.hits&from={from}&until={until}&format=");
    let (_, raw) = get(&daemon, &format!("{path}raw"));
    let end = start + 120;
    assert_eq!(raw, json!(format!("app.web.hits,{start},{end},60|0.0,1.0\n")));
    let (_, csv) = get(&daemon, &format!("{path}csv&tz=UTC"));
    let csv = csv.as_str().unwrap();
    assert!(csv.starts_with("app.web.hits,20") && csv.ends_with(":00,1\r\n"), "{csv}");
    let (from, until) = (from.to_string(), until.to_string());
    let form = [("target", "a.b"), ("target", "app.web.hits"), ("from", &from), ("until", &until)];
    let sent = client().post(format!("{}/graphite/render", daemon.url)).send_form(form);
    let text = sent.unwrap().body_mut().read_to_string().unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found[0]["datapoints"], json!([[0.0, start], [1.0, start + 60]]));
}

#[test]
fn images_have_the_requested_size_and_a_color_for_each_line() {
    let (daemon, start) = filled_daemon();
    // The widest range that numbers have.
    let extremes = [(start * 1000, f64::MAX), (start * 1000 + 60_000, f64::MIN)];
    let body = request(&[series(&[("__name__", "app.extremes")], &extremes)]);
    assert_eq!(write(&daemon, V1, &body).status, 204);
    let image = |parameters: &str| {
        let until = start + 600;
        let path = format!("/render?format=png&from={}&until={until}&{parameters}", start - 60);
        let response = client().get(format!("{}{path}", daemon.url)).call().unwrap();
        assert_eq!(response.headers()["content-type"], "image/png");
        let bytes = response.into_body().read_to_vec().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let colors: BTreeSet<[u8; 3]> = pixels.as_chunks().0.iter().copied().collect();
        (info.width, info.height, colors.len())
    };
    // Background, text and grid, and a color for each line.
    assert_eq!(image("target=app.*.hits&width=500&height=300&title=Hits"), (500, 300, 5));
    assert_eq!(image("target=app.web.hits"), (330, 250, 4));
    assert_eq!(image("target=app.web.hits&width=80&height=80&hideLegend=true"), (80, 80, 4));
    assert_eq!(image("target=app.nothing").2, 3);
    assert_eq!(image("target=app.extremes").2, 4);
}

#[test]
fn errors_name_the_location_and_the_remedy() {
    let (daemon, start) = filled_daemon();
    let check = |target: &str, parameters: &str, part: &str| {
        let (status, text) = render(&daemon, start, target, parameters);
        assert!(status == 400 && text.as_str().unwrap().contains(part), "{status} {text}");
    };
    check("holtWinters(a)", "", "the function holtWinters is not supported; the supported");
    check("holtWinters(a)", "", "absolute, aggregate,");
    check("alias(a.b,", "", "expected a path or a function at character 11, found the end");
    check("scale(a.b)", "", "scale: argument 2 (factor) must be a number");
    check("summarize(a.b,'soon')", "", "use a span such as '1h'");
    check("a.b", "&format=svg", "format=svg is not supported: use json, csv, raw or png");
    check("a.b", "&format=png&width=5000", "width=5000: use 80 to 4096 pixels");
    let (status, text) = get(&daemon, "/render?from=soon&target=a");
    assert!(
        status == 400 && text.as_str().unwrap().contains("from=\"soon\" is not a time"),
        "{text}"
    );
    let (status, text) = get(&daemon, "/metrics/find");
    assert!(status == 400 && text.as_str().unwrap().contains("add query="), "{text}");
    let (status, text) = get(&daemon, "/tags/findSeries?expr=host");
    assert!(status == 400 && text.as_str().unwrap().contains("use tag=value"), "{text}");
}

#[test]
fn answers_stay_within_the_limits_of_queries() {
    let daemon = Daemon::start("limits.query_points_max = 1000\n");
    let at = minute();
    // A query may read 25 series.
    let names: Vec<_> = (0..26).map(|number| format!("a.x{number}")).collect();
    let all: Vec<_> =
        names.iter().map(|name| series(&[("__name__", name)], &[(at, 1.0)])).collect();
    assert_eq!(write(&daemon, V1, &request(&all)).status, 204);
    for path in ["/render?target=a.*", "/metrics/find?query=a.*", "/tags/findSeries?expr=name=~a"] {
        let (status, text) = get(&daemon, path);
        let text = text.as_str().unwrap_or_default();
        assert!(status == 422 && text.contains("limits.query_points_max"), "{path}: {text}");
    }
    let long = "/render?target=a.x0&from=-30d";
    let (status, found) = get(&daemon, long);
    assert_eq!(status, 200, "coarser steps fit: {found}");
}
