//! The fleet of the workload: its remote write requests, with fixed times and random values of a
//! fixed seed.

use prost::Message;

pub(crate) const HOSTS: usize = 200;
pub(crate) const METRICS: usize = 6;
const HOSTS_A_REQUEST: usize = 50;

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

/// The first half of the metrics are counters.
fn metric_name(metric: usize) -> String {
    if metric < METRICS / 2 { format!("m{metric}_total") } else { format!("m{metric}") }
}

fn labels_of(host: usize, metric: usize) -> Vec<Label> {
    let label = |(name, value): (&str, String)| Label { name: name.to_owned(), value };
    let labels = [
        ("__name__", metric_name(metric)),
        ("datacenter", format!("dc{}", host % 7)),
        ("host", format!("web{host:04}")),
        ("role", format!("role{}", host % 13)),
    ];
    labels.into_iter().map(label).collect()
}

/// All series, each with its last value.
pub(crate) struct Fleet {
    series: Vec<TimeSeries>,
    random: fastrand::Rng,
}

impl Fleet {
    pub(crate) fn new() -> Self {
        let all = (0..HOSTS).flat_map(|host| (0..METRICS).map(move |metric| (host, metric)));
        let series = all.map(|(host, metric)| TimeSeries {
            labels: labels_of(host, metric),
            samples: vec![Sample::default()],
        });
        Self { series: series.collect(), random: fastrand::Rng::with_seed(7) }
    }

    /// Changes the values, and returns requests with a sample of each series.
    pub(crate) fn next_requests(&mut self, at_ms: i64) -> Vec<Vec<u8>> {
        for (index, series) in self.series.iter_mut().enumerate() {
            let is_counter = index % METRICS < METRICS / 2;
            let step = (self.random.f64() * 1000.0).floor();
            for sample in &mut series.samples {
                sample.value = if is_counter { sample.value + step } else { step / 10.0 };
                sample.timestamp = at_ms;
            }
        }
        let request = |part: &[TimeSeries]| WriteRequest { timeseries: part.to_vec() };
        let parts = self.series.chunks(HOSTS_A_REQUEST * METRICS);
        parts.map(|part| request(part).encode_to_vec()).collect()
    }
}
