//! Concurrent sampling: each source has its own thread and interval.
//!
//! A slow source, such as a server that does not answer, does not delay the others. A round waits
//! for its sources up to a deadline. Late readings are part of a later round, with the time of
//! their request. Must never know: what is measured.

mod worker;

use std::time::Duration;

use self::worker::{SampleRequest, Worker};
use crate::{Readings, Source, SourceError, clock::Stopwatch};

/// The time that a round waits for network answers and programs; late answers are part of a later
/// round.
pub const ROUND_DEADLINE: Duration = Duration::from_millis(100);
/// The deadline of a single round, such as a round of `--print`.
const SINGLE_ROUND_DEADLINE: Duration = Duration::from_secs(60);

/// Several sources that act as one source.
#[derive(Debug)]
pub struct SideBySide {
    name: &'static str,
    deadline: Duration,
    workers: Vec<Worker>,
    booted_ms: Option<i64>,
}

impl SideBySide {
    /// Starts a thread for each source. Each round samples every source and waits up to `deadline`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn new(
        name: &'static str,
        deadline: Duration,
        sources: Vec<Box<dyn Source + Send>>,
    ) -> std::io::Result<Self> {
        // The time of every round is a multiple of it.
        let interval = Duration::from_millis(1);
        Self::with_intervals(
            name,
            deadline,
            sources.into_iter().map(|source| (interval, source)).collect(),
        )
    }

    /// Starts a thread for each source. A source is sampled in the first round at or after each
    /// multiple of its interval, and each round waits up to `deadline`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn with_intervals(
        name: &'static str,
        deadline: Duration,
        sources: Vec<(Duration, Box<dyn Source + Send>)>,
    ) -> std::io::Result<Self> {
        let booted_ms = sources.iter().find_map(|(_, source)| source.booted_ms());
        let start = |(interval, source)| Worker::start(interval, source);
        let workers = sources.into_iter().map(start).collect::<Result<_, _>>()?;
        Ok(Self { name, deadline, workers, booted_ms })
    }

    /// Starts the thread of another source.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn add(
        &mut self,
        interval: Duration,
        source: Box<dyn Source + Send>,
    ) -> std::io::Result<()> {
        self.workers.push(Worker::start(interval, source)?);
        Ok(())
    }

    /// Ends the source that reports this object. Its series end at `now_ms`. A pending request is
    /// not waited for.
    pub fn remove(&mut self, object: &str, now_ms: i64, readings: &mut Readings) {
        for ended in self.workers.extract_if(.., |worker| worker.object() == object) {
            ended.end(now_ms, readings);
        }
    }

    fn sample_round(
        &mut self,
        request: &SampleRequest,
        deadline: Duration,
        readings: &mut Readings,
    ) {
        let watch = Stopwatch::start();
        self.workers.iter_mut().for_each(|worker| worker.request(request, readings));
        for worker in &mut self.workers {
            worker.wait_for_answer(request.tick_ms, watch.left_of(deadline), readings);
        }
    }
}

