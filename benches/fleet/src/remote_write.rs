//! The fleet's samples as Prometheus remote write 1.0, which other stores accept too.

use std::ops::Range;

use granary_protocol::Kind;

use crate::fleet::{Fleet, value};

/// Encodes a request: every series of the hosts with a sample of each round.
pub(crate) fn encode(
    fleet: &Fleet,
    hosts: Range<usize>,
    rounds: Range<usize>,
    time_of: impl Fn(usize) -> i64,
    scratch: &mut Vec<u8>,
) -> Vec<u8> {
    scratch.clear();
    let (mut series, mut field) = (Vec::new(), Vec::new());
    for host in hosts {
        for metric in 0..fleet.metrics {
            series.clear();
            for (name, text) in labels(fleet, host, metric) {
                field.clear();
                push_bytes_field(1, name.as_bytes(), &mut field);
                push_bytes_field(2, text.as_bytes(), &mut field);
                push_bytes_field(1, &field, &mut series);
            }
            for round in rounds.clone() {
                field.clear();
                field.push(0x09);
                field.extend_from_slice(&value(host, metric, round).to_le_bytes());
                field.push(0x10);
                push_varint(time_of(round) as u64, &mut field);
                push_bytes_field(2, &field, &mut series);
            }
            push_bytes_field(1, &series, scratch);
        }
    }
    // Compression in memory does not fail.
    snap::raw::Encoder::new().compress_vec(scratch).unwrap_or_default()
}

/// Returns the labels of a series, sorted by name as Prometheus sends them.
fn labels(fleet: &Fleet, host: usize, metric: usize) -> Vec<(String, String)> {
    let definition = fleet.series_of(host, metric);
    let suffix = if definition.kind == Kind::Counter { "_total" } else { "" };
    let mut labels = definition.tags;
    labels.push(("__name__".into(), format!("{}{suffix}", definition.metric)));
    labels.push(("instance".into(), format!("10.0.{}.{}:9100", host / 250, host % 250)));
    labels.push(("job".into(), "node".into()));
    labels.sort();
    labels
}

fn push_bytes_field(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    push_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
