//! Settings read from files, and the messages for errors in them.

use super::*;

fn parse(text: &str) -> Result<Settings, String> {
    Settings::parse(text, Path::new("/nonexistent"))
}

#[test]
fn the_agent_table_accepts_the_options_of_the_command_line() {
    let text = r#"
        [agent]
        url = ["http://a:1", "https://b:2/"]
        interval = "5s"
        agent_id = "web1"
        spool_max_bytes = 1000
        spool_max_age = "7d"
        tags = { env = "prod", dc = "a=b" }
        [host]
        interval = "10s"
        [statsd]
        listen = "127.0.0.1:1"
        [[rules]]
        source_labels = ["__name__"]
        regex = "go_.*"
        action = "drop"
    "#;
    let settings = parse(text).unwrap();
    assert_eq!(settings.agent.url, ["http://a:1", "https://b:2"]);
    assert_eq!(
        (settings.agent.interval, settings.agent.spool_max_bytes),
        (Duration::from_secs(5), 1000)
    );
    assert_eq!(settings.agent.agent_name(), "web1");
    let mut tags = settings.agent.tags;
    tags.sort();
    assert_eq!(tags, [("dc".to_owned(), "a=b".to_owned()), ("env".to_owned(), "prod".to_owned())]);
    assert_eq!(settings.host.unwrap().interval, Some(Duration::from_secs(10)));
    assert_eq!(settings.statsd.unwrap().memory_max, 12 << 20);
    assert_eq!((settings.rules.len(), settings.scrape), (1, None));
}

/// Regression: the unit's memory limit was too small for an agent that scrapes.
#[test]
fn the_memory_limit_of_the_unit_fits_the_default_settings() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.yml"), "scrape_configs: []").unwrap();
    let needed = |scrape_settings: &str| {
        let text = format!("[host]\n[statsd]\n[scrape]\nconfig = 'p.yml'\n{scrape_settings}");
        Settings::parse(&text, folder.path()).map(|settings| settings.memory_needed())
    };
    let unit = include_str!("../../../../deploy/granary-agent.service");
    let limit = unit.lines().find_map(|line| line.strip_prefix("MemoryMax=")?.strip_suffix('M'));
    assert_eq!(needed(""), Ok(limit.unwrap().parse::<u64>().unwrap() << 20));
    assert_eq!(needed("memory_max = 67108864"), Ok((52 + 12 + 3 * 64) << 20));
    assert!(needed("memory_max = 1000").unwrap_err().contains("scrape.memory_max"));
}

#[test]
fn errors_name_their_location() {
    let check = |text: &str, expected: &str| {
        let fault = parse(text).unwrap_err();
        assert!(fault.contains(expected), "{expected:?} is not in: {fault}");
    };
    check("", "nothing is collected");
    check("[host]\n[agnet]\n", "line 2");
    check("[host]\ncpu = 1\n", "cpu");
    check("[agent]\nintervall = '1s'\n[host]\n", "--intervall");
    check("[agent]\ninterval = 'soon'\n[host]\n", "--interval");
    check("[agent]\nurl = 'ftp://x'\n[host]\n", "http://");
    check("[agent]\nprint = true\n[host]\n", "agent.print");
    check("[agent]\ninterval = '10s'\n[host]\ninterval = '15s'\n", "not a multiple of 10s");
    check("[scrape]\nconfig = 'p.yml'\n", "/nonexistent/p.yml");
    check("[host]\n[[rules]]\naction = 'melt'\n", "melt");
    check("[statsd]\nlisten = 'x'\n", "line 2");
    check("[[redis]]\naddress = 'a'\npassword = 'x'\n", "password");
    check("[[redis]]\naddress = 'a'\ninterval = '15s'\n", "redis.interval: 15s");
    check("[[nginx]]\naddress = 'http://a:b@c/'\n", "password_file");
    check("[[mysql]]\naddress = ''\n", "mysql: \"\"");
    check("[exec]\nconcurrency = 0\nscript = []\n", "exec: concurrency");
    check("[mongodb]\ntargets = 'm.toml'\n", "mongodb: /nonexistent/m.toml");
}

#[test]
fn the_example_file_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/agent.toml");
    let settings = Settings::read(&path).unwrap();
    assert!(settings.host.is_some() && settings.scrape.is_some() && settings.statsd.is_some());
}

#[test]
fn messages_do_not_quote_secret_lines() {
    for text in [
        "[[redis]]\naddress = 'a'\npassword = 's3cret'\n",
        "[[redis]]\naddress = 'a'\ninterval = 's3cret'\n",
        "[[redis]]\naddress = 'a'\npassword_file = s3cret\n",
        "[statsd]\nlisten = 1\nseries_max = 's3cret'\n",
    ] {
        let fault = parse(text).unwrap_err();
        assert!(fault.starts_with("line ") && !fault.contains("s3cret"), "{fault}");
    }
}
