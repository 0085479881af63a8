//! Secrets: hidden, or shown without what is in them.

use serde_json::{Value, json};

use crate::support::*;

/// What is in the secret, in all the ways in which it could come out.
const VALUES: [&str; 3] = ["c2VzYW1l", "sesame", "last-applied-configuration"];

fn mk_secret() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": "default",
            "name": "door",
            "labels": {"app": "web"},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{\"stringData\":{\"password\":\"sesame\"}}",
                "meta.helm.sh/release-name": "kept",
            },
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-a"}],
        },
        "type": "Opaque",
        "data": {"password": "c2VzYW1l"},
    })
}

const PATHS: [&str; 9] = [
    "/core/v1/secrets",
    "/core/v1/secrets?as=table",
    "/core/v1/secrets?fields=data",
    "/core/v1/secrets?fieldSelector=data.password%3Dc2VzYW1l",
    "/api/v1/secrets",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/secrets/door",
    "/api/v1/secrets?watch=true&timeoutSeconds=1",
    "/_stream/core/v1/secrets",
];

#[tokio::test]
async fn secrets_are_hidden_and_not_even_asked_for() {
    let stage = Stage::open(mk_server()).await;
    stage.put([mk_secret()]);
    for path in PATHS {
        let answer = stage.get(path).await;
        assert_eq!(answer.code, 403, "{path}");
        assert!(answer.text().contains("--include-secrets"), "{path}: {}", answer.text());
    }
    stage.get("/_owned/uid-a?resources=secrets").await.fails(403);
    for path in ["/api/v1", "/_resources", "/_informers", "/_owned/uid-a"] {
        assert!(!stage.get(path).await.text().contains("ecret"), "{path}");
    }
    let asked: Vec<_> =
        stage.server.requests().into_keys().filter(|(_, what)| what.contains("secret")).collect();
    assert!(asked.is_empty(), "{asked:?}");
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn secrets_that_are_served_to_everybody_have_nothing_in_them() {
    let stage = Stage::inside(mk_server(), |builder| builder.include_secrets(true));
    stage.put([mk_secret()]);
    for path in PATHS.into_iter().filter(|path| !path.starts_with("/_stream")) {
        for accept in ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"] {
            let answer = stage
                .get_with(
                    &format!("{path}{}", if path.contains('?') { "&" } else { "?" }),
                    &[("accept", accept)],
                )
                .await;
            assert_eq!(answer.code, 200, "{path}: {}", answer.text());
            for value in VALUES {
                assert!(!answer.text().contains(value), "{path} has {value}: {}", answer.text());
            }
        }
    }
    let mut stream = stage.stream("/_stream/core/v1/secrets", &[]).await;
    let piece = stream.next().await.expect("a snapshot");
    let text = String::from_utf8_lossy(&piece);
    assert!(text.contains("door") && VALUES.iter().all(|value| !text.contains(value)), "{text}");
    let secret = stage.get("/api/v1/namespaces/default/secrets/door").await.ok();
    assert_eq!(
        (&secret["type"], &secret["metadata"]["annotations"]),
        (&json!("Opaque"), &json!({"meta.helm.sh/release-name": "kept"}))
    );
    assert!(secret.get("data").is_none(), "{secret}");
    let by_value = "/core/v1/secrets?fieldSelector=data.password%3Dc2VzYW1l";
    assert_eq!(stage.get(by_value).await.items(), [] as [Value; 0], "nobody can guess what is in it");
    assert_eq!(stage.get("/core/v1/secrets?labelSelector=app%3Dweb").await.names(), ["door"]);
    assert!(stage.get("/api/v1").await.text().contains("\"secrets\""));
    assert!(stage.get("/_owned/uid-a").await.text().contains("door"));
}
