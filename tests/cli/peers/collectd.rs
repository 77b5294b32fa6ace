//! The real collectd with `write_http` and `write_graphite`. It measures the host and receives
//! values over its socket; the daemon must have the values that its plugin `csv` wrote.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::Path,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{Sender, free_port, need, wait_until};
use crate::daemon::{Daemon, SECONDS, granularities};

/// The number of polls for samples that were just sent.
const TRIES: usize = 200;
/// Rounds of values, a second apart.
const ROUNDS: i64 = 5;

#[expect(clippy::disallowed_methods, reason = "samples must be near the daemon's clock")]
fn now_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// Creates a folder whose name does not begin with a dot: the plugin `csv` writes to no others.
fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("collectd-").tempdir().unwrap()
}

/// Starts collectd with one writing thread: when two threads create a file of `csv`, one may
/// overwrite the first row of the other.
fn start(dir: &Path, interval: &str, output: &str) -> Sender {
    let path = dir.display();
    let text = format!(
        "Hostname \"web1.shop\"\nBaseDir \"{path}\"\nPIDFile \"{path}/pid\"\n\
         Interval {interval}\nWriteThreads 1\n\
         LoadPlugin load\nLoadPlugin cpu\nLoadPlugin memory\nLoadPlugin df\n\
         LoadPlugin unixsock\n<Plugin unixsock>\n  SocketFile \"{path}/socket\"\n</Plugin>\n\
         LoadPlugin csv\n<Plugin csv>\n  DataDir \"{path}/csv\"\n  StoreRates false\n</Plugin>\n\
         {output}"
    );
    let config = dir.join("collectd.conf");
    fs::write(&config, text).unwrap();
    let mut command = Command::new("collectd");
    Sender::start(command.arg("-f").arg("-C").arg(&config), &dir.join("log"))
}

/// Sends collectd values of every type, at known times in the past.
fn send_values(dir: &Path) {
    let mut stream = None;
    let log = dir.join("log");
    wait_until("collectd's socket", || {
        stream = UnixStream::connect(dir.join("socket")).ok();
        stream.is_some()
    });
    let mut stream = stream.unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    let begin = now_seconds() - 60;
    for round in 0..ROUNDS {
        let at = begin + round;
        for (series, values) in [
            ("gauge-level", format!("{}.5", 20 - round)),
            ("derive-turns", format!("{}", 1000 + 7 * round)),
            ("counter-strokes", format!("{}", 5_000_000_000 + 11 * round)),
            ("absolute-alarms", format!("{}", 3 + round)),
            ("disk_octets-x", format!("{}:{}", 100 * round, 200 * round)),
        ] {
            writeln!(stream, "PUTVAL \"web1.shop/pump-a b/{series}\" interval=1 {at}:{values}")
                .unwrap();
            let answer = answers.next().unwrap().unwrap();
            assert!(answer.starts_with("0 "), "{answer} {:?}", fs::read_to_string(&log));
        }
    }
}

/// The values of a data source in the files of `csv`.
struct CsvSeries {
    plugin: String,
    instance: String,
    of_type: String,
    type_instance: String,
    /// The data source; empty when the type has only one.
    source: String,
    /// Milliseconds and values.
    samples: Vec<(i64, f64)>,
}

