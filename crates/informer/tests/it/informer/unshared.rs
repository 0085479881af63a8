//! Informers that are not shared: called in place, and a panic comes out.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use informer::{
    Handler, SharedInformer,
    queue::{Delta, QueueKind},
    store,
    unshared::{DeltaProcessor, Informer},
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::{runtime::Handle, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use super::{
    log_lines::LogLines,
    stage::{Log, MINUTE, QUEUES, forbidden, force_list, put, seconds, server, settle},
    stopping::Endless,
    support::{data_keys, key, show, show_deltas},
};

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn a_controller_hands_every_delta_to_its_function() {
    let (server, log, stop) = (server(&["a/x", "a/y"]), Log::default(), CancellationToken::new());
    let (_writer, known) = store::new::<ConfigMap>();
    let noted = log.clone();
    let controller = DeltaProcessor::new(server.clone(), known, move |deltas: Vec<Delta<ConfigMap>>| {
        noted.note(show_deltas(&deltas));
        async { Vec::new() }
    });
    let progress = controller.progress();
    let running = tokio::spawn(controller.run(stop.clone()));
    progress.wait_until_synced(MINUTE).await.unwrap();
    put(&server, "a/x");
    server.delete(&key("a/y"));
    settle().await;
    let heard = log.take();
    assert!(heard.starts_with("=[a/x@2 a/y@3]#3 ") && heard.contains("~a/x@4"), "{heard}");
    assert!(heard.contains("-a/y@5"), "{heard}");
    stop.cancel();
    running.await.unwrap();
    assert_eq!((alive_tasks(), server.open_watches()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_controllers_function_could_not_process_comes_again() {
    let (server, stop) = (server(&[]), CancellationToken::new());
    let (_writer, known) = store::new::<ConfigMap>();
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&attempts);
    let process = move |deltas: Vec<Delta<ConfigMap>>| {
        let mut attempts = noted.lock().unwrap();
        let about: Vec<_> = deltas.into_iter().filter(|delta| delta.key().is_some()).collect();
        let again = if attempts.len() < 2 { about.clone() } else { Vec::new() };
        if !about.is_empty() {
            attempts.push(show_deltas(&about));
        }
        async { again }
    };
    let controller = SharedInformer::builder(server.clone())
        .queue(QueueKind::PerKey)
        .build_processor(known, process)
        .unwrap();
    let progress = controller.progress();
    let running = tokio::spawn(controller.run(stop.clone()));
    progress.wait_until_synced(MINUTE).await.unwrap();
    put(&server, "a/x");
    settle().await;
    assert_eq!(*attempts.lock().unwrap(), vec!["+a/x@2"; 3]);
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unshared_informer_keeps_a_store_and_tells_one_handler() {
    for queue in QUEUES {
        let (server, log, stop) = (server(&["a/x"]), Log::default(), CancellationToken::new());
        let handler = log.handler().resync(Duration::from_secs(10));
        let informer = SharedInformer::builder(server.clone()).queue(queue).build_unshared(handler).unwrap();
        let index = informer.add_index("data", data_keys).unwrap();
        let (store, progress) = (informer.store(), informer.progress());
        let running = tokio::spawn(informer.run(stop.clone()));
        progress.wait_until_synced(MINUTE).await.unwrap();
        put(&server, "a/y");
        server.delete(&key("a/x"));
        settle().await;
        assert_eq!(log.take(), "*a/x@2 +a/y@3 -a/x@4");
        assert_eq!((show(store.snapshot().iter()).as_str(), index.count("written")), ("a/y@3", 1));
        seconds(11).await;
        assert_eq!(log.take(), ".a/y@3");
        force_list(&server, || put(&server, "a/z"));
        seconds(4).await;
        assert_eq!(log.take().replace(".a/y@3 ", ""), "+a/z@5 +zz/forced@6");
        stop.cancel();
        running.await.unwrap();
        assert_eq!((alive_tasks(), server.open_watches()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_an_unshared_informers_handler_comes_out_of_run_and_nothing_is_left() {
    let server = server(&["a/x"]);
    let handler = Handler::<ConfigMap>::new().on_add(|_, _| panic!("as planned"));
    let informer = Informer::new(server.clone(), handler);
    let progress = informer.progress();
    let ended = tokio::spawn(informer.run(CancellationToken::new())).await.unwrap_err();
    assert!(ended.is_panic());
    settle().await;
    assert_eq!((alive_tasks(), server.open_watches()), (0, 0));
    assert!(progress.wait_until_synced(MINUTE).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn c12_an_unshared_informer_says_what_is_wrong_too() {
    let (server, stop) = (server(&[]), CancellationToken::new());
    server.fail_next_lists(100, forbidden());
    let informer = SharedInformer::builder(server).streaming(false).build_unshared(Handler::new()).unwrap();
    let progress = informer.progress();
    let running = tokio::spawn(informer.run(stop.clone()));
    let error = progress.wait_until_synced(MINUTE).await.unwrap_err().to_string();
    assert!(error.contains("forbidden"), "{error}");
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c23_c33_an_unshared_informer_of_several_namespaces_knows_each_of_them() {
    for queue in QUEUES {
        let (good, late, log) = (server(&["a/x"]), server(&["b/x"]), Log::default());
        late.fail_next_lists(20, forbidden());
        let informer = SharedInformer::builder(good.scoped("a"))
            .source(late.scoped("b"))
            .queue(queue)
            .streaming(false)
            .seed(1)
            .build_unshared(log.handler())
            .unwrap();
        let (store, progress, stop) = (informer.store(), informer.progress(), CancellationToken::new());
        let running = tokio::spawn(informer.run(stop.clone()));
        settle().await;
        put(&good, "a/y");
        settle().await;
        assert_eq!(log.take(), "*a/x@2 +a/y@3", "{queue:?}");
        assert!(
            store.snapshot().resource_version().is_unset(),
            "{queue:?}: one namespace has no version yet"
        );
        progress.wait_until_synced(30 * MINUTE).await.unwrap();
        assert_eq!(log.take(), "*b/x@2", "{queue:?}: the first list of its namespace");
        assert_eq!(store.snapshot().resource_version().to_string(), "2", "{queue:?}: the lesser of 3 and 2");
        stop.cancel();
        running.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn c30_unshared_forms_wait_for_what_never_returns_no_longer_than_the_grace_and_say_so() {
    let lines = LogLines::default();
    let _listening = lines.listen();
    let (server, grace) = (server(&["a/x"]), Duration::from_secs(5));
    let builder = || SharedInformer::builder(server.clone()).grace(grace);
    for (form, who) in ["the handler", "the function"].into_iter().enumerate() {
        let stop = CancellationToken::new();
        let running = if form == 0 {
            tokio::spawn(builder().build_unshared(Endless).unwrap().run(stop.clone()))
        } else {
            let (_writer, known) = store::new::<ConfigMap>();
            let process = |_: Vec<Delta<ConfigMap>>| pending::<Vec<Delta<ConfigMap>>>();
            tokio::spawn(builder().build_processor(known, process).unwrap().run(stop.clone()))
        };
        seconds(60).await;
        stop.cancel();
        let began = Instant::now();
        tokio::time::timeout(MINUTE, running).await.expect("it returns").unwrap();
        assert_eq!(began.elapsed(), grace, "{who}");
        assert_eq!((alive_tasks(), server.open_watches()), (0, 0));
        let errors = lines.take(Level::ERROR);
        assert!(errors.len() == 1 && errors[0].contains(who), "{errors:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c30_what_an_unshared_informers_handler_has_not_heard_at_the_stop_is_dropped() {
    let (server, log, stop) = (server(&["a/x", "a/y", "a/z"]), Log::default(), CancellationToken::new());
    let (noted, ending) = (log.clone(), stop.clone());
    let handler = Handler::<ConfigMap>::new().on_add(move |object, _| {
        noted.note(object.key().name());
        if object.key().name() == "y" {
            ending.cancel();
        }
    });
    let informer = Informer::new(server, handler);
    let store = informer.store();
    informer.run(stop).await;
    assert_eq!((log.take().as_str(), store.len()), ("x y", 3));
}
