//! Messages in flight: the next group of each integration, and the outcome of each message.
//!
//! Must never know: decisions, the format of messages.

use std::{collections::BTreeMap, sync::Arc, thread};

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use tokio::sync::oneshot;

use super::{IntegrationId, Notifier, Written};
use crate::{
    alerts::{Integration, Message, MessageTemplates, Owing},
    notify::{Outcome, deliver},
};

impl Notifier {
    /// Sends a pending notification to each idle integration.
    pub(super) fn send(&mut self, ctx: &mut Context<Self>) {
        let Some(Written { routing, templates }) = &self.written else { return };
        let (routing, templates) = (routing.clone(), templates.clone());
        let now = self.parts.clock.now();
        let mut owed_by: BTreeMap<IntegrationId, Vec<Owing>> = BTreeMap::new();
        for owing in
            self.groups.owing(&routing).into_iter().filter(|owing_group| !owing_group.is_refused)
        {
            owed_by
                .entry((owing.receiver.clone(), owing.integration.clone()))
                .or_default()
                .push(owing);
        }
        self.retries.retain(|id, retries| retries.is_busy() || owed_by.contains_key(id));
        for (id, mut owed) in owed_by {
            let retries = self.retries.entry(id).or_default();
            loop {
                let groups: Vec<_> =
                    owed.iter().map(|owing_group| owing_group.group.as_str()).collect();
                let Some(index) = retries.take(&groups, now) else { break };
                let owing = owed.remove(index);
                if let Some((message, integration)) = self.groups.message(&routing, &owing) {
                    self.begin((owing, message), integration, templates.clone(), ctx);
                    break;
                }
                retries.put_back();
            }
        }
        self.keep(now);
    }

    /// Sends a message in its own thread.
    fn begin(
        &self,
        (owing, message): (Owing, Message),
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
        let answered = answer.into_actor(self).map(move |outcome, role, ctx| {
            let lost = || Outcome::Failed("the sending thread ended without a result".to_owned());
            role.answered(&owing, &message, outcome.unwrap_or_else(|_| lost()), ctx);
        });
        ctx.spawn(answered);
    }

    /// Notes the outcome of a message, and continues with the next message.
    fn answered(
        &mut self,
        owing: &Owing,
        message: &Message,
        outcome: Outcome,
        ctx: &mut Context<Self>,
    ) {
        let now = self.parts.clock.now();
        let (receiver, integration) = (&owing.receiver, &owing.integration);
        let retries = self.retries.entry((receiver.clone(), integration.clone())).or_default();
        let word = match outcome {
            Outcome::Confirmed(_) => {
                if retries.answer(&owing.group) {
                    tracing::info!(receiver, integration, "a receiver accepts notifications again");
                }
                if let Some(written) = &self.written {
                    self.groups.confirm(&written.routing, owing, message);
                }
                "sent"
            }
            Outcome::Refused(cause) => {
                retries.answer(&owing.group);
                tracing::warn!(receiver, integration, cause, "a receiver refused a notification");
                self.groups.refuse(owing);
                "refused"
            }
            Outcome::Failed(cause) => {
                if retries.fail(&owing.group, now) {
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
            .with_label_values(&[receiver.as_str(), word])
            .inc();
        self.keep(now);
        self.send(ctx);
    }
}
