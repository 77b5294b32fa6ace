//! Imports interrupted by kill -9 of the importer or of the daemon: every sample counts once.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::{
    daemon::{Daemon, granary},
    import::import,
};

const SERIES: u64 = 40;
const SAMPLES: u64 = 12_000;

/// Writes counters that grow by one every two seconds; the samples of each series are consecutive
/// lines.
fn write_file(path: &Path) {
    let from = (crate::remote_write::minute() / 1000) as u64 - SAMPLES * 2;
    let mut file = std::io::BufWriter::new(fs::File::create(path).unwrap());
    for series in 0..SERIES {
        for index in 0..SAMPLES {
            writeln!(file, "steps_total{{s=\"{series}\"}} {index} {}", from + index * 2).unwrap();
        }
    }
}

fn accepted_samples(daemon: &Daemon) -> u64 {
    let text = daemon.metrics();
    let line = "granary_samples_accepted_total{protocol=\"native\"} ";
    text.lines()
        .find_map(|text_line| text_line.strip_prefix(line))
        .map_or(0, |text_line| text_line.parse().unwrap())
}

fn start_import(daemon: &Daemon, path: &Path, out: &Path) -> Child {
    let mut command: Command = granary();
    command.args(["import", "--json", "--url", &daemon.url]).arg(path);
    let log = fs::File::create(out.with_extension("err")).unwrap();
    command.stdout(fs::File::create(out).unwrap()).stderr(log).stdin(Stdio::null()).spawn().unwrap()
}

fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_done() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("timed out waiting for {what}");
}

/// Checks that each sample counts once at each granularity, and that the growth of each counter is
/// right.
fn check_samples(daemon: &Daemon) {
    for series in [0, SERIES / 2, SERIES - 1] {
        let tags = format!("s={series}");
        let sum = |resolution: &str, display: &str| -> f64 {
            let args = ["chart", "--metric", "steps_total", "--tags", &tags, "--range", "12h"];
            let options = ["--resolution", resolution, "--display", display];
            let answer = daemon.query(&[&args[..], &options].concat());
            let points = answer["series"][0]["points"].as_array().unwrap();
            points.iter().filter_map(|point| point[1].as_f64()).sum()
        };
        for resolution in ["1m", "5m", "1h"] {
            assert_eq!(sum(resolution, "count"), SAMPLES as f64, "{tags} {resolution}");
            assert_eq!(sum(resolution, "total"), (SAMPLES - 1) as f64, "{tags} {resolution}");
        }
    }
}

#[test]
fn a_killed_import_continues_where_it_stopped() {
    let daemon = Daemon::start("");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.om");
    write_file(&path);
    for part in [4, 2] {
        let mut importer = start_import(&daemon, &path, &dir.path().join("out"));
        wait_until("samples", || accepted_samples(&daemon) > SERIES * SAMPLES / part);
        importer.kill().unwrap();
        importer.wait().unwrap();
    }
    let before = accepted_samples(&daemon);
    assert!(before < SERIES * SAMPLES, "the import was killed in the middle: {before}");
    let rest = import(&daemon, &[path.to_str().unwrap()]);
    assert_eq!(rest.code, Some(0), "{}", rest.errors);
    let (accepted_now, duplicates, refused) = rest.counts();
    assert_eq!((accepted_now + duplicates, refused), (SERIES * SAMPLES, 0));
    assert_eq!(accepted_samples(&daemon), SERIES * SAMPLES);
    assert!(accepted_now > 0 && duplicates >= before, "{accepted_now} {duplicates} {before}");
    check_samples(&daemon);
}

#[test]
fn an_import_survives_a_restart_of_the_daemon() {
    let mut daemon = Daemon::start("storage.checkpoint_interval = '300ms'");
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("a.om"), dir.path().join("out"));
    write_file(&path);
    let mut importer = start_import(&daemon, &path, &out);
    for _ in 0..2 {
        wait_until("samples", || accepted_samples(&daemon) > SERIES * SAMPLES / 5);
        assert_eq!(importer.try_wait().unwrap(), None, "killed in the middle");
        daemon.kill();
        daemon.restart();
    }
    let status = importer.wait().unwrap();
    let errors = fs::read_to_string(out.with_extension("err")).unwrap();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(errors.contains("retrying"), "{errors}");
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    let count = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(count("accepted") + count("duplicates"), SERIES * SAMPLES);
    check_samples(&daemon);
    let again = import(&daemon, &[path.to_str().unwrap()]);
    assert_eq!(again.counts(), (0, SERIES * SAMPLES, 0));
    daemon.kill();
    daemon.restart();
    check_samples(&daemon);
    assert_eq!(daemon.query(&["series", "--metric", "steps_total"])["total"], SERIES);
}
