//! Settings: merged key by key over the defaults, then checked once and turned into [`Settings`],
//! the only form that the rest of the daemon uses.

mod alerting;
pub mod bounds;
mod cluster;
mod exposure;
mod faults;
mod graphite;
mod keys;
mod live;
mod load;
mod oidc;
mod projects;
mod publish;
mod reload;
mod retention;
mod sections;
mod settings;
#[cfg(test)]
mod tests;
mod tls;
mod values;

pub use cluster::ClusterSettings;
pub use graphite::GraphiteListen;
pub use live::LiveSettings;
pub(crate) use load::read;
pub use load::{Overrides, SettingsSource, load};
pub use projects::ProjectSettings;
pub use publish::PublishSettings;
pub use reload::{Difference, compare, from_shown, reopening_settings, restart_settings};
pub use sections::{
    Alerts, Cluster, Graphite, Ingest, Level, Limits, Log, Oidc, Preallocation, Project, Promql,
    Publish, Retention, Rule, Sections, Security, Server, Snapshots, Storage, Telemetry, Tls,
};
pub use settings::Settings;

/// The text of the defaults: `config/default.toml`.
pub const DEFAULTS: &str = include_str!("../../config/default.toml");

/// The error of invalid settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The settings cannot be read.
    #[error("read settings: {0}")]
    Read(String),
    /// The settings contain invalid values; the error lists all of them.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
}
