//! Concurrent sampling: each source has its own thread and interval.
//!
//! A slow source, such as a server that does not answer, does not delay the others. A round waits
//! for it up to a deadline; late readings are part of a later round, with the time of their
//! request. Must never know: what is measured.

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
    KnownReading, Reading, Readings, Series, Source, SourceError, WatchedHost, clock::Stopwatch,
    sampling::refs::key_of_reading,
};

/// The stack size of a source's thread: sources read files and answers, without deep calls.
const STACK_BYTES: usize = 512 * 1024;
/// The time that a round waits for network answers and programs; late answers are part of a later
/// round.
pub const ROUND_DEADLINE: Duration = Duration::from_millis(100);
/// The deadline of a single round.
const ALONE_DEADLINE: Duration = Duration::from_secs(60);

/// Several sources that are sampled as one.
#[derive(Debug)]
pub struct SideBySide {
    name: &'static str,
    deadline: Duration,
    workers: Vec<Worker>,
    booted_ms: Option<i64>,
}

/// A request to a source's thread.
struct Ask {
    tick_ms: i64,
    /// A single round.
    is_alone: bool,
}

/// The readings of a source, with their tick.
struct Answer {
    tick_ms: i64,
    readings: Readings,
    result: Result<(), SourceError>,
}

#[derive(Debug)]
struct Worker {
    place: String,
    every_ms: i64,
    asks: SyncSender<Ask>,
    answers: Receiver<Answer>,
    /// The tick of the pending request.
    asked: Option<i64>,
    has_ended: bool,
    last_report: LastReport,
    shown: Shown,
}

/// The series of the last answer, by canonical text.
#[derive(Debug, Default)]
struct Shown(HashMap<String, Arc<Series>>);

/// The parts of an answer that remain valid until the next one.
#[derive(Debug, Default)]
struct LastReport {
    problems: BTreeMap<String, String>,
    watched: Vec<WatchedHost>,
}

impl SideBySide {
    /// Starts a thread for each source. Each round samples every source and waits up to `deadline`.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn new(
        name: &'static str,
        deadline: Duration,
        sources: Vec<Box<dyn Source + Send>>,
    ) -> std::io::Result<Self> {
        let each_round = Duration::from_millis(1);
        Self::each_at(
            name,
            deadline,
            sources.into_iter().map(|source| (each_round, source)).collect(),
        )
    }

    /// Like [`SideBySide::new`], with an interval for each source: a source is sampled in the
    /// rounds whose times are multiples of its interval.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn each_at(
        name: &'static str,
        deadline: Duration,
        sources: Vec<(Duration, Box<dyn Source + Send>)>,
    ) -> std::io::Result<Self> {
        let booted_ms = sources.iter().find_map(|(_, source)| source.booted_ms());
        let start = |(every, source)| Worker::start(every, source);
        let workers = sources.into_iter().map(start).collect::<Result<_, _>>()?;
        Ok(Self { name, deadline, workers, booted_ms })
    }

    fn round(&mut self, ask: &Ask, deadline: Duration, readings: &mut Readings) {
        let watch = Stopwatch::start();
        self.workers.iter_mut().for_each(|worker| worker.ask(ask, readings));
        for worker in &mut self.workers {
            worker.wait(ask.tick_ms, watch.left_of(deadline), readings);
        }
    }
}

impl Source for SideBySide {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.round(&Ask { tick_ms: now_ms, is_alone: false }, self.deadline, readings);
        Ok(())
    }

    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.round(&Ask { tick_ms: now_ms, is_alone: true }, ALONE_DEADLINE, readings);
        Ok(())
    }

    fn booted_ms(&self) -> Option<i64> {
        self.booted_ms
    }
}

