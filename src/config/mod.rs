//! Settings: read key by key over the defaults into their sections, then checked once into [`Settings`], the
//! only form that the rest of the daemon sees.

mod alerting;
pub mod bounds;
mod faults;
mod keys;
mod load;
mod sections;
mod settings;
mod values;

pub(crate) use load::read;
pub use load::{Overrides, load};
pub use sections::{
    Alerts, Clock, Graphite, Ingest, Level, Limits, Log, Preallocation, Promql, Sections, Server,
    Snapshots, Storage, Telemetry,
};
pub use settings::Settings;

/// The defaults, as text: `config/default.toml`.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// They cannot be read.
    #[error("read settings: {0}")]
    Read(String),
    /// They are read, but cannot be used; every fault is listed.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
}
