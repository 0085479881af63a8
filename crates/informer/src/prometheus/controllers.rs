//! The series of controllers. They have the names and labels that controller-runtime gives them.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::add;
use crate::metrics::Outcome;

#[derive(Debug, Clone)]
pub(super) struct Controllers {
    calls: Family<OfResult, Counter>,
    terminal: Family<OfController, Counter>,
    panics: Family<OfController, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfController {
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResult {
    controller: String,
    result: &'static str,
}

impl Controllers {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("controller_runtime");
        let help = "Errors after which a key waits for a change";
        Self {
            calls: add(registry, "reconcile", "Calls that have ended, by result", Family::default()),
            terminal: add(registry, "terminal_reconcile_errors", help, Family::default()),
            panics: add(registry, "reconcile_panics", "Calls that panicked", Family::default()),
        }
    }

    pub(super) fn ended(&self, controller: &str, outcome: Outcome) {
        let result = match outcome {
            Outcome::Success => "success",
            Outcome::RequeueAfter => "requeue_after",
            Outcome::Error | Outcome::TerminalError | Outcome::Panic => "error",
        };
        self.calls.get_or_create(&OfResult { controller: controller.to_owned(), result }).inc();
        let of = OfController { controller: controller.to_owned() };
        match outcome {
            Outcome::TerminalError => drop(self.terminal.get_or_create(&of).inc()),
            Outcome::Panic => drop(self.panics.get_or_create(&of).inc()),
            Outcome::Success | Outcome::RequeueAfter | Outcome::Error => {}
        }
    }
}
