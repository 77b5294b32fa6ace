//! Tests of the library: the store against an oracle, time passing, the house rules.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod budget;
mod calendar;
mod changes;
mod corpus;
#[path = "../support/counters.rs"]
mod counters;
#[path = "../support/failing.rs"]
mod failing;
mod files;
mod golden;
mod head;
mod long_series;
mod manual;
mod numbers;
mod objects;
mod oracle;
mod preallocation;
mod promql;
mod promql_semantics;
#[path = "../support/protobuf.rs"]
mod protobuf;
mod replay;
mod retention;
mod slow_disk;
mod spans;
mod tidy;
mod verify;
