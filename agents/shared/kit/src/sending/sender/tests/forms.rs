//! Encodings of batches for newer and older daemons.

use super::*;

/// Adds the header in which a daemon announces that it accepts packed bodies.
fn announce_packed((status, _, body): (u16, &'static str, String)) -> (u16, &'static str, String) {
    (status, "Accept-Post: application/vnd.granary.packed\r\n", body)
}

#[test]
fn batches_are_packed_for_a_daemon_that_announces_support() {
    let (_folder, spool) = spool(200);
    let answers = [accepted_answer(128), accepted_answer(128), accepted_answer(128)];
    let [first, second, third] = answers;
    // An older daemon replaces the newer daemon, and cannot read the packed body.
    let refusal = refused_answer(400, "malformed");
    let (url, server) = serve(vec![
        announce_packed(first),
        announce_packed(second),
        refusal,
        third,
        accepted_answer(16),
    ]);
    let (mut sender, totals) = sender(&spool, &url, None);
    while sender.attempt(TIMEOUT).unwrap() == Attempt::Progress {}
    let requests = server.join().unwrap();
    let packed: Vec<bool> = requests
        .iter()
        .map(|request| request.head.contains("application/vnd.granary.packed"))
        .collect();
    assert_eq!(packed, [false, true, true, false, false]);
    assert_eq!(requests[2].batches, requests[3].batches);
    assert_eq!((waiting_batches(&spool), totals.batches_rejected.get()), (0, 0));
}