fn split(name: &str) -> (String, String) {
    let (name, instance) = name.split_once('-').unwrap_or((name, ""));
    (name.to_owned(), instance.to_owned())
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn read_csv_files(dir: &Path) -> Vec<CsvSeries> {
    let root = dir.join("csv/web1.shop");
    let mut all: BTreeMap<_, Vec<(i64, f64)>> = BTreeMap::new();
    for folder in names(&root) {
        let (plugin, instance) = split(&folder);
        for file in names(&root.join(&folder)) {
            // The name ends with the day.
            let (of_type, type_instance) = split(file.rsplitn(4, '-').nth(3).unwrap());
            let text = fs::read_to_string(root.join(&folder).join(&file)).unwrap();
            let mut lines = text.lines();
            let sources: Vec<_> = lines.next().unwrap().split(',').skip(1).collect();
            for line in lines {
                let mut words = line.split(',').map(|word| word.parse::<f64>().unwrap());
                let millis = (words.next().unwrap() * 1000.0).round() as i64;
                for (source, value) in sources.iter().zip(words) {
                    let source = if sources.len() > 1 { *source } else { "" }.to_owned();
                    let ids = (plugin.clone(), instance.clone(), of_type.clone());
                    let key = (ids, type_instance.clone(), source);
                    all.entry(key).or_default().push((millis, value));
                }
            }
        }
    }
    let written = |(((plugin, instance, of_type), type_instance, source), samples)| CsvSeries {
        plugin,
        instance,
        of_type,
        type_instance,
        source,
        samples,
    };
    all.into_iter().map(written).collect()
}

/// The values of the only series with these tags, by slot.
fn read(daemon: &Daemon, metric: &str, tags: &str, display: &str) -> BTreeMap<i64, f64> {
    let words = ["chart", "--resolution", "1s", "--range", "30m", "--display", display];
    let answer = daemon.query(&[&words[..], &["--metric", metric, "--tags", tags]].concat());
    let series = answer["series"].as_array().unwrap();
    assert_eq!(series.len(), 1, "{metric} {tags}: {answer}");
    let points = series[0]["points"].as_array().unwrap().iter();
    points.filter_map(|point| Some((point[0].as_i64()?, point[1].as_f64()?))).collect()
}

/// Returns whether values are equal; `csv` writes gauges with six decimals.
fn is_close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-6_f64.max(left.abs() * 1e-12)
}

/// Compares each slot: the number of samples, and the first and last value.
fn check_samples(daemon: &Daemon, metric: &str, tags: &str, samples: &[(i64, f64)]) {
    let mut slots: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (at, value) in samples {
        slots.entry(at - at.rem_euclid(1000)).or_default().push(*value);
    }
    for display in ["count", "first", "last"] {
        let found = read(daemon, metric, tags, display);
        assert!(found.keys().eq(slots.keys()), "{metric} {tags}: {found:?} {slots:?}");
        for (slot, values) in &slots {
            let expected = match display {
                "count" => values.len() as f64,
                "first" => values[0],
                _ => values[values.len() - 1],
            };
            let found = found[slot];
            assert!(is_close(found, expected), "{metric} {tags} {display}: {found} {expected}");
        }
    }
}

#[test]
#[ignore = "needs collectd; .ci/run installs it and runs this"]
fn collectd_delivers_its_measurements_as_json() {
    need("collectd");
    let daemon = Daemon::start(&granularities(&SECONDS));
    let dir = folder();
    let output = format!(
        "LoadPlugin write_http\n<Plugin write_http>\n  <Node \"granary\">\n    \
         URL \"{}/api/v1/collectd\"\n    Format \"JSON\"\n    LogHttpError true\n  \
         </Node>\n</Plugin>\n",
        daemon.url
    );
    let collectd = start(dir.path(), "0.5", &output);
    send_values(dir.path());
    let measured = dir.path().join("csv/web1.shop/memory");
    wait_until("some rounds", || {
        let text = |file: String| fs::read_to_string(measured.join(file)).unwrap();
        measured.exists() && names(&measured).into_iter().any(|f| text(f).lines().count() > 4)
    });
    // During an orderly stop, collectd delivers its pending values.
    drop(collectd);
    let written = read_csv_files(dir.path());
    assert!(written.len() > 15, "{}", fs::read_to_string(dir.path().join("log")).unwrap());
    for series in &written {
        let CsvSeries { plugin, instance, of_type, type_instance, source, samples } = series;
        let names = [plugin, of_type, source].map(String::as_str);
        let mut names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
        names.dedup();
        let mut tags = vec!["host=web1.shop".to_owned()];
        for (name, value) in [("instance", instance), ("type_instance", type_instance)] {
            if !value.is_empty() {
                tags.push(format!("{name}={value}"));
            }
        }
        check_samples(&daemon, &names.join("_"), &tags.join(","), samples);
    }
    let total =
        |metric: &str| -> f64 { read(&daemon, metric, "instance=a b", "total").values().sum() };
    let rounds = ROUNDS as f64;
    assert_eq!(total("pump_derive"), 7.0 * (rounds - 1.0));
    assert_eq!(total("pump_counter"), 11.0 * (rounds - 1.0));
    assert_eq!(total("pump_disk_octets_write"), 200.0 * (rounds - 1.0));
    assert_eq!(total("pump_absolute"), (3..3 + ROUNDS).sum::<i64>() as f64);
    let level = read(&daemon, "pump_gauge", "type_instance=level", "last");
    assert_eq!(level.values().copied().collect::<Vec<_>>(), [20.5, 19.5, 18.5, 17.5, 16.5]);
    let kind =
        |metric: &str| daemon.query(&["series", "--metric", metric])["series"][0]["kind"].clone();
    let kinds = ["pump_gauge", "pump_derive", "pump_counter", "pump_absolute", "cpu"].map(kind);
    assert_eq!(kinds, ["gauge", "counter", "counter", "delta", "counter"]);
    let refused = "granary_samples_refused_total{protocol=\"collectd\",reason=\"bad_sample\"} 0";
    assert!(daemon.metrics().contains(refused));
}

