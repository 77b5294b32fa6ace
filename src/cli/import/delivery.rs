//! Sends batches in order, one request at a time, until the daemon has answered for them.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, bail};
use granary_protocol::{
    BSON_MEDIA_TYPE, ErrorAnswer, INGEST_PATH, IngestAnswer, SeriesDefinition, encode_batch,
};
use ureq::http::header::RETRY_AFTER;

use super::{
    files::Input,
    summary::{Summary, shown},
};
use crate::{clock::Stopwatch, import::batcher::NumberedBatch, model::SeriesInfo};

/// Bounds of one request; one batch is sent whatever its size.
const REQUEST_SAMPLES_MAX: usize = 60_000;
const REQUEST_BATCHES_MAX: usize = 256;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Pauses between tries, each twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The longest pause that the daemon can ask for.
const ASKED_PAUSE_MAX: Duration = Duration::from_secs(60);

/// A batch and the file that it is from.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) file: usize,
    pub(super) own: NumberedBatch,
}

/// The series of a file by their refs.
#[derive(Debug, Default)]
struct Known {
    definitions: Vec<SeriesInfo>,
    /// Whether the daemon was told, over this connection.
    defined: Vec<bool>,
}

/// The daemon, what waits for it, and what it answered.
#[derive(Debug)]
pub(super) struct Delivery {
    http: ureq::Agent,
    url: String,
    retry_for: Duration,
    /// Whether the daemon ever answered.
    reached: bool,
    files: BTreeMap<usize, Known>,
}

/// What became of a request.
enum Outcome {
    Acknowledged(IngestAnswer),
    UnknownRefs,
    TooLarge(String),
    /// Not in this form, also not later.
    Refused(String),
    Retry {
        after: Option<Duration>,
        cause: String,
        answered: bool,
    },
}

