//! `informer watch`: what it prints, what it says about trouble, how it ends.

mod ending;
mod events;
mod forms;
mod refusals;
mod trouble;

use std::process::{Command, Output};

use crate::command::{self, Running, Server};

fn informer(args: &[&str]) -> Command {
    command::informer("watch", args)
}

fn run(args: &[&str]) -> Output {
    command::run("watch", args)
}

/// The arguments for a server, which is found by its kubeconfig.
fn on<'a>(server: &'a Server, args: &[&'a str]) -> Vec<&'a str> {
    [&["--kubeconfig", server.kubeconfig.path()], args].concat()
}

fn run_on(server: &Server, args: &[&str]) -> Output {
    run(&on(server, args))
}

fn start_on(server: &Server, args: &[&str]) -> Running {
    Running::start(informer(&on(server, args)))
}
