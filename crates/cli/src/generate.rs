//! What a shell and `man` know about the command, made from its own description.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = "Examples:
  informer completions bash > ~/.local/share/bash-completion/completions/informer
  informer completions zsh > \"${fpath[1]}/_informer\"
  informer completions fish > ~/.config/fish/completions/informer.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the manual page, or write the pages of all commands to a directory
#[derive(Args)]
#[command(after_help = "Examples:
  informer man | man -l -
  informer man --dir ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write informer.1, informer-serve.1 and so on here
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints completions.
pub(crate) fn completions(options: Completions) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "informer", &mut text);
    io::stdout().write_all(&text).context("cannot write the completions")
}

/// Prints or writes manual pages.
pub(crate) fn man(options: &Man) -> Result<()> {
    let Some(dir) = &options.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).context("cannot make the manual page")?;
        return io::stdout().write_all(&page).context("cannot write the manual page");
    };
    let cannot = || format!("cannot write manual pages to {}", dir.display());
    fs::create_dir_all(dir).with_context(cannot)?;
    clap_mangen::generate_to(Cli::command(), dir).with_context(cannot)
}
