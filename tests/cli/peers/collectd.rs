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

use super::{Sender, need, wait_until};
use crate::{
    daemon::{Daemon, SECONDS, granularities},
    ports::free_port,
};

/// The maximum number of polls for samples that were just sent.
const POLLS_MAX: usize = 200;
/// The number of rounds of values, which are a second apart.
const ROUNDS: i64 = 5;

#[expect(clippy::disallowed_methods, reason = "samples must be near the daemon's clock")]
fn now_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// Creates a folder whose name does not begin with a dot: the plugin `csv` writes to no others.
fn create_folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("collectd-").tempdir().unwrap()
}

/// Starts collectd with one writing thread: when two threads create a file of `csv`, one may
/// overwrite the first row of the other.
fn start_collectd(dir: &Path, interval: &str, output: &str) -> Sender {
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

/// The samples of a data source in the files of `csv`.
struct CsvSeries {
    plugin: String,
    instance: String,
    type_name: String,
    type_instance: String,
    /// The name of the data source, empty if the type has only one.
    source: String,
    /// The times in milliseconds and the values.
    samples: Vec<(i64, f64)>,
}

fn split_name(name: &str) -> (String, String) {
    let (name, instance) = name.split_once('-').unwrap_or((name, ""));
    (name.to_owned(), instance.to_owned())
}

fn file_names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn read_csv_files(dir: &Path) -> Vec<CsvSeries> {
    let root = dir.join("csv/web1.shop");
    let mut all: BTreeMap<_, Vec<(i64, f64)>> = BTreeMap::new();
    for folder in file_names(&root) {
        let (plugin, instance) = split_name(&folder);
        for file in file_names(&root.join(&folder)) {
            // The file's name ends with the day.
            let (type_name, type_instance) = split_name(file.rsplitn(4, '-').nth(3).unwrap());
            let text = fs::read_to_string(root.join(&folder).join(&file)).unwrap();
            let mut lines = text.lines();
            let sources: Vec<_> = lines.next().unwrap().split(',').skip(1).collect();
            for line in lines {
                let mut args = line.split(',').map(|word| word.parse::<f64>().unwrap());
                let millis = (args.next().unwrap() * 1000.0).round() as i64;
                for (source, value) in sources.iter().zip(args) {
                    let source = if sources.len() > 1 { *source } else { "" }.to_owned();
                    let ids = (plugin.clone(), instance.clone(), type_name.clone());
                    let key = (ids, type_instance.clone(), source);
                    all.entry(key).or_default().push((millis, value));
                }
            }
        }
    }
    let csv_series = |(((plugin, instance, type_name), type_instance, source), samples)| {
        CsvSeries { plugin, instance, type_name, type_instance, source, samples }
    };
    all.into_iter().map(csv_series).collect()
}

/// Returns the values of the only series with these tags, by slot.
fn read_values(daemon: &Daemon, metric: &str, tags: &str, display: &str) -> BTreeMap<i64, f64> {
    let args = ["chart", "--resolution", "1s", "--range", "30m", "--display", display];
    let answer = daemon.query(&[&args[..], &["--metric", metric, "--tags", tags]].concat());
    let series = answer["series"].as_array().unwrap();
    assert_eq!(series.len(), 1, "{metric} {tags}: {answer}");
    let points = series[0]["points"].as_array().unwrap().iter();
    points.filter_map(|point| Some((point[0].as_i64()?, point[1].as_f64()?))).collect()
}

/// Returns true if the values are equal up to rounding: `csv` writes gauges with six decimals.
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
        let found = read_values(daemon, metric, tags, display);
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
    let dir = create_folder();
    let output = format!(
        "LoadPlugin write_http\n<Plugin write_http>\n  <Node \"granary\">\n    \
         URL \"{}/api/v1/collectd\"\n    Format \"JSON\"\n    LogHttpError true\n  \
         </Node>\n</Plugin>\n",
        daemon.url
    );
    let collectd = start_collectd(dir.path(), "0.5", &output);
    send_values(dir.path());
    let memory_folder = dir.path().join("csv/web1.shop/memory");
    wait_until("some rounds", || {
        let text = |file: String| fs::read_to_string(memory_folder.join(file)).unwrap();
        memory_folder.exists()
            && file_names(&memory_folder).into_iter().any(|f| text(f).lines().count() > 4)
    });
    // During a clean stop, collectd delivers its pending values.
    drop(collectd);
    let csv_series = read_csv_files(dir.path());
    assert!(csv_series.len() > 15, "{}", fs::read_to_string(dir.path().join("log")).unwrap());
    for series in &csv_series {
        let CsvSeries { plugin, instance, type_name, type_instance, source, samples } = series;
        let names = [plugin, type_name, source].map(String::as_str);
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
    let total = |metric: &str| -> f64 {
        read_values(&daemon, metric, "instance=a b", "total").values().sum()
    };
    let rounds = ROUNDS as f64;
    assert_eq!(total("pump_derive"), 7.0 * (rounds - 1.0));
    assert_eq!(total("pump_counter"), 11.0 * (rounds - 1.0));
    assert_eq!(total("pump_disk_octets_write"), 200.0 * (rounds - 1.0));
    assert_eq!(total("pump_absolute"), (3..3 + ROUNDS).sum::<i64>() as f64);
    let level = read_values(&daemon, "pump_gauge", "type_instance=level", "last");
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
    let dir = create_folder();
    let output = format!(
        "LoadPlugin write_graphite\n<Plugin write_graphite>\n  <Node \"granary\">\n    \
         Host \"127.0.0.1\"\n    Port \"{port}\"\n    Prefix \"collectd.\"\n    \
         StoreRates false\n  </Node>\n</Plugin>\n"
    );
    // Graphite's times are whole seconds.
    let collectd = start_collectd(dir.path(), "2", &output);
    send_values(dir.path());
    let memory_folder = dir.path().join("csv/web1.shop/memory");
    wait_until("some rounds", || {
        let text = |file: String| fs::read_to_string(memory_folder.join(file)).unwrap();
        memory_folder.exists()
            && file_names(&memory_folder).into_iter().any(|f| text(f).lines().count() > 2)
    });
    drop(collectd);
    let csv_series = read_csv_files(dir.path());
    assert!(csv_series.len() > 15, "{}", fs::read_to_string(dir.path().join("log")).unwrap());
    let joined_path = |name: &str, instance: &str| {
        let joined_path =
            if instance.is_empty() { name.to_owned() } else { format!("{name}-{instance}") };
        joined_path.replace([' ', '.'], "_")
    };
    for series in &csv_series {
        let mut metric = joined_path(&series.type_name, &series.type_instance);
        if !series.source.is_empty() {
            metric = format!("{metric}.{}", series.source);
        }
        let tags =
            format!("host=web1_shop,plugin={}", joined_path(&series.plugin, &series.instance));
        wait_until("the series", || {
            daemon.query(&["series", "--metric", &metric, "--tags", &tags])["total"] == 1
        });
        let found = whole_seconds(&daemon, &metric, &tags, &series.samples);
        // The rows are in the order of measurement.
        let mut values = series.samples.iter().map(|(_, value)| *value);
        let is_in_order = found.iter().all(|found| values.any(|value| is_close(value, *found)));
        assert!(is_in_order, "{metric} {tags}: {found:?} {:?}", series.samples);
        if series.plugin == "pump" {
            check_samples(&daemon, &metric, &tags, &series.samples);
        }
    }
}

/// Returns the daemon's samples of a series, whose times are whole seconds. When two samples are
/// within a second, as on a busy host, the second may be missing.
fn whole_seconds(daemon: &Daemon, metric: &str, tags: &str, samples: &[(i64, f64)]) -> Vec<f64> {
    let is_apart = |pair: &&[(i64, f64)]| pair[1].0 - pair[0].0 > 1001;
    let expected = 1 + samples.windows(2).filter(is_apart).count();
    let mut found = Vec::new();
    for _ in 0..POLLS_MAX {
        found = read_values(daemon, metric, tags, "last").into_values().collect();
        if found.len() >= expected {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{metric} {tags}: {found:?} of {samples:?}: {}", daemon.log());
}
