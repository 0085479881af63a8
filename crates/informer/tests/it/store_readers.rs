//! Readers and the writer at once: what any reader sees is one batch and never a part of it.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use crate::support::{key, mk_with};
use informer::{model::Selector, store};
use k8s_openapi::api::core::v1::ConfigMap;

const OBJECTS: usize = 200;
const BATCHES: u64 = 300;

#[test]
fn c19_f27_readers_see_whole_batches_while_the_writer_goes_on() {
    let (mut writer, store) = store::new::<ConfigMap>();
    let by_round = store.add_index("round", crate::support::data_keys).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut looks = 0;
                    while !stop.load(Relaxed) || looks == 0 {
                        let snapshot = store.snapshot();
                        let round = snapshot.resource_version().to_string();
                        let odd =
                            snapshot.iter().find(|object| object.resource_version().to_string() != round);
                        assert!(odd.is_none(), "{odd:?} in a snapshot of round {round}");
                        let labelled: Selector = format!("round={round}").parse().unwrap();
                        assert_eq!(snapshot.list(&labelled).len(), snapshot.len());
                        assert_eq!(snapshot.by_index("round", &round).unwrap().len(), snapshot.len());
                        looks += 1;
                    }
                    looks
                })
            })
            .collect();
        for round in 1..=BATCHES {
            let text = round.to_string();
            writer.write(|batch| {
                // Every third name comes and goes.
                for i in 0..OBJECTS {
                    let name = format!("ns/{i}");
                    if i % 3 == 0 && (round + i as u64).is_multiple_of(2) {
                        batch.remove(&key(&name));
                    } else {
                        batch.insert(mk_with(&name, round, &[("round", &text)], &[&text]));
                    }
                }
                batch.set_resource_version(round.into());
            });
        }
        stop.store(true, Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
    assert_eq!(by_round.values(), [BATCHES.to_string()]);
}
