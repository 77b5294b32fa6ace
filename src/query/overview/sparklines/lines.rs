//! The numbers of one host, and the line that they become: one character a point.
//!
//! Must never know: which series they come from.

use serde::{Deserialize, Serialize};

/// Steps of a line's characters.
const STEPS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What a line shows of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Percent of the time in which the cores were busy.
    Cpu,
    /// Percent of memory that is used.
    Memory,
    /// Percent that is used of the file system that is fullest.
    Disk,
    /// Bytes a second, in and out.
    Network,
}

impl Shown {
    pub(super) const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Disk, Self::Network];

    /// What the highest step stands for, where that is always the same.
    fn most(self) -> Option<f32> {
        match self {
            Self::Cpu | Self::Memory | Self::Disk => Some(100.0),
            Self::Network => None,
        }
    }
}

/// A line as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spark {
    /// The newest number; `None` where the last slot has none.
    pub last: Option<f32>,
    /// What the highest of 62 steps stands for.
    pub max: f32,
    /// A character for each slot: `.` where there is no number, else 0-9A-Za-z.
    pub line: String,
}

/// The numbers of a host: of each line so many slots, `NaN` where there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Numbers {
    slots: usize,
    all: Box<[f32]>,
    /// The fullest file system when it was last known: its mount point, and percent.
    pub(super) fullest: Option<(Box<str>, f32)>,
}

impl Numbers {
    /// None yet.
    pub(super) fn new(slots: usize) -> Self {
        let all = vec![f32::NAN; slots * Shown::ALL.len()].into();
        Self { slots, all, fullest: None }
    }

    /// Bytes that they take.
    pub(super) fn bytes(slots: usize) -> usize {
        size_of::<Self>() + slots * Shown::ALL.len() * size_of::<f32>()
    }

    fn line(&self, shown: Shown) -> &[f32] {
        self.all.chunks(self.slots).nth(shown as usize).unwrap_or_default()
    }

    /// Sets the number of a slot.
    pub(super) fn set(&mut self, shown: Shown, slot: usize, number: f32) {
        let own = self.all.chunks_mut(self.slots).nth(shown as usize);
        if let Some(own) = own.and_then(|own| own.get_mut(slot)) {
            *own = number;
        }
    }

    /// Moves on by some slots, of which nothing is known yet.
    pub(super) fn shift(&mut self, by: usize) {
        let by = by.min(self.slots);
        for own in self.all.chunks_mut(self.slots) {
            own.rotate_left(by);
            own[self.slots - by..].fill(f32::NAN);
        }
    }

    /// Whether there is any number.
    pub(super) fn is_empty(&self) -> bool {
        self.all.iter().all(|number| number.is_nan())
    }

    /// A line; `None` where there is no number.
    pub(super) fn spark(&self, shown: Shown) -> Option<Spark> {
        let numbers = self.line(shown);
        let largest = numbers.iter().copied().fold(f32::NAN, f32::max);
        if largest.is_nan() {
            return None;
        }
        let max = shown.most().unwrap_or(largest);
        let last = numbers.last().copied().filter(|number| !number.is_nan());
        let line = numbers.iter().map(|number| step(*number, max)).collect();
        Some(Spark { last, max, line })
    }
}

/// The character of a number.
fn step(number: f32, max: f32) -> char {
    if number.is_nan() {
        return '.';
    }
    let last = STEPS.len() - 1;
    let part = if max > 0.0 { (number / max).clamp(0.0, 1.0) } else { 0.0 };
    char::from(STEPS[((part * last as f32).round() as usize).min(last)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_character_for_each_slot() {
        let mut numbers = Numbers::new(5);
        assert!(numbers.is_empty() && numbers.spark(Shown::Cpu).is_none());
        for (slot, number) in [(0, 0.0), (1, 50.0), (3, 100.0), (4, 1000.0)] {
            numbers.set(Shown::Cpu, slot, number);
            numbers.set(Shown::Network, slot, number);
        }
        let cpu = numbers.spark(Shown::Cpu).unwrap();
        assert_eq!((cpu.last, cpu.max, &*cpu.line), (Some(1000.0), 100.0, "0V.zz"));
        let network = numbers.spark(Shown::Network).unwrap();
        assert_eq!((network.max, &*network.line), (1000.0, "03.6z"));
        assert!(numbers.spark(Shown::Memory).is_none());
        numbers.shift(2);
        let cpu = numbers.spark(Shown::Cpu).unwrap();
        assert_eq!((cpu.last, &*cpu.line), (None, ".zz.."));
        numbers.shift(9);
        assert!(numbers.is_empty());
        numbers.set(Shown::Network, 4, 0.0);
        assert_eq!(numbers.spark(Shown::Network).unwrap().line, "....0");
    }
}
