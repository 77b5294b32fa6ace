//! Delivery of notifications: one message to one integration of a receiver, by HTTP, mail or a
//! command.
//!
//! The module `alerts` decides which receiver is notified of which alerts; the notifier and the
//! alert forwarder in `actors` call this module and store the outcome. Must never know: groups of
//! alerts, the store, actors.

mod alertmanager;
mod chat;
mod client;
mod command;
mod http;
mod mail;
mod outcome;
mod retries;
mod secret;
mod trial;

pub(crate) use alertmanager::AlertmanagerClient;
pub use outcome::DeliveryOutcome;
pub(crate) use retries::Retries;
pub use trial::{IntegrationTestResult, ReceiverTests, TooManyTests};

use crate::alerts::{Message, MessageTemplates, Target};

/// Sends a message and waits for the outcome, up to the target's timeout.
pub(crate) fn deliver(
    target: &Target,
    message: &Message,
    templates: &MessageTemplates,
) -> DeliveryOutcome {
    let outcome = match target {
        Target::Webhook(webhook) => http::webhook(webhook, message),
        Target::Slack(slack) => http::slack(slack, message, templates),
        Target::Pagerduty(pagerduty) => http::pagerduty(pagerduty, message, templates),
        Target::Email(email) => mail::send(email, message, templates),
        Target::Opsgenie(opsgenie) => chat::opsgenie(opsgenie, message, templates),
        Target::Teams(teams) => chat::teams(teams, message, templates),
        Target::Telegram(telegram) => chat::telegram(telegram, message, templates),
        Target::Discord(discord) => chat::discord(discord, message, templates),
        Target::Command(command) => command::run(command, message),
    };
    outcome.map_or_else(|outcome| outcome, DeliveryOutcome::Confirmed)
}
