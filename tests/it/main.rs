//! Tests of the library: the store against an oracle, simulated time, the house rules.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

mod batch_numbers;
mod budget;
mod calendar;
mod changes;
mod chart_shards;
mod checking;
mod corpus;
#[path = "../support/counters.rs"]
#[expect(dead_code, reason = "the simulation uses more of it")]
mod counters;
mod disk_budget;
#[path = "../support/document_damage.rs"]
mod document_damage;
mod documents_shards;
mod downgrade;
mod export_shards;
mod files;
#[path = "../support/fleet.rs"]
mod fleet;
mod followed;
mod full_disk;
mod golden;
mod golden_histograms;
mod head;
mod journal_rows;
mod kinds;
mod late;
mod long_series;
mod lost_files;
mod manual;
#[path = "../support/media.rs"]
mod media;
mod merging;
mod objects;
mod oracle;
mod page_objects;
mod percentiles;
mod plan;
mod plan_histograms;
mod preallocation;
mod projects;
mod promql;
#[path = "../support/protobuf.rs"]
mod protobuf;
mod readings;
mod rebuild;
mod rebuild_random;
mod removed_granularities;
mod replay;
mod replicas;
mod reserved_space;
mod retention;
mod retention_rules;
#[path = "../support/rounds.rs"]
mod rounds;
mod sample_locations;
mod senders_shards;
mod series_search;
#[path = "../support/setup.rs"]
mod setup;
mod slow_disk;
mod snapshots;
mod space;
mod spans;
mod spread;
mod tidy;
mod verify;
mod year;
