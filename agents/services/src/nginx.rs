//! The collector of nginx servers, based on the page `stub_status` (nginx.org, "Module
//! `ngx_http_stub_status_module`").

use std::io::Read;

use base64::{Engine, prelude::BASE64_STANDARD};
use granary_agent_kit::{Https, Readings, RequestFailure, TrustOptions};

use crate::{
    settings::{Service, ServiceError},
    target::Collector,
};

/// The maximum size of the page; real pages have less than 200 bytes.
const BODY_BYTES_MAX: u64 = 4096;

/// The connection to an nginx server.
#[derive(Debug)]
pub(crate) struct Nginx {
    agent: ureq::Agent,
    service: Service,
}

impl Nginx {
    pub(crate) fn new(service: &Service) -> Result<Self, ServiceError> {
        let url = service.address.clone();
        let fault = |problem: String| ServiceError(format!("nginx {url}: {problem}"));
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(fault("must be a URL such as http://127.0.0.1/stub_status".to_owned()));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(service.timeout))
            .max_redirects(0)
            // The password must not be sent to another server.
            .proxy(None);
        let agent = Https::default().agent(config).map_err(fault)?;
        Ok(Self { agent, service: service.clone() })
    }
}

impl Collector for Nginx {
    fn collect(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), String> {
        let mut request = self.agent.get(&self.service.address);
        if let Some(password) = self.service.password()? {
            let user = self.service.user.as_deref().unwrap_or_default();
            let credentials = BASE64_STANDARD.encode(format!("{user}:{password}"));
            request = request.header("Authorization", format!("Basic {credentials}"));
        }
        let mut response = request
            .call()
            .map_err(|cause| RequestFailure::of(&cause, TrustOptions::System).text)?;
        let mut body = String::new();
        let reader = response.body_mut().as_reader();
        reader.take(BODY_BYTES_MAX).read_to_string(&mut body).map_err(|cause| cause.to_string())?;
        push_page(&body, readings)
            .ok_or_else(|| "the response is not a stub_status page".to_owned())
    }
}

/// Parses the page.
fn push_page(body: &str, readings: &mut Readings) -> Option<()> {
    let mut lines = body.lines();
    let number = |word: &str| word.parse::<u64>().ok().map(|number| number as f64);
    let active = number(lines.next()?.strip_prefix("Active connections:")?.trim())?;
    lines.next().filter(|line| line.trim() == "server accepts handled requests")?;
    let totals: Vec<f64> =
        lines.next()?.split_ascii_whitespace().map(number).collect::<Option<_>>()?;
    let [accepts, handled, requests] = totals.try_into().ok()?;
    let last: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    let ["Reading:", reading, "Writing:", writing, "Waiting:", waiting] = last[..] else {
        return None;
    };
    for (metric, value) in [
        ("nginx_connections_active", active),
        ("nginx_connections_reading", number(reading)?),
        ("nginx_connections_writing", number(writing)?),
        ("nginx_connections_waiting", number(waiting)?),
    ] {
        readings.gauge(metric, "connections", &[], value);
    }
    for (metric, unit, value) in [
        ("nginx_connections_accepted", "connections", accepts),
        ("nginx_connections_handled", "connections", handled),
        ("nginx_requests", "requests", requests),
    ] {
        readings.counter(metric, unit, &[], value, None);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Write},
        net::TcpListener,
        thread,
    };

    use super::*;
    use crate::settings::service_at;

    #[test]
    fn the_request_contains_the_password() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/status", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            let head_of_answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", PAGE.len());
            stream.write_all((head_of_answer + PAGE).as_bytes()).unwrap();
            head
        });
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "s3:cret\n").unwrap();
        let settings = service_at(address);
        let settings =
            Service { user: Some("eve".to_owned()), password_file: Some(file), ..settings };
        let mut readings = Readings::default();
        Nginx::new(&settings).unwrap().collect(0, &mut readings).unwrap();
        assert_eq!(readings.len(), 7);
        let head = server.join().unwrap();
        let is_authorization =
            |line: &String| line.eq_ignore_ascii_case("authorization: Basic ZXZlOnMzOmNyZXQ=");
        assert!(head.iter().any(is_authorization), "{head:?}");
    }

    const PAGE: &str = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630947 31070465 \nReading: 6 Writing: 179 Waiting: 106 \n";

    #[test]
    fn a_truncated_page_yields_no_readings() {
        let mut readings = Readings::default();
        assert_eq!(push_page(PAGE, &mut readings), Some(()));
        let values: Vec<f64> = readings.as_slice().iter().map(|reading| reading.value).collect();
        assert_eq!(values, [291.0, 6.0, 179.0, 106.0, 16_630_948.0, 16_630_947.0, 31_070_465.0]);
        let mut no_readings = Readings::default();
        for (end, _) in PAGE.char_indices().filter(|(end, _)| *end < PAGE.len() - 6) {
            assert_eq!(push_page(PAGE.split_at(end).0, &mut no_readings), None, "{end}");
        }
        assert!(no_readings.is_empty());
    }
}
