//! Access control: the text of keys, what each key may do, users with their roles and sessions, and
//! the right that each route requires.
//!
//! Pure: time is an argument, and [`KeySet::check`] allocates nothing. Must never know: HTTP,
//! files, the store.

mod admit;
mod audit;
mod caller;
mod clients;
mod code;
mod failures;
mod keys;
mod lockout;
mod password;
mod project;
mod provider;
mod provider_login;
mod proxies;
mod record;
mod roles;
mod routes;
mod scopes;
mod sessions;
mod token;
mod totp;
mod user;

pub use admit::{Denial, Right, admit};
pub use audit::{JoinedRefusals, RefusedCaller};
pub use caller::{Caller, ClientCaller, UserCaller};
pub use clients::ClientScopes;
pub use code::{CODE_VALID_MS_MAX, CodeRecord, CodeSet, NewCode, Purpose};
pub use failures::{ADDRESSES_MAX, FAILURES_MAX, FailedKeys};
pub use keys::{Key, KeyCaller, KeyRefusal, KeySet};
pub use lockout::{Attempt, DELAYS_MAX, Lockout};
pub use password::Password;
pub use project::KeyProject;
pub use provider::{GroupRules, Person, ProviderUser, display_name};
pub use provider_login::{LoginSecret, PROVIDER_LOGIN_MS_MAX, ProviderLogin};
pub use proxies::TrustedProxies;
pub use record::{
    KeyRecord, NAME_BYTES_MAX, NewKey, OVERLAP_MS_MAX, RENEWAL_OVERLAP_MS, SENDERS_BYTES_MAX,
};
pub use roles::{ALL_PROJECTS, DEFAULT_PROJECT, Role, Roles};
pub use routes::{ROUTES, RouteRow, admits_other_project, row_of, table};
pub use scopes::{Scope, Scopes};
pub use sessions::{
    SESSION_AGE_MAX_MS, SESSION_IDLE_MS, SESSIONS_MAX, Session, SessionRecord, SessionSet,
    SessionToken, USER_SESSIONS_MAX, csrf_of, is_csrf_of, session_id,
};
pub use token::{Digest, Token};
pub use totp::SecondFactor;
pub use user::{USER_NAME_BYTES_MAX, User, UserRecord, check_password, check_user_name, user_name};
