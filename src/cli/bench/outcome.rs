//! What came of the requests, by the minute in which their answers came.

use std::fmt;

use serde::Serialize;

use crate::model::counted;

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered {
    /// When it came, in seconds after the start.
    pub(super) at: f64,
    /// Seconds from the request to its answer.
    pub(super) seconds: f64,
    pub(super) answer: Answer,
}

/// What it said.
#[derive(Debug, Clone, Copy)]
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
    /// Takes up an answer.
    pub(super) fn add(&mut self, answered: &Answered) {
        let minute = (answered.at / 60.0) as usize;
        if minute >= self.minutes.len() {
            self.minutes.resize_with(minute + 1, Tally::default);
        }
        self.minutes[minute].add(answered);
    }

    /// What came of a minute, the first one being 0.
    pub(super) fn minute(&self, minute: usize) -> String {
        let none = Tally::default();
        let tally = self.minutes.get(minute).unwrap_or(&none);
        format!(
            "minute {}: {} acknowledged, {}, {}, ack p50, p99, max {}",
            minute + 1,
            counted(tally.accepted, "sample"),
            counted(tally.requests, "request"),
            counted(tally.busy, "busy answer"),
            tally.acknowledged()
        )
    }

    /// Samples that were accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.minutes.iter().map(|minute| minute.accepted).sum()
    }

    /// The whole.
    pub(super) fn total(&self) -> Tally {
        Tally::of(&self.minutes)
    }

    /// What came after the first minute; `None` of a shorter run.
    pub(super) fn after_first_minute(&self) -> Option<Tally> {
        self.minutes.get(1..).filter(|rest| !rest.is_empty()).map(Tally::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged(at: f64, seconds: f64) -> Answered {
        let answer = Answer::Acknowledged { accepted: 10, duplicates: 1, refused: 2 };
        Answered { at, seconds, answer }
    }

    #[test]
    fn the_first_minute_is_told_apart() {
        let mut outcome = Outcome::default();
        outcome.add(&acknowledged(1.0, 3.0));
        outcome.add(&Answered { at: 59.9, seconds: 9.0, answer: Answer::Busy });
        assert!(outcome.after_first_minute().is_none());
        outcome.add(&acknowledged(60.0, 0.002));
        outcome.add(&Answered { at: 200.0, seconds: 9.0, answer: Answer::Define });
        for (minute, expected) in [
            (0, "minute 1: 10 samples acknowledged, 2 requests, 1 busy answer"),
            (1, "minute 2: 10 samples acknowledged, 1 request, 0 busy answers"),
            (2, "minute 3: 0 samples acknowledged, 0 requests, 0 busy answers"),
            (3, "minute 4: 0 samples acknowledged, 1 request, 0 busy answers"),
            (4, "minute 5: 0 samples acknowledged, 0 requests, 0 busy answers"),
        ] {
            assert!(outcome.minute(minute).starts_with(expected), "{}", outcome.minute(minute));
        }
        let (total, rest) = (outcome.total(), outcome.after_first_minute().unwrap());
        assert_eq!((total.accepted, total.duplicates, total.refused), (20, 2, 4));
        assert_eq!(outcome.accepted(), 20);
        assert_eq!((total.requests, total.busy, rest.requests, rest.busy), (4, 1, 2, 0));
        assert_eq!((total.acknowledged().max, rest.acknowledged().max), (3000.0, 2.0));
        assert_eq!(Tally::default().acknowledged().p99, 0.0);
    }
}
