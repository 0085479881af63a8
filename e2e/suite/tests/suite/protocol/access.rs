//! Who may not: 401 and 403 as they look on the wire. The embedded server knows no users: its answers are faults that
//! are made of the same parts.

use serde_json::json;

use crate::stage::{Ask, play};

#[test]
fn who_is_not_known_or_not_allowed_is_told_so() {
    play("access", async |stage| {
        for namespace in ["unknown", "forbidden"] {
            stage.make("/api/v1/namespaces", json!({ "metadata": { "name": namespace } })).await;
        }
        let stranger = stage.cluster.stranger().await;
        let path = "/api/v1/namespaces/unknown/configmaps";
        stage.ask(Ask { method: "GET", path, client: Some(&stranger), ..Ask::default() }).await;
        let powerless = stage.cluster.powerless().await;
        let path = "/api/v1/namespaces/forbidden/configmaps";
        stage.ask(Ask { method: "GET", path, client: Some(&powerless), ..Ask::default() }).await;
    });
}
