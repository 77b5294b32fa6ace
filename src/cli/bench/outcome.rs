//! What came of the requests, by the minute in which their answers came.

use std::fmt;

use serde::Serialize;

/// An answer.
#[derive(Debug)]
pub(super) struct Answered {
    /// Seconds from the request to its answer.
    pub(super) seconds: f64,
    pub(super) answer: Answer,
}

/// What it said.
#[derive(Debug)]
pub(super) enum Answer {
    /// So many samples are stored, were there before, or cannot be.
    Acknowledged { accepted: u64, duplicates: u64, refused: u64 },
    /// The daemon does not know the series by their numbers.
    Define,
    /// Come back later.
    Busy,
}

/// The same of many.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
    pub(super) refused: u64,
    pub(super) busy: u64,
    pub(super) requests: u64,
    /// Seconds of each acknowledgement.
    acknowledged: Vec<f64>,
}

/// Milliseconds within which half, 99 of 100, and all requests were acknowledged.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Acknowledged {
    #[serde(rename = "ack_p50_ms")]
    pub(super) p50: f64,
    #[serde(rename = "ack_p99_ms")]
    pub(super) p99: f64,
    #[serde(rename = "ack_max_ms")]
    pub(super) max: f64,
}

impl fmt::Display for Acknowledged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p50, p99, max } = self;
        write!(f, "{p50:.1} ms, {p99:.1} ms, {max:.1} ms")
    }
}

/// What came of a plan.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    minutes: Vec<Tally>,
    pub(super) seconds: f64,
}

impl Tally {
    fn add(&mut self, answered: &Answered) {
        self.requests += 1;
        match answered.answer {
            Answer::Acknowledged { accepted, duplicates, refused } => {
                self.accepted += accepted;
                self.duplicates += duplicates;
                self.refused += refused;
                self.acknowledged.push(answered.seconds);
            }
            Answer::Define => {}
            Answer::Busy => self.busy += 1,
        }
    }

    fn of<'a>(minutes: impl IntoIterator<Item = &'a Self>) -> Self {
        minutes.into_iter().fold(Self::default(), |mut total, minute| {
            total.accepted += minute.accepted;
            total.duplicates += minute.duplicates;
            total.refused += minute.refused;
            total.busy += minute.busy;
            total.requests += minute.requests;
            total.acknowledged.extend(&minute.acknowledged);
            total
        })
    }

    /// Zeros when nothing was acknowledged.
    pub(super) fn acknowledged(&self) -> Acknowledged {
        let mut seconds = self.acknowledged.clone();
        seconds.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let index = (seconds.len().saturating_sub(1) as f64 * q).round() as usize;
            seconds.get(index).map_or(0.0, |seconds| seconds * 1000.0)
        };
        Acknowledged { p50: quantile(0.5), p99: quantile(0.99), max: quantile(1.0) }
    }
}

impl Outcome {
    /// Takes up an answer of so many seconds after the start; what came of the minute before is
    /// returned when this begins another.
    pub(super) fn add(&mut self, after_seconds: f64, answered: &Answered) -> Option<String> {
        let minute = (after_seconds / 60.0) as usize;
        let is_next = minute >= self.minutes.len();
        let before = (is_next && !self.minutes.is_empty()).then(|| self.last_minute());
        if is_next {
            self.minutes.resize_with(minute + 1, Tally::default);
        }
        self.minutes[minute].add(answered);
        before
    }

    fn last_minute(&self) -> String {
        let minute = self.minutes.len();
        let Some(tally) = self.minutes.last() else { return String::new() };
        format!(
            "minute {minute}: {} samples acknowledged, {} requests, {} busy answers, ack p50, \
             p99, max {}",
            tally.accepted,
            tally.requests,
            tally.busy,
            tally.acknowledged()
        )
    }

    /// The whole.
    pub(super) fn total(&self) -> Tally {
        Tally::of(&self.minutes)
    }

    /// What came after the first minute, in which series are made known; `None` of a shorter run.
    pub(super) fn after_first_minute(&self) -> Option<Tally> {
        self.minutes.get(1..).filter(|rest| !rest.is_empty()).map(Tally::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged(seconds: f64) -> Answered {
        let answer = Answer::Acknowledged { accepted: 10, duplicates: 1, refused: 2 };
        Answered { seconds, answer }
    }

    #[test]
    fn the_first_minute_is_told_apart() {
        let mut outcome = Outcome::default();
        assert_eq!(outcome.add(1.0, &acknowledged(3.0)), None);
        assert_eq!(outcome.add(59.9, &Answered { seconds: 9.0, answer: Answer::Busy }), None);
        assert!(outcome.after_first_minute().is_none());
        let first = outcome.add(60.0, &acknowledged(0.002)).unwrap();
        assert!(first.starts_with("minute 1: 10 samples acknowledged, 2 requests, 1 busy"));
        // A minute without an answer is a minute, too.
        let third = outcome.add(200.0, &Answered { seconds: 9.0, answer: Answer::Define }).unwrap();
        assert!(third.starts_with("minute 2: 10 samples acknowledged, 1 requests, 0 busy"));
        let (total, rest) = (outcome.total(), outcome.after_first_minute().unwrap());
        assert_eq!((total.accepted, total.duplicates, total.refused), (20, 2, 4));
        assert_eq!((total.requests, total.busy, rest.requests, rest.busy), (4, 1, 2, 0));
        assert_eq!((total.acknowledged().max, rest.acknowledged().max), (3000.0, 2.0));
        assert_eq!(Tally::default().acknowledged().p99, 0.0);
    }
}
