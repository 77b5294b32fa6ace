//! Tests of the range of accepted times and of the reasons for a refusal.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_sample_is_admitted_when_a_partition_keeps_its_time(
        now in 1_600_000_000_000..2_000_000_000_000_i64, back in 0..200_000_000_000_i64
    ) {
        let set = GranularitySet::default();
        let (now, at) = (UnixMillis(now), UnixMillis(now - back));
        let admitted = Admission::new(&set, 0, now).check(at, 1.0, || None).is_ok();
        prop_assert_eq!(admitted, set.finest_keeping(at, now).is_some());
    }
}

#[test]
fn a_bad_sample_is_refused_with_the_reason() {
    let now = UnixMillis(1_763_712_000_000);
    let admission = Admission::new(&GranularitySet::default(), 60_000, now);
    let check = |at: UnixMillis, value: f64| admission.check(at, value, || Some(Kind::Counter));
    assert_eq!(check(now, f64::NAN), Err(RefusalReason::NotFinite));
    assert_eq!(admission.check(now, f64::NAN, || Some(Kind::Gauge)), Ok(()));
    assert_eq!(check(now.plus(60_000), 0.0), Ok(()));
    assert_eq!(check(now.plus(60_001), 0.0), Err(RefusalReason::TooNew));
    assert_eq!(check(UnixMillis(0), 0.0), Err(RefusalReason::TooOld));
}

#[test]
fn a_rule_admits_older_or_only_newer_samples_of_its_series() {
    let now = UnixMillis(1_763_712_000_000);
    let set = GranularitySet::default();
    let kept = |retention: &str| {
        let level = &set.as_slice()[3];
        let longer = level.with_retention(retention.parse().unwrap());
        GranularitySet::of_checked(vec![longer]).unwrap()
    };
    let (long, short) = (kept("10y"), kept("1y"));
    let classes = [("", &set), ("long", &long), ("short", &short)];
    let admission = Admission::by_rule(classes.into_iter(), 0, now);
    let years = |count: i64| now.minus(count * 366 * 86_400_000);
    let classes_that_keep = |at: UnixMillis| {
        let keeps = |class: &usize| admission.keep(at, 1.0, || None, || *class) == Ok(1.0);
        (0..3).filter(keeps).collect::<Vec<_>>()
    };
    assert_eq!(classes_that_keep(now), [0, 1, 2]);
    assert_eq!(classes_that_keep(years(3)), [0, 1]);
    assert_eq!(classes_that_keep(years(8)), [1]);
    assert!(classes_that_keep(years(12)).is_empty());
    assert_eq!(admission.check(years(3), 1.0, || None), Err(RefusalReason::TooOld));
    let explain = |class| admission.explain(RefusalReason::TooOld, (years(12), 1.0), class);
    assert!(
        explain(2).ends_with("2024-01-01T00:00:00Z, the oldest time that is kept by rule short"),
        "{}",
        explain(2)
    );
    assert!(explain(0).ends_with("the oldest time that is kept"), "{}", explain(0));
}

#[test]
fn while_the_clock_is_doubted_either_time_admits_a_sample() {
    let set = GranularitySet::default();
    let (early, late) = (UnixMillis(1_763_712_000_000), UnixMillis(5_680_281_600_000));
    for now in [Moment { clock: late, believed: early }, Moment { clock: early, believed: late }] {
        let admission = Admission::new(&set, 60_000, now);
        for at in [early, late] {
            for skew in [0, 60_000] {
                assert_eq!(admission.check(at.plus(skew), 1.0, || None), Ok(()), "{at}");
            }
        }
        let check = |at: UnixMillis| admission.check(at, 1.0, || None);
        assert_eq!(check(late.plus(60_001)), Err(RefusalReason::TooNew));
        assert_eq!(check(UnixMillis(0)), Err(RefusalReason::TooOld));
    }
}

#[test]
fn a_series_takes_samples_of_another_kind_but_not_histograms_instead_of_numbers() {
    let id = SeriesId(7);
    for (known, sent, is_taken) in [
        (Kind::Gauge, Kind::Counter, true),
        (Kind::GaugeHistogram, Kind::Histogram, true),
        (Kind::Counter, Kind::Histogram, false),
        (Kind::GaugeHistogram, Kind::Gauge, false),
    ] {
        let settled = RefusalReason::settle(DefinitionVerdict::KindConflict(id, known), sent);
        let expected = if is_taken { Ok(id) } else { Err(RefusalReason::KindConflict) };
        assert_eq!(settled, expected, "{known:?} {sent:?}");
    }
}
