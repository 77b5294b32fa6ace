//! The real graphite-web evaluates targets over whisper files, and the daemon evaluates them over
//! the same samples: names and numbers must be equal.

use std::{
    collections::BTreeMap,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, client},
    remote_write::{V1, minute, request, series, write},
};

/// The compared targets. Paths match in the order of their names, as whisper files do.
const TARGETS: &[&str] = &[
    "app.web.hits",
    "app.*.hits",
    "app.{web,db}.hits",
    "app.w?b.hits",
    "app.[d-e]b.hits",
    "sumSeries(app.*.hits)",
    "sum(app.web.hits,app.db.hits)",
    "averageSeries(app.*.hits)",
    "maxSeries(app.*.hits)",
    "minSeries(app.*.hits)",
    "multiplySeries(app.*.hits)",
    "diffSeries(app.web.hits,app.db.hits)",
    "stddevSeries(app.*.hits)",
    "rangeOfSeries(app.*.hits)",
    "countSeries(app.*.hits)",
    "aggregate(app.*.hits,'max')",
    "divideSeries(app.web.hits,app.db.hits)",
    "asPercent(app.*.hits)",
    "asPercent(app.web.hits,app.db.hits)",
    "asPercent(app.web.hits,50)",
    "groupByNode(app.*.hits,1,'sum')",
    "groupByNodes(app.*.*,'max',0,2)",
    "sumSeriesWithWildcards(app.*.hits,1)",
    "averageSeriesWithWildcards(app.*.hits,1)",
    "alias(app.web.hits,'x, y')",
    "aliasByNode(app.*.hits,1)",
    "aliasByNode(scale(app.*.hits,2),-1,1)",
    "aliasByMetric(app.*.hits)",
    "aliasSub(app.*.hits,'^app\\.(.*)$','\\1!')",
    "substr(app.web.hits,1,2)",
    "substr(app.web.hits,-1)",
    "scale(app.web.hits,2.5)",
    "scaleToSeconds(app.web.hits,30)",
    "offset(app.web.hits,-10)",
    "offsetToZero(app.db.hits)",
    "absolute(offset(app.web.hits,-10))",
    "invert(app.db.hits)",
    "log(app.db.hits,2)",
    "pow(app.web.hits,2)",
    "squareRoot(app.web.hits)",
    "derivative(app.web.hits)",
    "nonNegativeDerivative(app.web.total)",
    "perSecond(app.web.total)",
    "integral(app.web.hits)",
    "keepLastValue(app.web.hits)",
    "keepLastValue(app.web.hits,1)",
    "interpolate(app.web.hits)",
    "transformNull(app.web.hits,-1)",
    "isNonNull(app.web.hits)",
    "changed(app.web.hits)",
    "delay(app.web.hits,2)",
    "minMax(app.db.hits)",
    "removeAboveValue(app.web.hits,7)",
    "removeBelowValue(app.web.hits,7)",
    "removeAbovePercentile(app.web.hits,50)",
    "removeBelowPercentile(app.web.hits,50)",
    "nPercentile(app.web.hits,75)",
    "movingAverage(app.web.hits,3)",
    "movingAverage(app.web.hits,'3min')",
    "movingMedian(app.web.hits,3)",
    "movingSum(app.web.hits,3)",
    "movingMin(app.web.hits,3)",
    "movingMax(app.web.hits,3)",
    "movingWindow(app.web.hits,3,'max')",
    "summarize(app.web.hits,'5min')",
    "summarize(app.web.hits,'5min','avg')",
    "summarize(app.db.hits,'4min','last')",
    "hitcount(app.db.hits,'5min')",
    "limit(app.*.*,2)",
    "exclude(app.*.*,'hits')",
    "grep(app.*.*,'hits')",
    "highest(app.*.hits,1,'max')",
    "highestAverage(app.*.hits,1)",
    "highestCurrent(app.*.hits,1)",
    "highestMax(app.*.hits,2)",
    "lowestAverage(app.*.hits,1)",
    "lowestCurrent(app.*.hits,1)",
    "mostDeviant(app.*.hits,1)",
    "averageAbove(app.*.hits,12)",
    "maximumBelow(app.*.hits,30)",
    "minimumAbove(app.*.hits,5)",
    "currentAbove(app.*.hits,15)",
    "sortByName(app.*.*)",
    "sortByTotal(app.*.hits)",
    "sortByMaxima(app.*.hits)",
    "timeShift(app.web.hits,'2min')",
    "filterSeries(app.*.hits,'max','>',30)",
    "app.web.hits|scale(2)|aliasByNode(1)",
];

