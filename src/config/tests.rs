//! Tests of settings that are read from texts.

use super::{Overrides, Settings, bounds, load, load::read};
use crate::{alerts::Http, config, model::GranularitySet};

fn with(text: &str) -> Result<Settings, String> {
    read(text).map_err(|cause| cause.to_string())
}

#[test]
fn the_defaults_file_is_valid_and_contains_the_default_granularities() {
    let settings = load(None, &Overrides::default()).unwrap();
    assert_eq!(settings.granularities, GranularitySet::default());
}

#[test]
fn the_default_external_address_is_the_machine_and_the_port() {
    let url = |text: &str, machine: Option<&str>| {
        with(text).unwrap().rule_sources(machine).external.url.clone()
    };
    assert_eq!(url("", Some("web1")), "http://web1:7117");
    assert_eq!(
        url("server.listen = '0.0.0.0:80'\nsecurity.open = true", None),
        "http://localhost:80"
    );
    let tls = "tls = { certificate_file = 'c.pem', key_file = 'k.pem' }";
    assert_eq!(url(tls, Some("web1")), "https://web1:7117");
    let configured = "server.external_url = 'https://granary.example.org/'";
    assert_eq!(url(configured, Some("web1")), "https://granary.example.org");
}

#[test]
fn a_certificate_and_its_key_are_set_together() {
    for (text, missing) in [
        ("tls.certificate_file = 'c'", "tls.key_file is missing"),
        ("tls.key_file = 'k'", "tls.certificate_file is missing"),
        ("tls.client_ca_file = 'ca'", "tls.client_ca_file needs TLS"),
        ("tls.clients = { a = 'ingest' }", "tls.clients needs certificates"),
        ("tls.clients = { a = 'reed' }", "tls.clients: \"a\": use scopes of ingest"),
        ("graphite.listen = ['tls://127.0.0.1:2005']", "tls:// needs a certificate"),
        (
            "security.access = true\ngraphite.listen = ['tls://0.0.0.0:2005']\n[tls]\n\
             certificate_file = 'c'\nkey_file = 'k'\nclient_ca_file = 'ca'\n\
             clients = { a = 'read' }",
            "graphite.listen: no client may send over TLS",
        ),
    ] {
        let message = with(text).unwrap_err();
        assert!(message.contains(missing), "{text}: {message}");
    }
    assert!(with("").unwrap().tls_files().is_none());
}

