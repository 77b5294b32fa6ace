//! The ping: a report that an agent is alive, whether or not it has samples.
//!
//! Pings have no numbers and are not spooled: a lost ping is harmless; the next ping replaces it.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Path of the endpoint.
pub const PING_PATH: &str = "/api/v1/ping";

/// The maximum number of pings in a request.
pub const PINGS_PER_REQUEST_MAX: usize = 1000;

/// Returns the interval of pings: 30 s, or the sampling interval if it is longer, at most a minute.
pub fn ping_interval(sampling: Duration) -> Duration {
    sampling.clamp(Duration::from_secs(30), Duration::from_secs(60))
}

/// A report of an agent about itself or a monitored host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// The sender's name, as in its batches.
    pub agent: String,
    /// The host; default: the agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The kind of agent, such as `host`.
    pub program: String,
    /// The program's version.
    pub version: String,
    /// The start time of the agent, Unix milliseconds.
    pub started: i64,
    /// The boot time of the host, Unix milliseconds, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booted: Option<i64>,
    /// The sampling interval, in milliseconds.
    pub interval_ms: u64,
    /// The time of the agent's clock, Unix milliseconds.
    pub sent: i64,
    /// The tags of the host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// True when the agent monitors the host, and the host does not answer. The daemon lists the
    /// host as down.
    #[serde(default, skip_serializing_if = "is_false")]
    pub absent: bool,
    /// True for the last ping before a clean stop: the silence that follows is not a failure.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ending: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PingBody {
    /// The pings, up to [`PINGS_PER_REQUEST_MAX`].
    pub pings: Vec<Ping>,
}

/// The response to pings (status 200); a refused ping does not affect the others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PingAnswer {
    /// The number of accepted pings.
    pub accepted: u64,
    /// The refused pings.
    #[serde(default)]
    pub refused: Vec<RefusedPing>,
}

/// A refused ping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedPing {
    /// The agent, or the location of the ping when the agent is unreadable.
    pub agent: String,
    /// The reason.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBody<'a> {
    #[serde(borrow)]
    pings: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct AgentField {
    agent: String,
}

/// Parses a request's body; each ping is accepted or refused separately.
///
/// # Errors
/// The body is not a valid [`PingBody`] in JSON, or contains too many pings.
pub fn decode_pings(body: &[u8]) -> Result<Vec<Result<Ping, RefusedPing>>, String> {
    let raw: RawBody<'_> = serde_json::from_slice(body).map_err(|cause| cause.to_string())?;
    if raw.pings.len() > PINGS_PER_REQUEST_MAX {
        return Err(format!("more than {PINGS_PER_REQUEST_MAX} pings in one request"));
    }
    let decode = |(index, raw): (usize, &RawValue)| {
        serde_json::from_str(raw.get()).map_err(|cause| {
            let agent_field = serde_json::from_str::<AgentField>(raw.get());
            let agent = agent_field.map_or_else(|_| format!("pings.{index}"), |ping| ping.agent);
            RefusedPing { agent, reason: cause.to_string() }
        })
    };
    Ok(raw.pings.into_iter().enumerate().map(decode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(agent: &str) -> Ping {
        Ping {
            agent: agent.to_owned(),
            program: "host".to_owned(),
            version: "0.1.0".to_owned(),
            started: 5,
            interval_ms: 10_000,
            sent: 7,
            tags: [("role".to_owned(), "db".to_owned())].into(),
            ..Ping::default()
        }
    }

    #[test]
    fn a_malformed_ping_does_not_affect_the_others() {
        let body = PingBody { pings: vec![ping("a"), ping("b"), ping("c")] };
        let mut json = serde_json::to_value(&body).unwrap();
        let text = json.to_string();
        assert_eq!(
            decode_pings(text.as_bytes()).unwrap().into_iter().collect::<Result<Vec<_>, _>>(),
            Ok(body.pings)
        );
        json["pings"][0]["started"] = "soon".into();
        json["pings"][2] = 3.into();
        let decoded = decode_pings(json.to_string().as_bytes()).unwrap();
        assert_eq!(decoded[0].as_ref().unwrap_err().agent, "a");
        assert_eq!(decoded[1], Ok(ping("b")));
        assert_eq!(decoded[2].as_ref().unwrap_err().agent, "pings.2");
    }

    #[test]
    fn a_body_is_bounded() {
        let body = |count| PingBody { pings: vec![ping("a"); count] };
        let json = |count| serde_json::to_vec(&body(count)).unwrap();
        assert_eq!(decode_pings(&json(PINGS_PER_REQUEST_MAX)).unwrap().len(), 1000);
        assert!(decode_pings(&json(PINGS_PER_REQUEST_MAX + 1)).is_err());
        assert!(decode_pings(b"[]").is_err());
    }

    #[test]
    fn an_agent_pings_at_least_once_a_minute() {
        for (sampling, pings) in [(1, 30), (10, 30), (45, 45), (3600, 60)] {
            let sampling = Duration::from_secs(sampling);
            assert_eq!(ping_interval(sampling), Duration::from_secs(pings));
        }
    }
}
