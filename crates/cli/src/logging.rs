//! What the libraries log, on stderr.

use std::io;

use tracing_subscriber::EnvFilter;

/// Begins logging. `$RUST_LOG` decides what is logged, else how often `-v` was given.
///
/// Without either it is what nobody else tells: a command reports failed requests and the informer's troubles
/// in its own words.
pub(crate) fn begin(verbosity: u8) {
    let default = match verbosity {
        0 => "warn,informer=error,kube_client=off",
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
