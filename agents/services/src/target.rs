//! A server of any kind: its tags, whether it is up, and the duration of a sample.
//!
//! Must never know: the queries.

use std::{
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
};

use granary_agent_kit::{Readings, Source, SourceError, Stopwatch};

use crate::{
    Kind,
    settings::{ServerAddress, Service},
};

/// The collector of a server.
pub(crate) trait Collector: Send + std::fmt::Debug {
    /// Adds the readings of the server. A closed connection is opened again.
    ///
    /// # Errors
    /// The reason why the server does not answer; its readings are discarded.
    fn collect(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), String>;
}

/// A server of an agent.
#[derive(Debug)]
pub(crate) struct Target {
    kind: Kind,
    address: String,
    tags: Vec<(String, String)>,
    collector: Box<dyn Collector>,
}

impl Target {
    pub(crate) fn new(
        kind: Kind,
        service: &Service,
        collector: Box<dyn Collector>,
        agent: &str,
    ) -> Self {
        let address = service.address.clone();
        let host = service.host.clone().unwrap_or_else(|| host_of_service(kind, service, agent));
        let default_tags = [("host".to_owned(), host), ("instance".to_owned(), address.clone())];
        let default_tags =
            default_tags.into_iter().filter(|(name, _)| !service.tags.contains_key(name));
        let tags = default_tags.chain(service.tags.clone()).collect();
        Self { kind, address, tags, collector }
    }
}

/// Returns the host of a server: the agent's name for a server on this machine, otherwise the host
/// of its address.
fn host_of_service(kind: Kind, service: &Service, agent: &str) -> String {
    let authority = match kind {
        Kind::Nginx => {
            let (_, rest) = service.address.split_once("://").unwrap_or(("", &service.address));
            rest.split('/').next().unwrap_or_default().to_owned()
        }
        Kind::Redis | Kind::Postgres | Kind::MySql => service.address.clone(),
    };
    let address = Service { address: authority, ..service.clone() }.server_address(0);
    let ServerAddress::Tcp(host, _) = address else { return agent.to_owned() };
    let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_loopback || host == "localhost" { agent.to_owned() } else { host }
}

impl Source for Target {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let watch = Stopwatch::start();
        let kind = self.kind.name();
        let mut collected = Readings::new(self.tags.clone());
        let result =
            catch_unwind(AssertUnwindSafe(|| self.collector.collect(now_ms, &mut collected)));
        // When a library panics at an invalid response, its connection is dropped.
        let outcome = result.unwrap_or_else(|_| Err("the response cannot be parsed".to_owned()));
        let mut own_readings = Readings::new(self.tags.clone());
        own_readings.gauge(format!("{kind}_up"), "", &[], f64::from(u8::from(outcome.is_ok())));
        let duration_s = watch.elapsed().as_secs_f64();
        own_readings.gauge(format!("{kind}_collect_duration"), "seconds", &[], duration_s);
        match outcome {
            Ok(()) => own_readings.append(collected),
            Err(cause) => own_readings.problem(format!("{kind} {}", self.address), cause),
        }
        readings.append(own_readings);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::service_at;

    #[test]
    fn a_server_on_this_machine_has_the_agents_name() {
        let check = |kind, address: &str, expected: &str| {
            assert_eq!(host_of_service(kind, &service_at(address), "web1"), expected, "{address}");
        };
        check(Kind::Redis, "127.0.0.1:6379", "web1");
        check(Kind::Redis, "localhost", "web1");
        check(Kind::Redis, "cache1:6379", "cache1");
        check(Kind::Postgres, "/run/postgresql", "web1");
        check(Kind::MySql, "[::1]:3306", "web1");
        check(Kind::Nginx, "http://127.0.0.1:8080/status", "web1");
        check(Kind::Nginx, "https://www.example/status", "www.example");
    }
}
