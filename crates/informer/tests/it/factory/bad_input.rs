//! What a factory cannot be told.

use std::time::Duration;

use informer::{
    SharedInformerFactory,
    factory::{FactoryBuilder, FactoryError, ScopeError},
};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{SOON, mk_server, story};

fn refused(told: impl FnOnce(FactoryBuilder) -> FactoryBuilder) -> FactoryError {
    told(SharedInformerFactory::builder(mk_server(&[]).client())).build().expect_err("refused")
}

#[tokio::test]
async fn a_namespace_with_illegal_characters_is_refused_by_name() {
    for name in ["Shop", "shop/../bank", "shop?watch=1", "a b", "-", "\u{0}", &"a".repeat(64)] {
        let error = refused(|builder| builder.namespace(name));
        assert_eq!(error, FactoryError::Scope(ScopeError::Namespace { name: name.to_owned() }));
        assert!(error.to_string().contains(&format!("{name:?} is not the name of a namespace")), "{error}");
        assert_eq!(refused(|builder| builder.namespaces(["shop", name])), error);
    }
    assert_eq!(refused(|builder| builder.namespaces(["", "shop"])), ScopeError::AllAmongOthers.into());
    assert_eq!(refused(|builder| builder.namespaces([""; 0])), ScopeError::NoNamespace.into());
}

#[tokio::test]
async fn a_bad_selector_in_the_hook_is_an_error_that_shows_where() {
    let labels = refused(|builder| {
        builder.tweak_list_options(|options| options.label_selector = Some("app in (web".into()))
    });
    let (FactoryError::LabelSelector(_), text) = (&labels, labels.to_string()) else { panic!("{labels:?}") };
    assert!(
        text.contains("tweak_list_options sets a wrong label selector") && text.contains("app in (web"),
        "{text}"
    );
    let fields = refused(|builder| {
        builder.tweak_list_options(|options| options.field_selector = Some("spec.nodeName".into()))
    });
    assert!(matches!(fields, FactoryError::FieldSelector(_)), "{fields}");
}

#[tokio::test]
async fn a_page_of_nothing_is_refused() {
    assert_eq!(refused(|builder| builder.page_size(0)), FactoryError::PageSize);
}

#[test]
fn c26_no_resync_period_is_too_short_or_too_long() {
    story(async {
        for period in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let server = mk_server(&[("shop", "a")]);
            let builder = SharedInformerFactory::builder(server.client()).resync(period);
            let factory = builder.custom_resync::<ConfigMap>(period).build().unwrap();
            let mut events = factory.informer_for::<ConfigMap>().subscribe().unwrap();
            factory.start().unwrap();
            factory.wait_for_cache_sync(SOON).await.unwrap();
            let mut told = 0;
            let ten_seconds = tokio::time::sleep(Duration::from_secs(10));
            tokio::pin!(ten_seconds);
            loop {
                tokio::select! {
                    () = &mut ten_seconds => break,
                    event = futures_util::StreamExt::next(&mut events) => told += usize::from(event.is_some()),
                }
            }
            // Added once; a period of a nanosecond counts as a second.
            let expected = if period == Duration::from_nanos(1) { 8..=11 } else { 1..=1 };
            assert!(expected.contains(&told), "{period:?}: told {told} times");
            factory.shutdown().await;
        }
    });
}