/// Returns the samples of each path, with times in seconds.
fn samples(start: i64) -> BTreeMap<String, Vec<(i64, f64)>> {
    let numbers = |value: &dyn Fn(i64) -> Option<f64>| -> Vec<(i64, f64)> {
        (1..16).filter_map(|i| Some((start + 60 * i, value(i)?))).collect()
    };
    let web = |i: i64| (i != 6 && i != 7 && i != 11).then_some((i * i % 17) as f64);
    let db = |i: i64| Some(20.0 + (i * 7 % 13) as f64);
    let total = |i: i64| Some(if i < 9 { 60.0 * i as f64 } else { 30.0 * (i - 8) as f64 });
    BTreeMap::from([
        ("app.web.hits".to_owned(), numbers(&web)),
        ("app.db.hits".to_owned(), numbers(&db)),
        ("app.web.total".to_owned(), numbers(&total)),
    ])
}

/// Returns graphite-web's names and numbers of the lines of each target.
fn peer_answers(folder: &Path, request_of_peer: &Value) -> Vec<Value> {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/clients/graphite_targets.py");
    // Debian installs graphite-web for this interpreter.
    let mut child = Command::new("/usr/bin/python3")
        .arg(script)
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(request_of_peer.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "graphite-web is not installed; .ci/run installs it");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the numbers of a line by their times, without empty points.
fn points_with_numbers(numbers: impl Iterator<Item = (i64, Option<f64>)>) -> BTreeMap<i64, f64> {
    numbers.filter_map(|(at, number)| Some((at, number?))).collect()
}

fn our_answer(
    daemon: &Daemon,
    target: &str,
    from: i64,
    until: i64,
) -> Vec<(String, BTreeMap<i64, f64>)> {
    let (from, until) = (from.to_string(), until.to_string());
    let form = [("target", target), ("from", &from), ("until", &until)];
    let sent = client().post(format!("{}/render", daemon.url)).send_form(form);
    let text = sent.unwrap().body_mut().read_to_string().unwrap();
    let lines: Vec<Value> =
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{target}: {text}"));
    let line = |line: &Value| {
        let points = line["datapoints"].as_array().unwrap().iter();
        let points = points.map(|point| (point[1].as_i64().unwrap(), point[0].as_f64()));
        (line["target"].as_str().unwrap().to_owned(), points_with_numbers(points))
    };
    lines.iter().map(line).collect()
}

#[test]
#[ignore = "needs graphite-web; .ci/run installs it and runs this"]
fn graphite_web_evaluates_targets_to_the_same_lines() {
    let daemon = Daemon::start("");
    // The range begins at a multiple of five minutes, so that summaries of both programs begin
    // there.
    let from = (minute() / 1000).div_euclid(1200) * 1200;
    let until = from + 1200;
    let samples = samples(from);
    let all: Vec<_> = samples
        .iter()
        .map(|(path, points)| {
            let points: Vec<_> = points.iter().map(|(at, value)| (at * 1000, *value)).collect();
            // Graphite has no kinds: a counter also shows its readings.
            series(&[("__name__", path)], &points)
        })
        .collect();
    assert_eq!(write(&daemon, V1, &request(&all)).status, 204);
    let folder = tempfile::tempdir().unwrap();
    let request_of_peer =
        json!({ "series": samples, "from": from, "until": until, "targets": TARGETS });
    let theirs = peer_answers(folder.path(), &request_of_peer);
    let mut differences = Vec::new();
    for (target, theirs) in TARGETS.iter().zip(theirs) {
        let line = |line: &Value| {
            let numbers = line[1].as_object().unwrap().iter();
            let numbers = numbers.map(|(at, number)| (at.parse().unwrap(), number.as_f64()));
            (line[0].as_str().unwrap().to_owned(), points_with_numbers(numbers))
        };
        let Some(theirs) = theirs.as_array() else {
            differences.push(format!("{target}: graphite-web fails: {theirs}"));
            continue;
        };
        let theirs: Vec<_> = theirs.iter().map(line).collect();
        let ours = our_answer(&daemon, target, from, until);
        let is_close = |(at, value): (&i64, &f64), (their_at, their_value): (&i64, &f64)| {
            at == their_at && (value - their_value).abs() <= 1e-6 * their_value.abs().max(1.0)
        };
        let is_same = ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|((name, numbers), (their_name, their_value))| {
                name == their_name
                    && numbers.len() == their_value.len()
                    && numbers
                        .iter()
                        .zip(their_value)
                        .all(|(ours_at, theirs_at)| is_close(ours_at, theirs_at))
            });
        if !is_same {
            differences.push(format!("{target}:\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
