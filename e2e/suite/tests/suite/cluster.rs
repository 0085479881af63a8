//! The two servers, behind what a scenario does to a server beside sending requests.

use std::path::Path;

use informer_apiserver::{ApiServer, Fault, Rule, Verb};
use informer_model::Status;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

use crate::{plane::Plane, stage::Stage};

/// A server to play on.
pub(crate) enum Cluster {
    Embedded(ApiServer),
    Real(&'static Plane),
}

/// A copy of everything that there was at a moment.
pub(crate) enum Backup {
    Version(u64),
    Name(String),
}

/// The account that informers run as whose permissions and tokens are taken away.
const ACCOUNT: &str = "watcher";

impl Cluster {
    /// A client that may do everything.
    pub(crate) async fn admin(&self) -> Client {
        self.client("admin").await
    }

    /// A client that may do nothing.
    pub(crate) async fn powerless(&self) -> Client {
        if let Self::Embedded(server) = self {
            let why = "User \"powerless\" cannot list resource \"configmaps\" in API group \"\" in the namespace \
                       \"forbidden\"";
            let status = Status::forbidden("configmaps", "", "", why);
            server.faults().add(Rule::new(Fault::Status(status)).namespace("forbidden"));
        }
        self.client("powerless").await
    }

    /// A client that nobody knows.
    pub(crate) async fn stranger(&self) -> Client {
        match self {
            Self::Embedded(server) => {
                server
                    .faults()
                    .add(Rule::new(Fault::Status(Status::unauthorized("Unauthorized"))).namespace("unknown"));
                server.client()
            }
            Self::Real(plane) => {
                let mut config = config(plane, "admin").await;
                config.auth_info.token = Some("nobody-knows-it".to_owned().into());
                Client::try_from(config).expect("a client")
            }
        }
    }

    async fn client(&self, context: &str) -> Client {
        match self {
            Self::Embedded(server) => server.client(),
            Self::Real(plane) => Client::try_from(config(plane, context).await).expect("a client"),
        }
    }

    /// Forgets the past.
    pub(crate) fn compact(&self) {
        match self {
            Self::Embedded(server) => server.compact(),
            Self::Real(plane) => plane.obey("compact"),
        }
    }

    /// Stops the server and starts it again: all connections end.
    pub(crate) fn restart(&self) {
        match self {
            // A server that has just started knows nothing of the past.
            Self::Embedded(server) => server.rewind(server.version()).expect("the newest version is there"),
            Self::Real(plane) => plane.obey("restart"),
        }
    }

    /// Keeps a copy of everything.
    pub(crate) fn save(&self, name: &str) -> Backup {
        match self {
            Self::Embedded(server) => Backup::Version(server.version()),
            Self::Real(plane) => {
                plane.obey(&format!("save {name}"));
                Backup::Name(name.to_owned())
            }
        }
    }

    /// Goes back to a copy, with its versions.
    pub(crate) fn restore(&self, backup: &Backup) {
        match (self, backup) {
            (Self::Embedded(server), Backup::Version(version)) => {
                server.rewind(*version).expect("the version is in the history");
            }
            (Self::Real(plane), Backup::Name(name)) => plane.obey(&format!("restore {name}")),
            _ => unreachable!("a copy of the other server"),
        }
    }
}

async fn config(plane: &Plane, context: &str) -> Config {
    let kubeconfig = Kubeconfig::read_from(plane.directory().join("kubeconfig")).expect("a kubeconfig");
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    // What the server says is what is seen here, and informers try again on their own.
    config.default_retry = false;
    config
}

/// An account of the namespace of a scenario, whose permission and whose token can be taken away.
///
/// The embedded server knows no accounts: there, what lists and watches config maps is refused.
impl Stage {
    /// Makes the account, with a token in a file, and the client that reads it.
    pub(crate) async fn account(&self, token_file: &Path) -> Client {
        match &self.cluster {
            Cluster::Embedded(server) => server.client(),
            Cluster::Real(plane) => {
                self.renew_account(token_file).await;
                let mut config = config(plane, "admin").await;
                config.auth_info.token = None;
                config.auth_info.token_file = Some(token_file.display().to_string());
                Client::try_from(config).expect("a client")
            }
        }
    }

    /// Makes the account, or makes it again after it was deleted, with a new token.
    pub(crate) async fn renew_account(&self, token_file: &Path) {
        match &self.cluster {
            Cluster::Embedded(server) => server.faults().clear(),
            Cluster::Real(_) => {
                let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace);
                let account = json!({ "metadata": { "name": ACCOUNT } });
                self.make(&accounts, account).await;
                let request = json!({ "spec": { "expirationSeconds": 3600 } });
                let token = self.make(&format!("{accounts}/{ACCOUNT}/token"), request).await;
                let token = token["status"]["token"].as_str().expect("a token");
                // In one step: a client may be reading it.
                let fresh = token_file.with_extension("fresh");
                std::fs::write(&fresh, token).expect("written");
                std::fs::rename(&fresh, token_file).expect("moved");
            }
        }
    }

    /// Deletes the account, and with it its tokens.
    pub(crate) async fn revoke_account(&self) {
        match &self.cluster {
            Cluster::Embedded(server) => {
                self.refuse(server, Status::unauthorized("Unauthorized"));
            }
            Cluster::Real(_) => {
                self.remove(&format!("/api/v1/namespaces/{}/serviceaccounts/{ACCOUNT}", self.namespace))
                    .await;
            }
        }
    }

    /// Lets the account read config maps.
    pub(crate) async fn allow_account(&self) {
        match &self.cluster {
            Cluster::Embedded(server) => server.faults().clear(),
            Cluster::Real(_) => {
                let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", self.namespace);
                let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"] });
                let role = json!({ "metadata": { "name": "reader" }, "rules": [rule] });
                self.send_quietly("POST", &format!("{rbac}/roles"), role).await;
                let binding = json!({
                    "metadata": { "name": "reader" },
                    "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
                    "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace }],
                });
                self.make(&format!("{rbac}/rolebindings"), binding).await;
            }
        }
    }

    /// Takes that permission away.
    pub(crate) async fn forbid_account(&self) {
        match &self.cluster {
            Cluster::Embedded(server) => {
                let (namespace, verb) = (&self.namespace, "list");
                let why = format!(
                    "User \"system:serviceaccount:{namespace}:{ACCOUNT}\" cannot {verb} resource \"configmaps\" in API group \
                     \"\" in the namespace \"{namespace}\""
                );
                self.refuse(server, Status::forbidden("configmaps", "", "", why));
            }
            Cluster::Real(_) => {
                let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", self.namespace);
                self.remove(&format!("{rbac}/rolebindings/reader")).await;
            }
        }
    }

    fn refuse(&self, server: &ApiServer, status: Status) {
        let rule = Rule::new(Fault::Status(status)).resource("configmaps").namespace(self.namespace.as_str());
        server.faults().add(rule.verb(Verb::List).verb(Verb::Watch));
    }
}
