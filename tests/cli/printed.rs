//! Every printed command of README, manual and `--help` is run against a real daemon with data from
//! the real host agents and the printed batches. Printed settings are checked, and the files of
//! deploy/ are read by the programs that use them.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output, Stdio},
    str::Lines,
};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, agent_program, granary},
    manual::{Example, pages, root},
    peers::need,
};

/// The programs whose commands `--help` prints.
const PROGRAMS: [&str; 2] = ["granary ", "curl "];

/// Commands that run until they are stopped: the test ends them after the first line of output.
const ENDLESS: [&str; 2] = ["granary tail", "curl -N"];

/// The beginnings of commands that are only parsed, with the reason.
const NOT_RUN: [(&str, &str); 43] = [
    ("(cd src/web", "builds for minutes, and writes to the home directory"),
    (".ci/run", "runs this test"),
    ("./deploy/quickstart.sh", "builds for minutes and runs until Ctrl-C; it is parsed below"),
    ("GRANARY_KILL_ROUNDS", "runs these tests, for longer"),
    ("GRANARY_PROMQLTEST", "needs a clone of Prometheus"),
    ("GRANARY_REPLICA_SECONDS", "runs these tests, for longer"),
    ("GRANARY_SIM", "runs for an hour"),
    ("RUSTC_BOOTSTRAP", "needs cargo-fuzz, and runs for ten minutes"),
    ("benches/", "needs a release build and peers, and measures for minutes"),
    ("cargo bench", "measures for minutes"),
    ("cargo build", "builds for minutes"),
    ("cargo test", "runs this test"),
    ("cargo run --release -p granary-agent --", "see agents/agent/tests/program.rs"),
    ("cargo run --release -p granary-agent-statsd", "see agents/statsd/tests/program.rs"),
    ("deploy/packages_test.sh", "needs root and debootstrap; .ci/run runs it"),
    ("docker", "needs a daemon of docker; the Containerfile is read below"),
    ("granary-agent enroll", "needs a code, see access/enroll.rs"),
    ("granary-agent mongodb", "needs a MongoDB server, see peers/mongodb.rs"),
    ("granary alerts ack", "nothing fires here, see silences.rs"),
    ("granary alerts test-receiver", "no receivers are set up here, see receivers.rs"),
    ("granary alerts unack", "nothing fires here, see silences.rs"),
    ("granary-bench", "a fleet of 1,000 hosts takes minutes; see first_hour.rs for a small one"),
    ("granary cluster", "needs a node of a cluster, see seeding.rs"),
    ("granary config diff --config /etc", "an installed file, see reload.rs"),
    ("granary diagnose --data-dir /var", "an installed daemon's data, see diagnose.rs"),
    ("granary import --format mongodump", "a dump of MongoDB, see import.rs"),
    ("granary import --format remote-write", "bodies of requests, see import.rs"),
    ("granary import --template", "whisper files, see import.rs"),
    ("granary import --url http://new", "another daemon, see exported_histograms.rs"),
    ("granary key", "keys are made once, see access/mod.rs"),
    ("granary migrate", "needs the directory of a stopped node, see migrate.rs"),
    ("granary query promql 'ALERTS", "nothing fires here, see alerts.rs"),
    (
        "granary rules check /etc",
        "rules that are installed; those of deploy/ are tested in alerts.rs",
    ),
    ("granary rules replay /etc", "rules that are installed, see replay.rs"),
    ("granary silence expire", "ids are made up, see silences.rs"),
    ("granary user", "users are made once, see access/people.rs"),
    ("influx_inspect", "needs InfluxDB's files; what it writes is imported in the next line"),
    ("mongodump", "needs a MongoDB server; what it writes is imported in the next line"),
    ("printf", "needs nc and a port of Graphite, see protocols.rs"),
    ("promtool query", "needs promtool, see prometheus_clients.rs"),
    ("promtool tsdb", "needs Prometheus' files; what it writes is imported in the next line"),
    ("export PATH", "changes only the current shell"),
    ("sudo", "needs root and systemd; the units are checked below"),
];

