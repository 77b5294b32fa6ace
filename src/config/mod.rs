//! Settings: read raw from defaults, file, environment and flags, then checked once into
//! [`Settings`], the only form that the rest of the daemon sees.

mod alerting;
mod faults;
mod keys;
mod raw;
mod sections;
mod settings;

pub(crate) use raw::read;
pub use raw::{Overrides, load};
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
