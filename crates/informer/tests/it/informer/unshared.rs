//! Informers that are not shared: called in place, and a panic comes out.

use std::{
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
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{
    stage::{Log, MINUTE, QUEUES, forbidden, force_list, put, seconds, server, settle},
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