/// Returns a command with its continuation lines, up to the end of its quotes.
fn whole_command(first: &str, lines: &mut Lines<'_>) -> String {
    let mut command = first.to_owned();
    while command.matches('\'').count() % 2 == 1 || command.ends_with('\\') {
        command.push('\n');
        command.push_str(lines.next().expect("the quotes are closed"));
    }
    command
}

/// Returns the commands of an example.
fn commands_of_example(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        // A comment after a command begins with two blanks.
        let start = line.split("  #").next().unwrap_or_default().trim();
        if !start.is_empty() && !start.starts_with('#') {
            commands.push(whole_command(start, &mut lines));
        }
    }
    commands
}

/// Returns the commands in the indented lines of `--help`.
fn commands_of_help(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        if start.len() < line.len() && PROGRAMS.iter().any(|program| start.starts_with(program)) {
            commands.push(whole_command(start, &mut lines));
        }
    }
    commands
}

fn help_text(args: &[String]) -> String {
    let output = granary().args(args).arg("--help").output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Collects the printed commands in `--help` of a command and of all its subcommands.
fn collect_help_commands(args: &[String], commands: &mut Vec<String>) {
    let text = help_text(args);
    let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    // A name is indented by two blanks; a deeper line continues the previous line.
    let names = listed.filter(|line| !line.starts_with("   "));
    let names: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    for name in names.into_iter().filter(|name| *name != "help") {
        collect_help_commands(&[args, &[name.to_owned()]].concat(), commands);
    }
    commands.extend(commands_of_help(&text));
}

/// Returns the examples of all pages in a language.
fn examples_in(language: &str) -> Vec<Example> {
    let all = pages().into_iter().flat_map(|page| page.examples());
    all.filter(|example| example.language == language).collect()
}

/// Returns every printed command with its location, in reading order.
fn printed_commands() -> Vec<(String, String)> {
    let mut commands = Vec::new();
    for example in examples_in("sh") {
        let example_commands = commands_of_example(&example.text);
        commands.extend(
            example_commands.into_iter().map(|command| (command, example.location.clone())),
        );
    }
    assert!(commands.len() >= 60, "{commands:?}");
    let mut help = Vec::new();
    collect_help_commands(&[], &mut help);
    assert!(help.len() >= 18, "{help:?}");
    commands.extend(help.into_iter().map(|command| (command, "--help".to_owned())));
    let mut printed_before = BTreeSet::new();
    commands.retain(|(command, _)| printed_before.insert(command.clone()));
    commands
}

/// Runs a command in a folder, as the shell of a user would.
fn run_command(daemon: &Daemon, folder: &Path, command: &str) -> Output {
    let address = daemon.url.trim_start_matches("http://");
    let typed_command =
        command.replace("localhost:7117", address).replace("http://127.0.0.1:7117", &daemon.url);
    let programs = Path::new(env!("CARGO_BIN_EXE_granary")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.current_dir(folder).env("PATH", path).env("GRANARY_URL", &daemon.url);
    shell.env("XDG_STATE_HOME", folder);
    if !ENDLESS.iter().any(|endless| typed_command.starts_with(endless)) {
        return shell.args(["-c", &typed_command]).output().unwrap();
    }
    // The command is ended after the first line of its output.
    shell
        .args(["-c", &format!("exec {typed_command}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut line = Vec::new();
    BufReader::new(child.stdout.take().unwrap()).read_until(b'\n', &mut line).unwrap();
    child.kill().unwrap();
    let ended = child.wait_with_output().unwrap();
    Output { status: ExitStatus::default(), stdout: line, stderr: ended.stderr }
}

/// Returns the path of the host agent.
pub(crate) fn host_agent() -> PathBuf {
    agent_program("granary-agent-host")
}

/// Runs the host agent for three rounds, as this host and as web1 of the examples.
fn sample_hosts(daemon: &Daemon, folder: &Path) {
    let agent = host_agent();
    for name in ["", "web1"] {
        let output = Command::new(&agent)
            .args(["--url", &daemon.url, "--interval", "100ms", "--rounds", "3"])
            .args(["--agent-id", name])
            .arg("--spool-dir")
            .arg(folder.join(format!("spool-{name}")))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Returns hourly samples of six days, long enough for forecasts: a file system that fills up, and
/// the memory of its host.
fn history() -> Vec<Value> {
    let now = jiff::Timestamp::now().as_millisecond();
    let sample = |metric: &str, tags: Value, age: i64, value: f64| {
        json!({"metric": metric, "tags": tags, "unit": "bytes",
               "time": now - age * 3_600_000, "value": value})
    };
    let samples = (1..=144_i64).rev().flat_map(|age| {
        let free = (100.0 + age as f64) * 1e9;
        [
            sample(
                "disk_partition_space_free",
                json!({"host": "files1", "mount": "/var"}),
                age,
                free,
            ),
            sample("system_memory_used", json!({"host": "files1"}), age, 4e9),
        ]
    });
    samples.collect()
}

/// Creates the folder in which the commands run: parts of the repository, and files to import.
fn create_work_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config", "deploy"] {
        symlink(root().join(name), folder.path().join(name)).unwrap();
    }
    let now = jiff::Timestamp::now().as_second();
    let rule =
        "[[retention.rule]]\nname = 'debug'\nselector = '{env=\"debug\"}'\nkeep = { 5m = '2d' }\n";
    for (name, text) in [
        ("granary.toml", rule.to_owned()),
        ("samples.csv", "time,metric,value\n2026-11-01,a,1\n".to_owned()),
        ("rooms.csv", "when,room,celsius\n2026-11-01,lab,20.5\n".to_owned()),
        ("dump.om", format!("# TYPE up gauge\nup{{job=\"a\"}} 1 {now}\n# EOF\n")),
        ("dump.lp", format!("weather,room=hall temperature=19.5 {now}000000000\n")),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Returns the output of a command if it contains an error or no result.
fn find_fault(command: &str, output: &Output) -> Option<String> {
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // curl succeeds even when the daemon refuses the body; the answer shows the error.
    let args = ["\"status\":\"error\"", "\"refused\":{\"", "rejectedDataPoints", "HTTP/1.1 4"];
    let refused = text.starts_with("{\"error") || args.iter().any(|word| text.contains(word));
    // Logs, results for files and curl's progress are on standard error.
    let is_quiet = command.starts_with("curl") || errors.trim().is_empty();
    let is_empty = text.trim().is_empty() && is_quiet && !command.contains("--output");
    let empty_answers = ["no samples", "no series", "no metric", "nothing matches"];
    let is_empty_answer = empty_answers.iter().any(|args| text.contains(args));
    let has_error_words = errors.contains("error") || errors.contains("granary:");
    let is_faulty =
        !output.status.success() || refused || is_empty || is_empty_answer || has_error_words;
    is_faulty.then(|| format!("{}\n{text}{errors}", output.status))
}

#[test]
fn every_printed_command_works() {
    let daemon = Daemon::start("");
    let folder = create_work_folder();
    sample_hosts(&daemon, folder.path());
    // The printed batch has fixed times, but the examples query the last days.
    let views = |host: &str| {
        json!({"metric": "page_views", "tags": {"page": "/index.htm", "host": host},
               "kind": "delta", "value": 3})
    };
    assert_eq!(daemon.post_json(&json!({"samples": [views("web1")]})).status, 200);
    assert_eq!(daemon.post_json(&json!({"samples": history()})).status, 200);
    let (mut faults, mut left_out) = (Vec::new(), BTreeSet::new());
    // Commands that delete data come last, and histograms, which a downgrade refuses.
    let is_last = |command: &str| {
        ["granary series", "granary senders"].iter().any(|prefix| command.starts_with(prefix))
            || command.contains("\"histogram\"")
    };
    let (last, first): (Vec<_>, Vec<_>) =
        printed_commands().into_iter().partition(|(command, _)| is_last(command));
    for (command, location) in first.into_iter().chain(last) {
        let parsed = Command::new("sh").args(["-n", "-c", &command]).output().unwrap();
        if !parsed.status.success() {
            faults.push(format!("{location}\n$ {command}\nis not valid shell: {parsed:?}"));
        }
        if let Some((start_of_command, _)) =
            NOT_RUN.iter().find(|(start, _)| command.starts_with(start))
        {
            left_out.insert(*start_of_command);
            continue;
        }
        let output = run_command(&daemon, folder.path(), &command);
        if let Some(fault) = find_fault(&command, &output) {
            faults.push(format!("{location}\n$ {command}\n{fault}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    let unused: Vec<_> = NOT_RUN
        .iter()
        .filter(|(start_of_command, _)| !left_out.contains(start_of_command))
        .collect();
    assert!(unused.is_empty(), "no page prints these entries of NOT_RUN: {unused:?}");
}

#[test]
fn every_printed_setting_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("granary.toml");
    let all = examples_in("toml");
    assert!(all.len() >= 3);
    for example in all {
        fs::write(&file, &example.text).unwrap();
        let output = granary().args(["check-config", "--config"]).arg(&file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}", example.location);
    }
}

#[test]
#[ignore = "needs promtool; .ci/run installs it and runs this"]
fn promtool_accepts_every_printed_setting_of_prometheus() {
    need("promtool");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prometheus.yml");
    let deployed = fs::read_to_string(root().join("deploy/prometheus.yml")).unwrap();
    fs::create_dir(folder.path().join("rules")).unwrap();
    let rules = "rules/granary.yml";
    fs::copy(root().join("deploy").join(rules), folder.path().join(rules)).unwrap();
    let key = folder.path().join("granary.key");
    fs::write(&key, "gry_").unwrap();
    let with_key =
        |text: String| text.replace("/etc/prometheus/granary.key", key.to_str().unwrap());
    let printed = examples_in("yaml").into_iter().map(|example| (example.location, example.text));
    let all: Vec<_> = printed.chain([("deploy/prometheus.yml".to_owned(), deployed)]).collect();
    assert!(all.len() >= 2);
    for (location, text) in all {
        fs::write(&file, with_key(text)).unwrap();
        let output = Command::new("promtool").args(["check", "config"]).arg(&file).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{location}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn scripts_can_be_parsed_and_the_container_copies_existing_files() {
    let scripts = [
        "quickstart.sh",
        "release.sh",
        "install.sh",
        "deb/build.sh",
        "rpm/build.sh",
        "package_tree.sh",
        "ansible/test.sh",
        "packages_test.sh",
    ]
    .map(|name| format!("deploy/{name}"));
    let others = [".ci/run", "benches/page_speed.sh"].map(str::to_owned);
    for script in scripts.into_iter().chain(others) {
        let text = fs::read_to_string(root().join(&script)).unwrap();
        let shell = if text.starts_with("#!/bin/sh") { "sh" } else { "bash" };
        let output = Command::new(shell).arg("-n").arg(root().join(&script)).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    }
    let text = fs::read_to_string(root().join("deploy/Containerfile")).unwrap();
    let built: Vec<_> =
        text.split(" -p ").skip(1).map(|rest| rest.split_whitespace().next()).collect();
    let manifests = [
        "Cargo.toml",
        "agents/agent/Cargo.toml",
        "agents/host/Cargo.toml",
        "agents/scrape/Cargo.toml",
        "agents/statsd/Cargo.toml",
    ];
    let manifests = manifests.map(|path| fs::read_to_string(root().join(path)).unwrap());
    for name in built.iter().flatten() {
        let crate_name = format!("name = \"{name}\"");
        assert!(
            manifests.iter().any(|text| text.contains(&crate_name)),
            "no crate is called {name}"
        );
    }
    for path in text.split_whitespace().filter_map(|word| word.strip_prefix("/src/target/release/"))
    {
        assert!(built.contains(&Some(path)), "{path} is copied and not built");
    }
    // The container file copies the whole repository except ignored files.
    let ignored = fs::read_to_string(root().join(".dockerignore")).unwrap();
    let needed = ["src", "agents", "config", "benches", "tests", "Cargo.toml", "Cargo.lock"];
    let is_needed = |line: &str| needed.contains(&line.trim_matches('/'));
    assert!(!ignored.lines().any(is_needed), "{ignored}");
}

#[test]
fn commands_are_found_with_all_their_lines() {
    let text =
        "Text\n    granary a 'b\n      c'\n  curl x \\\n    y\n    other z\ngranary not this";
    assert_eq!(commands_of_help(text), ["granary a 'b\n      c'", "curl x \\\n    y"]);
    let text = "# a comment\na 'b\n c'\nd  # why\n";
    assert_eq!(commands_of_example(text), ["a 'b\n c'", "d"]);
}
