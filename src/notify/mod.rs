//! Delivery of notifications: one message to one integration of a receiver, by HTTP, mail or a command.
//!
//! `alerts` decides about notifications; the messenger and the notifier in `actors` call this room and
//! store the outcomes. Must never know: groups of alerts, the store, actors.

mod alertmanager;
mod chat;
mod client;
mod command;
mod courier;
mod http;
mod mail;
mod outcome;
mod secret;
mod trial;

pub(crate) use alertmanager::AlertmanagerClient;
pub(crate) use courier::Courier;
pub use outcome::Outcome;
pub use trial::{ReceiverTests, TooManyTests, WayTested};

use crate::alerts::{Message, MessageTemplates, Target};

/// Sends a message; blocks for up to the target's timeout.
pub(crate) fn deliver(target: &Target, message: &Message, templates: &MessageTemplates) -> Outcome {
    let outcome = match target {
        Target::Webhook(own) => http::webhook(own, message),
        Target::Slack(own) => http::slack(own, message, templates),
        Target::Pagerduty(own) => http::pagerduty(own, message, templates),
        Target::Email(own) => mail::send(own, message, templates),
        Target::Opsgenie(own) => chat::opsgenie(own, message, templates),
        Target::Teams(own) => chat::teams(own, message, templates),
        Target::Telegram(own) => chat::telegram(own, message, templates),
        Target::Discord(own) => chat::discord(own, message, templates),
        Target::Command(own) => command::run(own, message),
    };
    outcome.map_or_else(|outcome| outcome, Outcome::Confirmed)
}
