//! Accepted parts of a prometheus.yml, and the messages about rejected parts.

use super::*;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, PathBuf::from("/etc/p"))
}

const PROMETHEUS_YML: &str = r#"
global:
  scrape_interval: 15s
  evaluation_interval: 15s
  external_labels: {monitor: 'm'}
  sample_limit: 7
  body_size_limit: 1MB
rule_files:
  # - "first_rules.yml"
scrape_configs:
  - job_name: 'prometheus'
    scrape_interval: 5s
    static_configs:
      - targets: ['localhost:9090']
        labels: {env: "e"}
  - job_name: node
    honor_labels: true
    honor_timestamps: false
    scheme: https
    params: {"collect[]": [cpu, meminfo]}
    basic_auth: {username: u, password_file: pw}
    tls_config: {ca_file: ca.pem, insecure_skip_verify: false}
    file_sd_configs: [{files: ['/abs/*.json', 'rel.yml'], refresh_interval: 5m}]
    dns_sd_configs: [{names: [a.example], type: A, port: 9100}, {names: [_b._tcp.example]}]
    scrape_protocols: [PrometheusProto, OpenMetricsText1.0.0, PrometheusText0.0.4]
    relabel_configs:
      - source_labels: [__address__]
        regex: '(.*):\d+'
        target_label: host
    metric_relabel_configs: [{source_labels: [__name__], regex: 'go_.*', action: drop}]
    sample_limit: 9
    body_size_limit: 2MB
"#;

#[test]
fn a_prometheus_yml_is_accepted_unchanged() {
    let config = parse(PROMETHEUS_YML).unwrap();
    let [prometheus, node] = config.jobs() else { panic!("two jobs") };
    assert_eq!(prometheus.interval(), Duration::from_secs(5));
    assert_eq!(
        prometheus.timeout(),
        Duration::from_secs(5),
        "the interval limits the default timeout"
    );
    assert_eq!((prometheus.sample_limit, node.sample_limit), (7, 9));
    assert_eq!((prometheus.body_bytes_max(), node.body_bytes_max()), (1 << 20, 2 << 20));
    assert_eq!((node.interval().as_secs(), node.timeout().as_secs()), (15, 10));
    assert!(node.honor_labels && !node.honor_timestamps && prometheus.honor_timestamps);
    assert_eq!(node.file_sd_configs[0].files[1], Path::new("/etc/p/rel.yml"));
    assert_eq!(
        node.basic_auth.as_ref().unwrap().password_file.as_deref(),
        Some(Path::new("/etc/p/pw"))
    );
    assert_eq!(node.dns_sd_configs[1].kind, RecordType::Srv);
    assert_eq!(config.external_labels()["monitor"], "m");
    assert_eq!(parse("").unwrap().jobs(), []);
    assert_eq!(config, parse(PROMETHEUS_YML).unwrap());
}

#[test]
fn unsupported_settings_are_rejected_with_their_name_and_line() {
    let check = |text: &str, expected: &[&str]| {
        let fault = parse(text).unwrap_err();
        for part in expected {
            assert!(fault.contains(part), "{part:?} is not in: {fault}");
        }
    };
    let job = |more: &str| format!("scrape_configs:\n  - job_name: j\n{more}");
    check("global: {}\nremote_write:\n  - url: http://x\n", &["remote_write", "--also", "line 2"]);
    check("alerts: {}\n", &["alerts", "line 1"]);
    check("scrape_config_files: [a.yml]\n", &["scrape_configs here", "line 1"]);
    let kubernetes = |more: &str| job(&format!("    kubernetes_sd_configs: [{{{more}}}]\n"));
    check(&kubernetes("kubeconfig_file: x"), &["set api_server", "line 3"]);
    check(&kubernetes("api_server: x"), &["role"]);
    check(&kubernetes("role: pod, api_server: x"), &["\"x\"", "https://"]);
    check(&kubernetes("role: pod, namespaces: {names: [../a]}"), &["\"../a\"", "namespace"]);
    check(&kubernetes("role: pod, selectors: [{role: node}]"), &["Pod", "Node"]);
    check(&job("    consul_sd_configs: []\n"), &["consul_sd_configs", "file_sd_configs", "line 3"]);
    check(&job("    proxy_url: '::'\n"), &["proxy_url", "http://HOST:PORT"]);
    check(&job("    proxy_from_environment: true\n"), &["set proxy_url", "line 3"]);
    check(&job("    tls_config: {server_name: x}\n"), &["server_name", "certificate", "line 3"]);
    check(&job("    oauth2: {}\n"), &["oauth2", "credentials_file", "line 3"]);
    check(&job("    http_headers: {Host: {values: [x]}}\n"), &["http_headers", "Host"]);
    check(&job("    http_sd_configs: [{url: x}]\n"), &["http_sd_configs", "http://"]);
    check(&job("    scrape_interval: soon\n"), &["\"soon\"", "15s", "line 3"]);
    check(&job("    body_size_limit: 10\n"), &["\"10\"", "10MB"]);
    check(&job("    relabel_configs: [{action: melt}]\n"), &["melt", "line 3"]);
    check(&job("    relabel_configs: [{regex: '('}]\n"), &["target_label"]);
    check(&job("    relabel_configs: [{regex: '(', target_label: a}]\n"), &["regex \"(\""]);
    check(&job("    scrape_timeout: 2m\n"), &["\"j\"", "scrape_timeout"]);
    check(&job("    scrape_interval: 1ms\n"), &["\"j\"", "100ms"]);
    check(&job("  - job_name: j\n"), &["two jobs"]);
    check("scrape_configs: [{}]\n", &["job_name"]);
    check(&job("    file_sd_configs: [{files: [x.txt]}]\n"), &["/etc/p/x.txt", ".json"]);
    check(&job("    dns_sd_configs: [{names: [x], type: A}]\n"), &["port"]);
    check(&job("    dns_sd_configs: [{names: [x], type: MX}]\n"), &["MX", "line 3"]);
    check(&job("    tls_config: {cert_file: x}\n"), &["key_file"]);
    check(&job("    basic_auth: {}\n    authorization: {}\n"), &["only one"]);
    check("scrape_configs: 3\n", &["line 1"]);
    check("a: [", &["line 1"]);
}

