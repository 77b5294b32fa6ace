//! Requests to targets, within limits of time and size.
//!
//! Must never know: the content of responses.

use std::{
    io::{self, Read},
    path::Path,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::read::MultiGzDecoder;
use granary_agent_kit::{
    FailureReason, Https, ReloadingAgent, RequestFailure, Stopwatch, TrustOptions, read_small,
};
use granary_exposition::Format;
use ureq::{
    Body,
    http::Response,
    http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE},
};

use crate::{
    config::{Config, Header, Job, Protocol, Tls},
    target::Target,
};

/// The maximum idle time of a connection.
const IDLE_TIME_MAX: Duration = Duration::from_secs(5 * 60);
const REDIRECTS_MAX: u32 = 10;
const HEAD_BYTES: usize = 16 << 10;

/// A request with its timeout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchRequest<'a> {
    pub(crate) url: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) timeout: Duration,
}

impl Config {
    /// Reads the certificates and keys of all jobs, so that an invalid file is reported at the
    /// start.
    ///
    /// # Errors
    /// The job and the reason of the first file that cannot be used.
    pub fn check_files(&self) -> Result<(), String> {
        let check = |job: &Job| {
            let client = Client::new(job);
            client.map(drop).map_err(|cause| format!("job {:?}: {cause}", job.job_name))
        };
        self.jobs().iter().try_for_each(check)
    }
}

/// The HTTP client of a job.
#[derive(Debug)]
pub(crate) struct Client {
    http: ReloadingAgent,
    accept: String,
}

impl Client {
    /// Creates a client with the job's settings for TLS and redirects.
    ///
    /// # Errors
    /// A certificate or key is unreadable; the error names the file.
    pub(crate) fn new(job: &Job) -> Result<Self, String> {
        let proxy = job.proxy_url.as_deref().map(ureq::Proxy::new).transpose();
        let proxy = proxy.map_err(|_| "proxy_url: use http://HOST:PORT".to_owned())?;
        let redirects_max = if job.follow_redirects { REDIRECTS_MAX } else { 0 };
        let config = move || {
            ureq::Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(redirects_max)
                .max_redirects_will_error(false)
                .proxy(proxy.clone())
                .user_agent(concat!("granary-agent/", env!("CARGO_PKG_VERSION")))
                .max_idle_connections(100)
                .max_idle_connections_per_host(1)
                .max_idle_age(IDLE_TIME_MAX)
                .input_buffer_size(HEAD_BYTES)
                .output_buffer_size(HEAD_BYTES / 4)
                .max_response_header_size(HEAD_BYTES)
        };
        let http = ReloadingAgent::new(https(&job.tls_config), Box::new(config))?;
        Ok(Self { http, accept: accept_header(job.protocols()) })
    }

    /// Sends a request to a target, and returns its decompressed response as a stream.
    ///
    /// # Errors
    /// The reason why there is no response.
    pub(crate) fn get(
        &self,
        job: &Job,
        target: &Target,
    ) -> Result<(Format, Box<dyn Read>), String> {
        let request =
            FetchRequest { url: &target.url, accept: &self.accept, timeout: target.timeout };
        self.fetch(job, &request)
    }

    /// Sends a request to any URL, with the settings of a job.
    ///
    /// # Errors
    /// The reason why there is no response.
    pub(crate) fn fetch(
        &self,
        job: &Job,
        request: &FetchRequest<'_>,
    ) -> Result<(Format, Box<dyn Read>), String> {
        let answer = self.respond(job, request)?;
        if answer.status() != 200 {
            return Err(format!("the target answered {}", answer.status()));
        }
        let text = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let content_type = text(CONTENT_TYPE).unwrap_or_default();
        let format = match job.fallback_scrape_protocol {
            Some(fallback) if !Format::is_named(content_type) => fallback.format(),
            _ => Format::of_content_type(content_type),
        };
        Ok((format, body(job, answer)))
    }

    /// Sends a request to any URL, and returns the status and the body of any response.
    ///
    /// # Errors
    /// The reason why there is no response.
    pub(crate) fn open(
        &self,
        job: &Job,
        request: &FetchRequest<'_>,
    ) -> Result<(u16, Box<dyn Read>), String> {
        let answer = self.respond(job, request)?;
        Ok((answer.status().as_u16(), body(job, answer)))
    }

    fn respond(&self, job: &Job, request: &FetchRequest<'_>) -> Result<Response<Body>, String> {
        let headers = job_headers(job)?;
        let watch = Stopwatch::start();
        let mut response = self.send(job, request, &headers, request.timeout);
        let time_left = watch.left_of(request.timeout);
        if response.as_ref().is_err_and(was_closed) && !time_left.is_zero() {
            // The target has closed the idle connection, for example because it was restarted.
            response = self.send(job, request, &headers, time_left);
        }
        response.map_err(|cause| self.describe(&cause))
    }
}

