//! The outcomes of requests, by the minute of their responses.

use std::fmt;

use serde::Serialize;

/// A response with its times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedResponse {
    /// The seconds from the start of the run to the response.
    pub(crate) at: f64,
    /// The seconds from the request to the response.
    pub(crate) seconds: f64,
    pub(crate) answer: Answer,
}

/// The content of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// The numbers of samples that are stored, were stored before, or are refused.
    Acknowledged { accepted: u64, duplicates: u64, refused: u64 },
    /// The daemon asks for definitions of the series.
    Define,
    /// The daemon asks for a later attempt.
    Busy,
}

/// Counts of many responses.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) accepted: u64,
    pub(crate) duplicates: u64,
    pub(crate) refused: u64,
    pub(crate) busy: u64,
    pub(crate) requests: u64,
    /// The duration of each acknowledged request, in seconds.
    acknowledged: Vec<f64>,
}

/// The quantiles of the acknowledgement time, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct AckQuantiles {
    #[serde(rename = "ack_p50_ms")]
    pub(crate) p50: f64,
    #[serde(rename = "ack_p99_ms")]
    pub(crate) p99: f64,
    #[serde(rename = "ack_max_ms")]
    pub(crate) max: f64,
}

impl fmt::Display for AckQuantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p50, p99, max } = self;
        write!(f, "{p50:.1} ms, {p99:.1} ms, {max:.1} ms")
    }
}

/// The outcome of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    minutes: Vec<Tally>,
    pub(crate) seconds: f64,
}

impl Tally {
    fn add(&mut self, response: &TimedResponse) {
        self.requests += 1;
        match response.answer {
            Answer::Acknowledged { accepted, duplicates, refused } => {
                self.accepted += accepted;
                self.duplicates += duplicates;
                self.refused += refused;
                self.acknowledged.push(response.seconds);
            }
            Answer::Define => {}
            Answer::Busy => self.busy += 1,
        }
    }

    fn sum_of<'a>(minutes: impl IntoIterator<Item = &'a Self>) -> Self {
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

    /// Returns the quantiles of the acknowledgement time, or zeros when nothing was acknowledged.
    pub(crate) fn acknowledged(&self) -> AckQuantiles {
        let mut seconds = self.acknowledged.clone();
        seconds.sort_by(f64::total_cmp);
        let quantile = |q: f64| {
            let index = (seconds.len().saturating_sub(1) as f64 * q).round() as usize;
            seconds.get(index).map_or(0.0, |seconds| seconds * 1000.0)
        };
        AckQuantiles { p50: quantile(0.5), p99: quantile(0.99), max: quantile(1.0) }
    }
}

impl Outcome {
    /// Counts a response.
    pub(crate) fn add(&mut self, response: &TimedResponse) {
        let minute = (response.at / 60.0) as usize;
        if minute >= self.minutes.len() {
            self.minutes.resize_with(minute + 1, Tally::default);
        }
        self.minutes[minute].add(response);
    }

    /// Returns the text about a minute of the run; the first minute is 0.
    pub(crate) fn minute(&self, minute: usize) -> String {
        let empty = Tally::default();
        let tally = self.minutes.get(minute).unwrap_or(&empty);
        format!(
            "minute {}: samples {}, requests {}, busy responses {}, ack p50, p99, max {}",
            minute + 1,
            tally.accepted,
            tally.requests,
            tally.busy,
            tally.acknowledged()
        )
    }

    /// Returns the number of accepted samples.
    pub(crate) fn accepted(&self) -> u64 {
        self.minutes.iter().map(|minute| minute.accepted).sum()
    }

    /// Returns the counts of the whole run.
    pub(crate) fn total(&self) -> Tally {
        Tally::sum_of(&self.minutes)
    }

    /// Returns the counts after the first minute, or `None` when the run was shorter.
    pub(crate) fn after_first_minute(&self) -> Option<Tally> {
        self.minutes.get(1..).filter(|rest| !rest.is_empty()).map(Tally::sum_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged(at: f64, seconds: f64) -> TimedResponse {
        let answer = Answer::Acknowledged { accepted: 10, duplicates: 1, refused: 2 };
        TimedResponse { at, seconds, answer }
    }

    #[test]
    fn responses_are_counted_by_minute_and_after_the_first_minute() {
        let mut outcome = Outcome::default();
        outcome.add(&acknowledged(1.0, 3.0));
        outcome.add(&TimedResponse { at: 59.9, seconds: 9.0, answer: Answer::Busy });
        assert!(outcome.after_first_minute().is_none());
        outcome.add(&acknowledged(60.0, 0.002));
        outcome.add(&TimedResponse { at: 200.0, seconds: 9.0, answer: Answer::Define });
        for (minute, expected) in [
            (0, "minute 1: samples 10, requests 2, busy responses 1,"),
            (1, "minute 2: samples 10, requests 1, busy responses 0,"),
            (2, "minute 3: samples 0, requests 0, busy responses 0,"),
            (3, "minute 4: samples 0, requests 1, busy responses 0,"),
            (4, "minute 5: samples 0, requests 0, busy responses 0,"),
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