/// Regression: the file in Debian's package of Prometheus, here without comments, was refused.
#[test]
fn parts_for_a_server_are_listed_and_skipped() {
    let debian_yml = r"
global:
  scrape_interval:     15s
  evaluation_interval: 15s
  external_labels:
      monitor: 'example'
alerting:
  alertmanagers:
  - static_configs:
    - targets: ['localhost:9093']
rule_files:
  # - 'first_rules.yml'
scrape_configs:
  - job_name: 'prometheus'
    scrape_interval: 5s
    scrape_timeout: 5s
    static_configs:
      - targets: ['localhost:9090']
  - job_name: node
    static_configs:
      - targets: ['localhost:9100']
";
    let config = parse(debian_yml).unwrap();
    assert_eq!(config.jobs().len(), 2);
    assert_eq!(config.ignored_settings(), ["alerting", "global.evaluation_interval"]);
    let server_yml = "
global: {query_log_file: q, keep_dropped_targets: 5, metric_name_validation_scheme: utf8}
rule_files: [rules/*.yml]
remote_read: [{url: 'http://x'}]
storage: {tsdb: {out_of_order_time_window: 30m}}
tracing: {endpoint: x}
otlp: {promote_resource_attributes: [a]}
runtime: {gogc: 75}
scrape_configs:
- {job_name: a, convert_classic_histograms_to_nhcb: true, keep_dropped_targets: 7}
- {job_name: b, convert_classic_histograms_to_nhcb: true}
";
    let expected = [
        "convert_classic_histograms_to_nhcb",
        "global.keep_dropped_targets",
        "global.metric_name_validation_scheme",
        "global.query_log_file",
        "keep_dropped_targets",
        "otlp",
        "remote_read",
        "rule_files",
        "runtime",
        "storage",
        "tracing",
    ];
    assert_eq!(parse(server_yml).unwrap().ignored_settings(), expected);
}

#[test]
fn a_job_inherits_native_histograms_or_overrides_them() {
    let yaml = "
global: {scrape_native_histograms: true, always_scrape_classic_histograms: true}
scrape_configs:
- {job_name: a}
- {job_name: b, scrape_native_histograms: false}
- {job_name: c, scrape_classic_histograms: false, native_histogram_bucket_limit: 160}
- {job_name: d, scrape_protocols: [OpenMetricsText1.0.0, PrometheusProto]}
";
    let config = parse(yaml).unwrap();
    let found: Vec<_> = config
        .jobs()
        .iter()
        .map(|job| (job.scrapes_native_histograms(), job.protocols()[0]))
        .collect();
    let (proto, text) = (Protocol::PrometheusProto, Protocol::OpenMetrics1);
    assert_eq!(found, [(true, proto), (false, text), (true, proto), (true, text)]);
    let classic = config.jobs().iter().map(|job| job.always_scrape_classic_histograms);
    assert!(classic.eq([Some(true), Some(true), Some(false), Some(true)]));
    assert_eq!(config.jobs()[2].native_histogram_bucket_limit, 160);
    let fault = parse(&yaml.replace(", PrometheusProto", "")).unwrap_err();
    assert!(fault.contains("\"d\"") && fault.contains("add PrometheusProto"), "{fault}");
}

#[test]
fn a_missing_or_too_long_file_is_reported_with_its_name() {
    let fault = Config::read(Path::new("/nonexistent/p.yml")).unwrap_err().to_string();
    assert!(fault.starts_with("/nonexistent/p.yml: "), "{fault}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.yml");
    std::fs::write(&path, "#".repeat(FILE_BYTES_MAX as usize + 1)).unwrap();
    assert!(Config::read(&path).unwrap_err().to_string().contains("bytes; at most"));
}