impl Delivery {
    pub(super) fn new(url: &str, retry_for: Duration) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("granary-import/", env!("CARGO_PKG_VERSION")));
        let url = url.trim_end_matches('/').to_owned();
        let http = config.build().into();
        Self { http, url, retry_for, reached: false, files: BTreeMap::new() }
    }

    /// Whether a request has no room for more.
    pub(super) fn is_full(group: &[Parcel]) -> bool {
        let samples: usize = group.iter().map(|parcel| parcel.own.batch.refs.len()).sum();
        samples >= REQUEST_SAMPLES_MAX || group.len() >= REQUEST_BATCHES_MAX
    }

    /// Sends the batches and takes note of what became of them.
    pub(super) fn send(
        &mut self,
        mut group: Vec<Parcel>,
        inputs: &[Input],
        summary: &mut Summary,
        read: u64,
    ) -> anyhow::Result<()> {
        let Some(last) = group.last().map(|parcel| parcel.file) else { return Ok(()) };
        for parcel in &mut group {
            let known = self.files.entry(parcel.file).or_default();
            known.definitions.append(&mut parcel.own.new);
            known.defined.resize(known.definitions.len(), false);
        }
        // Halved where the daemon says that a request is too large; in order all the same.
        let mut waiting = vec![group];
        while let Some(mut part) = waiting.pop() {
            match self.send_part(&mut part, summary)? {
                Ok(answer) => {
                    let samples = part.iter().map(|parcel| parcel.own.batch.refs.len() as u64);
                    show_refused(&part, &answer, inputs, summary);
                    summary.add_answer(samples.sum(), answer, read);
                }
                Err(_) if part.len() > 1 => {
                    let second = part.split_off(part.len() / 2);
                    waiting.push(second);
                    waiting.push(part);
                }
                Err(cause) => bail!("{}: {cause}", place(&part, inputs)),
            }
        }
        // No batch of an earlier file is to come.
        self.files.retain(|file, _| *file >= last);
        Ok(())
    }

    /// One request, again and again until it is answered; the inner error is that it is too
    /// large.
    fn send_part(
        &mut self,
        part: &mut [Parcel],
        summary: &Summary,
    ) -> anyhow::Result<Result<IngestAnswer, String>> {
        let watch = Stopwatch::start();
        let mut pause = PAUSE_MIN;
        let mut told = false;
        let mut defined_all = false;
        loop {
            let body = self.encode(part);
            let (after, cause, answered) = match self.post(&body) {
                Outcome::Acknowledged(answer) => {
                    self.reached = true;
                    return Ok(Ok(answer));
                }
                Outcome::TooLarge(cause) => {
                    self.forget_defined();
                    return Ok(Err(cause));
                }
                Outcome::Refused(cause) => bail!("{} refused a batch: {cause}", self.url),
                Outcome::UnknownRefs if !defined_all => {
                    defined_all = true;
                    self.forget_defined();
                    continue;
                }
                Outcome::UnknownRefs => (None, "it forgets definitions".to_owned(), true),
                Outcome::Retry { after, cause, answered } => (after, cause, answered),
            };
            // Another connection may lead to a worker that was told nothing.
            self.forget_defined();
            if !self.reached && !answered {
                bail!(
                    "cannot reach granary at {}: {cause}; is the daemon running? --url says where \
                     it listens",
                    self.url
                );
            }
            if watch.elapsed() > self.retry_for {
                bail!("no batch was accepted for {:?} (--retry-for): {cause}", self.retry_for);
            }
            // A busy daemon is nothing to speak of.
            let is_busy = answered && cause.starts_with("429");
            if !told && !is_busy {
                told = true;
                summary.say(&format!("{}: {cause}; trying again", self.url));
            }
            std::thread::sleep(pause.max(after.unwrap_or_default().min(ASKED_PAUSE_MAX)));
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn forget_defined(&mut self) {
        for known in self.files.values_mut() {
            known.defined.fill(false);
        }
    }

    /// The request's body, with the definitions that the daemon was not told yet.
    fn encode(&mut self, part: &mut [Parcel]) -> Vec<u8> {
        let mut body = Vec::new();
        for parcel in part {
            let known = self.files.entry(parcel.file).or_default();
            let batch = &mut parcel.own.batch;
            batch.series.clear();
            for reference in &batch.refs {
                let index = *reference as usize;
                if let Some(defined) = known.defined.get_mut(index)
                    && !std::mem::replace(defined, true)
                {
                    batch.series.push(definition(*reference, &known.definitions[index]));
                }
            }
            encode_batch(batch, &mut body);
        }
        body
    }

    fn post(&self, body: &[u8]) -> Outcome {
        let request = self.http.post(format!("{}{INGEST_PATH}", self.url));
        let mut response = match request.content_type(BSON_MEDIA_TYPE).send(body) {
            Ok(response) => response,
            Err(cause) => {
                let cause = cause.to_string();
                return Outcome::Retry { after: None, cause, answered: false };
            }
        };
        let status = response.status().as_u16();
        let after = response.headers().get(RETRY_AFTER);
        let after = after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let after = after.map(Duration::from_secs);
        let read = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let answered = true;
        match read.context("read the answer") {
            Ok(text) => interpret(status, after, &text),
            Err(cause) => Outcome::Retry { after, cause: format!("{cause:#}"), answered },
        }
    }
}

/// Shows what the daemon refused.
fn show_refused(part: &[Parcel], answer: &IngestAnswer, inputs: &[Input], summary: &mut Summary) {
    for example in &answer.examples {
        if example.reason == crate::policy::RefusalReason::StaleNumber.as_str() {
            continue;
        }
        let message = format!("{}: {}", example.series, example.message);
        summary.example(&place(part, inputs), &example.reason, &message);
    }
}

fn definition(reference: u32, own: &SeriesInfo) -> SeriesDefinition {
    SeriesDefinition {
        reference,
        metric: own.key.metric().to_owned(),
        tags: own.key.tags().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        kind: own.kind,
        unit: own.unit.to_string(),
    }
}

/// From where to where the batches of a request come.
fn place(part: &[Parcel], inputs: &[Input]) -> String {
    let (Some(first), Some(last)) = (part.first(), part.last()) else { return String::new() };
    let begin = shown(&inputs[first.file].path, first.own.places.0);
    let end = last.own.places.1;
    if first.file == last.file {
        if end == 0 { begin } else { format!("{begin}-{end}") }
    } else {
        format!("{begin} to {}", shown(&inputs[last.file].path, end))
    }
}

/// What status and body mean.
fn interpret(status: u16, after: Option<Duration>, body: &[u8]) -> Outcome {
    let answered = true;
    if status == 200 {
        return match serde_json::from_slice(body) {
            Ok(answer) => Outcome::Acknowledged(answer),
            Err(_) => Outcome::Refused("the answer is none of granary's".to_owned()),
        };
    }
    let answer: Option<ErrorAnswer> = serde_json::from_slice(body).ok();
    let (word, message) = answer.map_or_else(Default::default, |own| (own.error, own.message));
    let cause = format!("{status} {word} {message}").trim_end().to_owned();
    match status {
        409 if word == "unknown_refs" => Outcome::UnknownRefs,
        413 => Outcome::TooLarge(cause),
        408 | 429 | 500..=599 => Outcome::Retry { after, cause, answered },
        _ => Outcome::Refused(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_meaning() {
        let error = |word: &str| format!(r#"{{"error":"{word}","message":"m"}}"#).into_bytes();
        let of = |status, body: &[u8]| match interpret(status, None, body) {
            Outcome::Acknowledged(_) => "acknowledged",
            Outcome::UnknownRefs => "unknown refs",
            Outcome::TooLarge(_) => "too large",
            Outcome::Refused(_) => "refused",
            Outcome::Retry { .. } => "retry",
        };
        assert_eq!(of(200, br#"{"accepted":3,"duplicates":1}"#), "acknowledged");
        assert_eq!(of(200, b"<html>"), "refused");
        assert_eq!(of(409, &error("unknown_refs")), "unknown refs");
        assert_eq!(of(413, &error("too_large")), "too large");
        for status in [400, 401, 404, 405] {
            assert_eq!(of(status, b""), "refused", "{status}");
        }
        for status in [408, 429, 500, 503, 507] {
            assert_eq!(of(status, b""), "retry", "{status}");
        }
    }
}
