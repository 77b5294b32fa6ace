//! Tests of refs and definitions.

use granary_protocol::{Batch, SeriesDefinition, decode_batch, encode_batch};

use super::*;
use crate::{
    model::{GranularitySet, MetricPattern, ProjectName},
    test_times::NOW,
};

/// Returns a batch that defines ref 0 as `metric`, if given, and has one sample of ref 0.
fn batch(epoch: i64, metric: Option<&str>) -> Vec<u8> {
    let define = |metric: &str| SeriesDefinition {
        metric: metric.to_owned(),
        ..SeriesDefinition::default()
    };
    let batch = Batch {
        agent: "a".to_owned(),
        epoch,
        seq: 1,
        series: metric.map(define).into_iter().collect(),
        refs: vec![0],
        times: vec![NOW.0],
        values: vec![1.0],
        ..Batch::default()
    };
    let mut bytes = Vec::new();
    encode_batch(&batch, &mut bytes);
    bytes
}

#[test]
fn only_samples_of_distributions_are_counted_as_observations() {
    let mut sessions = Sessions::new(SeriesLimits::default(), 10, 100);
    sessions.set_distributions(&Distributions::new(vec![MetricPattern::parse("wait").unwrap()]));
    let mut dictionary = Dictionary::default();
    let found = ["wait", "other"].map(|metric| {
        let bytes = batch(1, Some(metric));
        let view = decode_batch(&bytes).unwrap();
        for _ in 0..2 {
            let of_project = dictionary.of_project(ProjectName::of_default());
            let decided = DecidedSeries::default();
            let new = sessions.add_definitions(&view, &of_project, &decided, (true, NOW)).new;
            for info in new {
                dictionary.add(info);
            }
        }
        sessions.observations(&view)
    });
    assert_eq!(found, [1, 0]);
}

#[test]
fn a_distribution_changes_the_gauge_of_another_sender() {
    let mut dictionary = Dictionary::default();
    let bytes = batch(1, Some("wait"));
    let view = decode_batch(&bytes).unwrap();
    let definitions = |sessions: &mut Sessions, dictionary: &Dictionary| {
        let dictionary = dictionary.of_project(ProjectName::of_default());
        sessions.add_definitions(&view, &dictionary, &DecidedSeries::default(), (true, NOW))
    };
    let mut sessions = Sessions::new(SeriesLimits::default(), 10, 100);
    let mut info = definitions(&mut sessions, &dictionary).new.remove(0);
    info.sender = "b".into();
    dictionary.add(info);
    sessions.set_distributions(&Distributions::new(vec![MetricPattern::parse("wait").unwrap()]));
    let found = definitions(&mut sessions, &dictionary).of_other_kind.remove(0);
    assert_eq!((&*found.sender, found.kind), ("b", Kind::DeltaHistogram));
}

#[test]
fn an_older_epoch_that_waited_for_the_disk_does_not_change_the_refs_of_a_newer_one() {
    // Regression: while a definition of epoch 1 waited for a slow sync, the agent began epoch 2
    // with another series under the same ref; the response then overwrote it.
    let mut sessions = Sessions::new(SeriesLimits::default(), 10, 100);
    let mut dictionary = Dictionary::default();
    let decided = DecidedSeries::default();
    let admission = Admission::new(&GranularitySet::default(), 0, NOW);
    let [old, new, more] = [batch(1, Some("old")), batch(2, Some("new")), batch(2, None)];
    let [old, new, more] = [&old, &new, &more].map(|bytes| decode_batch(bytes).unwrap());
    let admit = |sessions: &Sessions, view| {
        let former = |_, _| FormerSeries::Unknown;
        let (kind, class, name) = (|_| None, |_, _| 0, |_| None);
        let lookup = SeriesLookup { kind, class, name, former };
        let admitted = sessions.admit(view, &admission, &lookup)?;
        Ok::<_, UnknownRef>(admitted.batch.series)
    };

    let learn = |sessions: &mut Sessions, view, dictionary: &Dictionary| {
        let dictionary = dictionary.of_project(ProjectName::of_default());
        sessions.add_definitions(view, &dictionary, &decided, (true, NOW)).new
    };

    let waiting = learn(&mut sessions, &old, &dictionary);
    let other = learn(&mut sessions, &new, &dictionary);
    let [old_id, new_id] = [waiting, other].map(|mut unknown| dictionary.add(unknown.remove(0)));
    assert_eq!(learn(&mut sessions, &new, &dictionary), []);
    assert_eq!(admit(&sessions, &new), Ok(vec![new_id]));
    // The first request continues, and is checked right after its definitions.
    assert_eq!(learn(&mut sessions, &old, &dictionary), []);
    assert_eq!(admit(&sessions, &old), Ok(vec![old_id]));
    // The newer epoch must define its refs again instead of using the older epoch's.
    assert!(admit(&sessions, &more).is_err());
    assert_eq!(learn(&mut sessions, &new, &dictionary), []);
    assert_eq!(admit(&sessions, &more), Ok(vec![new_id]));
}
