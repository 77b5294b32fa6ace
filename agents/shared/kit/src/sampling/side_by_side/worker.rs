//! The thread of one source: requests, late answers, and the series that end.
//!
//! Must never know: other sources.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Duration,
};

use granary_protocol::STALE_MARKER;

use crate::{
    KnownReading, Reading, Readings, Series, Source, SourceError, WatchedHost,
    sampling::refs::key_of_reading,
};

/// The stack size of a source's thread: sources read files and answers, without deep calls.
const STACK_BYTES: usize = 512 * 1024;

/// A request to a source's thread.
pub(super) struct SampleRequest {
    pub(super) tick_ms: i64,
    /// True for a single round.
    pub(super) is_alone: bool,
}

/// The readings of a source, with their tick.
struct Answer {
    tick_ms: i64,
    readings: Readings,
    result: Result<(), SourceError>,
}

/// The thread of a source, as seen by the sampling thread.
#[derive(Debug)]
pub(super) struct Worker {
    object: String,
    interval_ms: i64,
    /// The time of the previous round.
    last_round_ms: Option<i64>,
    requests: SyncSender<SampleRequest>,
    answers: Receiver<Answer>,
    /// The tick of the pending request.
    pending_ms: Option<i64>,
    has_ended: bool,
    last_report: LastReport,
    /// The monitored hosts of the last answer.
    last_watched: Vec<WatchedHost>,
    last_series: LastSeries,
}

/// The series of the last answer, by canonical text.
#[derive(Debug, Default)]
struct LastSeries(HashMap<String, Arc<Series>>);

/// The parts of an answer that remain valid until the next answer.
#[derive(Debug, Default)]
struct LastReport {
    problems: BTreeMap<String, String>,
    watched: Vec<WatchedHost>,
}

