//! Native histograms for daemons that store them and for older ones.

use granary_histogram::Histogram;
use granary_protocol::{Kind, push_histogram};

use super::*;

/// The headers of a daemon that stores native histograms.
const ANNOUNCEMENT: &str = "Accept-Post: application/vnd.granary.packed\r\n\
                            Accept-Post: application/vnd.granary.packed;version=3\r\n";

fn announce((status, _, body): (u16, &'static str, String)) -> (u16, &'static str, String) {
    (status, ANNOUNCEMENT, body)
}

/// Returns a spool with batches of a number and a histogram of two observations.
fn spool_with_histograms(batches: usize) -> (TempDir, Arc<Spool>) {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), "a", 1 << 30, 5).unwrap();
    let mut histogram = Histogram::sketch();
    histogram.observe(3.0, 2.0);
    for index in 0..batches {
        let kind = Kind::DeltaHistogram;
        let of_histograms = SeriesDefinition { kind, ..definition(1) };
        let series = if index == 0 { vec![definition(0), of_histograms] } else { vec![] };
        let mut batch = Batch {
            agent: "a".to_owned(),
            series,
            refs: vec![0, 1],
            times: vec![1000],
            values: vec![1.0, 2.0],
            ..Batch::default()
        };
        push_histogram(&mut batch.histograms, 1, &histogram);
        spool.append(&mut batch).unwrap();
    }
    (folder, Arc::new(spool))
}

#[test]
fn an_older_daemon_gets_only_numbers_and_the_omitted_histograms_are_counted() {
    let (_folder, spool) = spool_with_histograms(3);
    let (url, server) = serve(vec![accepted_answer(0), accepted_answer(3)]);
    let (mut sender, totals) = sender(&spool, &url, None);
    while sender.attempt(TIMEOUT).unwrap() == Attempt::Progress {}
    let requests = server.join().unwrap();
    assert!(requests[0].batches.is_empty(), "the first request asks what the daemon stores");
    assert_eq!(requests[1].batches, [(1, vec![0], 1), (2, vec![], 1), (3, vec![], 1)]);
    assert_eq!((waiting_batches(&spool), totals.histograms_omitted.get()), (0, 3));
    assert_eq!(totals.samples_acknowledged.get(), 3);
}

#[test]
fn an_older_daemon_that_replaces_a_newer_one_gets_the_batch_again_without_histograms() {
    let (_folder, spool) = spool_with_histograms(1);
    let (url, server) = serve(vec![
        announce(accepted_answer(0)),
        refused_answer(400, "malformed"),
        accepted_answer(1),
    ]);
    let (mut sender, totals) = sender(&spool, &url, None);
    while sender.attempt(TIMEOUT).unwrap() == Attempt::Progress {}
    let requests = server.join().unwrap();
    assert_eq!(requests[1].batches, [(1, vec![0, 1], 2)]);
    assert_eq!(requests[2].batches, [(1, vec![0], 1)]);
    assert_eq!((totals.histograms_omitted.get(), totals.batches_rejected.get()), (1, 0));
}

/// The sender asks again what the daemon stores after a failure.
#[test]
fn a_proxy_that_answers_for_the_daemon_omits_no_histogram() {
    let (_folder, spool) = spool_with_histograms(1);
    let bad_gateway = (502, "", "<html>Bad Gateway</html>".to_owned());
    let answers = [accepted_answer(0), bad_gateway, accepted_answer(0), accepted_answer(2)];
    let answers = answers.map(|answer| if answer.0 == 200 { announce(answer) } else { answer });
    let (url, server) = serve(answers.into());
    let (mut sender, totals) = sender(&spool, &url, None);
    assert!(matches!(sender.attempt(TIMEOUT).unwrap(), Attempt::Retry { .. }));
    assert_eq!(sender.attempt(TIMEOUT).unwrap(), Attempt::Progress);
    let requests = server.join().unwrap();
    assert_eq!(requests[1].batches, requests[3].batches);
    assert_eq!(requests[3].batches, [(1, vec![0, 1], 2)]);
    assert_eq!((waiting_batches(&spool), totals.histograms_omitted.get()), (0, 0));
}
