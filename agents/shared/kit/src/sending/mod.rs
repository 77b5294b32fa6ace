//! Sending: requests with batches and pings to a daemon over HTTP, and the meaning of its answers.
//!
//! Must never know: what is sampled, and when.

pub(crate) mod address;
pub(crate) mod client;
pub(crate) mod enroll;
pub(crate) mod key;
pub(crate) mod pinger;
pub(crate) mod request;
pub(crate) mod sender;
#[cfg(test)]
pub(crate) mod test_server;
