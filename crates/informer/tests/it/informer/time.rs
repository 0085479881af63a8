//! Time: only how much of it has passed counts, and no clock that somebody can set.

use std::{fs, path::Path, time::Duration};

use informer::{
    model::{ResourceVersion, Status},
    reflector::{Backoff, Input, Machine, ReflectorSettings},
    source::{PageEnd, SourceError, WatchChange, WatchItem},
    unshared::Informer,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use tokio_util::sync::CancellationToken;

use super::stage::{Log, Stage, builder, put, seconds, server};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn f28_a_machine_does_the_same_a_day_later() {
    for seed in 0..500 {
        let mut rng = Pcg32::seed_from_u64(seed);
        let settings = ReflectorSettings {
            streaming: rng.random(),
            internal_error_retry: Duration::from_secs(rng.random_range(0..60)),
            ..ReflectorSettings::default()
        };
        let mut machines = [Machine::new(settings.clone(), seed), Machine::new(settings, seed)];
        let mut now = Duration::ZERO;
        let [today, tomorrow] = &mut machines;
        for _ in 0..200 {
            let input = some_input(&mut rng);
            if let (Input::Timer, Some(deadline)) = (&input, today.deadline()) {
                now = now.max(deadline);
            } else {
                now += Duration::from_millis(rng.random_range(0..5_000));
            }
            let (one, other) = (today.handle(now, input.clone()), tomorrow.handle(now + DAY, input));
            assert_eq!(one, other, "seed {seed} at {now:?}");
            assert_eq!(today.deadline().map(|at| at + DAY), tomorrow.deadline(), "seed {seed} at {now:?}");
            assert_eq!((today.phase(), today.last_version()), (tomorrow.phase(), tomorrow.last_version()));
        }
    }
}

fn some_input(rng: &mut Pcg32) -> Input {
    let version: ResourceVersion = rng.random_range(1..1_000u64).into();
    let end = PageEnd { version: version.clone(), ..PageEnd::default() };
    let change = [WatchChange::Added, WatchChange::Modified, WatchChange::Deleted][rng.random_range(0..3)];
    let error = [
        SourceError::Refused(String::new()),
        SourceError::Broken(String::new()),
        Status::expired("").into(),
        Status::too_many_requests("", 3).into(),
        Status::internal_error("").into(),
    ][rng.random_range(0..5)]
    .clone();
    match rng.random_range(0..14) {
        0 | 1 => Input::Start,
        2 => Input::ListGoesOn,
        3 | 4 => Input::Page { end, objects: rng.random_range(0..5) },
        5 => Input::ListFailed(error),
        6 | 7 => Input::WatchOpened,
        8 => Input::WatchRefused(error),
        9 => Input::Event(change, version),
        10 => Input::Bookmark(version, rng.random()),
        11 => Input::WatchClosed(rng.random_bool(0.5).then_some(error)),
        12 => Input::Probed(Ok((end, rng.random_range(0..5)))),
        _ => Input::Timer,
    }
}

/// The time of the day is written into a Lease, an event and a condition, for people. Nothing is decided by it there.
const WRITTEN_DOWN: [&str; 3] = ["src/leader/driver.rs", "src/events/mod.rs", "src/controller/conditions.rs"];

#[test]
fn f28_no_part_of_the_library_looks_at_the_wall_clock() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("text");
            for clock in ["SystemTime", "Timestamp::now", "Utc::now", "UNIX_EPOCH"] {
                let written_down =
                    clock == "Timestamp::now" && WRITTEN_DOWN.iter().any(|place| path.ends_with(place));
                let found = text.matches(clock).count();
                assert_eq!(found, usize::from(written_down), "{} has {clock}", path.display());
            }
            files += 1;
        }
    }
    assert!(files > 30, "{files} files");
}

#[tokio::test(start_paused = true)]
async fn periods_of_any_length_do_no_harm() {
    let backoff = Backoff { initial: Duration::MAX, max: Duration::MAX, ..Backoff::default() };
    for streaming in [true, false] {
        let (server, log) = (server(&["a/x"]), Log::default());
        let endless = |settings: &mut ReflectorSettings| {
            (settings.probe_period, settings.watch_timeout) = (Some(Duration::MAX), Duration::MAX);
        };
        let informer = builder(&server).streaming(streaming).backoff(backoff).settings(endless);
        let informer = informer.resync(Duration::MAX).grace(Duration::MAX).build().unwrap();
        informer.add_handler(log.handler()).unwrap();
        let stage = Stage::synced(&server, informer).await;
        let lists = server.lists();
        put(&server, "a/x");
        seconds(60).await;
        assert_eq!(log.take(), "*a/x@2 ~a/x@2>3");
        assert!(stage.informer.health().is_healthy(), "{}", stage.informer.health());
        server.inject(&WatchItem::Error(Box::new(Status::expired("as planned"))));
        seconds(60).await;
        assert_eq!(server.lists(), lists, "it waits for as long as it was told to");
        assert!(stage.informer.health().to_string().contains("version"), "{}", stage.informer.health());
        stage.end().await;
    }
    let (server, log, stop) = (server(&["a/x"]), Log::default(), CancellationToken::new());
    let informer = Informer::new(server, log.handler().resync(Duration::MAX));
    tokio::time::timeout(Duration::from_secs(60), informer.run(stop)).await.expect_err("it goes on");
    assert_eq!(log.take(), "*a/x@2");
}