/// Returns the decompressed body of a response, within the limit of the job.
fn body(job: &Job, answer: Response<Body>) -> Box<dyn Read> {
    let encoding = answer.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let is_gzip = encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case("gzip"));
    let raw_body = answer.into_body().into_reader();
    let answer: Box<dyn Read> =
        if is_gzip { Box::new(MultiGzDecoder::new(raw_body)) } else { Box::new(raw_body) };
    let limit = job.body_bytes_max();
    Box::new(LimitedResponse { answer, limit, bytes_left: limit })
}

/// A response with a size limit.
struct LimitedResponse {
    answer: Box<dyn Read>,
    limit: u64,
    bytes_left: u64,
}

impl Read for LimitedResponse {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.answer.read(buffer)?;
        let Some(bytes_left) = self.bytes_left.checked_sub(length as u64) else {
            let limit = self.limit;
            let fault = format!("the answer is longer than body_size_limit, {limit} bytes");
            return Err(io::Error::other(fault));
        };
        self.bytes_left = bytes_left;
        Ok(length)
    }
}

impl Client {
    fn send(
        &self,
        job: &Job,
        request: &FetchRequest<'_>,
        headers: &[(String, String)],
        timeout: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        let encoding = if job.enable_compression { "gzip" } else { "identity" };
        let mut request = self
            .http
            .current()
            .get(request.url)
            .header(ACCEPT, request.accept)
            .header(ACCEPT_ENCODING, encoding)
            .header("X-Prometheus-Scrape-Timeout-Seconds", timeout.as_secs_f64().to_string());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.config().timeout_global(Some(timeout)).build().call()
    }

    /// Describes a failure. After a failure of TLS, the next request reads the files again.
    fn describe(&self, fault: &ureq::Error) -> String {
        let failure = RequestFailure::of(fault, TrustOptions::TlsConfig);
        if failure.reason == FailureReason::Tls {
            self.http.note_failure();
        }
        failure.text
    }
}

/// Returns true when the target closed the connection without a response.
fn was_closed(fault: &ureq::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let closed_kinds = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
    matches!(fault, ureq::Error::Io(cause) if closed_kinds.contains(&cause.kind()))
}

impl Protocol {
    fn format(self) -> Format {
        match self {
            Self::PrometheusProto => Format::Protobuf,
            Self::OpenMetrics1 | Self::OpenMetrics0 => Format::OpenMetrics,
            Self::PrometheusText => Format::Prometheus,
        }
    }
}

/// Returns the `Accept` header, with preferred formats first, as Prometheus writes it.
fn accept_header(protocols: &[Protocol]) -> String {
    let mut parts = Vec::new();
    for (index, protocol) in protocols.iter().enumerate() {
        let media_type = match protocol {
            Protocol::PrometheusProto => {
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                 encoding=delimited"
            }
            Protocol::OpenMetrics1 => "application/openmetrics-text;version=1.0.0",
            Protocol::OpenMetrics0 => "application/openmetrics-text;version=0.0.1",
            Protocol::PrometheusText => "text/plain;version=0.0.4",
        };
        parts.push(format!("{media_type};q=0.{}", 9 - index.min(7)));
    }
    parts.push("*/*;q=0.1".to_owned());
    parts.join(",")
}

/// Returns the headers of the job. Files are read each time, so that secrets can be rotated.
fn job_headers(job: &Job) -> Result<Vec<(String, String)>, String> {
    let mut all = Vec::new();
    all.extend(authorization(job)?.map(|value| (AUTHORIZATION.as_str().to_owned(), value)));
    for (name, Header { values, secrets, files }) in &job.http_headers {
        let plain = values.iter().chain(secrets).cloned();
        all.extend(plain.map(|value| (name.clone(), value)));
        for file in files {
            all.push((name.clone(), read_secret("", Some(file))?));
        }
    }
    Ok(all)
}

/// Returns the value of `Authorization`.
fn authorization(job: &Job) -> Result<Option<String>, String> {
    if let Some(auth) = &job.basic_auth {
        let password = read_secret(&auth.password, auth.password_file.as_deref())?;
        let pair = BASE64_STANDARD.encode(format!("{}:{password}", auth.username));
        return Ok(Some(format!("Basic {pair}")));
    }
    let Some(auth) = &job.authorization else { return Ok(None) };
    let credentials = read_secret(&auth.credentials, auth.credentials_file.as_deref())?;
    Ok(Some(format!("{} {credentials}", auth.kind)))
}

