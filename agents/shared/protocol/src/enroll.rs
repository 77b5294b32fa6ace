//! The requests by which a sender gets a key of its own and renews it.

use serde::{Deserialize, Serialize};

/// The path of the request for a key.
pub const ENROLL_PATH: &str = "/api/v1/access/enroll";
/// The path of the request for the key's next secret.
pub const RENEW_PATH: &str = "/api/v1/access/renew";
/// The header of responses to a key that its holder should renew, in lower case.
pub const RENEW_KEY_HEADER: &str = "granary-renew-key";

/// A request for a key, with a one-time code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrollBody {
    /// The code.
    pub code: String,
    /// The name of the sender, to which the key is limited.
    pub sender: String,
}

/// The part of the answer that a sender needs.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct EnrollAnswer {
    /// The text of the key.
    pub token: String,
}
