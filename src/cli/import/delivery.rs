//! Sends batches in order, one request at a time; each request is repeated until it is answered.

use std::{collections::BTreeMap, time::Duration};

use anyhow::bail;
use granary_protocol::{IngestAnswer, SeriesDefinition, encode_batch};

use super::{
    files::Input,
    parcel::{Parcel, request_location},
    request::{Connection, Outcome},
    summary::Summary,
};
use crate::{cli::http::Daemon, clock::Stopwatch, model::SeriesInfo, policy::RefusalReason};

/// The maximum number of samples in a request; a larger batch is sent alone.
const REQUEST_SAMPLES_MAX: usize = 60_000;
/// The maximum bytes of histograms in a request; a larger batch is sent alone.
const REQUEST_HISTOGRAM_BYTES_MAX: usize = 1 << 20;
/// The maximum number of batches in a request.
const REQUEST_BATCHES_MAX: usize = 256;
/// The first pause between retries; each pause is twice as long as the previous one.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause between retries.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The longest pause that the daemon can request.
const REQUESTED_PAUSE_MAX: Duration = Duration::from_secs(60);

/// The series of a file by their refs.
#[derive(Debug, Default)]
struct FileSeries {
    definitions: Vec<SeriesInfo>,
    /// True for series whose definition was sent on the present connection.
    defined: Vec<bool>,
}

/// The connection to the daemon, with the series of the files that are being sent.
#[derive(Debug)]
pub(super) struct Delivery {
    connection: Connection,
    retry_for: Duration,
    /// True after the first acknowledgement.
    reached: bool,
    files: BTreeMap<usize, FileSeries>,
}

impl Delivery {
    pub(super) fn new(daemon: &Daemon, retry_for: Duration) -> anyhow::Result<Self> {
        let connection = Connection::new(daemon)?;
        Ok(Self { connection, retry_for, reached: false, files: BTreeMap::new() })
    }

    /// Returns true when a request has no room for another batch.
    pub(super) fn is_full(group: &[Parcel]) -> bool {
        let samples: usize = group.iter().map(|parcel| parcel.numbered.batch.refs.len()).sum();
        let histograms: usize =
            group.iter().map(|parcel| parcel.numbered.batch.histograms.len()).sum();
        samples >= REQUEST_SAMPLES_MAX
            || histograms >= REQUEST_HISTOGRAM_BYTES_MAX
            || group.len() >= REQUEST_BATCHES_MAX
    }

    /// Sends the batches, and counts the answers.
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
            known.definitions.append(&mut parcel.numbered.new);
            known.defined.resize(known.definitions.len(), false);
        }
        // A request that is too large for the daemon is split in two; the order is kept.
        let mut waiting = vec![group];
        while let Some(mut part) = waiting.pop() {
            match self.send_part(&mut part, summary)? {
                Ok(answer) => {
                    let samples = part.iter().map(|parcel| parcel.numbered.batch.refs.len() as u64);
                    show_refused(&part, &answer, inputs, summary);
                    summary.add_answer(samples.sum(), answer, read);
                }
                Err(_) if part.len() > 1 => {
                    let second = part.split_off(part.len() / 2);
                    waiting.push(second);
                    waiting.push(part);
                }
                Err(cause) => bail!("{}: {cause}", request_location(&part, inputs)),
            }
        }
        // Files are sent in order, so earlier files are complete.
        self.files.retain(|file, _| *file >= last);
        Ok(())
    }

    /// Sends one request until it is answered. The inner error means that the request is too large.
    fn send_part(
        &mut self,
        part: &mut [Parcel],
        summary: &Summary,
    ) -> anyhow::Result<Result<IngestAnswer, String>> {
        let watch = Stopwatch::start();
        let mut pause = PAUSE_MIN;
        let mut is_reported = false;
        let mut defined_all = false;
        loop {
            let body = self.encode(part);
            let (after, cause, answered) = match self.connection.post(&body) {
                Outcome::Acknowledged(answer) => {
                    self.reached = true;
                    return Ok(Ok(answer));
                }
                Outcome::TooLarge(cause) => {
                    self.reset_defined();
                    return Ok(Err(cause));
                }
                Outcome::Refused(cause) => {
                    bail!("{} refused a batch: {cause}", self.connection.url())
                }
                Outcome::UnknownRefs if !defined_all => {
                    defined_all = true;
                    self.reset_defined();
                    continue;
                }
                Outcome::UnknownRefs => {
                    (None, "the daemon does not keep definitions".to_owned(), true)
                }
                Outcome::Retry { after, cause, answered } => (after, cause, answered),
            };
            // The next connection may reach a worker without the definitions.
            self.reset_defined();
            if !self.reached && !answered {
                bail!(
                    "cannot reach granary at {}: {cause}; is the daemon running? Set its \
                     address with --url",
                    self.connection.url()
                );
            }
            if watch.elapsed() > self.retry_for {
                bail!("no batch was accepted for {:?} (--retry-for): {cause}", self.retry_for);
            }
            // A busy daemon is normal.
            let is_busy = answered && cause.starts_with("429");
            if !is_reported && !is_busy {
                is_reported = true;
                summary.print_line(&format!("{}: {cause}; retrying", self.connection.url()));
            }
            std::thread::sleep(pause.max(after.unwrap_or_default().min(REQUESTED_PAUSE_MAX)));
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn reset_defined(&mut self) {
        for known in self.files.values_mut() {
            known.defined.fill(false);
        }
    }

    /// Encodes a request, with the definitions that were not sent yet.
    fn encode(&mut self, part: &mut [Parcel]) -> Vec<u8> {
        let mut body = Vec::new();
        for parcel in part {
            let known = self.files.entry(parcel.file).or_default();
            let batch = &mut parcel.numbered.batch;
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
}

/// Shows examples of refused samples.
fn show_refused(part: &[Parcel], answer: &IngestAnswer, inputs: &[Input], summary: &mut Summary) {
    for example in &answer.examples {
        if example.reason == RefusalReason::StaleNumber.as_str() {
            continue;
        }
        let message = format!("{}: {}", example.series, example.message);
        summary.example(&request_location(part, inputs), &example.reason, &message);
    }
}

fn definition(reference: u32, info: &SeriesInfo) -> SeriesDefinition {
    SeriesDefinition {
        reference,
        metric: info.key.metric().to_owned(),
        tags: info.key.tags().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        kind: info.kind,
        unit: info.unit.to_string(),
    }
}
