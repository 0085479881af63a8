//! Who takes part in which comparison: the rows of the tables.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::figures::Table;

/// A program that takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// This one.
    Ours,
    /// This one, as somebody without this project would write it.
    Naive,
    /// The binary `informer`.
    Informer,
    ClientGo,
    KubeRs,
    /// The same with the allocator that ours has.
    KubeRsMimalloc,
    ControlPlane,
}

/// Where the programs are.
pub(crate) struct Programs {
    release: PathBuf,
    client_go: PathBuf,
    control_plane: PathBuf,
}

impl Programs {
    /// Those of Rust are beside this one, those of Go are given.
    pub(crate) fn find(client_go: &Path, control_plane: &Path) -> Result<Self> {
        let this = std::env::current_exe()?;
        let release = this.parent().map(Path::to_owned).unwrap_or_default();
        let programs =
            Self { release, client_go: client_go.to_owned(), control_plane: control_plane.to_owned() };
        for program in [
            Program::Informer,
            Program::ClientGo,
            Program::KubeRs,
            Program::KubeRsMimalloc,
            Program::ControlPlane,
        ] {
            let path = programs.path(program);
            if !path.is_file() {
                bail!("{} is missing: bench/run builds it", path.display());
            }
        }
        Ok(programs)
    }

    pub(crate) fn path(&self, program: Program) -> PathBuf {
        match program {
            Program::Ours | Program::Naive => self.release.join("informer-bench"),
            Program::Informer => self.release.join("informer"),
            Program::KubeRs => self.release.join("kube-rs-peer"),
            Program::KubeRsMimalloc => self.release.join("kube-rs-peer-mimalloc"),
            Program::ClientGo => self.client_go.clone(),
            Program::ControlPlane => self.control_plane.clone(),
        }
    }
}

/// A participant in one comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) table: Table,
    /// Its row in the table.
    pub(crate) who: &'static str,
    pub(crate) program: Program,
    pub(crate) args: &'static [&'static str],
}

const fn row(table: Table, who: &'static str, program: Program, args: &'static [&'static str]) -> Scenario {
    Scenario { table, who, program, args }
}

pub(crate) const CLIENT_GO: &str = "client-go";
pub(crate) const KUBE_RS: &str = "kube-rs, stream";
pub(crate) const TYPED_PAGED: &str = "ours, typed, pages";
pub(crate) const TYPED: &str = "ours, typed";
pub(crate) const RAW: &str = "ours, raw";
pub(crate) const PACKED: &str = "ours, packed";
pub(crate) const PROJECTION: &str = "ours, projection";
pub(crate) const FIELDS: &str = "ours, projection, metadata dropped";
pub(crate) const METADATA: &str = "ours, metadata";
pub(crate) const OURS: &str = "ours";

/// Everybody, in the order of the tables; the first of each is what the others are compared with.
pub(crate) const SCENARIOS: &[Scenario] = &[
    row(Table::Sync, CLIENT_GO, Program::ClientGo, &["sync"]),
    row(
        Table::Sync,
        "client-go, managedFields dropped",
        Program::ClientGo,
        &["sync", "--drop-managed-fields"],
    ),
    row(Table::Sync, "kube-rs, pages", Program::KubeRs, &["sync"]),
    row(Table::Sync, KUBE_RS, Program::KubeRs, &["sync", "--streaming"]),
    row(Table::Sync, "kube-rs, pages, mimalloc", Program::KubeRsMimalloc, &["sync"]),
    row(Table::Sync, TYPED_PAGED, Program::Ours, &["sync", "--paged"]),
    row(Table::Sync, TYPED, Program::Ours, &["sync"]),
    row(Table::Sync, RAW, Program::Ours, &["sync", "--form", "raw"]),
    row(Table::Sync, PACKED, Program::Ours, &["sync", "--form", "packed"]),
    row(Table::Sync, PROJECTION, Program::Ours, &["sync", "--form", "projection"]),
    row(Table::Sync, FIELDS, Program::Ours, &["sync", "--form", "fields"]),
    row(Table::Sync, METADATA, Program::Ours, &["sync", "--form", "metadata"]),
    row(Table::Watch, CLIENT_GO, Program::ClientGo, &["watch"]),
    row(Table::Watch, "client-go, JSON", Program::ClientGo, &["watch", "--json"]),
    row(Table::Watch, "kube-rs", Program::KubeRs, &["watch"]),
    row(Table::Watch, TYPED, Program::Ours, &["watch"]),
    row(Table::Watch, RAW, Program::Ours, &["watch", "--form", "raw"]),
    row(Table::Watch, PACKED, Program::Ours, &["watch", "--form", "packed"]),
    row(Table::Fanout, CLIENT_GO, Program::ClientGo, &["fanout"]),
    row(Table::Fanout, OURS, Program::Ours, &["fanout"]),
    row(Table::Labels, CLIENT_GO, Program::ClientGo, &["labels"]),
    row(Table::Labels, OURS, Program::Ours, &["labels"]),
    row(Table::Reads, CLIENT_GO, Program::ClientGo, &["reads"]),
    row(Table::Reads, OURS, Program::Ours, &["reads"]),
    row(Table::Gateway, "Go gateway", Program::ClientGo, &["gateway"]),
    row(Table::Gateway, OURS, Program::Informer, &["serve"]),
    row(Table::Relists, OURS, Program::Ours, &["relists"]),
    row(Table::Queue, CLIENT_GO, Program::ClientGo, &["queue"]),
    row(Table::Queue, "two sets and a list", Program::Naive, &["queue", "--naive"]),
    row(Table::Queue, OURS, Program::Ours, &["queue"]),
    row(Table::Queue, "ours, strings", Program::Ours, &["queue", "--strings"]),
    row(Table::Delays, CLIENT_GO, Program::ClientGo, &["delays"]),
    row(Table::Delays, OURS, Program::Ours, &["delays"]),
];

impl Scenario {
    /// Whether it is this project's.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.program, Program::Ours | Program::Informer)
    }
}

/// The participant of a row.
pub(crate) fn find(table: Table, who: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.table == table && scenario.who == who)
}
