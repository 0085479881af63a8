//! Where and with what a run was made: the machine, and the versions of everything.

use std::{fs, path::Path, process::Command, thread};

/// The folder of the bench in the project.
pub(crate) const BENCH: &str = env!("CARGO_MANIFEST_DIR");

/// Lines for the report.
pub(crate) fn describe() -> Vec<String> {
    let lock = read("peers/kube-rs/Cargo.lock");
    vec![
        machine(),
        real_server(),
        format!(
            "Peers: client-go {} ({}); kube {} with k8s-openapi {} ({}).",
            required(&read("peers/client-go/go.mod"), "k8s.io/client-go"),
            said("go", &["env", "GOVERSION"]),
            locked(&lock, "kube"),
            locked(&lock, "k8s-openapi"),
            said("rustc", &["--version"]),
        ),
        format!("Ours: informer {} with the same kube and k8s-openapi.", env!("CARGO_PKG_VERSION")),
    ]
}

/// The same for the comparison of controllers.
pub(crate) fn controllers(on_real_server: bool) -> Vec<String> {
    let lock = read("peers/kube-rs/Cargo.lock");
    let server =
        if on_real_server { real_server() } else { "Server: the embedded one, in the driver.".to_owned() };
    let (theirs, rustc) = (locked(&lock, "kube-runtime"), said("rustc", &["--version"]));
    let ours = env!("CARGO_PKG_VERSION");
    vec![machine(), server, format!("kube-runtime {theirs}, informer {ours} ({rustc}).")]
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(BENCH).join(path)).unwrap_or_default()
}

fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let processor = field("/proc/cpuinfo", "model name");
    let kilobytes: f64 =
        field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or_default();
    format!("Machine: {cores} cores, {processor}, {:.0} GB of memory.", kilobytes / 1024.0 / 1024.0)
}

fn real_server() -> String {
    let versions = read("../e2e/control-plane/go.mod");
    format!(
        "Server: kube-apiserver {} and etcd {}, one process each on the same machine, TLS on loopback.",
        required(&versions, "k8s.io/kubernetes"),
        required(&versions, "go.etcd.io/etcd/server/v3"),
    )
}

/// The value of `name : value` in a file of the kernel.
fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut values = lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned());
    values.next().unwrap_or_else(|| "unknown".to_owned())
}

/// The version of a module that a go.mod requires.
fn required(go_mod: &str, module: &str) -> String {
    let lines = go_mod.lines().map(|line| line.trim().trim_start_matches("require ").split_whitespace());
    let mut versions = lines.filter_map(|mut words| (words.next()? == module).then(|| words.next())?);
    versions.next().unwrap_or("of unknown version").to_owned()
}

/// The version of a package in a Cargo.lock.
fn locked(lock: &str, package: &str) -> String {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    let version = lines.next().and_then(|line| line.strip_prefix("version = "));
    version.unwrap_or("of unknown version").trim_matches('"').to_owned()
}

/// What a tool says about itself.
fn said(tool: &str, args: &[&str]) -> String {
    let output = Command::new(tool).args(args).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|_| format!("{tool}: unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_where_they_are_written() {
        let go_mod = "module x\n\nrequire k8s.io/api v0.1.0\nrequire (\n\tk8s.io/client-go v0.37.1\n)\n";
        assert_eq!(required(go_mod, "k8s.io/client-go"), "v0.37.1");
        assert_eq!(required(go_mod, "k8s.io/api"), "v0.1.0");
        let lock = "[[package]]\nname = \"kube-core\"\nversion = \"4.0.0\"\n\n[[package]]\nname = \"kube\"\nversion = \"5.0.0\"\n";
        assert_eq!(locked(lock, "kube"), "5.0.0");
        assert_eq!(locked(lock, "other"), "of unknown version");
    }
}
