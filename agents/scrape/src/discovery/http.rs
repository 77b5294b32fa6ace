//! Discovery by HTTP: a server lists targets as JSON.
//!
//! Must never know: how targets are used.

use std::{io::Read, time::Duration};

use super::Found;
use crate::{
    config::{Group, HttpDiscovery, Job},
    fetch::{Client, FetchRequest},
};

const LIST_BYTES_MAX: u64 = 16 << 20;
/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The discovery of one entry of `http_sd_configs`.
#[derive(Debug)]
pub(crate) struct HttpEntry {
    url: String,
    interval: Duration,
    /// The settings of requests.
    job: Box<Job>,
    client: Result<Box<Client>, String>,
}

impl HttpEntry {
    pub(crate) fn new(settings: &HttpDiscovery) -> Self {
        let HttpDiscovery { url, refresh_interval, .. } = settings;
        let job = Job {
            basic_auth: settings.basic_auth.clone(),
            authorization: settings.authorization.clone(),
            tls_config: settings.tls_config.clone(),
            follow_redirects: settings.follow_redirects,
            proxy_url: settings.proxy_url.clone(),
            ..Job::default()
        };
        let interval = refresh_interval.0.max(INTERVAL_MIN);
        let client = Client::new(&job).map(Box::new);
        Self { url: url.clone(), interval, client, job: Box::new(job) }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the current targets.
    pub(crate) fn fetch(&self) -> Result<Found, String> {
        let client = self.client.as_ref().map_err(String::clone)?;
        let request = FetchRequest { url: &self.url, accept: "application/json", timeout: TIMEOUT };
        let (_, answer) = client.fetch(&self.job, &request)?;
        let mut text = String::new();
        let fault = |cause: std::io::Error| format!("{}: {cause}", self.url);
        answer.take(LIST_BYTES_MAX + 1).read_to_string(&mut text).map_err(fault)?;
        if text.len() as u64 > LIST_BYTES_MAX {
            return Err(format!("{}: more than {LIST_BYTES_MAX} bytes", self.url));
        }
        let groups: Vec<Group> =
            serde_saphyr::from_str(&text).map_err(|cause| format!("{}: {cause}", self.url))?;
        let mut found = Found::default();
        found.add_groups(&groups, &[("__meta_url", &self.url)]);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    fn respond(mut stream: TcpStream, status: &str, body: &str) -> String {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).unwrap();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        String::from_utf8_lossy(&buffer[..length]).to_lowercase()
    }

    #[test]
    fn a_server_lists_targets_and_a_bad_response_is_reported_with_its_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/list", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let list = r#"[{"targets": ["h:1", "h:2"], "labels": {"env": "e"}}]"#;
            let addresses = vec!["\"h:1\""; super::super::TARGETS_MAX + 2].join(",");
            let long = format!("[{{\"targets\": [{addresses}]}}]");
            for (status, body) in [
                ("200 OK", list),
                ("500 No", ""),
                ("200 OK", "{"),
                ("200 OK", "[]"),
                ("200 OK", &long),
            ] {
                let request_head = respond(listener.accept().unwrap().0, status, body);
                assert!(request_head.contains("authorization: bearer s3cret"), "{request_head}");
                assert!(request_head.contains("get /list "), "{request_head}");
            }
        });
        let yaml = format!(
            "scrape_configs: [{{job_name: j, http_sd_configs: [{{url: '{url}', \
                            authorization: {{credentials: s3cret}}}}]}}]"
        );
        let config = crate::Config::parse(&yaml, "".into()).unwrap();
        let entry = HttpEntry::new(&config.jobs()[0].http_sd_configs[0]);
        let found = entry.fetch().unwrap().targets;
        let addresses: Vec<&str> = found.iter().map(|labels| labels.get("__address__")).collect();
        assert_eq!(addresses, ["h:1", "h:2"]);
        assert_eq!((found[0].get("env"), found[0].get("__meta_url")), ("e", url.as_str()));
        for expected in ["500", "/list"] {
            let fault = entry.fetch().unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        }
        assert_eq!(entry.fetch(), Ok(Found::default()));
        let problem = entry.fetch().unwrap().problem().unwrap();
        assert!(problem.starts_with("2 targets beyond 10000"), "{problem}");
        server.join().unwrap();
    }
}
