//! Every command that README.md and `--help` print, run as it is printed: against a real daemon that
//! the real host agent and the printed batch have filled.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, ExitStatus, Output, Stdio},
};

use serde_json::json;

use crate::daemon::{Daemon, granary};

/// The programs whose commands are run.
const PROGRAMS: [&str; 2] = ["granary ", "curl "];

/// Commands that end only when they are told to: how they are.
const ENDLESS: [&str; 2] = ["granary tail", "curl -N"];

/// Commands that are not run, by how they begin, and why.
const NOT_RUN: [(&str, &str); 4] = [
    ("granary import --template", "whisper files, see import.rs"),
    ("granary import --format remote-write", "bodies of requests, see import.rs"),
    ("granary import --csv-time when --csv-metric room", "see import.rs"),
    ("granary bench", "a fleet of 1,000 hosts takes minutes; see first_hour.rs for a small one"),
];

/// The commands in indented lines, each with its lines up to where its quotes are closed.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        if start.len() == line.len() || !PROGRAMS.iter().any(|program| start.starts_with(program)) {
            continue;
        }
        let mut command = start.to_owned();
        while command.matches('\'').count() % 2 == 1 || command.ends_with('\\') {
            command.push('\n');
            command.push_str(lines.next().expect("the quotes are closed"));
        }
        found.push(command);
    }
    found
}

fn help(words: &[String]) -> String {
    let output = granary().args(words).arg("--help").output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What `--help` prints, of all commands below these words too.
fn all_help(words: &[String], found: &mut Vec<String>) {
    let text = help(words);
    let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    // A name stands two blanks in; what is further in goes on with the line above.
    let names = listed.filter(|line| !line.starts_with("   "));
    let names: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    for name in names.into_iter().filter(|name| *name != "help") {
        all_help(&[words, &[name.to_owned()]].concat(), found);
    }
    found.extend(commands(&text));
}

fn printed() -> BTreeSet<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let mut found = commands(&fs::read_to_string(readme).unwrap());
    assert!(found.len() >= 18, "{found:?}");
    let before = found.len();
    all_help(&[], &mut found);
    assert!(found.len() >= before + 18, "{found:?}");
    found.into_iter().collect()
}

/// Runs a command in a folder, as somebody at that prompt would.
fn run(daemon: &Daemon, folder: &Path, command: &str) -> Output {
    let address = daemon.url.trim_start_matches("http://");
    let typed =
        command.replace("localhost:7117", address).replace("http://127.0.0.1:7117", &daemon.url);
    let programs = Path::new(env!("CARGO_BIN_EXE_granary")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.current_dir(folder).env("PATH", path).env("GRANARY_URL", &daemon.url);
    if !ENDLESS.iter().any(|own| typed.starts_with(own)) {
        return shell.args(["-c", &typed]).output().unwrap();
    }
    // Its first line is enough.
    shell.args(["-c", &format!("exec {typed}")]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut line = Vec::new();
    BufReader::new(child.stdout.take().unwrap()).read_until(b'\n', &mut line).unwrap();
    child.kill().unwrap();
    let ended = child.wait_with_output().unwrap();
    Output { status: ExitStatus::default(), stdout: line, stderr: ended.stderr }
}

/// Two rounds of the host agent, as this host and as the examples' web1.
fn sample_hosts(daemon: &Daemon, folder: &Path) {
    let agent = Path::new(env!("CARGO_BIN_EXE_granary")).with_file_name("granary-agent-host");
    if !agent.exists() {
        let build = ["build", "--locked", "-p", "granary-agent-host"];
        assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    }
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

#[test]
fn every_printed_command_does_what_it_says() {
    let daemon = Daemon::start("");
    let folder = tempfile::tempdir().unwrap();
    sample_hosts(&daemon, folder.path());
    // The printed batch is of a day; the examples ask for the last days.
    let views = |host: &str| {
        json!({"metric": "page_views", "tags": {"page": "/index.htm", "host": host},
               "kind": "delta", "value": 3})
    };
    assert_eq!(daemon.post_json(&json!({"samples": [views("web1")]})).status, 200);
    fs::write(folder.path().join("samples.csv"), "time,metric,value\n2026-11-01,a,1\n").unwrap();
    let rooms = "when,room,celsius\n2026-11-01,lab,20.5\n";
    fs::write(folder.path().join("rooms.csv"), rooms).unwrap();
    let mut wrong = Vec::new();
    let (mut printed, mut last) = (printed(), Vec::new());
    // What takes something away comes last.
    for taken in ["granary series", "granary senders"] {
        let (of_kind, others) = printed.into_iter().partition(|own| own.starts_with(taken));
        printed = others;
        last.extend::<BTreeSet<String>>(of_kind);
    }
    let mut left_out = BTreeSet::new();
    for command in printed.into_iter().chain(last) {
        if let Some((own, _)) = NOT_RUN.iter().find(|(start, _)| command.starts_with(start)) {
            left_out.insert(*own);
            continue;
        }
        let output = run(&daemon, folder.path(), &command);
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // A daemon that refuses what curl sends answers so, and curl is content.
        let refused = said.starts_with("{\"error") || said.contains("\"status\":\"error\"");
        let is_empty = said.trim().is_empty() && !command.contains("--output");
        let nothing = ["no samples", "no series", "no metric", "nothing matches"];
        let says_nothing = nothing.iter().any(|words| said.contains(words));
        let complains = errors.contains("error") || errors.contains("granary:");
        if !output.status.success() || refused || is_empty || says_nothing || complains {
            wrong.push(format!("$ {command}\n{}\n{said}{errors}", output.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(left_out.len(), NOT_RUN.len(), "only what is printed is left out: {left_out:?}");
}

#[test]
fn commands_are_found_with_all_their_lines() {
    let text =
        "Text\n    granary a 'b\n      c'\n  curl x \\\n    y\n    other z\ngranary not this";
    assert_eq!(commands(text), ["granary a 'b\n      c'", "curl x \\\n    y"]);
}
