//! The real control plane, as `e2e/control-plane` runs it: etcd and kube-apiserver on loopback, gone at the end.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{Process, Usage};

/// It runs until this is dropped.
pub(crate) struct ControlPlane {
    process: Process,
    api_server: Usage,
    url: String,
    dir: PathBuf,
}

impl ControlPlane {
    /// Returns when the server answers.
    pub(crate) async fn start(program: &Path) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("informer-bench-{}", std::process::id()));
        let mut process = Process::start(program, [&dir])?;
        let url = process.line().await?;
        process.word("ready").await?;
        let pid = process.ask("pid").await?;
        let Some(pid) = pid.strip_prefix("ok ").and_then(|pid| pid.parse().ok()) else {
            bail!("the control plane answers {pid:?} instead of its process id");
        };
        Ok(Self { process, api_server: Usage::of(pid), url, dir })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What kube-apiserver has used.
    pub(crate) fn api_server(&self) -> Usage {
        self.api_server
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// A kubeconfig that leads to another address in front of the same server. It goes with the rest.
    pub(crate) fn kubeconfig_by(&self, url: &str) -> Result<PathBuf> {
        let text = std::fs::read_to_string(self.kubeconfig()).context("the control plane's kubeconfig")?;
        let path = self.dir.join("kubeconfig-by-relay");
        std::fs::write(&path, text.replace(&self.url, url))?;
        Ok(path)
    }

    pub(crate) async fn end(self) -> Result<()> {
        self.process.end().await
    }
}
