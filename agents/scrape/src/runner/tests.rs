//! Worker threads without the scheduler.

use std::{path::PathBuf, sync::mpsc::sync_channel};

use granary_agent_kit::{Stopwatch, unix_ms};

use super::{workers::start_worker, *};

const STATIC_CONFIG: &str =
    "scrape_configs: [{job_name: j, static_configs: [{targets: ['127.0.0.1:1']}]}]";

#[test]
fn a_thread_that_cannot_be_started_loses_no_target() {
    let config = Config::parse(STATIC_CONFIG, PathBuf::new()).unwrap();
    let shared = Arc::new(SharedState::new(&config, crate::memory::MEMORY_MAX).unwrap());
    JobSources::new(0, &shared.jobs[0].0, &shared.memory).refresh_due(&shared);
    let (task_sender, task_receiver) = sync_channel(1);
    let queue = Arc::new(Mutex::new(task_receiver));
    let mut state = shared.state();
    let now = unix_ms();
    state.board.make_all_due(now);
    assert!(!start_worker(&shared, &mut state, &queue, 1 << 50), "no machine has such a stack");
    assert_eq!((state.workers, state.idle), (0, 0));
    assert!(state.board.problems()[0].1.contains("cannot start a thread"));
    assert!(state.board.is_due(now), "the target waits for a thread");
    assert!(start_worker(&shared, &mut state, &queue, STACK_BYTES));
    assert_eq!(state.board.problems(), []);
    task_sender.send(state.board.next_task(now).unwrap()).unwrap();
    state.idle -= 1;
    let watch = Stopwatch::start();
    while state.idle == 0 {
        assert!(watch.elapsed() < Duration::from_secs(20));
        state = shared.wait(state, Duration::from_secs(1));
    }
    assert!(state.board.is_all_scraped());
}

#[test]
fn stop_ends_the_threads_at_once() {
    let file_config = "scrape_configs: [{job_name: f, file_sd_configs: [{files: [/none.yml]}]}]";
    for _ in 0..200 {
        let config = Config::parse(file_config, PathBuf::new()).unwrap();
        let mut runner = Runner::start(&config, crate::memory::MEMORY_MAX).unwrap();
        let watch = Stopwatch::start();
        runner.stop();
        // The threads check files and the clock only every five seconds.
        assert!(watch.elapsed() < Duration::from_secs(4), "a thread missed the request");
    }
}
