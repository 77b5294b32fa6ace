//! Routing of alerts to receivers: routes, grouping, inhibition and mute times with Alertmanager's
//! meaning, as far as its files are supported, with acknowledgement and escalation in addition.
//!
//! Pure. Must never know: files, the store, the clock, how anything is sent.

mod file;
mod groups;
mod inhibition;
mod interval;
mod receiver;
mod route;

pub use file::{RESOLVE_TIMEOUT_MS, check_routing, read_http};
pub use groups::{AlertDeliveries, AlertDelivery, Groups, PendingNotification, StoredGroup};
pub use inhibition::Inhibitors;
pub(crate) use interval::TimeInterval;
pub use receiver::{
    Command, Discord, Email, Http, Integration, Opsgenie, Pagerduty, Receiver, Secret, Slack,
    SlackField, Target, Teams, Telegram, Tls, Webhook,
};
pub use route::{Escalation, GroupKey, Route, Routing};
