//! Sums over the series of each host, slot by slot.
//!
//! Must never know: the state that is kept between answers.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    LIMITS, Window,
    lines::{Numbers, Quantity},
    members::{Contribution, SparklineSeries},
};
use crate::{
    model::{Cell, SeriesId, Span, UnixMillis},
    query::{
        Budget, QueryError, Resolution,
        cells::axis::{Axis, AxisRequest},
        cells::coverage::coverage,
        cells::reader::CellReader,
    },
    store::Store,
};

/// The sum over the series of one host in a slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    pub(super) busy: f64,
    pub(super) idle: f64,
    pub(super) memory_used: Option<f64>,
    pub(super) memory_total: Option<f64>,
    pub(super) network: Option<f64>,
    pub(super) fullest: Option<(Arc<str>, f32)>,
}

impl Sum {
    fn add(&mut self, part: &Contribution, cell: &Cell) {
        let mean = cell.sum / f64::from(cell.n.max(1));
        match part {
            _ if cell.is_empty() || !cell.sum.is_finite() => {}
            Contribution::Busy => self.busy += cell.sum,
            Contribution::Idle => self.idle += cell.sum,
            Contribution::MemoryUsed => self.memory_used = Some(mean),
            Contribution::MemoryTotal => self.memory_total = Some(mean),
            Contribution::Network => *self.network.get_or_insert_default() += cell.sum,
            Contribution::Disk(mount) => {
                let percent = mean as f32;
                if self.fullest.as_ref().is_none_or(|(_, most)| percent > *most) {
                    self.fullest = Some((mount.clone(), percent));
                }
            }
        }
    }

    /// Adds the sum of other series of the host.
    pub(super) fn merge(&mut self, other: Self) {
        self.busy += other.busy;
        self.idle += other.idle;
        self.memory_used = other.memory_used.or(self.memory_used);
        self.memory_total = other.memory_total.or(self.memory_total);
        if let Some(network) = other.network {
            *self.network.get_or_insert_default() += network;
        }
        let most = self.fullest.as_ref().map(|(_, most)| *most);
        if let Some((mount, percent)) = other.fullest
            && most.is_none_or(|most| percent > most)
        {
            self.fullest = Some((mount, percent));
        }
    }

    /// Returns true when no series has samples.
    pub(super) fn is_empty(&self) -> bool {
        let has_cpu = self.busy != 0.0 || self.idle != 0.0;
        let numbers = [self.memory_used, self.memory_total, self.network];
        !has_cpu && numbers.iter().all(Option::is_none) && self.fullest.is_none()
    }

    fn numbers(&self, width_ms: i64) -> [(Quantity, Option<f64>); 4] {
        let ratio = |part: f64, whole: f64| (whole > 0.0).then_some(100.0 * part / whole);
        let memory = self.memory_used.zip(self.memory_total);
        [
            (Quantity::Cpu, ratio(self.busy, self.busy + self.idle)),
            (Quantity::Memory, memory.and_then(|(used, total)| ratio(used, total))),
            (Quantity::Disk, self.fullest.as_ref().map(|(_, percent)| f64::from(*percent))),
            (Quantity::Network, self.network.map(|bytes| bytes * 1000.0 / width_ms as f64)),
        ]
    }
}

/// The sums of all hosts over the slots that were read.
pub(super) struct Sums {
    pub(super) window: Window,
    /// The first slot that was read.
    pub(super) from: usize,
    /// The sums of each host, slot by slot.
    pub(super) by_host: Vec<Sum>,
}

impl Sums {
    pub(super) fn read(
        members: &SparklineSeries,
        store: &Store,
        budget: &Budget,
        window: Window,
        from: usize,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let slots = window.slots - from;
        let range = window.range_from(from);
        let active_indexes = active_indexes(members, store, range.start);
        budget.reserve(members.hosts.len() * slots * size_of::<Sum>())?;
        let mut sums = vec![Sum::default(); members.hosts.len() * slots];
        let axis_request = AxisRequest {
            resolution: &Resolution::Named(Span::Fixed(window.width).to_string()),
            range: &range,
            zone: None,
            points: None,
            series: active_indexes.len(),
            lines: 1,
            readings: None,
        };
        let ids: Vec<_> = active_indexes.iter().map(|index| members.series[*index].0).collect();
        let coverage = coverage(store, &ids, &range, now);
        let axis = Axis::plan(&coverage, &axis_request, &LIMITS)?;
        let mut reader = CellReader::new(store, budget, &axis, ids).spreading(&coverage);
        let mut cells = vec![Cell::EMPTY; axis.len()];
        for index in active_indexes {
            let (_, host, part) = &members.series[index];
            cells.fill(Cell::EMPTY);
            reader.merge_next(&mut cells)?;
            for ((start, width), cell) in axis.slots().iter().zip(&cells) {
                // Slots of a coarser granularity match no slot of a line.
                let slot = window.slot_of(*start).filter(|_| *width == window.width);
                let Some(slot) = slot.and_then(|slot| slot.checked_sub(from)) else { continue };
                sums[*host as usize * slots + slot].add(part, cell);
            }
        }
        Ok(Self { window, from, by_host: sums })
    }

    /// Replaces the previous numbers of the slots that were read.
    pub(super) fn into_numbers(
        self,
        hosts: &[Arc<str>],
        numbers: &mut BTreeMap<Arc<str>, Numbers>,
        budget: &Budget,
    ) -> Result<(), QueryError> {
        let slots = self.window.slots - self.from;
        for (name, sums) in hosts.iter().zip(self.by_host.chunks(slots)) {
            budget.check()?;
            let line_numbers = numbers.entry(name.clone());
            let line_numbers = line_numbers.or_insert_with(|| Numbers::new(self.window.slots));
            for (slot, sum) in (self.from..).zip(sums) {
                for (quantity, number) in sum.numbers(self.window.width) {
                    line_numbers.set(
                        quantity,
                        slot,
                        number.map_or(f32::NAN, |number| number as f32),
                    );
                }
            }
            let fullest = sums.iter().rev().find_map(|sum| sum.fullest.clone());
            if let Some((mount, percent)) = fullest {
                line_numbers.fullest = Some(((&*mount).into(), percent));
            }
        }
        Ok(())
    }
}

/// Returns the indexes of the series that have samples since a time.
fn active_indexes(members: &SparklineSeries, store: &Store, since: UnixMillis) -> Vec<usize> {
    const SERIES_AT_A_TIME: usize = 4096;
    let mut active_indexes = Vec::new();
    for (chunk, first) in
        members.series.chunks(SERIES_AT_A_TIME).zip((0..).step_by(SERIES_AT_A_TIME))
    {
        let ids: Vec<SeriesId> = chunk.iter().map(|(id, ..)| *id).collect();
        let last = store.last_samples(&ids).into_iter().zip(first..);
        active_indexes.extend(last.filter_map(|(last, index)| {
            last.is_some_and(|last| last.at >= since).then_some(index)
        }));
    }
    active_indexes
}
