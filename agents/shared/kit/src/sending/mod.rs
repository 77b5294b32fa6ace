//! Sending: batches and pings go to a daemon over HTTP, and its answers come back.
//!
//! Must never know: what is sampled, and when.

pub(crate) mod address;
pub(crate) mod client;
pub(crate) mod pinger;
pub(crate) mod request;
pub(crate) mod sender;
#[cfg(test)]
pub(crate) mod test_server;
pub(crate) mod tls;
