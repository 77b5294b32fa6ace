//! Access control: the text of keys, what each key may do, and the right that each route requires.
//!
//! Pure: time is an argument, and [`KeySet::check`] allocates nothing. Must never know: HTTP,
//! files, the store.

mod admit;
mod audit;
mod code;
mod failures;
mod keys;
mod record;
mod routes;
mod scopes;
mod token;

pub use admit::{Denial, Right, admit};
pub use audit::{JoinedRefusals, RefusedCaller};
pub use code::{CODE_VALID_MS_MAX, CodeRecord, CodeSet, NewCode, Purpose};
pub use failures::{ADDRESSES_MAX, FAILURES_MAX, FailedKeys};
pub use keys::{Caller, Key, KeyRefusal, KeySet};
pub use record::{
    KeyRecord, NAME_BYTES_MAX, NewKey, OVERLAP_MS_MAX, RENEWAL_OVERLAP_MS, SENDERS_BYTES_MAX,
};
pub use routes::{ROUTES, Row, row_of, table};
pub use scopes::{Scope, Scopes};
pub use token::{Digest, Token};
