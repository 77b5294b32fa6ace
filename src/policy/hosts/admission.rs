//! Admission of pings: checks of the times, and of the sizes of all parts.

use granary_protocol::{AGENT_BYTES_MAX, Ping};

use crate::model::{OWN_SENDER_PREFIX, UnixMillis, is_own_sender};

/// The maximum size of a host's name, in bytes.
const HOST_BYTES_MAX: usize = 256;
/// The maximum size of a program's name and of its version, in bytes.
const WORD_BYTES_MAX: usize = 64;
/// The maximum number of a host's tags.
const TAGS_MAX: usize = 32;
/// The maximum size of all tags of a host, in bytes.
const TAG_BYTES_MAX: usize = 2048;
/// The maximum time between two samples, in milliseconds: a day.
const INTERVAL_MS_MAX: u64 = 86_400_000;

/// Checks a ping; the error describes the fault.
pub(super) fn check(ping: &Ping) -> Result<(), String> {
    word("agent", &ping.agent, AGENT_BYTES_MAX)?;
    if is_own_sender(&ping.agent) {
        return Err(format!(
            "names of agents that begin with {OWN_SENDER_PREFIX:?} are reserved for the daemon"
        ));
    }
    if let Some(host) = &ping.host {
        word("host", host, HOST_BYTES_MAX)?;
    }
    word("program", &ping.program, WORD_BYTES_MAX)?;
    word("version", &ping.version, WORD_BYTES_MAX)?;
    let times =
        [("started", Some(ping.started)), ("booted", ping.booted), ("sent", Some(ping.sent))];
    for (name, time) in times {
        let is_time = |at| (UnixMillis::MIN.0..=UnixMillis::MAX.0).contains(&at);
        if !time.is_none_or(is_time) {
            return Err(format!("{name} is not a valid time; send Unix milliseconds"));
        }
    }
    if !(1..=INTERVAL_MS_MAX).contains(&ping.interval_ms) {
        return Err(format!("interval_ms must be 1 to {INTERVAL_MS_MAX}"));
    }
    if ping.tags.len() > TAGS_MAX {
        return Err(format!("{} tags exceed the limit of {TAGS_MAX}", ping.tags.len()));
    }
    let bytes: usize = ping.tags.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > TAG_BYTES_MAX {
        return Err(format!("tags of {bytes} bytes exceed the limit of {TAG_BYTES_MAX}"));
    }
    if ping.tags.keys().any(|name| name.is_empty() || name.contains(char::is_control)) {
        return Err("the name of a tag is empty or has a control character".to_owned());
    }
    Ok(())
}

fn word(what: &str, text: &str, bytes_max: usize) -> Result<(), String> {
    if text.is_empty() || text.len() > bytes_max || text.contains(char::is_control) {
        return Err(format!(
            "{what} is empty, longer than {bytes_max} bytes, or has a control character"
        ));
    }
    Ok(())
}
