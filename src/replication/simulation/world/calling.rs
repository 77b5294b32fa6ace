//! Commands in flight: they are executed, lost, repeated or late, and so are their answers.

use super::{World, batches_of};
use crate::replication::{
    gather::divide,
    medium::{Answer, Command, Fault, Inserted},
    roles::Event,
    shard::Shard,
};

impl World {
    /// Executes a command or delivers its answer, or a fault.
    pub(super) fn progress(&mut self, index: usize) {
        let call = &self.calls[index];
        let (node, is_awake) = (call.node, self.awake.contains(&call.node));
        if let Some((answer, position)) = &call.executed {
            let outcome = match self.memory.has_majority(*position) {
                Some(true) => Ok(answer.clone()),
                None => Err(Fault("rolled back".to_owned())),
                Some(false) => return,
            };
            if is_awake {
                self.deliver(index, &outcome);
            }
            return;
        }
        let chance = if self.is_healed { 1000 } else { self.rng.u32(..1000) };
        let lost = || Err(Fault("lost".to_owned()));
        if chance < 50 {
            if chance < 30 {
                self.late.push(call.command.clone());
            }
            if is_awake {
                self.deliver(index, &lost());
            }
            return;
        }
        let command = call.command.clone();
        let answer = self.execute(&command, ["a", "b", "c"][node]);
        if chance < 70 {
            self.late.push(command.clone());
        }
        if chance < 100 && is_awake {
            self.deliver(index, &lost());
            return;
        }
        let changes = match &answer {
            Answer::Inserted(outcomes) => outcomes.contains(&Inserted::Done),
            Answer::Matched(matched) => *matched,
            Answer::Done => true,
            _ => false,
        };
        let position = if changes { self.memory.position() } else { self.memory.settled() };
        self.calls[index].executed = Some((answer, position));
    }

    pub(super) fn execute(&mut self, command: &Command, sender: &str) -> Answer {
        self.checks.check_command(command, &self.memory);
        let answer = self.memory.execute(command);
        self.log(|| format!("{sender}: {command:?} -> {answer:?}"));
        answer
    }

    fn deliver(&mut self, index: usize, outcome: &Result<Answer, Fault>) {
        let call = self.calls.swap_remove(index);
        let (is_fault, now_ms) = (outcome.is_err(), self.clock_ms(call.node));
        for ((shard, ticket), outcome) in divide(call.senders, outcome) {
            let node = &mut self.nodes[call.node];
            if node.life != call.life {
                continue;
            }
            let (replica, state) =
                (&mut node.replicas[usize::from(shard)], &mut node.states[usize::from(shard)]);
            let before = replica.proposed().map(<[u8]>::to_vec);
            let events = replica.accept(now_ms, ticket, outcome, state);
            let applied = state.applied();
            for event in events {
                self.log(|| format!("{}, shard {shard}: {event:?}", call.node));
                self.note(shard, event, before.as_deref(), applied);
            }
        }
        if is_fault {
            self.log(|| format!("{}: {:?} has an unknown outcome", call.node, call.command));
        }
    }

    fn note(&mut self, shard: u16, event: Event, proposed: Option<&[u8]>, applied: u64) {
        match event {
            Event::Committed { number, epoch } => {
                let batches = batches_of(proposed.unwrap_or_default());
                self.checks.check_acked(shard, number, epoch, &self.memory);
                self.checks.note_acked(shard, number, epoch, batches);
            }
            Event::Foreign(text) => self.checks.fail(format!("FOREIGN {text}")),
            Event::Damaged(text) => self.checks.fail(format!("DAMAGED {text}")),
            Event::Took { epoch } => self.checks.note_took(shard, epoch, applied),
            Event::Seeded => self.checks.seeds += 1,
            Event::Fenced | Event::Stopped | Event::NotSeeded(_) => {}
        }
    }
}
