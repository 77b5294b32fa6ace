//! Granary: a monitoring store that keeps every sample pre-aggregated.
//!
//! ARCHITECTURE.md has the map. Arrows point from the user to the used:
//! `model` <- `pipeline`, `model` <- `store`, both <- `actors` <- `api` <- `daemon` <- `main`.

pub mod config;
pub mod model;
pub mod pipeline;
pub mod store;
pub mod telemetry;