fn read_secret(text: &str, file: Option<&Path>) -> Result<String, String> {
    match file {
        None => Ok(text.to_owned()),
        Some(file) => {
            let bytes = read_small(file)?;
            let text =
                String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8", file.display()))?;
            Ok(text.trim().to_owned())
        }
    }
}

fn https(settings: &Tls) -> Https {
    let Tls { ca_file, cert_file, key_file, insecure_skip_verify } = settings.clone();
    Https {
        ca_file,
        client_cert_file: cert_file,
        client_key_file: key_file,
        accepts_any_certificate: insecure_skip_verify,
        ..Https::default()
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, net::TcpListener};

    use super::*;

    /// Regression: a target that was restarted between two scrapes failed once, because the idle
    /// connection was closed.
    #[test]
    fn a_closed_idle_connection_is_replaced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            for answered in [true, false, true] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut buffer = [0; 4096];
                // The client has sent its request before the server closes the connection.
                assert!(stream.read(&mut buffer).unwrap() > 0);
                if answered {
                    let body = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n";
                    stream.write_all(body.as_bytes()).unwrap();
                }
            }
        });
        let job = Job { enable_compression: false, ..Job::default() };
        let found = [("__address__", address)].into_iter().collect();
        let target = Target::new(&job, &found).unwrap().unwrap();
        let client = Client::new(&job).unwrap();
        for _ in 0..2 {
            let (format, mut answer) = client.get(&job, &target).unwrap();
            assert_eq!(format, Format::Prometheus);
            assert_eq!(io::read_to_string(&mut answer).unwrap(), "a 1\n");
        }
        server.join().unwrap();
    }

    #[test]
    fn a_response_over_the_size_limit_is_an_error() {
        for (limit, is_within_limit) in [(3, true), (2, false)] {
            let mut answer =
                LimitedResponse { answer: Box::new(&b"abc"[..]), limit, bytes_left: limit };
            let outcome = io::read_to_string(&mut answer);
            assert_eq!(outcome.is_ok(), is_within_limit, "{outcome:?}");
        }
    }

    /// The target is behind a proxy, needs a header and a token, and its response has an unknown
    /// format.
    #[test]
    fn proxy_headers_token_and_fallback_format_work_as_in_prometheus() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heads = String::new();
            let mut buffer = [0; 4096];
            while !heads.contains("GET ") {
                let length = stream.read(&mut buffer).unwrap();
                heads.push_str(&String::from_utf8_lossy(&buffer[..length]));
                if heads.starts_with("CONNECT ")
                    && heads.ends_with("\r\n\r\n")
                    && !heads.contains("GET ")
                {
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                }
            }
            let body =
                "HTTP/1.1 200 OK\r\nContent-Type: x/y\r\nContent-Length: 10\r\n\r\na 1\n# EOF\n";
            stream.write_all(body.as_bytes()).unwrap();
            heads.to_lowercase()
        });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "s3cret\n").unwrap();
        std::fs::write(folder.path().join("tenant"), "blue\n").unwrap();
        let yaml = format!(
            "scrape_configs:\n- job_name: j\n  proxy_url: http://{proxy}\n  bearer_token_file: token\n  \
             http_headers: {{X-Tenant: {{files: [tenant]}}, X-A: {{values: [b]}}}}\n  \
             fallback_scrape_protocol: OpenMetricsText1.0.0\n"
        );
        let config = Config::parse(&yaml, folder.path().to_owned()).unwrap();
        let job = &config.jobs()[0];
        let found = [("__address__", "far.example:9100")].into_iter().collect();
        let target = Target::new(job, &found).unwrap().unwrap();
        let (format, mut answer) = Client::new(job).unwrap().get(job, &target).unwrap();
        assert_eq!(format, Format::OpenMetrics);
        assert_eq!(io::read_to_string(&mut answer).unwrap(), "a 1\n# EOF\n");
        let heads = server.join().unwrap();
        for expected in
            ["far.example:9100", "authorization: bearer s3cret", "x-tenant: blue", "x-a: b"]
        {
            assert!(heads.contains(expected), "{expected} is not in {heads}");
        }
    }

    #[test]
    fn formats_are_requested_in_the_order_of_preference() {
        let text = "application/openmetrics-text;version=1.0.0;q=0.9,\
                    application/openmetrics-text;version=0.0.1;q=0.8,\
                    text/plain;version=0.0.4;q=0.7,*/*;q=0.1";
        assert_eq!(accept_header(Job::default().protocols()), text);
        let native = Job { scrape_native_histograms: Some(true), ..Job::default() };
        assert_eq!(
            accept_header(native.protocols()),
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
             encoding=delimited;q=0.9,application/openmetrics-text;version=1.0.0;q=0.8,\
             application/openmetrics-text;version=0.0.1;q=0.7,text/plain;version=0.0.4;q=0.6,\
             */*;q=0.1"
        );
    }
}
