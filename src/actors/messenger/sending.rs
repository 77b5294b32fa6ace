//! Messages in flight: the next group of each integration, and the outcome of each message.
//!
//! Must never know: decisions, the format of messages.

use std::{collections::BTreeMap, sync::Arc, thread};

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use tokio::sync::oneshot;

use super::{Messenger, Way, Written};
use crate::{
    alerts::{Integration, Message, MessageTemplates, Owing},
    notify::{Outcome, deliver},
};

impl Messenger {
    /// Sends a pending notification to each idle integration.
    pub(super) fn send(&mut self, ctx: &mut Context<Self>) {
        let Some(Written { routing, templates }) = &self.written else { return };
        let (routing, templates) = (routing.clone(), templates.clone());
        let now = self.parts.clock.now();
        let mut ways: BTreeMap<Way, Vec<Owing>> = BTreeMap::new();
        for owing in
            self.groups.owing(&routing).into_iter().filter(|owing_group| !owing_group.is_refused)
        {
            ways.entry((owing.receiver.clone(), owing.integration.clone()))
                .or_default()
                .push(owing);
        }
        self.couriers.retain(|way, courier| courier.is_busy() || ways.contains_key(way));
        for (way, mut owed) in ways {
            let courier = self.couriers.entry(way).or_default();
            loop {
                let groups: Vec<_> =
                    owed.iter().map(|owing_group| owing_group.group.as_str()).collect();
                let Some(at) = courier.take(&groups, now) else { break };
                let owing = owed.remove(at);
                if let Some((message, integration)) = self.groups.message(&routing, &owing) {
                    self.begin((owing, message), integration, templates.clone(), ctx);
                    break;
                }
                courier.put_back();
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

    /// Notes the outcome of a message, and continues with the next one.
    fn answered(
        &mut self,
        owing: &Owing,
        message: &Message,
        outcome: Outcome,
        ctx: &mut Context<Self>,
    ) {
        let now = self.parts.clock.now();
        let (receiver, way) = (&owing.receiver, &owing.integration);
        let courier = self.couriers.entry((receiver.clone(), way.clone())).or_default();
        let word = match outcome {
            Outcome::Confirmed(_) => {
                if courier.answer(&owing.group) {
                    tracing::info!(receiver, way, "a receiver accepts notifications again");
                }
                if let Some(written) = &self.written {
                    self.groups.confirm(&written.routing, owing, message);
                }
                "sent"
            }
            Outcome::Refused(cause) => {
                courier.answer(&owing.group);
                tracing::warn!(receiver, way, cause, "a receiver refused a notification");
                self.groups.refuse(owing);
                "refused"
            }
            Outcome::Failed(cause) => {
                if courier.fail(&owing.group, now) {
                    tracing::warn!(
                        receiver,
                        way,
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
