//! Recurring maintenance windows: on some weekdays, from one time of the day to another, by the
//! clocks of a time zone.
//!
//! A window begins when local clocks first read its start on a day, and ends when they last read
//! its end. A time that a clock change skips means the moment of that change. Must never know: what
//! is silenced.

use std::ops::Range;

use jiff::{
    ToSpan,
    civil::{Date, DateTime, Time, Weekday},
    tz::{AmbiguousOffset, TimeZone},
};
use serde::{Deserialize, Serialize};

use crate::{model::UnixMillis, query::time_zone};

const WEEKDAYS: [(Weekday, &str); 7] = [
    (Weekday::Monday, "monday"),
    (Weekday::Tuesday, "tuesday"),
    (Weekday::Wednesday, "wednesday"),
    (Weekday::Thursday, "thursday"),
    (Weekday::Friday, "friday"),
    (Weekday::Saturday, "saturday"),
    (Weekday::Sunday, "sunday"),
];
/// The number of letters that identify a weekday.
const WEEKDAY_LETTERS: usize = 3;
/// The number of days that are searched for the next window: each weekday occurs twice, because a
/// clock change may skip one window.
const DAYS_AHEAD: i64 = 16;

/// The recurrence of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawRecurrence", into = "RawRecurrence")]
pub struct Recurrence {
    /// The weekdays on which it begins.
    weekdays: Vec<Weekday>,
    from: Time,
    /// The end, which is on the next day unless it is later than `from`.
    until: Time,
    zone_name: String,
    zone: TimeZone,
}

/// The recurrence as text, in requests and in the store.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRecurrence {
    /// Empty: each day.
    #[serde(default)]
    weekdays: Vec<String>,
    from: String,
    until: String,
    #[serde(default = "utc")]
    zone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

impl TryFrom<RawRecurrence> for Recurrence {
    type Error = String;

    fn try_from(written: RawRecurrence) -> Result<Self, String> {
        let RawRecurrence { weekdays, from, until, zone } = written;
        let mut days = Vec::new();
        for name in &weekdays {
            let day = weekday(name).ok_or_else(|| {
                format!(
                    "recurring: {name:?} is not a weekday; write monday to sunday, or mon to sun"
                )
            })?;
            if !days.contains(&day) {
                days.push(day);
            }
        }
        if days.is_empty() {
            days.extend(WEEKDAYS.map(|(day, _)| day));
        }
        days.sort_by_key(|day| day.to_monday_zero_offset());
        Ok(Self {
            weekdays: days,
            from: time_of_day(&from)?,
            until: time_of_day(&until)?,
            zone: time_zone(&zone).map_err(|cause| format!("recurring: {cause}"))?,
            zone_name: zone,
        })
    }
}

impl From<Recurrence> for RawRecurrence {
    fn from(recurrence: Recurrence) -> Self {
        let name = |day: &Weekday| {
            WEEKDAYS
                .iter()
                .find(|(weekday, _)| weekday == day)
                .map_or("", |(_, name)| *name)
                .to_owned()
        };
        let shown = |time: Time| format!("{:02}:{:02}", time.hour(), time.minute());
        Self {
            weekdays: recurrence.weekdays.iter().map(name).collect(),
            from: shown(recurrence.from),
            until: shown(recurrence.until),
            zone: recurrence.zone_name,
        }
    }
}

fn weekday(name: &str) -> Option<Weekday> {
    let name = name.to_ascii_lowercase();
    let is_short = |full: &str| full.get(..WEEKDAY_LETTERS) == Some(&*name);
    WEEKDAYS.into_iter().find(|(_, full)| name == *full || is_short(full)).map(|(day, _)| day)
}

/// Parses a time such as `07:30`; `24:00` means midnight.
fn time_of_day(text: &str) -> Result<Time, String> {
    let read = || {
        let (hour, minute) = text.split_once(':')?;
        let number = |text: &str| {
            let is_two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            is_two.then(|| text.parse::<i8>().ok()).flatten()
        };
        match (number(hour)?, number(minute)?) {
            (24, 0) => Some(Time::midnight()),
            (hour, minute) => Time::new(hour, minute, 0, 0).ok(),
        }
    };
    read().ok_or_else(|| format!("recurring: {text:?} is not a time of day; write 22:00"))
}

impl Recurrence {
    /// Returns the current window at a time, or the next one; `None` when there is none.
    pub fn window(&self, at: UnixMillis) -> Option<Range<UnixMillis>> {
        let today = at.timestamp().to_zoned(self.zone.clone()).date();
        // A window that began two days ago may still last, when a clock change made a day longer.
        let days = (-2..DAYS_AHEAD).filter_map(|ahead| today.checked_add(ahead.days()).ok());
        let begins = days.filter(|day| self.weekdays.contains(&day.weekday()));
        begins.filter_map(|day| self.window_on(day)).find(|window| window.end > at)
    }

    /// Returns the window that begins on a day; `None` when a clock change skips it.
    fn window_on(&self, day: Date) -> Option<Range<UnixMillis>> {
        let last = if self.until > self.from { day } else { day.tomorrow().ok()? };
        let start = self.read_by_clocks(day.to_datetime(self.from), true)?;
        let end = self.read_by_clocks(last.to_datetime(self.until), false)?;
        (start < end).then_some(start..end)
    }