#[test]
fn every_fault_is_reported_with_its_key() {
    let message = with(
        "server.listen = 'nowhere'\nlimits.query_points_max = 0\npromql.lookback = 'often'\n\
         log.format = 'xml'",
    )
    .unwrap_err();
    for part in ["server.listen", "promql.lookback", "xml", "limits.query_points_max = 0"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    let message = with("limits.query_point_max = 3").unwrap_err();
    assert_eq!(message, "unknown key limits.query_point_max; did you mean query_points_max?");
    let message = with("[limits]\nqueries_max = 16\n[cluster]\ndatabase = 'a'").unwrap_err();
    for part in ["limits.queries_max; remove it", "cluster.database; name it in cluster.uri"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    // Unknown keys, values of a wrong type and values that are too small.
    let message = with(
        "servers.listen = ':1'\nserver = { lissen = ':1', connections_max = 'many' }\nlog = 3\n\
         [limits]\nquery_points_max = 0\nseries_max = 'long'\nzzzzzzzzz = 1\n\
         [[granularity]]\nslot = '1m'\nretenton = '1d'\n[[granularity]]\nslot = '1h'",
    );
    let message = message.unwrap_err();
    let lines: Vec<_> = message.lines().collect();
    let expected = [
        "unknown key granularity[0].retenton; did you mean retention?",
        "granularity[0].document is missing",
        "granularity[0].partition is missing",
        "granularity[0].retention is missing",
        "granularity[1].document is missing",
        "granularity[1].partition is missing",
        "granularity[1].retention is missing",
        "limits.series_max: ",
        "unknown key limits.zzzzzzzzz",
        "log is a section: use [log]",
        "server.connections_max: ",
        "unknown key server.lissen; did you mean listen?",
        "unknown section servers; did you mean server?",
        "limits.query_points_max = 0 is too small; use 1 or more",
    ];
    assert_eq!(lines.len(), expected.len(), "{message}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{expected} in {message}");
    }
    let message = with("[[granularity]]\nslot='1m'\ndocument='1h'\npartition='6h'\nretention='1h'");
    assert!(message.unwrap_err().contains("use 6h or more"));
}

#[test]
fn derived_limits_have_floors() {
    const MIB: usize = 1 << 20;
    let limits = |text: &str| {
        let settings = with(text).unwrap();
        let senders_max = bounds::store_limits(&settings).senders_max;
        let request_bytes = bounds::request_bytes_max(&settings);
        let decompressed_bytes = bounds::decompressed_bytes_max(&settings);
        (senders_max, request_bytes, decompressed_bytes, bounds::packed_bytes_max(&settings))
    };
    assert_eq!(limits(""), (100_000, 8 * MIB, 32 * MIB, 4 * MIB));
    let small = "[limits]\nseries_max = 20_000\n[ingest]\nbody_memory_max = 8_388_608";
    assert_eq!(limits(small), (10_000, MIB, 4 * MIB, MIB / 8));
    assert_eq!(limits("limits.series_max = 300").0, 300);
    let too_small = with("ingest.body_memory_max = 8_388_607").unwrap_err();
    assert!(too_small.contains("use 8388608 or more"), "{too_small}");
}

#[test]
fn a_note_names_the_default_granularities_that_a_list_drops() {
    let all: toml::Table = crate::config::DEFAULTS.parse().unwrap();
    let all = all["granularity"].as_array().unwrap();
    let notes = |indexes: &[usize]| {
        let listed: Vec<_> = indexes.iter().map(|index| all[*index].clone()).collect();
        with(&format!("granularity = {}", toml::Value::Array(listed))).unwrap().notes
    };
    let note = notes(&[0]).concat();
    assert!(note.contains("kept at 1m, but not at 5m, 1h, 1d; to keep them"), "{note}");
    assert_eq!(notes(&[0, 1, 2, 3]), [""; 0]);
}

#[test]
fn alertmanagers_are_addresses_or_tables_and_external_settings_are_checked() {
    let settings = config::read(
        "[server]\nexternal_url = 'https://granary.example.org/'\n\
         [alerts]\nexternal_labels = { region = 'eu', Replica = 'a' }\n\
         alertmanagers = ['http://a:9093/', { url = 'https://b', http_config = \
         { basic_auth = { username = 'g', password_file = '/x' }, \
         tls_config = { ca_file = '/ca.pem' }, http_headers = { X-Tenant = { values = ['t'] } } } }]",
    )
    .unwrap();
    let [first, second] = &settings.alertmanagers[..] else { panic!("{settings:?}") };
    assert_eq!((&*first.url, &first.http), ("http://a:9093", &Http::default()));
    assert_eq!(second.url, "https://b");
    let shown = format!("{:?}", second.http);
    for part in ["\"g\"", "/x", "/ca.pem", "X-Tenant"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert_eq!(settings.rules.external.url, "https://granary.example.org");
    let labels: Vec<_> = settings.rules.external.labels.iter().collect();
    assert_eq!(format!("{labels:?}"), r#"[("Replica", "a"), ("region", "eu")]"#);
    for (text, expected) in [
        ("server.external_url = 'granary'", "external_url"),
        ("server.external_url = 'http://a/?b'", "external_url"),
        ("alerts.external_labels = { 'a-b' = 'c' }", "a-b"),
        ("alerts.external_labels = { a = '' }", "external_labels"),
        ("alerts.alertmanagers = ['https://']", "not an address"),
        ("alerts.alertmanagers = [7]", "use an address"),
        ("alerts.alertmanagers = [{ url = 'http://a', htp = 1 }]", "htp"),
        ("alerts.alertmanagers = [{ url = 'http://a', http_config = { x = 1 } }]", "x"),
        (
            "alerts.alertmanagers = [{ url = 'http://a', http_config = \
             { bearer_token = 'a', basic_auth = { username = 'b', password = 'c' } } }]",
            "only one of",
        ),
    ] {
        let message = config::read(text).unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn secrets_of_alertmanagers_are_not_shown() {
    let settings = config::read(
        "alerts.alertmanagers = [{ url = 'http://a', http_config = { authorization = \
         { credentials = 'hidden-1' }, http_headers = { X-Key = { secrets = ['hidden-2'] } } } }]",
    );
    let settings = settings.unwrap();
    let shown = format!("{settings:?}");
    assert!(!shown.contains("hidden-") && shown.contains("X-Key"), "{shown}");
}