#[test]
#[ignore = "needs collectd; .ci/run installs it and runs this"]
fn collectd_delivers_its_measurements_over_graphite() {
    need("collectd");
    let port = free_port();
    let templates = "graphite.templates = ['collectd.* _.host.plugin.metric*']";
    let settings =
        format!("graphite.listen = '127.0.0.1:{port}'\n{templates}\n{}", granularities(&SECONDS));
    let daemon = Daemon::start(&settings);
    let dir = folder();
    let output = format!(
        "LoadPlugin write_graphite\n<Plugin write_graphite>\n  <Node \"granary\">\n    \
         Host \"127.0.0.1\"\n    Port \"{port}\"\n    Prefix \"collectd.\"\n    \
         StoreRates false\n  </Node>\n</Plugin>\n"
    );
    // Graphite's times are whole seconds.
    let collectd = start(dir.path(), "2", &output);
    send_values(dir.path());
    let measured = dir.path().join("csv/web1.shop/memory");
    wait_until("some rounds", || {
        let text = |file: String| fs::read_to_string(measured.join(file)).unwrap();
        measured.exists() && names(&measured).into_iter().any(|f| text(f).lines().count() > 2)
    });
    drop(collectd);
    let written = read_csv_files(dir.path());
    assert!(written.len() > 15, "{}", fs::read_to_string(dir.path().join("log")).unwrap());
    let joined = |name: &str, instance: &str| {
        let joined =
            if instance.is_empty() { name.to_owned() } else { format!("{name}-{instance}") };
        joined.replace([' ', '.'], "_")
    };
    for series in &written {
        let mut metric = joined(&series.of_type, &series.type_instance);
        if !series.source.is_empty() {
            metric = format!("{metric}.{}", series.source);
        }
        let tags = format!("host=web1_shop,plugin={}", joined(&series.plugin, &series.instance));
        wait_until("the series", || {
            daemon.query(&["series", "--metric", &metric, "--tags", &tags])["total"] == 1
        });
        let found = whole_seconds(&daemon, &metric, &tags, &series.samples);
        // The rows are in the order of measurement.
        let mut values = series.samples.iter().map(|(_, value)| *value);
        let kept = found.iter().all(|found| values.any(|value| is_close(value, *found)));
        assert!(kept, "{metric} {tags}: {found:?} {:?}", series.samples);
        if series.plugin == "pump" {
            check_samples(&daemon, &metric, &tags, &series.samples);
        }
    }
}

/// The daemon's samples of a series, with times in whole seconds. Of two samples within a second,
/// as on a busy host, the second may be missing.
fn whole_seconds(daemon: &Daemon, metric: &str, tags: &str, samples: &[(i64, f64)]) -> Vec<f64> {
    let apart = |pair: &&[(i64, f64)]| pair[1].0 - pair[0].0 > 1001;
    let expected = 1 + samples.windows(2).filter(apart).count();
    let mut found = Vec::new();
    for _ in 0..TRIES {
        found = read(daemon, metric, tags, "last").into_values().collect();
        if found.len() >= expected {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{metric} {tags}: {found:?} of {samples:?}: {}", daemon.log());
}
