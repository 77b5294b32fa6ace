//! Runs each fuzz target on every input of its corpus, and on small mutations of each input.

use std::{fs, path::Path};

use granary::fuzzing::{TARGETS, Target};

/// The number of mutations of each input.
const MUTATIONS: usize = 20;

#[test]
fn no_fuzz_target_panics_on_its_corpus_or_on_mutations() {
    let mut rng = fastrand::Rng::with_seed(7);
    let agent_targets: [(&str, Target); 2] =
        [("scrape", granary_agent_scrape::fuzz), ("statsd", granary_agent_statsd::fuzz_datagrams)];
    for (name, target) in TARGETS.into_iter().chain(agent_targets) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
        let mut inputs = 0;
        for entry in fs::read_dir(&folder).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            target(&bytes);
            for _ in 0..MUTATIONS {
                let mut mutated = bytes.clone();
                match rng.u8(0..3) {
                    0 => mutated.truncate(rng.usize(0..=bytes.len())),
                    1 => mutated.push(rng.u8(..)),
                    _ if bytes.is_empty() => {}
                    _ => mutated[rng.usize(0..bytes.len())] ^= 1 << rng.u8(0..8),
                }
                target(&mutated);
            }
            inputs += 1;
        }
        assert!(inputs > 10, "{name}: {inputs} inputs in {}", folder.display());
    }
}
