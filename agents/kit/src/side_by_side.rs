//! Samples sources side by side, each in a thread of its own, up to a deadline.
//!
//! A source that is slow, such as a file system that does not answer, delays no other: what it reads
//! after the deadline is left out, and it is asked again when it has come back. Must never know:
//! what is measured.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use crate::{Readings, Source, SourceError, clock::Stopwatch};

/// What such a thread needs at most: sources read files and answers, and call nothing deep.
const STACK_BYTES: usize = 512 * 1024;

/// Sources as one.
#[derive(Debug)]
pub struct SideBySide {
    name: &'static str,
    deadline: Duration,
    workers: Vec<Worker>,
    booted_ms: Option<i64>,
}

/// What a source read, of which tick.
struct Answer {
    tick_ms: i64,
    readings: Readings,
    result: Result<(), SourceError>,
}

#[derive(Debug)]
struct Worker {
    name: &'static str,
    ticks: SyncSender<i64>,
    answers: Receiver<Answer>,
    /// The tick of which it has not answered yet.
    asked: Option<i64>,
}

impl SideBySide {
    /// Starts a thread for each source; what has not answered within `deadline` is left out of a
    /// round.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(
        name: &'static str,
        deadline: Duration,
        sources: Vec<Box<dyn Source + Send>>,
    ) -> std::io::Result<Self> {
        let booted_ms = sources.iter().find_map(|source| source.booted_ms());
        let workers = sources.into_iter().map(Worker::start).collect::<Result<_, _>>()?;
        Ok(Self { name, deadline, workers, booted_ms })
    }
}

impl Source for SideBySide {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sample(&mut self, now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let watch = Stopwatch::start();
        self.workers.iter_mut().for_each(|worker| worker.ask(now_ms));
        for worker in &mut self.workers {
            match worker.answer(now_ms, watch, self.deadline) {
                Ok(answer) => {
                    readings.append(answer.readings);
                    if let Err(cause) = answer.result {
                        readings.problem(worker.name, cause);
                    }
                }
                Err(cause) => readings.problem(worker.name, cause),
            }
        }
        Ok(())
    }

    fn booted_ms(&self) -> Option<i64> {
        self.booted_ms
    }
}

impl Worker {
    fn start(mut source: Box<dyn Source + Send>) -> std::io::Result<Self> {
        let (ticks, to_sample) = sync_channel::<i64>(1);
        let (done, answers) = sync_channel(1);
        let name = source.name();
        let builder = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        builder.spawn(move || {
            for tick_ms in to_sample {
                let mut readings = Readings::default();
                let result = source.sample(tick_ms, &mut readings);
                if done.send(Answer { tick_ms, readings, result }).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { name, ticks, answers, asked: None })
    }

    /// Asks for a round, unless one is still under way.
    fn ask(&mut self, tick_ms: i64) {
        // One that came too late for its round.
        if self.asked.is_some() && self.answers.try_recv().is_ok() {
            self.asked = None;
        }
        if self.asked.is_none() && self.ticks.try_send(tick_ms).is_ok() {
            self.asked = Some(tick_ms);
        }
    }

    /// What it read in this round, if it does so before the deadline.
    fn answer(
        &mut self,
        tick_ms: i64,
        watch: Stopwatch,
        deadline: Duration,
    ) -> Result<Answer, String> {
        let Some(asked) = self.asked else { return Err("its thread has ended".to_owned()) };
        match self.answers.recv_timeout(watch.left_of(deadline)) {
            Ok(answer) => {
                self.asked = None;
                let is_of_now = answer.tick_ms == tick_ms;
                // One of a round before: the source is asked again in the next.
                is_of_now.then_some(answer).ok_or_else(|| format!("took longer than {deadline:?}"))
            }
            Err(RecvTimeoutError::Timeout) => {
                let since = Duration::from_millis(tick_ms.abs_diff(asked)) + deadline;
                Err(format!("no answer for {since:?}"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.asked = None;
                Err("its thread has ended".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_millis(100);

    /// Reads its name as a metric, when it is allowed to.
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

    /// One that panics.
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

    /// What was read, and where something could not be.
    fn round(source: &mut SideBySide, tick_ms: i64) -> (Vec<(String, f64)>, Vec<String>) {
        let mut readings = Readings::default();
        source.sample(tick_ms, &mut readings).unwrap();
        let read = readings.as_slice().iter().map(|r| (r.metric.to_string(), r.value)).collect();
        (read, readings.problems().keys().cloned().collect())
    }

    #[test]
    fn one_that_does_not_answer_delays_no_other_and_comes_back() {
        let (open_slow, slow) = gated("slow");
        let (open, quick) = gated("quick");
        let mut both = SideBySide::new("both", DEADLINE, vec![slow, quick]).unwrap();
        let quick_read = |tick: i64| ("quick".to_owned(), tick as f64);
        for tick in [1000, 2000] {
            open.send(()).unwrap();
            assert_eq!(round(&mut both, tick), (vec![quick_read(tick)], vec!["slow".to_owned()]));
        }
        // What it read of the first round is none of the third; then it is asked again.
        (0..2).for_each(|_| open_slow.send(()).unwrap());
        let mut tick = 2000;
        loop {
            tick += 1000;
            open.send(()).unwrap();
            open_slow.send(()).unwrap();
            let (read, _) = round(&mut both, tick);
            assert!(read.iter().all(|(_, value)| *value == tick as f64), "{read:?} of {tick}");
            if read.len() == 2 {
                return;
            }
            assert!(tick < 20_000, "it never came back");
        }
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