impl Worker {
    pub(super) fn start(
        interval: Duration,
        mut source: Box<dyn Source + Send>,
    ) -> std::io::Result<Self> {
        let (requests, request_receiver) = sync_channel::<SampleRequest>(1);
        let (answer_sender, answers) = sync_channel(1);
        let object = source.object();
        let builder = thread::Builder::new().name(source.name().to_owned()).stack_size(STACK_BYTES);
        builder.spawn(move || {
            for SampleRequest { tick_ms, is_alone } in request_receiver {
                let mut readings = Readings::default();
                let result = if is_alone {
                    source.sample_alone(tick_ms, &mut readings)
                } else {
                    source.sample(tick_ms, &mut readings)
                };
                if answer_sender.send(Answer { tick_ms, readings, result }).is_err() {
                    return;
                }
            }
        })?;
        let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX).max(1);
        let (last_report, pending_ms) = (LastReport::default(), None);
        let last_series = LastSeries::default();
        Ok(Self {
            object,
            interval_ms,
            last_round_ms: None,
            requests,
            answers,
            pending_ms,
            has_ended: false,
            last_report,
            last_watched: Vec::new(),
            last_series,
        })
    }

    /// Returns the object that the source reports.
    pub(super) fn object(&self) -> &str {
        &self.object
    }

    /// Ends the series of the source, and its monitored hosts.
    pub(super) fn end(mut self, now_ms: i64, readings: &mut Readings) {
        let mut ended = Readings::default();
        self.last_series.update(&mut ended, now_ms);
        readings.append(ended);
        for host in self.last_watched {
            readings.watched(WatchedHost { is_ending: true, ..host });
        }
    }

    /// Collects late answers and sends the request of this round, unless the previous request is
    /// pending.
    pub(super) fn request(&mut self, request: &SampleRequest, readings: &mut Readings) {
        if self.pending_ms.is_some()
            && let Ok(answer) = self.answers.try_recv()
        {
            self.accept_answer(answer, request.tick_ms, readings);
        }
        let is_due = request.is_alone || self.is_due(request.tick_ms);
        self.last_round_ms = Some(request.tick_ms);
        if self.pending_ms.is_some() || !is_due {
            return;
        }
        match self.requests.try_send(SampleRequest { ..*request }) {
            Ok(()) => self.pending_ms = Some(request.tick_ms),
            Err(TrySendError::Disconnected(_)) => self.has_ended = true,
            Err(TrySendError::Full(_)) => {}
        }
    }

    /// Returns true when the time of this round, or a time since the previous round, is a multiple of
    /// the interval.
    fn is_due(&self, round_ms: i64) -> bool {
        let intervals = |time_ms: i64| time_ms.div_euclid(self.interval_ms);
        round_ms % self.interval_ms == 0
            || self.last_round_ms.is_some_and(|last_ms| intervals(last_ms) < intervals(round_ms))
    }

    /// Waits for the answer to the request of this round. For an older request, only an answer that
    /// has already arrived is used.
    pub(super) fn wait_for_answer(&mut self, now_ms: i64, left: Duration, readings: &mut Readings) {
        if let Some(pending_ms) = self.pending_ms {
            let left = if pending_ms == now_ms { left } else { Duration::ZERO };
            match self.answers.recv_timeout(left) {
                Ok(answer) => self.accept_answer(answer, now_ms, readings),
                Err(RecvTimeoutError::Timeout) if self.is_overdue(pending_ms, now_ms) => {
                    let overdue_for = Duration::from_millis(now_ms.abs_diff(pending_ms));
                    self.last_report = LastReport::default();
                    return readings
                        .problem(&*self.object, format!("no answer for {overdue_for:?}"));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    (self.pending_ms, self.has_ended) = (None, true);
                }
            }
        }
        if self.has_ended {
            self.last_report = LastReport::default();
            readings.problem(&*self.object, "the thread of the source has ended");
        }
        self.last_report.clone_into(readings);
    }

    /// Returns true when another request was due in the meantime.
    fn is_overdue(&self, requested_ms: i64, now_ms: i64) -> bool {
        requested_ms.abs_diff(now_ms) >= self.interval_ms.unsigned_abs() && requested_ms != now_ms
    }

    fn accept_answer(&mut self, answer: Answer, now_ms: i64, readings: &mut Readings) {
        self.pending_ms = None;
        let Answer { tick_ms, readings: mut answered, result } = answer;
        if let Err(cause) = result {
            answered.problem(&*self.object, cause);
        }
        self.last_report =
            LastReport { problems: answered.problems().clone(), watched: answered.take_watched() };
        self.last_watched.clone_from(&self.last_report.watched);
        self.last_series.update(&mut answered, tick_ms);
        if tick_ms == now_ms {
            readings.append(answered);
        } else {
            readings.append_at(answered, tick_ms);
        }
    }
}

impl LastSeries {
    /// Ends the series that are missing in an answer, such as the series of a removed server. The
    /// source itself ends series whose readings have their own times.
    fn update(&mut self, answer: &mut Readings, time_ms: i64) {
        let mut missing = std::mem::take(&mut self.0);
        for reading in answer.as_slice() {
            let key = key_of_reading(reading);
            let series = missing.remove(&key).unwrap_or_else(|| {
                let tags = reading.tags.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
                let Reading { metric, kind, unit, .. } = reading;
                Arc::new(Series::new(&**metric, tags, *kind, &**unit))
            });
            self.0.insert(key, series);
        }
        let mut ended_series: Vec<_> = missing.into_iter().collect();
        ended_series.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        for (_, series) in ended_series {
            answer.push_known(KnownReading {
                series,
                value: STALE_MARKER,
                time_ms,
                start_ms: None,
                histogram: None,
            });
        }
    }
}

impl LastReport {
    fn clone_into(&self, readings: &mut Readings) {
        self.problems.iter().for_each(|(object, cause)| readings.problem(object.clone(), cause));
        self.watched.iter().for_each(|host| readings.watched(host.clone()));
    }
}
