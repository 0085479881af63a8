//! What the libraries log, on stderr.

use std::io;

use tracing_subscriber::EnvFilter;

/// All warnings but those of the client: its failed requests are the informers' troubles.
pub(crate) const WARNINGS: &str = "warn,kube_client=off";
/// The same for a command that tells the informers' troubles in its own words.
pub(crate) const WITHOUT_INFORMERS: &str = "warn,informer=error,kube_client=off";

/// Begins logging. `$RUST_LOG` decides what is logged, else how often `-v` was given, else what the command says.
pub(crate) fn begin(verbosity: u8, quiet: &str) {
    let default = match verbosity {
        0 => quiet,
        1 => "warn,informer=debug",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // Somebody else may have begun before, in a test.
    let _ = subscriber.with_ansi(colours()).try_init();
}

/// Whether stderr takes colours.
fn colours() -> bool {
    use std::io::IsTerminal;
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
