//! The lookup of a `mongodb+srv://` URI in a thread of its own, once a round until DNS answers: a
//! resolver that is not ready when the agent starts delays no other server.

use std::sync::{Arc, Mutex, PoisonError};

use granary_agent_kit::{Readings, Source, SourceError};
use granary_dns::Resolver;

use crate::{settings::TargetSettings, srv::SrvUri};

/// A target whose servers are unknown until its records are read.
#[derive(Debug)]
pub(crate) struct Unresolved {
    settings: TargetSettings,
    /// The URI with the hosts of the records.
    uri: Arc<Mutex<Option<String>>>,
    /// The name of the lookup in messages.
    pub(crate) object: String,
}

/// The lookup, as a source without metrics.
#[derive(Debug)]
pub(crate) struct Lookup {
    srv: SrvUri,
    /// `None` for the servers of /etc/resolv.conf, which can change between two rounds.
    resolver: Option<Resolver>,
    uri: Arc<Mutex<Option<String>>>,
    object: String,
}

impl Unresolved {
    /// Creates the lookup of a target.
    pub(crate) fn new(
        settings: TargetSettings,
        srv: SrvUri,
        resolver: Option<Resolver>,
    ) -> (Self, Lookup) {
        let (uri, object) = (Arc::default(), format!("mongodb+srv {}", srv.name()));
        let lookup = Lookup { srv, resolver, uri: Arc::clone(&uri), object: object.clone() };
        (Self { settings, uri, object }, lookup)
    }

    /// Returns the target with its servers after a lookup that succeeded.
    pub(crate) fn resolved(&self) -> Option<TargetSettings> {
        let uri = self.uri.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(TargetSettings { uri, ..self.settings.clone() })
    }
}

impl Source for Lookup {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn object(&self) -> String {
        self.object.clone()
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let resolver = self.resolver.clone().unwrap_or_else(Resolver::of_this_machine);
        match self.srv.resolve(&resolver) {
            Ok(uri) => *self.uri.lock().unwrap_or_else(PoisonError::into_inner) = Some(uri),
            Err(cause) => readings.problem(
                self.object.clone(),
                format!("its servers are unknown until DNS answers; each round retries: {cause}"),
            ),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use granary_dns::{Answer, Record, serve};

    use super::*;
    use crate::{MongoDb, Settings};

    const LONG: Duration = Duration::from_secs(60);

    fn agent(uris: &[&str], resolver: &Resolver) -> MongoDb {
        let targets = uris.iter().map(|uri| TargetSettings::new((*uri).to_owned())).collect();
        let settings =
            Settings { targets, timeout: Duration::from_millis(400), ..Settings::default() };
        MongoDb::with_deadline(&settings, Duration::from_millis(1), LONG, Some(resolver)).unwrap()
    }

    fn hosts_sampled(readings: &Readings) -> Vec<&str> {
        let up = readings.as_slice().iter().filter(|reading| reading.metric == "mongodb_up");
        let tags = up.flat_map(|reading| &reading.tags);
        tags.filter(|(name, _)| name == "host").map(|(_, host)| host.as_str()).collect()
    }

    fn failed() -> Answer {
        Answer { code: 2, ..Answer::default() }
    }

    fn record(host: &str) -> Answer {
        Answer::of(&[Record::Service(host.to_owned(), 1)])
    }

    /// Regression: an agent that started before its name server ended, with all other collectors.
    #[test]
    fn a_name_that_dns_cannot_answer_at_the_start_is_looked_up_again_in_each_round() {
        // A round has two attempts. The second query of the last one is the TXT record.
        let answers = [failed(), failed(), record("db1.prod.example"), Answer::default()];
        let resolver = serve(answers.to_vec()).unwrap();
        let uris = ["mongodb+srv://ann:s3cret@x.prod.example", "mongodb://127.0.0.1:1"];
        let mut agent = agent(&uris, &resolver);
        let mut readings = Readings::default();
        agent.sample(1000, &mut readings).unwrap();
        assert_eq!(hosts_sampled(&readings), ["127.0.0.1:1"]);
        let cause = &readings.problems()["mongodb+srv x.prod.example"];
        assert!(cause.contains("each round retries") && cause.contains("ServerFailure"), "{cause}");
        assert!(!cause.contains("s3cret"), "{cause}");
        for time in [2000, 3000] {
            readings = Readings::default();
            agent.sample(time, &mut readings).unwrap();
        }
        assert_eq!(hosts_sampled(&readings), ["127.0.0.1:1", "db1.prod.example:1"]);
        let has_lookup = readings.problems().keys().any(|object| object.contains("srv"));
        assert!(!has_lookup, "the lookup has ended: {:?}", readings.problems());
    }

    #[test]
    fn a_single_round_contains_the_servers_of_the_records() {
        let answers = vec![record("db1.prod.example"), Answer::default()];
        let mut agent = agent(&["mongodb+srv://x.prod.example"], &serve(answers).unwrap());
        let mut readings = Readings::default();
        agent.sample_alone(1000, &mut readings).unwrap();
        assert_eq!(hosts_sampled(&readings), ["db1.prod.example:1"]);
    }

    #[test]
    fn a_server_that_is_a_target_already_is_reported() {
        let answers = vec![record("db1.prod.example"), Answer::default()];
        let uris = ["mongodb+srv://x.prod.example", "mongodb://db1.prod.example:1"];
        let mut agent = agent(&uris, &serve(answers).unwrap());
        agent.sample(1000, &mut Readings::default()).unwrap();
        let mut readings = Readings::default();
        agent.start_resolved(2000, &mut readings);
        let cause = &readings.problems()["mongodb+srv x.prod.example"];
        assert!(cause.contains("two targets have this name"), "{cause}");
        assert_eq!(agent.unresolved.len(), 1);
    }

    #[test]
    fn an_invalid_uri_and_a_repeated_name_are_errors_at_the_start() {
        for (uris, part) in [
            (vec!["mongodb+srv://x.prod.example:27017"], "without a port"),
            (vec!["mongodb+srv://x.prod.example"; 2], "two targets have this name"),
        ] {
            let targets = uris.iter().map(|uri| TargetSettings::new((*uri).to_owned())).collect();
            let settings = Settings { targets, ..Settings::default() };
            let fault = MongoDb::new(&settings, LONG).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
    }
}
