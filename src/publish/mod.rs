//! Documents in MongoDB: their forms, and the connection that writes them.
//!
//! The only user of MongoDB's driver in the daemon. A document has absolute values and the number
//! `through` of the last journal record in it, and replaces only documents with the same number or
//! a smaller one, so that a repeated or late write changes nothing. Must never know: the store,
//! which documents changed.

// Paths are those of the crate granary, which reexports these crates.
use crate as publish;
use granary_model as model;

mod connection;
mod document;
mod fault;
mod fields;
mod form;
mod uri;

pub use connection::{Connection, Written};
pub use document::{Described, document};
pub use fault::{PublishFault, driver_cause};
pub use form::Form;
pub use uri::MongoUri;