    /// Returns the first or last moment at which local clocks read this time.
    fn read_by_clocks(&self, reading: DateTime, is_first: bool) -> Option<UnixMillis> {
        let at = match self.zone.to_ambiguous_timestamp(reading).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(reading).ok()?,
            AmbiguousOffset::Fold { before, after } => {
                let offset = if is_first { before } else { after };
                offset.to_timestamp(reading).ok()?
            }
            AmbiguousOffset::Gap { after, .. } => {
                let earlier = after.to_timestamp(reading).ok()?;
                self.zone.following(earlier).next()?.timestamp()
            }
        };
        Some(UnixMillis(at.as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(days: &[&str], from: &str, until: &str, zone: &str) -> Recurrence {
        let written = json!({ "weekdays": days, "from": from, "until": until, "zone": zone });
        serde_json::from_value(written).unwrap()
    }

    fn at(text: &str) -> UnixMillis {
        UnixMillis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn check(recurrence: &Recurrence, now: &str, start: &str, end: &str) {
        let found = recurrence.window(at(now)).unwrap();
        let shown = (found.start.to_string(), found.end.to_string());
        assert_eq!(shown, (start.to_owned(), end.to_owned()), "at {now}");
    }

    #[test]
    fn a_window_of_two_days_begins_on_its_weekday() {
        // 2026-11-20 is a Friday.
        let recurrence = read(&["fri", "Saturday"], "22:00", "02:00", "America/New_York");
        check(&recurrence, "2026-11-20T12:00:00Z", "2026-11-21T03:00:00Z", "2026-11-21T07:00:00Z");
        check(&recurrence, "2026-11-21T06:59:59Z", "2026-11-21T03:00:00Z", "2026-11-21T07:00:00Z");
        check(&recurrence, "2026-11-21T07:00:00Z", "2026-11-22T03:00:00Z", "2026-11-22T07:00:00Z");
        check(&recurrence, "2026-11-22T07:00:00Z", "2026-11-28T03:00:00Z", "2026-11-28T07:00:00Z");
        let every_day = read(&[], "00:00", "24:00", "UTC");
        check(&every_day, "2026-11-20T12:00:00Z", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z");
    }

    #[test]
    fn windows_follow_local_clocks_through_clock_changes() {
        // Clocks in Berlin were set forward at 01:00 UTC on 2026-03-29, and back on 2026-10-25.
        let recurrence = read(&["sun"], "02:30", "03:30", "Europe/Berlin");
        check(&recurrence, "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z");
        check(&recurrence, "2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T02:30:00Z");
        let inside = read(&["sun"], "02:10", "02:20", "Europe/Berlin");
        // This time does not exist on the day in spring.
        check(&inside, "2026-03-29T00:00:00Z", "2026-04-05T00:10:00Z", "2026-04-05T00:20:00Z");
        let night = read(&["sat"], "22:00", "06:00", "Europe/Berlin");
        check(&night, "2026-03-29T00:00:00Z", "2026-03-28T21:00:00Z", "2026-03-29T04:00:00Z");
    }

    #[test]
    fn invalid_recurrences_are_reported() {
        for (written, expected) in [
            (json!({ "from": "9:00", "until": "10:00" }), "\"9:00\" is not a time"),
            (json!({ "from": "25:00", "until": "10:00" }), "25:00"),
            (json!({ "from": "09:00", "until": "10:00", "weekdays": ["someday"] }), "someday"),
            (json!({ "from": "09:00", "until": "10:00", "zone": "Mars/Phobos" }), "Mars/Phobos"),
            (json!({ "from": "09:00", "until": "10:00", "days": [] }), "days"),
        ] {
            let message = serde_json::from_value::<Recurrence>(written).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let recurrence = read(&["sun", "mon", "sunday"], "22:00", "24:00", "Asia/Kolkata");
        let written = json!({ "weekdays": ["monday", "sunday"], "from": "22:00", "until": "00:00",
            "zone": "Asia/Kolkata" });
        assert_eq!(serde_json::to_value(&recurrence).unwrap(), written);
    }

    proptest! {
        #[test]
        fn a_window_lasts_while_the_local_clock_reads_a_time_within_it(
            zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York",
                "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata", "UTC"]),
            hour in 0_i8..24, length in 1_i8..24,
            now in 1_700_000_000_i64..1_900_000_000,
        ) {
            let end_hour = (hour + length) % 24;
            let recurrence = read(&[], &format!("{hour:02}:00"), &format!("{end_hour:02}:00"), zone);
            let now = UnixMillis(now * 1000);
            let local = now.timestamp().to_zoned(recurrence.zone.clone());
            let is_within = |time: Time| if recurrence.until > recurrence.from {
                recurrence.from <= time && time < recurrence.until
            } else {
                recurrence.from <= time || time < recurrence.until
            };
            let window = recurrence.window(now).unwrap();
            let is_active = window.contains(&now);
            // A reading that occurs twice may be inside or outside of a window that begins or ends
            // in that hour.
            let is_ambiguous = matches!(recurrence.zone.to_ambiguous_timestamp(local.datetime()).offset(),
                AmbiguousOffset::Fold { .. });
            prop_assert!(is_ambiguous || is_active == is_within(local.time()), "{now} {window:?}");
            prop_assert!(window.end > now);
        }
    }
}
