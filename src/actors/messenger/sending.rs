//! Messages on their way: which way is told of which group next, and what becomes of each.
//!
//! Must never know: what is decided, how a message is written.

use std::{collections::BTreeMap, sync::Arc, thread};

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use tokio::sync::oneshot;

use super::{Messenger, Way, Written};
use crate::{
    alerts::{Integration, Message, MessageTemplates, Owing},
    notify::{Outcome, deliver},
};

impl Messenger {
    /// Tells each way that is not busy of a group that it is owed.
    pub(super) fn send(&mut self, ctx: &mut Context<Self>) {
        let Some(Written { routing, templates }) = &self.written else { return };
        let (routing, templates) = (routing.clone(), templates.clone());
        let now = self.parts.clock.now();
        let mut ways: BTreeMap<Way, Vec<Owing>> = BTreeMap::new();
        for owing in self.groups.owing(&routing).into_iter().filter(|own| !own.is_refused) {
            ways.entry((owing.receiver.clone(), owing.way.clone())).or_default().push(owing);
        }
        self.couriers.retain(|way, own| own.is_busy() || ways.contains_key(way));
        for (way, mut owed) in ways {
            let courier = self.couriers.entry(way).or_default();
            loop {
                let groups: Vec<_> = owed.iter().map(|own| own.group.as_str()).collect();
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

    /// Sends a message in a thread of its own.
    fn begin(
        &self,
        (owing, message): (Owing, Message),
        integration: &Integration,
        templates: Arc<MessageTemplates>,
        ctx: &mut Context<Self>,
    ) {
        let (reply, answer) = oneshot::channel();
        let (target, own) = (integration.target.clone(), message.clone());
        let work = move || drop(reply.send(deliver(&target, &own, &templates)));
        if let Err(cause) = thread::Builder::new().name("message".to_owned()).spawn(work) {
            tracing::warn!(%cause, "cannot start a thread for a message");
        }
        let answered = answer.into_actor(self).map(move |outcome, role, ctx| {
            let lost = || Outcome::Failed("it ended without a word".to_owned());
            role.answered(&owing, &message, outcome.unwrap_or_else(|_| lost()), ctx);
        });
        ctx.spawn(answered);
    }

    /// Notes what became of a message, and goes on with the next one.
    fn answered(
        &mut self,
        owing: &Owing,
        message: &Message,
        outcome: Outcome,
        ctx: &mut Context<Self>,
    ) {
        let now = self.parts.clock.now();
        let (receiver, way) = (&owing.receiver, &owing.way);
        let courier = self.couriers.entry((receiver.clone(), way.clone())).or_default();
        let word = match outcome {
            Outcome::Confirmed(_) => {
                if courier.answer(&owing.group) {
                    tracing::info!(receiver, way, "a receiver takes notifications again");
                }
                if let Some(written) = &self.written {
                    self.groups.confirm(&written.routing, owing, message);
                }
                "sent"
            }
            Outcome::Refused(cause) => {
                courier.answer(&owing.group);
                tracing::warn!(receiver, way, cause, "a receiver refuses a notification");
                self.groups.refuse(owing);
                "refused"
            }
            Outcome::Failed(cause) => {
                if courier.fail(&owing.group, now) {
                    tracing::warn!(
                        receiver,
                        way,
                        cause,
                        "cannot tell a receiver; it will be tried again"
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
