//! Small whole programs, one thing each. They talk to the cluster that kubectl would talk to:
//!
//! ```sh
//! cargo run -p informer-examples --example pods
//! ```
//!
//! Without a cluster, take a made-up one:
//!
//! ```sh
//! cargo run --release -- apiserver --pods 100 --churn 5 --write-kubeconfig demo.kubeconfig   # in one terminal
//! KUBECONFIG=demo.kubeconfig cargo run -p informer-examples --example pods                   # in another
//! ```
//!
//! The tests run every one of them against a server of their own and read what it prints.
