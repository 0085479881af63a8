//! What becomes of events when something goes wrong: none is lost in silence, and none is there twice.

use std::time::Duration;

use informer::{
    events::{Limits, RecordedEvent},
    model::{Reason, Status, StatusCause},
};
use informer_apiserver::{
    Fault,
    Verb::{Create, Patch},
};
use k8s_openapi::api::{core::v1::ObjectReference, events::v1::Event as Recorded};
use kube::{Api, ResourceExt};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use tokio::{
    runtime,
    time::{Instant, sleep},
};
use tracing::Level;

use super::{
    log_lines::LogLines,
    stage::{HOUR, MINUTE, SECOND, Stage, mk, settle},
};

fn forbidden() -> Status {
    Status::forbidden("events", "events.k8s.io", "", "User \"web\" cannot create resource \"events\"")
}

#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_for_a_while_every_event_gets_there_once() {
    let troubles = [
        Fault::Refuse,
        Fault::Reset,
        Fault::CutAfter(20),
        Fault::StallAfter(20),
        Fault::Html,
        Fault::Delay(MINUTE),
        Fault::OneByteAtATime,
        Fault::Gzip,
        Fault::Status(Status::too_many_requests("busy", 2)),
        Fault::Status(Status::internal_error("etcd is on fire")),
        Fault::Status(Status::service_unavailable("starting")),
        Fault::Status(Status::timeout("too slow", 1)),
        Fault::Status(Status::unauthorized("Unauthorized")),
        Fault::Status(Status::from_response(502, "<html>bad gateway</html>")),
    ];
    for trouble in troubles {
        println!("{trouble:?}");
        let stage = Stage::run();
        stage.fault(trouble, &[Create, Patch], |rule| rule.times(7));
        for _ in 0..3 {
            for number in 0..5 {
                stage.record("settings", &format!("note {number}"));
            }
            sleep(MINUTE).await;
        }
        stage.flush().await;
        let expected: Vec<String> = (0..5).map(|number| format!("note {number} ×3")).collect();
        assert_eq!(stage.notes().await, expected);
        let stats = stage.end().await;
        assert_eq!((stats.sent, stats.aggregated, stats.failed), (5, 10, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_sent_is_given_up_after_twelve_tries_and_the_next_one_has_its_own() {
    let stage = Stage::run();
    let down = stage.fault(Fault::Refuse, &[Create], |rule| rule);
    stage.record("settings", "");
    let began = Instant::now();
    stage.flush().await;
    assert!((20 * SECOND..10 * MINUTE).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert_eq!(stage.server.faults().hits(down), 12);
    stage.record("settings", "");
    settle().await;
    stage.server.faults().remove(down);
    stage.flush().await;
    let stats = stage.end().await;
    assert_eq!((stats.failed, stats.sent), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_missing_is_said_once_with_what_to_grant_and_nothing_is_tried_twice() {
    let log = LogLines::default();
    let _listening = log.listen();
    let stage = Stage::run();
    stage.fault(Fault::Status(forbidden()), &[Create], |rule| rule);
    for number in 0..20 {
        stage.record("settings", &format!("note {number}"));
        stage.flush().await;
    }
    assert_eq!(stage.requests("create"), 20);
    let lines = log.take(Level::WARN);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.contains("grant the verbs create and patch on events"), "{line}");
    assert!(line.contains("User \"web\" cannot create"), "{line}");
    // However long it lasts, an object has its share of requests, too.
    for number in 0..1_000 {
        stage.record("settings", &format!("note {number}"));
        sleep(SECOND).await;
    }
    assert!(stage.requests("create") < 30, "{}", stage.requests("create"));
    stage.server.faults().clear();
    sleep(HOUR).await;
    stage.record("settings", "granted");
    stage.flush().await;
    assert_eq!(stage.notes().await, ["granted ×1"]);
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn who_may_create_but_not_patch_has_the_events_without_their_repetitions() {
    let stage = Stage::run();
    stage.fault(Fault::Status(forbidden()), &[Patch], |rule| rule);
    for _ in 0..3_600 {
        stage.record("settings", "again");
        sleep(SECOND).await;
    }
    stage.flush().await;
    assert_eq!(stage.notes().await, ["again ×1"]);
    assert!(stage.requests("patch") < 20, "{}", stage.requests("patch"));
    let stats = stage.end().await;
    assert_eq!((stats.sent, stats.failed), (1, 3_599));
}

#[tokio::test(start_paused = true)]
async fn what_the_server_does_not_take_is_not_tried_again() {
    let terminating =
        StatusCause::new("NamespaceTerminating", "metadata.namespace", "namespace shop is being terminated");
    let answers = [
        (forbidden().with_causes([terminating]), "a namespace that goes away"),
        (Status::not_found("namespaces", "", "shop"), "if the namespace was deleted"),
        (Status::failure(Reason::Invalid, "reason: Required value"), "check the reference"),
        (Status::bad_request("no"), "check the reference"),
    ];
    for (status, words) in answers {
        let log = LogLines::default();
        let _listening = log.listen();
        let stage = Stage::run();
        stage.fault(Fault::Status(status), &[Create], |rule| rule);
        stage.record("settings", "");
        let began = Instant::now();
        stage.flush().await;
        assert_eq!((began.elapsed(), stage.requests("create")), (Duration::ZERO, 1));
        let lines = log.take(Level::WARN);
        assert!(lines.len() == 1 && lines[0].contains(words), "{lines:?}");
        assert_eq!(stage.end().await.failed, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_there_costs_one_request_and_keeps_nothing_back() {
    let stage = Stage::run();
    let nowhere = ObjectReference {
        namespace: Some("nowhere".into()),
        name: Some("settings".into()),
        ..ObjectReference::default()
    };
    stage.recorder.record_about(nowhere, RecordedEvent::normal("Changed", ""));
    stage.record("settings", "");
    stage.flush().await;
    assert_eq!((stage.requests("create"), stage.events().await.len()), (2, 1));
    assert_eq!(stage.end().await.failed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_left_alone_for_as_long_as_it_says_within_reason() {
    for (seconds, least, most) in [(40, 40, 72), (u32::MAX, 300, 331)] {
        let stage = Stage::run();
        let busy = Status::too_many_requests("later, please", seconds);
        stage.fault(Fault::Status(busy), &[Create], |rule| rule.times(1));
        stage.record("settings", "");
        let began = Instant::now();
        stage.flush().await;
        let waited = began.elapsed();
        assert!((least * SECOND..most * SECOND).contains(&waited), "{waited:?}");
        assert_eq!(stage.end().await.sent, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_replaced_by_another() {
    let stage = Stage::run();
    let taken = Status::already_exists("events", "events.k8s.io", "settings.1");
    stage.fault(Fault::Status(taken), &[Create], |rule| rule.times(1));
    stage.record("settings", "again");
    let began = Instant::now();
    stage.flush().await;
    assert_eq!((began.elapsed(), stage.requests("create")), (Duration::ZERO, 2));
    stage.record("settings", "again");
    stage.flush().await;
    assert_eq!(stage.notes().await, ["again ×2"], "it goes on under that name");
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_gone_is_made_anew_with_all_its_repetitions() {
    let stage = Stage::run();
    for _ in 0..3 {
        stage.record("settings", "again");
        stage.flush().await;
    }
    let before = stage.events().await.remove(0);
    let api = Api::<Recorded>::namespaced(stage.server.client(), "shop");
    api.delete(&before.name_any(), &Default::default()).await.expect("deleted");
    stage.record("settings", "again");
    stage.flush().await;
    assert_eq!(stage.notes().await, ["again ×4"]);
    let after = stage.events().await.remove(0);
    assert_eq!((after.name_any(), after.event_time), (before.name_any(), before.event_time));
    stage.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_contradicts_itself_is_not_asked_without_pause() {
    let stage = Stage::run();
    stage.record("settings", "again");
    stage.flush().await;
    let gone = Status::not_found("events", "events.k8s.io", "settings.1");
    let exists = Status::already_exists("events", "events.k8s.io", "settings.1");
    stage.fault(Fault::Status(gone), &[Patch], |rule| rule);
    stage.fault(Fault::Status(exists), &[Create], |rule| rule);
    stage.record("settings", "again");
    stage.record("other", "again");
    let began = Instant::now();
    stage.flush().await;
    assert!(began.elapsed() > 20 * SECOND, "{:?}", began.elapsed());
    assert_eq!(stage.requests("create") + stage.requests("patch"), 1 + 12 + 12);
    assert_eq!(stage.end().await.failed, 2);
}

#[test]
fn through_any_mixture_of_faults_what_the_server_has_and_what_was_given_up_is_all_there_was() {
    let unanswered =
        [Fault::Reset, Fault::CutAfter(0), Fault::StallAfter(9), Fault::Delay(45 * SECOND), Fault::Html];
    let answered = [
        Fault::Refuse,
        Fault::Status(forbidden()),
        Fault::Status(Status::too_many_requests("busy", 1)),
        Fault::Status(Status::internal_error("no")),
    ];
    let seeds = informer_testing::number("INFORMER_SEED").map_or(0..60, |seed| seed..seed + 1);
    for seed in seeds {
        println!("replay with INFORMER_SEED={seed}");
        let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            // What is given up after a request without an answer may be there all the same: nothing is given up then.
            match seed % 2 {
                0 => mixture(seed, &unanswered, u32::MAX).await,
                _ => mixture(seed, &answered, 4).await,
            }
        });
    }
}

async fn mixture(seed: u64, troubles: &[Fault], tries: u32) {
    let mut random = Pcg32::seed_from_u64(seed);
    let (queue, tracked) = (random.random_range(5..100), random.random_range(3..50));
    let limits = Limits { queue, tracked, tries, ..Limits::default() };
    let stage = Stage::run_with(|builder| builder.limits(limits).seed(seed));
    for trouble in troubles {
        let probability = random.random_range(0.0..0.3);
        stage.fault(trouble.clone(), &[Create, Patch], |rule| rule.probability(probability));
    }
    let recorded = 1_000;
    for _ in 0..recorded {
        let map = mk(&format!("map-{}", random.random_range(0..20)));
        let (reason, note) = (random.random_range(0..3), random.random_range(0..15));
        stage.recorder.record(&map, RecordedEvent::normal(format!("Reason{reason}"), format!("{note}")));
        if random.random_bool(0.2) {
            sleep(Duration::from_millis(random.random_range(0..60_000))).await;
        }
    }
    stage.server.faults().clear();
    stage.flush().await;
    let stats = stage.recorder.stats();
    assert_eq!((stats.recorded, stats.waiting()), (recorded, 0), "{stats}");
    stage.end().await;
}
