//! Files: their names and folders, reopening after failures, and damage within them.
//!
//! Must never know: the content of the files.

pub(crate) mod assertion;
pub(crate) mod checksum;
pub(crate) mod damage;
pub(crate) mod database;
pub(crate) mod durable;
pub(crate) mod folder;
pub(crate) mod holes;
pub(crate) mod medium;
pub(crate) mod names;
pub(crate) mod read_only;
pub(crate) mod space;
mod steady;
pub(crate) mod version;
pub(crate) mod watched;