impl Worker {
    fn start(every: Duration, mut source: Box<dyn Source + Send>) -> std::io::Result<Self> {
        let (asks, to_sample) = sync_channel::<Ask>(1);
        let (done, answers) = sync_channel(1);
        let place = source.place();
        let builder = thread::Builder::new().name(source.name().to_owned()).stack_size(STACK_BYTES);
        builder.spawn(move || {
            for Ask { tick_ms, is_alone } in to_sample {
                let mut readings = Readings::default();
                let result = if is_alone {
                    source.sample_alone(tick_ms, &mut readings)
                } else {
                    source.sample(tick_ms, &mut readings)
                };
                if done.send(Answer { tick_ms, readings, result }).is_err() {
                    return;
                }
            }
        })?;
        let every_ms = i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1);
        let (last_report, asked) = (LastReport::default(), None);
        let shown = Shown::default();
        Ok(Self { place, every_ms, asks, answers, asked, has_ended: false, last_report, shown })
    }

    /// Collects late answers and sends the request of this round, unless the previous request is
    /// pending.
    fn ask(&mut self, ask: &Ask, readings: &mut Readings) {
        if self.asked.is_some()
            && let Ok(answer) = self.answers.try_recv()
        {
            self.take(answer, ask.tick_ms, readings);
        }
        if self.asked.is_some() || !(ask.is_alone || ask.tick_ms % self.every_ms == 0) {
            return;
        }
        match self.asks.try_send(Ask { ..*ask }) {
            Ok(()) => self.asked = Some(ask.tick_ms),
            Err(TrySendError::Disconnected(_)) => self.has_ended = true,
            Err(TrySendError::Full(_)) => {}
        }
    }

    /// Waits for the requests of this round only.
    fn wait(&mut self, now_ms: i64, left: Duration, readings: &mut Readings) {
        if let Some(asked) = self.asked {
            let left = if asked == now_ms { left } else { Duration::ZERO };
            match self.answers.recv_timeout(left) {
                Ok(answer) => self.take(answer, now_ms, readings),
                Err(RecvTimeoutError::Timeout) if self.is_overdue(asked, now_ms) => {
                    let since = Duration::from_millis(now_ms.abs_diff(asked));
                    self.last_report = LastReport::default();
                    return readings.problem(&*self.place, format!("no answer for {since:?}"));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    (self.asked, self.has_ended) = (None, true);
                }
            }
        }
        if self.has_ended {
            self.last_report = LastReport::default();
            readings.problem(&*self.place, "its thread has ended");
        }
        self.last_report.clone_into(readings);
    }

    /// Returns true when another request was due in the meantime.
    fn is_overdue(&self, asked_ms: i64, now_ms: i64) -> bool {
        asked_ms.abs_diff(now_ms) >= self.every_ms.unsigned_abs() && asked_ms != now_ms
    }

    fn take(&mut self, answer: Answer, now_ms: i64, readings: &mut Readings) {
        self.asked = None;
        let Answer { tick_ms, readings: mut late, result } = answer;
        if let Err(cause) = result {
            late.problem(&*self.place, cause);
        }
        self.last_report =
            LastReport { problems: late.problems().clone(), watched: late.take_watched() };
        self.shown.update(&mut late, tick_ms);
        if tick_ms == now_ms { readings.append(late) } else { readings.append_at(late, tick_ms) }
    }
}

impl Shown {
    /// Ends the series that are missing from an answer, such as those of a removed server. The
    /// source itself ends readings with their own times.
    fn update(&mut self, answer: &mut Readings, time_ms: i64) {
        let mut before = std::mem::take(&mut self.0);
        for reading in answer.as_slice() {
            let key = key_of_reading(reading);
            let series = before.remove(&key).unwrap_or_else(|| {
                let tags = reading.tags.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
                let Reading { metric, kind, unit, .. } = reading;
                Arc::new(Series::new(&**metric, tags, *kind, &**unit))
            });
            self.0.insert(key, series);
        }
        let mut ended: Vec<_> = before.into_iter().collect();
        ended.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (_, series) in ended {
            answer.push_known(KnownReading {
                series,
                value: STALE_MARKER,
                time_ms,
                start_ms: None,
            });
        }
    }
}

