//! Tests of complete agents with a test server.

use clap::Parser;

use super::*;
use crate::{SourceError, reporting::self_metrics, sending::test_server::serve, spool::Spool};

#[derive(Parser)]
struct Args {
    #[command(flatten)]
    agent: AgentArgs,
}

/// A source that returns one value, then fails.
struct FailingSource;

impl Source for FailingSource {
    fn name(&self) -> &'static str {
        "half"
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        readings.gauge("time", "milliseconds", &[], now_ms as f64);
        Err("the other half is missing".into())
    }
}

#[test]
fn rounds_are_sampled_and_delivered_and_a_failing_source_affects_no_other_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let samples = self_metrics::SELF_METRICS.len() + 2;
    let answer = format!(r#"{{"accepted":{samples},"duplicates":0}}"#);
    let (url, server) = serve(vec![(200, "", answer)]);
    let args = Args::parse_from([
        "agent",
        "--url",
        &url,
        "--agent-id",
        "a",
        "--interval",
        "100ms",
        "--rounds",
        "1",
        "--spool-dir",
        &path("spool"),
        "--report",
        &path("report.json"),
        "--tag",
        "env=test",
    ]);
    run("test", &args.agent, vec![Box::new(FailingSource), Box::new(SecondSource)]).unwrap();

    let requests = server.join().unwrap();
    let [ping] = &requests[0].pings[..] else { panic!("{:?}", requests[0].pings) };
    assert_eq!((&*ping.agent, &*ping.program, ping.interval_ms), ("a", "test", 100));
    assert_eq!((ping.booted, &*ping.tags["env"]), (Some(5), "test"));
    assert!(ping.started <= ping.sent && ping.started > 0, "{ping:?}");
    let (seq, defined, sent) = &requests[0].batches[0];
    assert_eq!((*seq, defined.len(), *sent), (1, samples, samples));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path("report.json")).unwrap()).unwrap();
    assert_eq!(report["samples_collected"], samples);
    assert_eq!(report["samples_acknowledged"], samples);
    assert_eq!((&report["rounds"], &report["spool_batches"]), (&1.into(), &0.into()));
    let spool = Spool::open(&folder.path().join("spool"), "a", 1 << 20, unix_ms()).unwrap();
    let mut definitions = Vec::new();
    spool.each_definition(|definition| definitions.push(definition)).unwrap();
    let has_tag = |(key, value): &(String, String)| key == "env" && value == "test";
    assert!(definitions.iter().all(|d| d.tags.iter().any(has_tag)), "{definitions:?}");
}

#[test]
fn each_daemon_receives_all_samples_from_its_own_spool() {
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool").display().to_string();
    let samples = self_metrics::SELF_METRICS.len() + 1;
    let answer = format!(r#"{{"accepted":{samples},"duplicates":0}}"#);
    let (url, server) = serve(vec![(200, "", answer.clone())]);
    let (second_url, second_server) = serve(vec![(200, "", answer)]);
    let agent_args =
        ["--agent-id", "a", "--interval", "100ms", "--rounds", "1", "--spool-dir", &spool];
    let daemons = ["agent", "--url", &url, "--also", &second_url, "--also", "http://127.0.0.1:1"];
    let args = Args::parse_from(daemons.into_iter().chain(agent_args));
    run("test", &args.agent, vec![Box::new(SecondSource)]).unwrap();
    for server in [server, second_server] {
        let (seq, defined, sent) = server.join().unwrap()[0].batches[0].clone();
        assert_eq!((seq, defined.len(), sent), (1, samples, samples));
    }
    let unreachable =
        Spool::open(&folder.path().join("spool/also-127.0.0.1_1"), "a", 1 << 20, 0).unwrap();
    assert_eq!(unreachable.usage().batches, 1, "the batch waits for the unreachable daemon");
}

/// A second source, which is sampled after the failing source.
struct SecondSource;

impl Source for SecondSource {
    fn name(&self) -> &'static str {
        "one more"
    }

    fn booted_ms(&self) -> Option<i64> {
        Some(5)
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        readings.gauge("more", "", &[], 1.0);
        Ok(())
    }
}

#[test]
fn a_missing_token_file_prevents_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no").display().to_string();
    let spool = folder.path().join("spool").display().to_string();
    let args = Args::parse_from(["agent", "--token-file", &missing, "--spool-dir", &spool]);
    let result = run("test", &args.agent, vec![]);
    assert!(matches!(result, Err(AgentError::Token { .. })), "{result:?}");
}
