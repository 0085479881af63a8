//! What goes wrong in one part.

use informer::{
    controller::{Action, Controller},
    leader::Lost,
    manager::{Manager, ManagerError},
    model::ObjectKey,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams};

use super::stage::{Running, Stage, seconds};

#[tokio::test(start_paused = true)]
async fn c47_an_error_of_one_part_ends_all_in_order_and_is_named() {
    let stage = Stage::new();
    let (log, held) = (stage.log.clone(), stage.holder());
    let manager = Manager::new()
        .caches(&stage.factory)
        .election(stage.election("ann").build().unwrap())
        .controller(stage.controller(), move |_| {
            let log = log.clone();
            async move {
                seconds(15).await;
                log.note("the call ends");
                Ok::<_, kube::Error>(Action::AwaitChange)
            }
        })
        .runnable("fine", async |_| Ok::<_, kube::Error>(()))
        .runnable("webhooks", async |_| {
            seconds(10).await;
            Err("their certificate has expired")
        });
    let failure = Running::start(manager).failure().await;
    assert_eq!(failure.to_string(), "webhooks failed: their certificate has expired");
    assert_eq!(stage.log.take(), "the call ends");
    assert_eq!(held.await, "");
    assert!(stage.factory.is_shut_down());
}

#[tokio::test(start_paused = true)]
async fn c47_a_panic_of_one_part_ends_all_and_is_named() {
    let stage = Stage::new();
    let manager = Manager::new()
        .caches(&stage.factory)
        .election(stage.election("ann").build().unwrap())
        .leading_runnable("errand", async |_, _| -> Result<(), kube::Error> { panic!("lost the list") });
    let failure = Running::start(manager).failure().await;
    assert_eq!(failure.to_string(), "errand panicked: lost the list");
    assert_eq!(stage.holder().await, "");
}

#[tokio::test(start_paused = true)]
async fn c47_a_controller_that_cannot_run_ends_all_and_says_why() {
    let stage = Stage::new();
    let idle = stage.controller().workers(0);
    let manager = Manager::new()
        .caches(&stage.factory)
        .controller(idle, async |_| Ok::<_, kube::Error>(Action::AwaitChange));
    let failure = Running::start(manager).failure().await;
    assert!(failure.to_string().contains("controller \"maps\" has no workers"), "{failure}");

    // Its caches never run.
    let stage = Stage::new();
    let other = stage.controller().sync_within(std::time::Duration::from_secs(60));
    let manager = Manager::new().controller(other, async |_| Ok::<_, kube::Error>(Action::AwaitChange));
    let failure = Running::start(manager).failure().await;
    assert!(failure.to_string().contains("its caches were not complete after 60s"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn c47_the_loss_of_the_term_ends_the_controllers_and_then_everything() {
    let stage = Stage::new();
    let log = stage.log.clone();
    let manager = Manager::new()
        .caches(&stage.factory)
        .election(stage.election("ann").build().unwrap())
        .controller(stage.controller(), move |_| {
            log.note("a call");
            async { std::future::pending::<Result<Action, kube::Error>>().await }
        });
    let running = Running::start(manager);
    let began = tokio::time::Instant::now();
    stage.log.heard("a call").await;
    let leases = Api::<Lease>::namespaced(stage.server.client(), "default");
    leases.delete("boss", &DeleteParams::default()).await.unwrap();
    let failure = running.failure().await;
    assert!(matches!(&failure, ManagerError::TermLost { why: Lost::Deleted }), "{failure}");
    assert_eq!(
        failure.to_string(),
        "this process does not lead any more, and ends what it has begun: the term is over: the Lease was deleted"
    );
    assert!(began.elapsed().as_secs() < 10, "the call was dropped: {:?}", began.elapsed());
    assert!(stage.factory.is_shut_down());
    assert!(leases.get_opt("boss").await.unwrap().is_none(), "it does not try again");
}

#[tokio::test(start_paused = true)]
async fn c47_what_needs_a_term_is_refused_without_an_election() {
    let stage = Stage::new();
    let fenced = Manager::new().caches(&stage.factory).fenced_controller(stage.controller(), |_| {
        async |_: ObjectKey| Ok::<_, kube::Error>(Action::AwaitChange)
    });
    let failure = Running::start(fenced).failure().await;
    assert_eq!(
        failure.to_string(),
        "controller maps runs in a term, and there is no election; give the manager one"
    );
}

#[tokio::test(start_paused = true)]
async fn c47_a_factory_that_was_shut_down_cannot_be_started() {
    let stage = Stage::new();
    stage.factory.shutdown().await;
    let manager = Manager::new()
        .caches(&stage.factory)
        .controller(Controller::new("idle"), async |_: ObjectKey| Ok::<_, kube::Error>(Action::AwaitChange));
    assert!(matches!(Running::start(manager).failure().await, ManagerError::Caches(_)));
}