impl LastReport {
    fn clone_into(&self, readings: &mut Readings) {
        self.problems.iter().for_each(|(place, cause)| readings.problem(place.clone(), cause));
        self.watched.iter().for_each(|host| readings.watched(host.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for a fast source on a busy machine.
    const DEADLINE: Duration = Duration::from_millis(300);

    /// A source that blocks until it is released.
    struct Gated(&'static str, Receiver<()>);

    impl Source for Gated {
        fn name(&self) -> &'static str {
            self.0
        }

        fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
            let _ended = self.1.recv();
            readings.gauge(self.0, "", &[], now_ms as f64);
            if self.0 == "broken" { Err("no such file".into()) } else { Ok(()) }
        }
    }

    /// A source that panics.
    struct Bug;

    impl Source for Bug {
        fn name(&self) -> &'static str {
            "bug"
        }
        fn sample(&mut self, _: i64, _: &mut Readings) -> Result<(), SourceError> {
            panic!("a bug, which the test makes");
        }
    }

    fn gated(name: &'static str) -> (SyncSender<()>, Box<dyn Source + Send>) {
        let (open, gate) = sync_channel(10);
        (open, Box::new(Gated(name, gate)))
    }

    /// The names of readings and problems.
    fn round(source: &mut SideBySide, tick_ms: i64) -> (Vec<(String, f64)>, Vec<String>) {
        let mut readings = Readings::default();
        source.sample(tick_ms, &mut readings).unwrap();
        let read = readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect();
        (read, readings.problems().keys().cloned().collect())
    }

    #[test]
    fn a_source_that_does_not_answer_delays_no_other_and_its_late_readings_keep_their_time() {
        let (open_slow, slow) = gated("slow");
        let (open, quick) = gated("quick");
        let mut both = SideBySide::new("both", DEADLINE, vec![slow, quick]).unwrap();
        let quick_read = |tick: i64| ("quick".to_owned(), tick as f64);
        for (tick, problems) in [(1000, vec![]), (2000, vec!["slow".to_owned()])] {
            open.send(()).unwrap();
            assert_eq!(round(&mut both, tick), (vec![quick_read(tick)], problems));
        }
        open_slow.send(()).unwrap();
        let (watch, mut tick) = (Stopwatch::start(), 2000);
        while !watch.left_of(Duration::from_secs(20)).is_zero() {
            tick += 1000;
            open.send(()).unwrap();
            let mut readings = Readings::default();
            both.sample(tick, &mut readings).unwrap();
            if let [late] = readings.known() {
                assert_eq!(
                    (late.series.metric(), late.time_ms, late.value),
                    ("slow", 1000, 1000.0)
                );
                return;
            }
        }
        panic!("it never came back");
    }

    #[test]
    fn a_source_with_its_own_interval_is_sampled_at_its_multiples_and_its_report_holds_meanwhile() {
        let (open, broken) = gated("broken");
        let every = Duration::from_secs(3);
        let sources = vec![(every, broken)];
        let mut one = SideBySide::each_at("one", Duration::from_secs(20), sources).unwrap();
        let problems = vec!["broken".to_owned()];
        assert_eq!(round(&mut one, 2000), (vec![], vec![]));
        open.send(()).unwrap();
        assert_eq!(round(&mut one, 3000), (vec![("broken".to_owned(), 3000.0)], problems.clone()));
        assert_eq!(round(&mut one, 4000), (vec![], problems), "the source still fails");
        let mut readings = Readings::default();
        open.send(()).unwrap();
        one.sample_alone(5000, &mut readings).unwrap();
        assert_eq!(readings.len(), 1);
    }

    /// Regression: a killed server showed its last values for the whole lookback of queries.
    #[test]
    fn a_missing_series_ends_once_and_may_return() {
        struct Server(Receiver<bool>);
        impl Source for Server {
            fn name(&self) -> &'static str {
                "server"
            }
            fn sample(&mut self, _: i64, readings: &mut Readings) -> Result<(), SourceError> {
                let is_up = self.0.recv()?;
                readings.gauge("up", "", &[("host", "h")], f64::from(u8::from(is_up)));
                if is_up {
                    readings.counter("reads", "reads", &[("host", "h")], 7.0, None);
                    readings.gauge("role", "", &[("host", "h")], 1.0);
                }
                Ok(())
            }
        }
        let (tell, told) = sync_channel(10);
        let mut one =
            SideBySide::new("one", Duration::from_secs(20), vec![Box::new(Server(told))]).unwrap();
        let mut ended = |is_up: bool, tick: i64| {
            tell.send(is_up).unwrap();
            let mut readings = Readings::default();
            one.sample(tick, &mut readings).unwrap();
            let stale = readings.known().iter().map(|reading| {
                assert!(granary_protocol::is_stale_marker(reading.value));
                (reading.series.metric().to_owned(), reading.series.kind(), reading.time_ms)
            });
            stale.collect::<Vec<_>>()
        };
        let both =
            [("reads", granary_protocol::Kind::Counter), ("role", granary_protocol::Kind::Gauge)];
        assert_eq!(ended(true, 1000), []);
        assert_eq!(ended(false, 2000), both.map(|(name, kind)| (name.to_owned(), kind, 2000)));
        assert_eq!(ended(false, 3000), []);
        assert_eq!(ended(true, 4000), []);
        assert_eq!(ended(false, 5000).len(), 2);
    }

    #[test]
    fn a_failure_keeps_what_was_read_and_a_panic_ends_one_source() {
        let (open, broken) = gated("broken");
        let mut alone = SideBySide::new("alone", Duration::from_secs(20), vec![broken]).unwrap();
        open.send(()).unwrap();
        let read = vec![("broken".to_owned(), 5.0)];
        assert_eq!(round(&mut alone, 5), (read, vec!["broken".to_owned()]));
        let (open, well) = gated("well");
        let sources: Vec<Box<dyn Source + Send>> = vec![Box::new(Bug), well];
        let mut both = SideBySide::new("both", Duration::from_secs(20), sources).unwrap();
        for tick in [1, 2] {
            open.send(()).unwrap();
            let read = vec![("well".to_owned(), tick as f64)];
            assert_eq!(round(&mut both, tick), (read, vec!["bug".to_owned()]));
        }
    }
}
