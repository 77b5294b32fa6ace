//! The numbers of one host, and their encoding as a line with one character per point.
//!
//! Must never know: the series that the numbers are computed from.

use serde::{Deserialize, Serialize};

/// The characters of a line, from the lowest step to the highest.
const STEPS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The quantity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Percentage of time in which cores were busy.
    Cpu,
    /// Percentage of used memory.
    Memory,
    /// Used percentage of the fullest file system.
    Disk,
    /// Bytes per second, received and sent.
    Network,
}

impl Quantity {
    pub(super) const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Disk, Self::Network];

    /// Returns the fixed number of the highest step, for percentages.
    fn fixed_max(self) -> Option<f32> {
        match self {
            Self::Cpu | Self::Memory | Self::Disk => Some(100.0),
            Self::Network => None,
        }
    }
}

/// An encoded line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spark {
    /// The newest number; `None` when the last slot is empty.
    pub last: Option<f32>,
    /// The number of the highest of 62 steps.
    pub max: f32,
    /// One character per slot: `.` when the slot is empty, else 0-9A-Za-z.
    pub line: String,
}

/// The numbers of a host: the slots of one line after another, `NaN` for an empty slot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Numbers {
    slots: usize,
    all: Box<[f32]>,
    /// The mount point and percentage of the fullest file system.
    pub(super) fullest: Option<(Box<str>, f32)>,
}

impl Numbers {
    /// Creates empty numbers.
    pub(super) fn new(slots: usize) -> Self {
        let all = vec![f32::NAN; slots * Quantity::ALL.len()].into();
        Self { slots, all, fullest: None }
    }

    /// Returns the memory in bytes.
    pub(super) fn bytes(slots: usize) -> usize {
        size_of::<Self>() + slots * Quantity::ALL.len() * size_of::<f32>()
    }

    fn line(&self, quantity: Quantity) -> &[f32] {
        self.all.chunks(self.slots).nth(quantity as usize).unwrap_or_default()
    }

    /// Sets the number of a slot.
    pub(super) fn set(&mut self, quantity: Quantity, slot: usize, number: f32) {
        let line = self.all.chunks_mut(self.slots).nth(quantity as usize);
        if let Some(line) = line.and_then(|line| line.get_mut(slot)) {
            *line = number;
        }
    }

    /// Shifts all lines and clears the new slots.
    pub(super) fn shift(&mut self, by: usize) {
        let by = by.min(self.slots);
        for line in self.all.chunks_mut(self.slots) {
            line.rotate_left(by);
            line[self.slots - by..].fill(f32::NAN);
        }
    }

    /// Returns true when all slots are empty.
    pub(super) fn is_empty(&self) -> bool {
        self.all.iter().all(|number| number.is_nan())
    }

    /// Encodes a line; `None` when it is empty.
    pub(super) fn spark(&self, quantity: Quantity) -> Option<Spark> {
        let numbers = self.line(quantity);
        let largest = numbers.iter().copied().fold(f32::NAN, f32::max);
        if largest.is_nan() {
            return None;
        }
        let max = quantity.fixed_max().unwrap_or(largest);
        let last = numbers.last().copied().filter(|number| !number.is_nan());
        let line = numbers.iter().map(|number| step_character(*number, max)).collect();
        Some(Spark { last, max, line })
    }
}

/// Returns the character of a number.
fn step_character(number: f32, max: f32) -> char {
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
    fn a_line_contains_one_character_per_slot() {
        let mut numbers = Numbers::new(5);
        assert!(numbers.is_empty() && numbers.spark(Quantity::Cpu).is_none());
        for (slot, number) in [(0, 0.0), (1, 50.0), (3, 100.0), (4, 1000.0)] {
            numbers.set(Quantity::Cpu, slot, number);
            numbers.set(Quantity::Network, slot, number);
        }
        let cpu = numbers.spark(Quantity::Cpu).unwrap();
        assert_eq!((cpu.last, cpu.max, &*cpu.line), (Some(1000.0), 100.0, "0V.zz"));
        let network = numbers.spark(Quantity::Network).unwrap();
        assert_eq!((network.max, &*network.line), (1000.0, "03.6z"));
        assert!(numbers.spark(Quantity::Memory).is_none());
        numbers.shift(2);
        let cpu = numbers.spark(Quantity::Cpu).unwrap();
        assert_eq!((cpu.last, &*cpu.line), (None, ".zz.."));
        numbers.shift(9);
        assert!(numbers.is_empty());
        numbers.set(Quantity::Network, 4, 0.0);
        assert_eq!(numbers.spark(Quantity::Network).unwrap().line, "....0");
    }
}
