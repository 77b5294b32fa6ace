//! nginx, by its page `stub_status` (nginx.org, "Module `ngx_http_stub_status_module`").

use std::io::Read;

use granary_agent_kit::{Readings, TlsFiles};

use crate::{
    settings::{Service, ServiceError},
    target::Ask,
};

/// The page has less than 200 bytes.
const BODY_BYTES_MAX: u64 = 4096;

/// Asks one.
#[derive(Debug)]
pub(crate) struct Nginx {
    agent: ureq::Agent,
    url: String,
}

impl Nginx {
    pub(crate) fn new(service: &Service) -> Result<Self, ServiceError> {
        let url = service.address.clone();
        let fault = |what: String| ServiceError(format!("nginx {url}: {what}"));
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(fault("must be a URL such as http://127.0.0.1/stub_status".to_owned()));
        }
        let tls = TlsFiles::default().read().map_err(fault)?;
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(service.timeout))
            .max_redirects(0)
            .tls_config(tls)
            .build();
        Ok(Self { agent: config.into(), url })
    }
}

impl Ask for Nginx {
    fn ask(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), String> {
        let mut answer = self.agent.get(&self.url).call().map_err(|cause| cause.to_string())?;
        let mut body = String::new();
        let reader = answer.body_mut().as_reader();
        reader.take(BODY_BYTES_MAX).read_to_string(&mut body).map_err(|cause| cause.to_string())?;
        read(&body, readings).ok_or_else(|| "does not answer as stub_status does".to_owned())
    }
}

/// Reads the page.
fn read(body: &str, readings: &mut Readings) -> Option<()> {
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
    use super::*;

    const PAGE: &str = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630947 31070465 \nReading: 6 Writing: 179 Waiting: 106 \n";

    #[test]
    fn the_page_is_read_whole_or_not_at_all() {
        let mut readings = Readings::default();
        assert_eq!(read(PAGE, &mut readings), Some(()));
        let values: Vec<f64> = readings.as_slice().iter().map(|own| own.value).collect();
        assert_eq!(values, [291.0, 6.0, 179.0, 106.0, 16_630_948.0, 16_630_947.0, 31_070_465.0]);
        let mut none = Readings::default();
        for (at, _) in PAGE.char_indices().filter(|(at, _)| *at < PAGE.len() - 6) {
            assert_eq!(read(PAGE.split_at(at).0, &mut none), None, "{at}");
        }
        assert!(none.is_empty());
    }
}