impl Source for SideBySide {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.sample_round(
            &SampleRequest { tick_ms: now_ms, is_alone: false },
            self.deadline,
            readings,
        );
        Ok(())
    }

    fn sample_alone(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        self.sample_round(
            &SampleRequest { tick_ms: now_ms, is_alone: true },
            SINGLE_ROUND_DEADLINE,
            readings,
        );
        Ok(())
    }

    fn booted_ms(&self) -> Option<i64> {
        self.booted_ms
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;
    use crate::WatchedHost;

    /// A deadline that a fast source meets on a busy machine.
    const DEADLINE: Duration = Duration::from_millis(300);

    /// A source that blocks until it is released; one named `broken` then fails.
    struct BlockingSource(&'static str, Receiver<()>);

    impl Source for BlockingSource {
        fn name(&self) -> &'static str {
            self.0
        }

        fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
            let _released = self.1.recv();
            readings.gauge(self.0, "", &[], now_ms as f64);
            readings.watched(WatchedHost { host: self.0.to_owned(), ..WatchedHost::default() });
            if self.0 == "broken" { Err("no such file".into()) } else { Ok(()) }
        }
    }

    /// A source that panics.
    struct PanickingSource;

    impl Source for PanickingSource {
        fn name(&self) -> &'static str {
            "bug"
        }
        fn sample(&mut self, _: i64, _: &mut Readings) -> Result<(), SourceError> {
            panic!("a bug on purpose");
        }
    }

    fn gated_source(name: &'static str) -> (SyncSender<()>, Box<dyn Source + Send>) {
        let (open, gate) = sync_channel(10);
        (open, Box::new(BlockingSource(name, gate)))
    }

    /// Returns the readings of a round, and the objects of its problems.
    fn run_round(source: &mut SideBySide, tick_ms: i64) -> (Vec<(String, f64)>, Vec<String>) {
        let mut readings = Readings::default();
        source.sample(tick_ms, &mut readings).unwrap();
        let values_read =
            readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect();
        (values_read, readings.problems().keys().cloned().collect())
    }

    #[test]
    fn a_source_that_does_not_answer_delays_no_other_source_and_late_readings_keep_their_time() {
        let (open_slow, slow) = gated_source("slow");
        let (open, quick) = gated_source("quick");
        let mut both = SideBySide::new("both", DEADLINE, vec![slow, quick]).unwrap();
        let quick_read = |tick: i64| ("quick".to_owned(), tick as f64);
        for (tick, problems) in [(1000, vec![]), (2000, vec!["slow".to_owned()])] {
            open.send(()).unwrap();
            assert_eq!(run_round(&mut both, tick), (vec![quick_read(tick)], problems));
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
        panic!("the late readings never arrived");
    }

    #[test]
    fn a_source_can_be_added_and_removed_and_its_series_end() {
        let mut group = SideBySide::new("group", Duration::from_secs(20), vec![]).unwrap();
        assert_eq!(run_round(&mut group, 1000), (vec![], vec![]));
        let (open, source) = gated_source("quick");
        group.add(Duration::from_millis(1), source).unwrap();
        open.send(()).unwrap();
        assert_eq!(run_round(&mut group, 2000).0, [("quick".to_owned(), 2000.0)]);
        let mut readings = Readings::default();
        group.remove("slow", 3000, &mut readings);
        assert!(readings.known().is_empty());
        group.remove("quick", 3000, &mut readings);
        let ended: Vec<_> =
            readings.known().iter().map(|r| (r.series.metric(), r.value.to_bits())).collect();
        assert_eq!(ended, [("quick", granary_protocol::STALE_MARKER.to_bits())]);
        let watched = readings.take_watched();
        assert!(watched.len() == 1 && watched[0].host == "quick" && watched[0].is_ending);
        assert_eq!(run_round(&mut group, 4000), (vec![], vec![]));
    }

    #[test]
    fn a_source_with_its_own_interval_keeps_its_problems_between_its_samples() {
        let (open, broken) = gated_source("broken");
        let interval = Duration::from_secs(3);
        let sources = vec![(interval, broken)];
        let mut single =
            SideBySide::with_intervals("single", Duration::from_secs(20), sources).unwrap();
        let problems = vec!["broken".to_owned()];
        assert_eq!(run_round(&mut single, 2000), (vec![], vec![]));
        open.send(()).unwrap();
        assert_eq!(
            run_round(&mut single, 3000),
            (vec![("broken".to_owned(), 3000.0)], problems.clone())
        );
        assert_eq!(run_round(&mut single, 4000), (vec![], problems), "the source still fails");
        let mut readings = Readings::default();
        open.send(()).unwrap();
        single.sample_alone(5000, &mut readings).unwrap();
        assert_eq!(readings.len(), 1);
    }

    /// Regression: with rounds every 7 s, a source of 10 s would be sampled every 70 s.
    #[test]
    fn a_source_is_sampled_in_the_first_round_after_each_multiple_of_its_interval() {
        let (open, source) = gated_source("slow");
        let sources = vec![(Duration::from_secs(10), source)];
        let mut single =
            SideBySide::with_intervals("single", Duration::from_secs(20), sources).unwrap();
        let mut sampled = Vec::new();
        for tick in (7..=42).step_by(7) {
            open.send(()).unwrap();
            let (values, _) = run_round(&mut single, tick * 1000);
            sampled.extend(values.first().map(|_| tick));
        }
        assert_eq!(sampled, [14, 21, 35, 42]);
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
        let (sender, receiver) = sync_channel(10);
        let mut single =
            SideBySide::new("single", Duration::from_secs(20), vec![Box::new(Server(receiver))])
                .unwrap();
        let mut stale_series = |is_up: bool, tick: i64| {
            sender.send(is_up).unwrap();
            let mut readings = Readings::default();
            single.sample(tick, &mut readings).unwrap();
            let stale = readings.known().iter().map(|reading| {
                assert!(granary_protocol::is_stale_marker(reading.value));
                (reading.series.metric().to_owned(), reading.series.kind(), reading.time_ms)
            });
            stale.collect::<Vec<_>>()
        };
        let both =
            [("reads", granary_protocol::Kind::Counter), ("role", granary_protocol::Kind::Gauge)];
        assert_eq!(stale_series(true, 1000), []);
        assert_eq!(
            stale_series(false, 2000),
            both.map(|(name, kind)| (name.to_owned(), kind, 2000))
        );
        assert_eq!(stale_series(false, 3000), []);
        assert_eq!(stale_series(true, 4000), []);
        assert_eq!(stale_series(false, 5000).len(), 2);
    }

    #[test]
    fn a_failure_keeps_earlier_readings_and_a_panic_ends_only_its_source() {
        let (open, broken) = gated_source("broken");
        let mut single = SideBySide::new("single", Duration::from_secs(20), vec![broken]).unwrap();
        open.send(()).unwrap();
        let values_read = vec![("broken".to_owned(), 5.0)];
        assert_eq!(run_round(&mut single, 5), (values_read, vec!["broken".to_owned()]));
        let (open, healthy) = gated_source("healthy");
        let sources: Vec<Box<dyn Source + Send>> = vec![Box::new(PanickingSource), healthy];
        let mut both = SideBySide::new("both", Duration::from_secs(20), sources).unwrap();
        for tick in [1, 2] {
            open.send(()).unwrap();
            let values_read = vec![("healthy".to_owned(), tick as f64)];
            assert_eq!(run_round(&mut both, tick), (values_read, vec!["bug".to_owned()]));
        }
    }
}
