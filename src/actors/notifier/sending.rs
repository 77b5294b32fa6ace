//! Messages in flight: the next group of each integration, and the outcome of each message.
//!
//! Must never know: decisions, the format of messages.

use std::{collections::BTreeMap, sync::Arc, thread};

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use tokio::sync::oneshot;

use super::{IntegrationId, Notifier, ParsedRouting};
use crate::{
    alerts::{Integration, Message, MessageTemplates, PendingNotification},
    notify::{DeliveryOutcome, deliver},
};

impl Notifier {
    /// Sends a pending notification to each idle integration.
    pub(super) fn send(&mut self, ctx: &mut Context<Self>) {
        let Some(ParsedRouting { routing, templates }) = &self.parsed else { return };
        let (routing, templates) = (routing.clone(), templates.clone());
        let now = self.parts.clock.now();
        let mut pending_by: BTreeMap<IntegrationId, Vec<PendingNotification>> = BTreeMap::new();
        for notification in self
            .groups
            .pending_notifications(&routing)
            .into_iter()
            .filter(|notification| !notification.is_refused)
        {
            pending_by
                .entry((notification.receiver.clone(), notification.integration.clone()))
                .or_default()
                .push(notification);
        }
        self.retries.retain(|id, retries| retries.is_busy() || pending_by.contains_key(id));
        for (id, mut pending) in pending_by {
            let retries = self.retries.entry(id).or_default();
            loop {
                let groups: Vec<_> =
                    pending.iter().map(|notification| notification.group.as_str()).collect();
                let Some(index) = retries.take_due(&groups, now) else { break };
                let notification = pending.remove(index);
                if let Some((message, integration)) = self.groups.message(&routing, &notification) {
                    self.start_message(
                        (notification, message),
                        integration,
                        templates.clone(),
                        ctx,
                    );
                    break;
                }
                retries.cancel_send();
            }
        }
        self.store_groups(now);
    }

    /// Sends a message in its own thread.
    fn start_message(
        &self,
        (notification, message): (PendingNotification, Message),
        integration: &Integration,
        templates: Arc<MessageTemplates>,
        ctx: &mut Context<Self>,
    ) {
        let (reply, answer) = oneshot::channel();
        let (target, content) = (integration.target.clone(), message.clone());
        let work = move || drop(reply.send(deliver(&target, &content, &templates)));
        if let Err(cause) = thread::Builder::new().name("message".to_owned()).spawn(work) {
            tracing::warn!(%cause, "cannot start a thread for a message");
        }
        let note_outcome = answer.into_actor(self).map(move |outcome, role, ctx| {
            let lost =
                || DeliveryOutcome::Failed("the sending thread ended without a result".to_owned());
            role.note_outcome(&notification, &message, outcome.unwrap_or_else(|_| lost()), ctx);
        });
        ctx.spawn(note_outcome);
    }

    /// Notes the outcome of a message, and continues with the next message.
    fn note_outcome(
        &mut self,
        notification: &PendingNotification,
        message: &Message,
        outcome: DeliveryOutcome,
        ctx: &mut Context<Self>,
    ) {
        let now = self.parts.clock.now();
        let (receiver, integration) = (&notification.receiver, &notification.integration);
        let retries = self.retries.entry((receiver.clone(), integration.clone())).or_default();
        let label = match outcome {
            DeliveryOutcome::Confirmed(_) => {
                if retries.record_answer(&notification.group) {
                    tracing::info!(receiver, integration, "a receiver accepts notifications again");
                }
                if let Some(parsed) = &self.parsed {
                    self.groups.confirm(&parsed.routing, notification, message);
                }
                "sent"
            }
            DeliveryOutcome::Refused(cause) => {
                retries.record_answer(&notification.group);
                tracing::warn!(receiver, integration, cause, "a receiver refused a notification");
                self.groups.refuse(notification);
                "refused"
            }
            DeliveryOutcome::Failed(cause) => {
                if retries.record_failure(&notification.group, now) {
                    tracing::warn!(
                        receiver,
                        integration,
                        cause,
                        "cannot notify a receiver; the notification will be retried"
                    );
                }
                "failed"
            }
        };
        self.parts
            .metrics
            .receiver_notifications
            .with_label_values(&[receiver.as_str(), label])
            .inc();
        self.store_groups(now);
        self.send(ctx);
    }
}
