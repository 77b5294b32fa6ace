//! The real binaries: their output, and kill -9.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]
#![allow(clippy::print_stderr, reason = "tests say what they skip and how to repeat them")]

mod access;
mod agent_pairs;
mod alertmanager;
mod alerts;
mod attacks;
mod backup;
mod cardinality;
mod cert;
mod changes;
mod charts;
mod checker;
mod clock;
mod coverage;
#[path = "../support/daemon.rs"]
mod daemon;
mod damage;
mod dashboards;
mod diagnose;
mod distributions;
#[path = "../support/document_damage.rs"]
mod document_damage;
mod documents;
mod downgrade;
mod erasure;
mod export;
mod exported_histograms;
mod faults;
mod first_hour;
mod first_week;
mod full_disk;
mod graphite_api;
mod hook;
mod hosts;
mod https;
mod import;
mod import_mongodump;
mod import_resume;
mod json;
mod kills;
mod kinds;
mod late_revisions;
mod levels;
mod limits;
#[path = "../support/manual.rs"]
mod manual;
mod migrate;
mod notifications;
mod outage;
mod page;
mod peers;
#[path = "../support/ports.rs"]
mod ports;
mod printed;
mod prometheus_api;
mod prometheus_clients;
mod prometheus_reads;
mod promqltest;
#[path = "../support/protobuf.rs"]
mod protobuf;
mod protocols;
mod publish;
mod rebuild;
mod receivers;
mod reference_cases;
mod reload;
mod remote_write;
mod repair;
mod replay;
mod rule_texts;
mod runaway;
mod scraped_histograms;
mod seeding;
mod self_samples;
mod senders;
mod series_search;
mod settings;
#[path = "../support/setup.rs"]
#[expect(dead_code, reason = "the tests of tests/it use more of it")]
mod setup;
mod silences;
mod small_disk;
mod statsd;
mod status;
mod storage;
mod tail;
mod terminal;
mod tls;
mod tls_proxy;
mod units;
